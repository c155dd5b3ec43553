// Reports keys, unless somebody types, and whether the page is seen.

const TYPING = "input, textarea, select, [contenteditable], [role=combobox], [role=listbox], [role=menu]"
const KEYS = {" ": "play", "ArrowRight": "proposal", "e": "event", "r": "reset", "?": "help"}

function name_of(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) { return null }
  if (event.composedPath().some((el) => el.matches?.(TYPING))) { return null }
  if (event.key === "ArrowRight" && event.shiftKey) { return "event" }
  return KEYS[event.key] ?? null
}

export function render({model}) {
  const keydown = (event) => {
    const name = name_of(event)
    if (name === null) { return }
    event.preventDefault()
    if (!event.repeat || name === "proposal") { model.send_msg({key: name}) }
  }
  // A button that has the focus would take the space bar for a click of its own.
  const keyup = (event) => { if (event.key === " " && name_of(event)) { event.preventDefault() } }
  const visible = () => model.send_msg({hidden: document.hidden})

  document.addEventListener("keydown", keydown)
  document.addEventListener("keyup", keyup)
  document.addEventListener("visibilitychange", visible)
  model.on("remove", () => {
    document.removeEventListener("keydown", keydown)
    document.removeEventListener("keyup", keyup)
    document.removeEventListener("visibilitychange", visible)
  })
  if (document.hidden) { visible() }
}
