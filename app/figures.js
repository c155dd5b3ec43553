/* Actions of a figure's title: show it on the whole screen, or save it as a file. The name of its view identifies it. */
(() => {
  "use strict" // otherwise the functions would replace window.open and window.close
  let menu = null // the open one

  /* The visible figure of this name; a page may have several. */
  function figure_of(name) {
    const figures = Bokeh.documents.flatMap((doc) => [...doc.all_models]).filter((model) => model.name === name)
    return figures.find((model) => Bokeh.index.find_one(model)?.el.checkVisibility())
  }

  const title_of = (card) => found(card, "h2")[0]?.textContent.trim() ?? "figure"
  const surface_of = (card) => getComputedStyle(card).backgroundColor

  function found(root, selector) {
    const all = [...root.querySelectorAll?.(selector) ?? []]
    for (const el of [root, ...root.querySelectorAll?.("*") ?? []]) {
      if (el.shadowRoot) { all.push(...found(el.shadowRoot, selector)) }
    }
    return all
  }

  function save(blob, card, kind) {
    const link = document.createElement("a")
    link.href = URL.createObjectURL(blob)
    link.download = `${title_of(card).toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-")}.${kind}`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
  }

  /* Axes and grid by Bokeh, then the glyphs of the views' own canvas. */
  function drawn(button, kind, sharp) {
    const figure = figure_of(button.dataset.figure), pen = globalThis.bnnviz_pens?.get(figure)
    const layer = Bokeh.index.find_one(figure).export(kind, sharp)
    pen?.draw_on(layer.ctx)
    return layer
  }

  function save_svg(button, card) {
    const drawing = drawn(button, "svg", false).ctx.get_svg()
    const ground = document.createElementNS(drawing.namespaceURI, "rect")
    for (const [key, value] of Object.entries({width: "100%", height: "100%", fill: surface_of(card)})) {
      ground.setAttribute(key, value)
    }
    drawing.prepend(ground)
    save(new Blob([new XMLSerializer().serializeToString(drawing)], {type: "image/svg+xml"}), card, "svg")
  }

  function save_png(button, card) {
    const {canvas} = drawn(button, "png", true), whole = document.createElement("canvas")
    Object.assign(whole, {width: canvas.width, height: canvas.height})
    const ctx = whole.getContext("2d")
    ctx.fillStyle = surface_of(card)
    ctx.fillRect(0, 0, whole.width, whole.height)
    ctx.drawImage(canvas, 0, 0)
    whole.toBlob((blob) => save(blob, card, "png"))
  }

  const ACTIONS = {
    enlarge: (button, card) => (document.fullscreenElement ? document.exitFullscreen() : card.requestFullscreen()),
    png: save_png,
    svg: save_svg,
  }

  function close(focus) {
    if (!menu) { return }
    const {button} = menu
    menu.remove()
    menu = null
    button.setAttribute("aria-expanded", "false")
    if (focus) { button.focus() }
  }

  /* In the card, which may fill the screen, and above everything else. */
  function open(button, card) {
    const {left, bottom} = button.getBoundingClientRect()
    menu = Object.assign(document.createElement("div"), {button, role: "menu", popover: "manual"})
    menu.setAttribute("aria-label", button.getAttribute("aria-label"))
    const style = getComputedStyle(card)
    Object.assign(menu.style, {position: "fixed", inset: "auto", border: 0, padding: "4px", borderRadius: "8px"})
    Object.assign(menu.style, {background: surface_of(card), color: style.color, boxShadow: "0 2px 12px rgba(0,0,0,.35)"})
    for (const [action, label] of Object.entries(JSON.parse(button.dataset.actions))) {
      const item = document.createElement("button")
      Object.assign(item, {textContent: label, role: "menuitem", type: "button"})
      Object.assign(item.style, {display: "block", width: "100%", padding: "7px 12px", border: 0, borderRadius: "6px"})
      Object.assign(item.style, {background: "none", color: "inherit", font: "14px sans-serif", textAlign: "left"})
      Object.assign(item.style, {cursor: "pointer"})
      for (const [event, ground] of [["focus", "rgba(128,128,128,.25)"], ["blur", "none"]]) {
        item.addEventListener(event, () => { item.style.background = ground })
      }
      item.addEventListener("pointerenter", () => item.focus())
      item.addEventListener("click", () => { close(true); ACTIONS[action](button, card) })
      menu.append(item)
    }
    card.shadowRoot.append(menu)
    menu.showPopover()
    const room = {x: innerWidth - menu.offsetWidth - 8, y: innerHeight - menu.offsetHeight - 8}
    Object.assign(menu.style, {left: `${Math.max(8, Math.min(left, room.x))}px`, top: `${Math.min(bottom + 4, room.y)}px`})
    button.setAttribute("aria-expanded", "true")
    menu.firstChild.focus()
  }

  addEventListener("click", (event) => {
    const path = event.composedPath(), button = path.find((el) => el.matches?.("button[data-figure]"))
    if (menu && path.includes(menu)) { return }
    const again = button === menu?.button
    close(false)
    if (button && !again) { open(button, path.find((el) => el.classList?.contains("figure-card"))) }
  }, true)
  addEventListener("keydown", (event) => {
    const items = [...menu?.children ?? []]
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key], at = items.indexOf(event.composedPath()[0])
    if (!menu || !(step || ["Escape", "Tab", " ", "Enter"].includes(event.key))) { return }
    event.stopImmediatePropagation() // not a key of the page
    if (event.key === "Escape" || event.key === "Tab") { close(true) }
    if (step) { items[(at + step + items.length) % items.length].focus() }
    if (step || event.key === "Escape") { event.preventDefault() }
  }, true)

})()
