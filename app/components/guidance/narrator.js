// Accessibility that the widgets lack: announces the latest event, shows the focus, opens selects and explanations by key,
// lets keys scroll long texts, and respects reduced motion.

const STYLE = `
.mui-light:has(> .MuiAppBar-root) {--focus: #0b4f94}
.mui-dark:has(> .MuiAppBar-root) {--focus: #9ad0ff}
.MuiAppBar-root {--focus: #ffffff}
:focus-visible, .MuiSlider-thumb.Mui-focusVisible, .MuiSwitch-switchBase.Mui-focusVisible {
  outline: 2px solid var(--focus, currentColor) !important; outline-offset: 2px}
/* Their frames show it. */
.MuiInputBase-input:focus-visible, .MuiDialog-container:focus-visible, .MuiDialog-root :focus-visible:has(.MuiDialog-paper) {
  outline: none !important}
.bk-events:focus-visible, .MuiMenuItem-root:focus-visible, .MuiAccordionSummary-root:focus-visible {outline-offset: -2px}
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after {animation: none !important; transition: none !important; scroll-behavior: auto !important}}
`
const CONTROLS = "input, [role=combobox]"
const ICON = ".MuiFormLabel-root svg, .MuiFormControlLabel-label svg" // next to a label with an explanation
const STOPS = "a[href], button:enabled, input:enabled, textarea:enabled, select:enabled, [tabindex='0']"
const DRAWER = ".MuiDrawer-paper[role=dialog]"
const MODAL = ".MuiDialog-root, .MuiDrawer-root.MuiModal-root"
const OVER = `${MODAL}, .MuiPopover-root`
const END = "[data-testid=sentinelEnd]" // takes the focus after the content of an open dialog, drawer or menu
const TEXT = ".bk-panel-models-markup-HTML"
const OPENS = [" ", "Enter", "ArrowDown", "ArrowUp"]

export function render({model}) {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(STYLE)
  const roots = new Set()
  let opener = null // the select that had the focus last
  let outside = null // the last control that had the focus, of those outside dialogs, drawers and menus
  let pointed = false // a pointer has set the focus: an explanation would be in its way
  const watcher = new MutationObserver((changes) => {
    for (const {target, addedNodes} of changes) {
      addedNodes.forEach(enter)
      if (target instanceof Element) {
        explain(target)
        if (closes(target)) { outside?.focus() }
      }
    }
  })

  const sizes = new ResizeObserver((entries) => {
    const targets = entries.map(({target}) => target)
    targets.filter((el) => !el.isConnected).forEach((el) => sizes.unobserve(el))
    // A removed element may be its own root: a link, whose host is the name of a server.
    const here = targets.filter((el) => el.isConnected)
    for (const el of new Set(here.flatMap((target) => [target, target.getRootNode().host ?? target]))) { reach(el) }
  })

  const focused = (event) => {
    const [at] = event.composedPath()
    if (!pointed) { show(at, true) }
    if (at.matches?.("[role=combobox]")) { opener = at }
    if (!within(at, OVER)) { outside = at }
  }
  const left = (event) => show(event.composedPath()[0], false)

  // Every tree of the page, including shadow trees.
  function enter(node) {
    if (node.shadowRoot) { tend(node.shadowRoot) }
    if (node instanceof Element) {
      explain(node)
      if (node.matches(DRAWER)) { node.setAttribute("aria-label", "Settings") }
      if (is_text(node) || node.matches(".MuiDialogContent-root")) { sizes.observe(node) }
    }
    const box = node.matches?.("[role=listbox], [role=menuitem]") ? node.closest("[role=listbox]") : null
    if (box) { list(box, opener) }
    for (const child of node.children ?? []) { enter(child) }
  }
  function tend(root) {
    if (roots.has(root)) { return }
    for (const old of roots) { if (old.host && !old.host.isConnected) { roots.delete(old) } }
    roots.add(root)
    if (root.host?.matches(TEXT)) { sizes.observe(root.host) }
    root.adoptedStyleSheets.push(sheet)
    // The document does not notice a change of focus within one shadow tree.
    root.addEventListener("focusin", focused)
    root.addEventListener("focusout", left)
    watcher.observe(root, {childList: true, subtree: true, attributeFilter: ["aria-label", "tabindex"]})
    enter(root)
  }
  const pressed = (event) => {
    const [at] = event.composedPath()
    pointed = false
    if (event.key === "Escape") { show(at, false) }
    if (event.key === "Tab") { stay(event, roots) }
    // The select opens on a click only.
    if (at.matches?.("[role=combobox].MuiSelect-select") && OPENS.includes(event.key)) {
      event.preventDefault()
      at.click()
    }
  }
  tend(document)
  const point = () => { pointed = true }
  document.addEventListener("keydown", pressed, true)
  document.addEventListener("pointerdown", point, true)

  const speaker = make("div", {className: "narration", role: "status", ariaLive: "polite"})
  speaker.style.cssText = "position: fixed; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)"
  const speak = () => {
    speaker.ariaLive = model.live ? "polite" : "off"
    speaker.textContent = model.message
  }
  model.on("live", speak)
  model.on("message", speak)

  model.on("remove", () => {
    watcher.disconnect()
    sizes.disconnect()
    for (const root of roots) {
      root.removeEventListener("focusin", focused)
      root.removeEventListener("focusout", left)
    }
    document.removeEventListener("keydown", pressed, true)
    document.removeEventListener("pointerdown", point, true)
  })
  return speaker
}

// A widget's explanation is the label of an empty element without a role, which is invalid, and appears only under the
// pointer: it becomes the description of the widget.
function explain(element) {
  const text = element.getAttribute("aria-label")
  if (!text || element.matches("[role]") || element.childElementCount || !element.previousElementSibling?.matches(ICON)) { return }
  element.removeAttribute("aria-label")
  control_of(element)?.setAttribute("aria-description", text)
}

// Whether it is the content of a text pane, which may overflow.
function is_text(element) {
  const root = element.getRootNode()
  return Boolean(root.host?.matches(TEXT)) && element.parentElement?.parentNode === root
}

// Keys scroll what has the focus: a text that is longer than its place is a stop of the tab key.
function reach(host) {
  const longer = host.scrollHeight > host.clientHeight + 1 || host.scrollWidth > host.clientWidth + 1
  const {overflowX, overflowY} = getComputedStyle(host)
  const scrolls = longer && [overflowX, overflowY].includes("auto")
  if (scrolls) { host.tabIndex = 0 } else { host.removeAttribute("tabindex") }
}

// A select gives its choices the role of menu items within a list box, and marks none as selected.
function list(box, opener) {
  for (const item of box.querySelectorAll("[role=menuitem]")) {
    item.setAttribute("role", "option")
    item.setAttribute("aria-selected", item.textContent === opener?.textContent)
  }
}

function control_of(element) {
  return element.closest(".MuiFormControl-root, .MuiFormControlLabel-root")?.querySelector(CONTROLS)
}

// Keeps the focus within an open dialog or drawer: the widgets' focus trap ignores shadow trees.
function stay(event, roots) {
  const path = event.composedPath()
  if (path.some((el) => el.matches?.(".MuiPopover-root"))) { return }
  const opened = [...roots].flatMap((root) => [...root.querySelectorAll(MODAL)])
    .filter((el) => el.querySelector(`:scope > ${END}`)?.tabIndex === 0)
  const dialog = path.find((el) => opened.includes(el)) ?? opened.at(-1)
  if (!dialog) { return }
  const stops = stops_in(dialog.querySelector("[role=dialog]"))
  const at = stops.findLastIndex((el) => path.includes(el))
  const next = event.shiftKey ? (at < 1 ? stops.length : at) - 1 : (at + 1) % stops.length
  event.preventDefault()
  stops[next]?.focus()
}
// The path of an event ends at the shadow tree in which the focus changes.
function within(element, selector) {
  for (let el = element; el instanceof Element; el = el.getRootNode().host) { if (el.closest(selector)) { return true } }
  return false
}

// A dialog or drawer that closes would return the focus to a host of shadow trees, which takes none.
const closes = (element) => element.matches(END) && element.tabIndex < 0 && element.parentElement.matches(MODAL)
const is_stop = (el) => el.matches(STOPS) && el.tabIndex >= 0 && el.checkVisibility()
function stops_in(tree) {
  // A wrapper without a box of its own is never visible, but its content may be.
  const inside = [...tree.shadowRoot?.children ?? [], ...tree.children]
  return inside.flatMap((el) => [...is_stop(el) ? [el] : [], ...stops_in(el)])
}

// Shows or hides the explanation of a control focused by the keyboard.
function show(control, open) {
  if (!control.matches?.(CONTROLS) || (open && !control.matches(":focus-visible"))) { return }
  const icon = control.closest(".MuiFormControl-root, .MuiFormControlLabel-root")?.querySelector(ICON)
  icon?.dispatchEvent(new MouseEvent(open ? "mouseover" : "mouseout", {bubbles: true, relatedTarget: document.body}))
}
