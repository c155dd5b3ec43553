// Three texts to copy. Where the browser has no clipboard to give, the text is selected and copied the old way.

const BLOCKS = [
  ["link", "Copy link", "Opens the same run on this server."],
  ["python", "Copy as Python", "A script that repeats the run from its beginning."],
  ["command", "Copy as command", "The same in a shell."],
]

async function copy(area) {
  try {
    await navigator.clipboard.writeText(area.value)
  } catch {
    area.select()
    if (!document.execCommand("copy")) { return false }
  }
  return true
}

function block([name, label, what], text) {
  const heading = document.createElement("h3")
  const button = document.createElement("button")
  const done = document.createElement("span")
  const area = document.createElement("textarea")
  button.type = "button"
  button.textContent = label
  done.className = "done"
  done.setAttribute("role", "status")
  done.textContent = what
  area.readOnly = true
  area.className = name
  area.setAttribute("aria-label", label.replace("Copy ", "The run "))
  area.spellcheck = false
  area.value = text
  area.rows = Math.min(12, text.split("\n").length + (name === "python" ? 0 : 1))
  button.addEventListener("click", async () => {
    done.textContent = await copy(area) ? "Copied." : "Select the text and copy it with Ctrl-C."
  })
  heading.append(button, done)
  return [heading, area]
}

export function render({model, el}) {
  const root = document.createElement("div")
  const fill = () => {
    if (model.refusal) {
      root.replaceChildren(Object.assign(document.createElement("p"), {textContent: model.refusal}))
      return
    }
    const texts = {
      link: `${location.origin}${location.pathname}?${model.query}`,
      python: model.python,
      command: model.command,
    }
    // Not everything has a command.
    root.replaceChildren(...BLOCKS.filter(([name]) => texts[name]).flatMap((row) => block(row, texts[row[0]])))
  }
  for (const name of ["query", "python", "command", "refusal"]) { model.on(name, fill) }
  fill()
  return root
}
