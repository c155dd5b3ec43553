// The page's side of a live view in a notebook: builds the figures, asks for a frame when the last one is painted.

const PERIOD = 60 // ms at least between two requests: the sampler and the notebook need the processor too
const AGAIN = 5000 // ms after which an unanswered request is repeated; it may be lost
const LINGER = 6000 // ms that an error stays

function render({model, el}) {
  const page = model.get("_page"), sight = Math.random().toString(36).slice(2)
  const send = (message) => model.send({sight, ...message})
  const parts = build(el, page, send)
  let dark, doc, asked = 0, waiting = 0, painted = 0, seen = true, closed = false, lingers = 0

  function theme() {
    const was = dark
    dark = page.dark ?? is_dark()
    for (const [name, colour] of Object.entries(dark ? page.dark_palette : page.light_palette)) {
      parts.root.style.setProperty(`--bnnviz-${name}`, colour)
    }
    parts.root.style.colorScheme = dark ? "dark" : "light"
    if (was !== undefined && was !== dark) { send({do: "theme", dark}) }
  }

  function ask() {
    if (closed || doc === undefined || !seen || document.hidden) { return }
    if (waiting && performance.now() - waiting < AGAIN) { return }
    waiting = asked = performance.now()
    send({do: "frame"})
  }

  // A task posted in an animation frame runs after that frame has been painted.
  function when_painted(then) {
    requestAnimationFrame(() => {
      const after = new MessageChannel()
      after.port1.onmessage = () => { after.port1.close(); then() }
      after.port2.postMessage(null)
    })
  }

  async function open(message) {
    const bokeh = await bokeh_of(message.version, model)
    if (closed) { return }
    doc = bokeh.require("document/document").Document.from_json(JSON.parse(message.doc))
    parts.cards(message.names, message.across)
    parts.heads(message.heads)
    for (const figure of doc.roots()) {
      // Panning or zooming keeps the ranges until a reset.
      figure.on_event("rangesupdate", () => send({do: "follow", name: figure.name, follow: false}))
      figure.on_event("reset", () => send({do: "follow", name: figure.name, follow: true}))
    }
    await bokeh.embed.add_document_standalone(doc, parts.root, doc.roots().map((figure) => parts.home(figure.name)))
    ask()
  }

  function show(message, buffers) {
    waiting = 0
    if (message.patch) {
      const data = new Map(message.ids.map((id, i) => [id, whole(buffers[i])]))
      doc.apply_json_patch(JSON.parse(message.patch), data)
    }
    parts.heads(message.heads)
    parts.status(message)
    if (performance.now() > lingers) { parts.statement(message.statement) }
    parts.root.dataset.frame = message.frame
    when_painted(() => {
      painted += 1
      parts.root.dataset.painted = painted
      setTimeout(ask, Math.max(0, asked + PERIOD - performance.now()))
    })
  }

  function receive(message, buffers) {
    if (message.sight !== sight) { return }
    if (message.doc !== undefined) { open(message) }
    else if (message.frame !== undefined) { show(message, buffers) }
    else if (message.statement !== undefined) { lingers = performance.now() + LINGER; parts.statement(message.statement) }
  }

  model.on("msg:custom", receive)
  const looks = new IntersectionObserver((entries) => { seen = entries.at(-1).isIntersecting; ask() })
  looks.observe(parts.root)
  const colours = new MutationObserver(theme)
  colours.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-light", "class"]})
  document.addEventListener("visibilitychange", ask)
  const watchdog = setInterval(ask, 1000)
  theme()
  send({do: "open", dark})

  return () => {
    closed = true
    clearInterval(watchdog)
    looks.disconnect()
    colours.disconnect()
    document.removeEventListener("visibilitychange", ask)
    model.off("msg:custom", receive)
    doc?.views_manager?.clear()
    doc?.clear()
    send({do: "close"})
  }
}

// JupyterLab, Notebook and VS Code mark their theme on the body.
function is_dark() {
  const {dataset, classList} = document.body
  return dataset.jpThemeLight === "false" || classList.contains("vscode-dark")
}

// BokehJS of this version: the page's own, or the kernel's, once for a page.
function bokeh_of(version, model) {
  const here = globalThis.Bokeh?.[version] ?? (globalThis.Bokeh?.version === version ? globalThis.Bokeh : undefined)
  if (here !== undefined) { return here }
  const loads = globalThis.bnnviz_loads ??= {}
  return loads[version] ??= new Promise((resolve, reject) => {
    const take = (message, buffers) => {
      if (message.bokeh !== version) { return }
      model.off("msg:custom", take)
      const script = document.createElement("script")
      script.src = URL.createObjectURL(new Blob([buffers[0]], {type: "text/javascript"}))
      script.onload = () => { URL.revokeObjectURL(script.src); resolve(globalThis.Bokeh[version] ?? globalThis.Bokeh) }
      script.onerror = () => reject(new Error("BokehJS could not be loaded"))
      document.head.append(script)
    }
    model.on("msg:custom", take)
    model.send({do: "bokeh"})
  })
}

// The bytes of a message's buffer in a new array.
function whole(view) {
  const {buffer, byteOffset, byteLength} = view
  return buffer.slice(byteOffset, byteOffset + byteLength)
}

// The elements: a bar with buttons and status line, a caption, and a card for each figure.
function build(el, page, send) {
  // Keys pressed here are meant for these controls, not for JupyterLab's command mode.
  const root = make("div", {className: "bnnviz-live"}, {"lm-suppress-shortcuts": "true"})
  const bar = make("div", {className: "bar"})
  const play = make("button", {className: "play", type: "button", textContent: "Play"})
  const proposal = make("button", {type: "button", textContent: "Step proposal"})
  const event = make("button", {type: "button", textContent: "Step event"})
  const speed = make("select", {ariaLabel: "Speed"})
  for (const [label, value] of Object.entries(page.speeds).sort((a, b) => (a[1] || Infinity) - (b[1] || Infinity))) {
    speed.append(make("option", {textContent: label, value}))
  }
  const line = make("div", {className: "line"})
  const statement = make("div", {className: "statement", role: "status"})
  const grid = make("div", {className: "grid"})
  grid.style.height = `${page.height}px`
  play.onclick = () => send({do: play.textContent === "Pause" ? "pause" : "play"})
  proposal.onclick = () => send({do: "step"})
  event.onclick = () => send({do: "step_event"})
  speed.onchange = () => send({do: "speed", value: Number(speed.value)})
  bar.append(play, proposal, event, speed, line)
  root.append(bar, statement, grid)
  root.setAttribute("role", "group")
  root.setAttribute("aria-label", page.title)
  el.append(root)
  const cards = new Map()

  return {
    root,
    home: (name) => cards.get(name).home,

    // The first two are larger, unless a number of cards across is given: then all are of one size.
    cards(names, across) {
      // Samplers of a race have no common events.
      event.hidden = across > 0
      if (across) { proposal.textContent = "Step" }
      const top = Math.min(names.length, 2), rest = names.length - top
      const below = {3: [5, 3, 4]}[rest] ?? Array(rest).fill(12 / rest)
      grid.replaceChildren()
      const rows = across ? `repeat(${Math.ceil(names.length / across)}, minmax(0, 1fr))`
        : rest ? "minmax(0, 1.45fr) minmax(0, 1fr)" : "minmax(0, 1fr)"
      grid.style.setProperty("--rows", rows)
      names.forEach((name, i) => {
        const card = make("section", {className: "card"})
        card.style.gridColumn = `span ${across ? 12 / across : i < top ? 12 / top : below[i - top]}`
        const head = make("header", {}), title = make("b", {}), note = make("span", {className: "note"})
        const legend = make("div", {className: "legend"}), home = make("div", {className: "home"})
        head.append(title, note)
        card.append(head, legend, home)
        grid.append(card)
        cards.set(name, {title, note, legend, home})
      })
    },

    heads(heads) {
      for (const [name, [title, note, legend]] of Object.entries(heads)) {
        const card = cards.get(name)
        card.title.textContent = title
        card.note.textContent = note
        card.legend.innerHTML = legend
      }
    },

    status({status, playing, ended, speed: steps}) {
      play.textContent = playing ? "Pause" : "Play"
      for (const control of [play, proposal, event, speed]) { control.disabled = ended }
      if (document.activeElement !== speed) { speed.value = String(steps) }
      while (line.children.length < status.length) { line.append(make("span", {})) }
      status.forEach(([figure, unit], i) => {
        const text = `${figure} ${unit}`
        if (line.children[i].dataset.text !== text) {
          line.children[i].dataset.text = text
          line.children[i].replaceChildren(make("b", {textContent: figure}), ` ${unit}`)
        }
      })
    },

    statement(sentence) {
      if (statement.textContent !== sentence) { statement.textContent = sentence }
    },
  }
}

function make(tag, properties, data = {}) {
  const element = Object.assign(document.createElement(tag), properties)
  for (const [name, value] of Object.entries(data)) { element.setAttribute(`data-${name}`, value) }
  return element
}

export default {render}
