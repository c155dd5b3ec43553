// Reports keys (except while typing, or if the focused control takes them), the visibility of the page, and reduced
// motion.

const TYPING = "input:not([type=checkbox], [type=range], [type=radio]), textarea, select, [contenteditable], " +
  "[role=combobox], [role=listbox], [role=menu]"
const PRESSED = "button, a[href], summary, input, [role=button], [role=switch], [role=tab]" // take space for themselves
const SLID = "input[type=range], [role=slider]" // take arrows
const KEYS = {" ": "play", "ArrowRight": "proposal", "ArrowLeft": "before", "e": "event", "r": "reset", "?": "help", "n": "next", "p": "back", "Escape": "close"}

export function render({model}) {
  // A clicked button keeps the focus invisibly: the space bar still plays.
  let pointed = false
  const point = () => { pointed = true }

  function name_of(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) { return null }
    const path = event.composedPath().filter((el) => el.matches)
    const on = (selector) => path.some((el) => el.matches(selector))
    if (on(TYPING) || (on("[role=dialog]") && event.key !== "?")) { return null }
    if (event.key === " " && !pointed && on(PRESSED)) { return null }
    if (event.key.startsWith("Arrow") && on(SLID)) { return null }
    if (event.key === "ArrowRight" && event.shiftKey) { return "event" }
    return KEYS[event.key] ?? null
  }

  const keydown = (event) => {
    if (event.key === "Tab") { pointed = false }
    const name = name_of(event)
    if (name === null) { return }
    event.preventDefault()
    if (!event.repeat || name === "proposal") { model.send_msg({key: name}) }
  }
  const keyup = (event) => { if (event.key === " " && name_of(event)) { event.preventDefault() } }
  const visible = () => model.send_msg({hidden: document.hidden})
  const motion = matchMedia("(prefers-reduced-motion: reduce)")
  const still = () => model.send_msg({still: motion.matches})

  document.addEventListener("pointerdown", point)
  document.addEventListener("keydown", keydown)
  document.addEventListener("keyup", keyup)
  document.addEventListener("visibilitychange", visible)
  motion.addEventListener("change", still)
  model.on("remove", () => {
    document.removeEventListener("pointerdown", point)
    document.removeEventListener("keydown", keydown)
    document.removeEventListener("keyup", keyup)
    document.removeEventListener("visibilitychange", visible)
    motion.removeEventListener("change", still)
  })
  if (document.hidden) { visible() }
  if (motion.matches) { still() }
}
