/* Drop-downs and the keys of the page.

A drop-down opens when the space bar goes down, and would take its first entry when it comes up again. After a choice it
with a pointer it would keep the focus, and with it the keys of the page; who chooses with keys finds the focus where
it was. */
{
  const on = (event, selector) => event.composedPath().some((el) => el.matches?.(selector))
  let opening = false

  const let_go = () => {
    let focused = document.activeElement
    while (focused?.shadowRoot?.activeElement) { focused = focused.shadowRoot.activeElement }
    if (focused?.matches("[role=combobox]")) { focused.blur() }
  }
  // The focus comes back when the list has gone.
  const chosen = () => { for (const ms of [0, 60, 300]) { setTimeout(let_go, ms) } }

  addEventListener("keydown", (event) => {
    opening = event.key === " " && on(event, "[role=combobox]:not(input)")
  }, true)
  addEventListener("keyup", (event) => {
    if (opening && event.key === " ") {
      event.preventDefault()
      event.stopImmediatePropagation()
    }
    opening = false
  }, true)
  // A key that chooses clicks too, at no place.
  addEventListener("click", (event) => { if (event.detail > 0 && on(event, "[role=option]")) { chosen() } }, true)
}
