// A command line with a button that copies it. Where the browser has no clipboard to give, it is selected and copied the
// old way.

async function copy(line, area) {
  try {
    await navigator.clipboard.writeText(line)
    return true
  } catch {
    const range = document.createRange()
    range.selectNodeContents(area)
    const selection = getSelection()
    selection.removeAllRanges()
    selection.addRange(range)
    return document.execCommand("copy")
  }
}

export function render({model}) {
  const root = document.createElement("div"), code = document.createElement("code")
  const button = document.createElement("button"), said = document.createElement("span")
  const done = document.createElement("span")
  button.type = "button"
  button.textContent = "Copy"
  done.className = "done"
  done.setAttribute("role", "status")
  said.className = "said"
  const fill = () => {
    code.textContent = model.line
    said.textContent = model.said
    button.setAttribute("aria-label", `Copy the command ${model.line}`)
  }
  button.addEventListener("click", async () => {
    done.textContent = await copy(model.line, code) ? "copied" : "press Ctrl+C"
    setTimeout(() => { done.textContent = "" }, 2000)
  })
  for (const name of ["line", "said"]) { model.on(name, fill) }
  fill()
  root.append(code, button, done, said)
  return root
}
