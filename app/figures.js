/* Actions of a figure's title: show it on the whole screen, or save it as a file. The name of its view identifies it. */
(() => {
  "use strict" // otherwise the functions would replace window.open and window.close

  /* The visible figure of this name; a page may have several. */
  function figure_of(name) {
    const figures = Bokeh.documents.flatMap((doc) => [...doc.all_models]).filter((model) => model.name === name)
    return figures.find((model) => Bokeh.index.find_one(model)?.el.checkVisibility())
  }

  const surface_of = (card) => getComputedStyle(card).backgroundColor

  function save(blob, button, kind) {
    const link = document.createElement("a")
    link.href = URL.createObjectURL(blob)
    link.download = `${button.textContent.trim().toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-")}.${kind}`
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
    save(new Blob([new XMLSerializer().serializeToString(drawing)], {type: "image/svg+xml"}), button, "svg")
  }

  function save_png(button, card) {
    const {canvas} = drawn(button, "png", true), whole = document.createElement("canvas")
    Object.assign(whole, {width: canvas.width, height: canvas.height})
    const ctx = whole.getContext("2d")
    ctx.fillStyle = surface_of(card)
    ctx.fillRect(0, 0, whole.width, whole.height)
    ctx.drawImage(canvas, 0, 0)
    whole.toBlob((blob) => save(blob, button, "png"))
  }

  const ACTIONS = {
    enlarge: (button, card) => (document.fullscreenElement ? document.exitFullscreen() : card.requestFullscreen()),
    png: save_png,
    svg: save_svg,
  }

  /* In the card, which may fill the screen. A click elsewhere closes the menu, and reaches nothing else. */
  function open(button, card) {
    const {left, bottom} = button.getBoundingClientRect()
    const menu = document.createElement("dialog"), list = Object.assign(document.createElement("div"), {role: "menu"})
    list.setAttribute("aria-label", button.getAttribute("aria-label"))
    for (const [action, label] of Object.entries(JSON.parse(button.dataset.actions))) {
      const item = Object.assign(document.createElement("button"), {textContent: label, role: "menuitem", type: "button"})
      item.addEventListener("pointerenter", () => item.focus())
      item.addEventListener("click", () => { menu.close(); ACTIONS[action](button, card) })
      list.append(item)
    }
    menu.append(list)
    menu.addEventListener("click", ({target}) => { if (target === menu) { menu.close() } })
    menu.addEventListener("close", () => { menu.remove(); button.setAttribute("aria-expanded", "false") })
    menu.addEventListener("keydown", (event) => {
      const step = {ArrowDown: 1, ArrowUp: -1}[event.key], items = [...list.children]
      if (event.key === "Tab") { menu.close() }
      if (step) { items[(items.indexOf(event.target) + step + items.length) % items.length].focus() }
      if (step || event.key === "Tab") { event.preventDefault() }
    })
    card.shadowRoot.append(menu)
    menu.showModal()
    const room = {x: innerWidth - menu.offsetWidth - 8, y: innerHeight - menu.offsetHeight - 8}
    Object.assign(menu.style, {left: `${Math.max(8, Math.min(left, room.x))}px`, top: `${Math.min(bottom + 4, room.y)}px`})
    button.setAttribute("aria-expanded", "true")
  }

  addEventListener("click", (event) => {
    const path = event.composedPath(), button = path.find((el) => el.matches?.("button[data-figure]"))
    if (button) { open(button, path.find((el) => el.classList?.contains("figure-card"))) }
  }, true)
})()
