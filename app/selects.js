/* Drop-downs and the keys of the page.

A drop-down opens when the space bar goes down, and would take its first entry when it comes up again. After a choice
with a pointer it would get the focus back as soon as its list has gone, however long that takes, and with it the keys
of the page; who chooses with keys finds the focus where it was. */
{
  const on = (event, selector) => event.composedPath().some((el) => el.matches?.(selector))
  let opening = false

  let pointed = false // a pointer has chosen, and nothing was done since

  const let_go = () => {
    let focused = document.activeElement
    while (focused?.shadowRoot?.activeElement) { focused = focused.shadowRoot.activeElement }
    if (pointed && focused?.matches("[role=combobox], [role=listbox], [role=listbox] *")) { focused.blur() }
  }

  addEventListener("keydown", (event) => {
    pointed = false
    opening = event.key === " " && on(event, "[role=combobox]:not(input)")
  }, true)
  addEventListener("keyup", (event) => {
    if (opening && event.key === " ") {
      event.preventDefault()
      event.stopImmediatePropagation()
    }
    opening = false
  }, true)
  addEventListener("pointerdown", () => { pointed = false }, true)
  // A key that chooses clicks too, at no place.
  addEventListener("click", (event) => {
    if (event.detail > 0 && on(event, "[role=option]")) {
      pointed = true
      setTimeout(let_go)
    }
  }, true)
  addEventListener("focusin", () => { if (pointed) { setTimeout(let_go) } }, true)
}
