/* Drop-downs and the keys of the page.

A drop-down opens when the space bar is pressed, and would choose its first entry on release. After a choice with a
pointer it would regain the focus, and with it the keys of the page, when its list disappears; after a choice with keys
the focus returns to it. */
{
  const on = (event, selector) => event.composedPath().some((el) => el.matches?.(selector))
  let opening = false

  let pointed = false // the last action was a choice with a pointer

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
  // A choice with a key also clicks, without coordinates.
  addEventListener("click", (event) => {
    if (event.detail > 0 && on(event, "[role=option]")) {
      pointed = true
      setTimeout(let_go)
    }
  }, true)
  addEventListener("focusin", () => { if (pointed) { setTimeout(let_go) } }, true)
}
