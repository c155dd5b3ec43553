/* The page on paper: its texts and figures without buttons, in the colours of the light theme.

Printing copies texts, tables and figures to a sheet, the only printed element (paper.css): the page itself fits its
window, clips or scrolls its content, and has the colours of the screen. */
(() => {
  "use strict"
  const LIGHT = COLOURS // of the light theme, by those of the dark one
  const SHEET = "bnnviz-paper"
  const UNSEEN = "style, script, link, head, template"
  const PRESSED = "header, nav.way, .languages, .area-transport, .MuiButtonBase-root, .material-icons,"
    + " .scroll-button, .narration, .keys, .notes, .arrow, .mark, [role=dialog], [role=tooltip], [role=slider], input, textarea"
  const KEPT = new Set("h1 h2 h3 h4 h5 h6 p ul ol li dl dt dd table caption thead tbody tfoot tr th td a b strong i em code pre"
    .concat(" span sub sup br blockquote").split(" "))
  const WORDS = "button.term, button.step, button.choice, h2 > button, h3 > button, td > button, th > button, .tiles > button"
  const WIDE = 0.6 // of its stage: a figure has both columns

  const held = (node) => [...(node.shadowRoot ?? node).childNodes]
  const is_card = (node) => node.matches("div[class*=area-]") && held(node.getRootNode()).some((card) => card.matches?.(".figure-card"))
  const channel = (number) => Number(number).toString(16).padStart(2, "0")
  const in_light = (dark) => dark ? (colour) => LIGHT[colour.toLowerCase()] ?? colour : (colour) => colour
  /* The colours of a text, written in either way. */
  const recoloured = (text, light) => text
    .replace(/rgb\((\d+), ?(\d+), ?(\d+)\)/g, (all, ...rgb) => `#${rgb.slice(0, 3).map(channel).join("")}`)
    .replace(/#[0-9a-f]{6}\b/gi, light)

  function views() {
    const figures = Bokeh.documents.flatMap((doc) => [...doc.all_models]).filter((model) => model.type === "Figure")
    return new Map(figures.map((model) => [Bokeh.index.find_one(model)?.el, model]))
  }

  /* By the colours of a figure's maps, as 24 bits, those of the light theme. A map has colours between those of a theme. */
  function of_maps(figure, light) {
    const table = new Map(), bits = (colour) => Number(`0x${colour.slice(1, 7)}`)
    for (const {palette} of figure.references()) {
      const known = (palette ?? []).map((colour, i) => [i, bits(colour), bits(light(colour))]).filter(([, from, to]) => from !== to)
      for (const [n, [i, , start]] of known.entries()) {
        const [j, , end] = known[n + 1] ?? known[n]
        for (let at = i; at <= j; at++) {
          const share = j > i ? (at - i) / (j - i) : 0
          const mixed = [16, 8, 0].map((by) => Math.round((start >> by & 255) * (1 - share) + (end >> by & 255) * share) << by)
          table.set(bits(palette[at]), mixed[0] | mixed[1] | mixed[2])
        }
      }
    }
    return table
  }

  function repainted(canvas, table) {
    const copy = Object.assign(document.createElement("canvas"), {width: canvas.width, height: canvas.height})
    const ctx = copy.getContext("2d")
    ctx.drawImage(canvas, 0, 0)
    const image = ctx.getImageData(0, 0, copy.width, copy.height), {data} = image
    for (let i = 0; i < data.length; i += 4) {
      const colour = table.get(data[i] << 16 | data[i + 1] << 8 | data[i + 2])
      if (data[i + 3] && colour !== undefined) { data.set([colour >> 16, colour >> 8 & 255, colour & 255], i) }
    }
    ctx.putImageData(image, 0, 0)
    return copy
  }

  function* inner(view) {
    yield view
    for (const child of view.children()) { yield* inner(child) }
  }

  /* Maps and their bars are pictures that Bokeh has painted before. */
  function with_light_maps(figure, light, draw) {
    const table = of_maps(figure, light), kept = new Map()
    const within = table.size ? new Set(inner(Bokeh.index.find_one(figure))) : []
    for (const view of within) {
      const {image_data, _image} = view
      if (image_data && !kept.has(image_data)) { kept.set(image_data, [...image_data]) }
      if (_image instanceof HTMLCanvasElement) { kept.set(view, _image) }
    }
    for (const [at, was] of kept) {
      if (Array.isArray(at)) { at.splice(0, at.length, ...was.map((each) => each && repainted(each, table))) }
      else { at._image = repainted(was, table) }
    }
    try { return draw() } finally {
      for (const [at, was] of kept) { if (Array.isArray(at)) { at.splice(0, at.length, ...was) } else { at._image = was } }
    }
  }

  /* Bokeh's legend marks are bitmaps on separate canvases: they are omitted, and drawn afterwards. */
  function with_legends(figure, draw) {
    const legends = [...inner(Bokeh.index.find_one(figure))].filter((view) => view.model.type === "Legend")
    const marks = legends.flatMap((view) => view.entries.map((entry) => ({view, entry, glyph: entry.glyph})))
    const nothing = Object.assign(document.createElement("canvas"), {width: 1, height: 1})
    for (const {entry} of marks) { entry.glyph = {canvas: nothing} }
    let drawn
    try { drawn = draw() } finally { for (const {entry, glyph} of marks) { entry.glyph = glyph } }
    for (const mark of marks) { draw_mark(drawn.ctx, mark) }
    return drawn
  }

  function draw_mark(ctx, {view: {model, plot_view}, entry: {item, label}, glyph}) {
    const box = glyph.canvas.getBoundingClientRect(), from = plot_view.canvas.el.getBoundingClientRect()
    ctx.save()
    ctx.translate(box.left - from.left, box.top - from.top)
    for (const renderer of item.renderers) {
      const view = plot_view.views.find_one(renderer)
      view?.draw_legend(ctx, 0, model.glyph_width, 0, model.glyph_height, item.get_field_from_label_prop(), label, item.index)
    }
    ctx.restore()
  }

  /* A figure as a drawing of lines: axes and grid by Bokeh, then the glyphs of the views' own canvas. */
  function drawing(figure, light) {
    const paint = () => Bokeh.index.find_one(figure).export("svg", false)
    const {ctx} = with_light_maps(figure, light, () => with_legends(figure, paint))
    globalThis.bnnviz_pens?.get(figure)?.draw_on(ctx, light)
    const svg = ctx.get_svg(), {width, height} = Bokeh.index.find_one(figure).bbox
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`)
    for (const name of ["width", "height"]) { svg.removeAttribute(name) }
    const box = document.createElement("div")
    box.className = "drawing"
    box.style.maxWidth = `${width}px`
    box.innerHTML = recoloured(new XMLSerializer().serializeToString(svg), light)
    box.title = figure.html_attributes["aria-label"] ?? ""
    return box
  }

  function picture(canvas) {
    const image = new Image()
    image.src = canvas.toDataURL()
    image.style.width = `${canvas.clientWidth}px`
    return image
  }

  /* The text of a control: its label and its value. */
  function setting(control) {
    const label = control.querySelector("label"), value = control.querySelector("[role=combobox], input:not([type=range])")
    const line = document.createElement("p")
    line.className = "setting"
    const words = [...label?.childNodes ?? []].filter((node) => node.nodeType === 3 || node.matches("strong"))
    const said = value && !value.closest(".MuiSlider-root") ? (value.value ?? value.textContent).trim() : ""
    line.textContent = words.map((node) => node.textContent).join(" ").replace(" :", ":") + (said ? `: ${said}` : "")
    return said || label?.querySelector("strong") ? [line] : []
  }

  function attributes(from, to, light) {
    for (const name of ["class", "lang", "colspan", "rowspan", "scope", "aria-current"]) {
      if (from.hasAttribute(name)) { to.setAttribute(name, from.getAttribute(name)) }
    }
    if (from.hasAttribute("style") && from.closest(".bnnviz-legend, .key, table")) {
      to.setAttribute("style", recoloured(from.getAttribute("style"), light))
    }
    if (from.href) { to.href = from.href }
    if (from.href && from.origin !== location.origin) { to.dataset.address = from.href }
  }

  /* Copies of a node's content. `known` maps elements to the page's figures. */
  function copies(node, known, light) {
    if (node.nodeType === Node.TEXT_NODE) { return node.data ? [document.createTextNode(node.data)] : [] }
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(UNSEEN) || !node.checkVisibility({visibilityProperty: true})) {
      // Elements without a box may contain elements with one.
      if (node.nodeType !== Node.ELEMENT_NODE || getComputedStyle(node).display !== "contents") { return [] }
    }
    if (known.has(node)) { return [drawing(known.get(node), light)] }
    if (node.matches("canvas")) { return node.width && node.height ? [picture(node)] : [] }
    if (node.matches("img")) { return [node.cloneNode()] }
    if (node.matches("svg")) {
      const kept = document.createElement("span")
      kept.innerHTML = recoloured(node.outerHTML, light)
      return node.closest(".bnnviz-legend, .key") ? [kept] : []
    }
    if (node.matches(".MuiFormControl-root")) { return setting(node) }
    // Links to other pages are buttons too.
    if (node.matches("td a") && node.origin === location.origin) { return [] }
    if (node.matches(PRESSED) || (node.matches("button") && !node.matches(WORDS))) { return [] }
    return wrapped(node, held(node).flatMap((child) => copies(child, known, light)), light)
  }

  /* The copies of an element's content, within a copy of the element if it defines their arrangement. */
  function wrapped(node, inside, light) {
    const name = node.localName, words = node.matches(WORDS)
    if (!inside.some((each) => each.nodeType === Node.ELEMENT_NODE || each.data.trim()) && !["td", "th", "br"].includes(name)) {
      return name === "span" ? inside : []
    }
    const made = document.createElement(words ? "span" : KEPT.has(name) ? name : "div"), shape = getComputedStyle(node)
    attributes(node, made, light)
    made.append(...inside)
    const beside = (shape.display === "flex" && shape.flexDirection === "row") || (shape.display === "grid" && words)
    made.classList.toggle("line", beside)
    made.classList.toggle("stage", held(node).some((child) => child.matches?.(".figure-card")))
    made.classList.toggle("card", is_card(node))
    // Two figures share a row, except for figures that are wide on the screen.
    made.classList.toggle("wide", is_card(node) && node.offsetWidth > WIDE * node.getRootNode().host.clientWidth)
    return [made]
  }

  function all_in(root, selector) {
    const inner = [...root.querySelectorAll("*")].filter((el) => el.shadowRoot)
    return [...root.querySelectorAll(selector), ...inner.flatMap((el) => all_in(el.shadowRoot, selector))]
  }

  function heading(page) {
    const address = new URL(location.href), link = document.createElement("a"), line = document.createElement("p")
    const name = all_in(page, "a.here")[0]?.textContent
    for (const name of ["token", "theme", "projector", "play"]) { address.searchParams.delete(name) }
    Object.assign(link, {href: address.href, textContent: address.href})
    line.className = "from"
    line.append(name ? `${document.title}: ${name}. ` : `${document.title}. `, link)
    return line
  }

  function prepare() {
    if (document.getElementById(SHEET)) { return }
    const page = document.querySelector(".bk-panel-models-esm-ReactComponent")?.shadowRoot
    if (!page?.querySelector("main")) { return }
    const dark = page.querySelector(".mui-dark") !== null, light = in_light(dark), known = views()
    const sheet = document.createElement("div")
    sheet.id = SHEET
    sheet.append(heading(page))
    const purpose = all_in(page, ".purpose")[0], main = page.querySelector("main")
    for (const [part, name] of [[purpose, "purpose"], [main, "told"], [page.querySelector(".area-sidebar"), "settings"]]) {
      if (!part) { continue }
      const box = document.createElement("section")
      box.className = name
      box.append(...copies(part, known, light))
      // Headings that precede only buttons are omitted.
      const lines = [...box.querySelectorAll("h2, p")]
      for (const [i, line] of lines.entries()) {
        if (name === "settings" && line.matches("h2") && !lines[i + 1]?.matches("p")) { line.remove() }
      }
      sheet.append(box)
    }
    document.body.append(sheet)
  }

  const forget = () => document.getElementById(SHEET)?.remove()
  addEventListener("beforeprint", prepare)
  addEventListener("afterprint", forget)
  matchMedia("print").addEventListener("change", ({matches}) => (matches ? prepare() : forget()))
})()
