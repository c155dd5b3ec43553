// A command line with a button that copies it.

export function render({model}) {
  const code = make("code"), message = make("span", {className: "message"})
  const done = make("span", {className: "done", role: "status"})
  const select = () => getSelection().selectAllChildren(code)
  const button = make_button("Copy", {}, async () => {
    done.textContent = await copy(model.line, select) ? "copied" : "press Ctrl+C"
    setTimeout(() => { done.textContent = "" }, 2000)
  })
  const fill = () => {
    code.textContent = model.line
    message.textContent = model.message
    button.setAttribute("aria-label", `Copy the command ${model.line}`)
  }
  for (const name of ["line", "message"]) { model.on(name, fill) }
  fill()
  return make("div", {}, code, button, done, message)
}
