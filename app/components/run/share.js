// Three texts to copy.

const BLOCKS = [
  ["link", "Copy link", "Opens these settings and data here; the run starts from the beginning."],
  ["python", "Copy as Python", "A script with these settings and data."],
  ["command", "Copy as command", "The same in a shell."],
]

function block([name, label, what], text) {
  const done = make("span", {className: "done", role: "status", textContent: what})
  const rows = Math.min(12, text.split("\n").length + (name === "python" ? 0 : 1))
  const area = make("textarea", {
    readOnly: true, className: name, label: label.replace("Copy ", "The run "), spellcheck: false, value: text, rows,
  })
  const button = make_button(label, {}, async () => {
    done.textContent = await copy(text, () => area.select()) ? "Copied." : "Select the text and copy it with Ctrl-C."
  })
  return [make("h3", {}, button, done), area]
}

export function render({model}) {
  const root = make("div")
  const fill = () => {
    if (model.refusal) {
      root.replaceChildren(make("p", {textContent: model.refusal}))
      return
    }
    const texts = {
      link: `${location.origin}${location.pathname}?${model.query}`,
      python: model.python,
      command: model.command,
    }
    // Some runs have no command.
    root.replaceChildren(...BLOCKS.filter(([name]) => texts[name]).flatMap((row) => block(row, texts[row[0]])))
  }
  for (const name of ["query", "python", "command", "refusal"]) { model.on(name, fill) }
  fill()
  return root
}
