// Plays films, one at a time: shows any frame in the figures, with its texts.
"use strict"

const SPEEDS = [1, 2, 5, 10, 20, 30, 60] // frames/s
const by_id = (id) => document.getElementById(id)

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties)
  element.append(...children)
  return element
}

// Values in the places of a text.
const filled = (text, values) => text.replace(/{(\w+)}/g, (whole, name) => values[name] ?? whole)

async function unpacked(id) {
  const text = by_id(id).textContent, bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))
  return new Response(stream).arrayBuffer()
}

// The place of the last change at or before a frame.
function place(at, frame) {
  let low = 0, high = at.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (at[middle] <= frame) { low = middle } else { high = middle - 1 }
  }
  return low
}

const value_of = ({at, of, values}, frame) => values[of[place(at, frame)]]

// The data of a sheet, read when they are shown: the number of points of each mark, then the columns of all.
function reader(sheet, bytes) {
  // Of a column at each change: its length, and where it begins among all of it.
  const lengths = sheet.shapes.map((shape) => shape.flatMap(([points, columns]) => Array(columns).fill(points)))
  const begins = sheet.columns.map((_, i) => {
    const found = [0]
    for (const own of lengths) { found.push(found.at(-1) + (own[i] ?? 0)) }
    return found
  })
  return (which) => {
    const counts = sheet.shapes[which].map(([points]) => points)
    const packed = new Float32Array(counts.length + lengths[which].reduce((sum, length) => sum + length, 0))
    packed.set(counts)
    let at = counts.length
    for (const [i, count] of lengths[which].entries()) {
      const [kind, scale, offset, from] = sheet.columns[i]
      const skipped = begins[i][which], out = packed.subarray(at, at + count)
      at += count
      if (kind === "f") { out.set(new Float32Array(bytes, from + 4 * skipped, count)); continue }
      const codes = new Int16Array(bytes, from + 2 * skipped, count)
      for (let k = 0; k < count; k++) { out[k] = codes[k] === -32768 ? NaN : offset + scale * codes[k] }
    }
    return packed
  }
}

const reported = async (id) => JSON.parse(new TextDecoder().decode(await unpacked(id)))

// The state that films of one page share.
const page = {dark: false, large: false, rate: 10, reported: null, film: null, until: null} // until: the frame at which playing stops

// BokehJS is the last script of the page, so that texts appear before it has run.
const bokeh_ready = new Promise((resolve) => {
  if (document.readyState === "loading") { addEventListener("DOMContentLoaded", resolve) } else { resolve() }
})

async function build(number) {
  const [film, bytes] = await Promise.all([reported(`content-${number}`), unpacked(`numbers-${number}`), bokeh_ready])
  page.translate?.(film)
  const {words} = page.reported, ended = new AbortController()
  const last = film.steps.length - 1
  const doc = Bokeh.require("document/document").Document.from_json(film.document)
  const cards = new Map(film.cards.map((card) => [card.part, {...card, ...elements(card)}]))
  const owner = new Map()
  for (const card of cards.values()) { for (const id of card.models) { owner.set(id, card) } }
  const sheets = film.sheets.map((sheet) => ({...sheet, read: reader(sheet, bytes), shown: -1}))
  const values = film.values.map((value) => ({...value, shown: null}))
  const ranges = new Map() // of figures with one scale: what the film wants of their axes
  for (const card of cards.values()) {
    if (card.alike) { for (const id of card.ranges) { const {start, end} = doc.get_model_by_id(id); ranges.set(id, {start, end}) } }
  }
  const labels = new Map() // of axes: what the film writes there, where there is room
  for (const card of cards.values()) {
    for (const id of card.axes) { labels.set(id, doc.get_model_by_id(id).axis_label) }
  }
  let frame = -1
  let playing = false, due = 0, painted = 0

  // ---- construction

  by_id("stage").style.gridTemplate = film.grid
  by_id("title").textContent = page.reported.heading ?? film.title
  by_id("made").textContent = film.made
  by_id("table").hidden = !film.tabled
  by_id("scrubber").max = last
  by_id("speed").replaceChildren(...SPEEDS.map((n) => make("option", {value: n, textContent: `${n} ${words.rate}`})))
  by_id("speed").value = page.rate
  by_id("speed").onchange = () => { page.rate = Number(by_id("speed").value) }
  mark_scrubber(film, last)
  tell_settings(film)

  function elements(card) {
    if (card.bar) { return {section: by_id("events"), home: by_id("events")} }
    const title = make("h2"), note = make("span", {className: "note"}), legend = make("div", {className: "legend"})
    const home = make("div", {className: "home"}), head = make("div", {className: "head"}, title)
    home.setAttribute("role", "img")
    for (const [part, name] of card.others) {
      const turn = make("button", {type: "button", textContent: name})
      turn.onclick = () => { show_card(part); cards.get(part).section.querySelector("button").focus() }
      head.append(turn)
    }
    head.append(note)
    const section = make("section", {className: "card", id: `card-${card.part}`, hidden: card.behind}, head, legend, home)
    section.style.gridArea = card.place
    section.style.order = card.order // on a phone
    by_id("stage").append(section)
    return {section, title, note, legend, home}
  }

  function show_card(part) {
    const card = cards.get(part)
    for (const [other] of card.others) { cards.get(other).section.hidden = true }
    card.section.hidden = false
    show_figures()
    requestAnimationFrame(fit)
  }

  // ---- a frame

  const seen = (id) => !(owner.get(id)?.section.hidden)

  function show_figures() {
    const events = []
    for (const value of values) {
      if (!seen(value.model)) { continue }
      const series = page.dark && value.dark ? value.dark : value.light
      const now = series.of[place(series.at, frame)], mark = `${series === value.dark}${now}`
      if (value.shown === mark) { continue }
      value.shown = mark
      if (ranges.has(value.model)) { ranges.get(value.model)[value.attr] = series.values[now]; continue }
      if (value.attr === "axis_label" && labels.has(value.model)) { labels.set(value.model, series.values[now]); continue }
      events.push({kind: "ModelChanged", model: {id: value.model}, attr: value.attr, new: series.values[now]})
    }
    if (events.length) { doc.apply_json_patch({events}, new Map()) }
    fit()
    for (const sheet of sheets) {
      const now = place(sheet.at, frame)
      if (sheet.shown !== now && seen(sheet.model)) {
        sheet.shown = now
        doc.get_model_by_id(sheet.model).data = {packed: sheet.read(now)}
      }
    }
  }

  function fit() {
    for (const card of cards.values()) {
      if (card.section.hidden) { continue }
      fit_labels(card)
      if (card.alike) { fit_ranges(card) }
    }
  }

  // Of a figure's frame; 0 until it has been laid out.
  function sizes_of(root) {
    const figure = doc.get_model_by_id(root), {inner_width, inner_height} = figure.properties
    return [inner_width, inner_height].map((size) => size.is_unset ? 0 : figure[size.attr])
  }

  // A label that does not fit is shortened, as in the live views.
  function fit_labels({root, axes: [across, up]}) {
    const [, known] = sizes_of(root), height = known || Infinity, has_room = doc.get_model_by_id(across).axis_label
    const {low: least, letter: plain} = page.reported, letter = plain * scale()
    const low = has_room ? least : least + 2.5 * letter
    const whole = labels.get(up) ?? "", fitting = [whole, whole.split(" (")[0]]
    const shown = [
      height >= low ? labels.get(across) : "",
      // Bokeh never clears the parts of a label outside the figure.
      (known && fitting.find((words) => 0.5 * letter * words.length <= height)) || "",
    ]
    for (const [i, id] of [across, up].entries()) {
      const axis = doc.get_model_by_id(id)
      if (axis.axis_label !== shown[i]) { axis.axis_label = shown[i] }
    }
  }

  // The type of the axes in the chosen size.
  function fit_type() {
    for (const card of cards.values()) {
      for (const id of card.axes) {
        const sizes = [page.reported.letter, page.reported.tick].map((size) => `${size * scale()}px`)
        doc.get_model_by_id(id).setv({axis_label_text_font_size: sizes[0], major_label_text_font_size: sizes[1]})
      }
    }
    fit()
  }

  // Equal scales: the axis with spare room shows more than the film's range.
  function fit_ranges(card) {
    const sizes = sizes_of(card.root)
    const requested = card.ranges.map((id) => ranges.get(id))
    const scale = Math.max(...requested.map(({start, end}, i) => (end - start) / (sizes[i] || 1)))
    card.ranges.forEach((id, i) => {
      const {start, end} = requested[i], width = sizes[0] && sizes[1] ? scale * sizes[i] : end - start
      const range = doc.get_model_by_id(id), low = (start + end - width) / 2, high = (start + end + width) / 2
      if (range.start !== low || range.end !== high) { range.setv({start: low, end: high}) }
    })
  }

  function show_words() {
    const [text, warning] = value_of(film.caption, frame)
    const line = make("p", {}, text)
    if (warning) { line.append(" ", make("span", {className: "warning", textContent: warning})) }
    if (by_id("caption").textContent !== line.textContent) { by_id("caption").replaceChildren(line) }
    for (const card of cards.values()) { if (!card.bar) { head(card) } }
    const rows = value_of(film.table, frame)
    if (rows !== show_words.rows) {
      show_words.rows = rows
      by_id("table").querySelector("table").replaceChildren(...rows.map(([label, figure, tone]) =>
        make("tr", {}, make("td", {textContent: label}), make("td", {textContent: figure, className: tone}))))
    }
    value_of(film.status, frame).forEach(([figure, unit], i) => {
      by_id("status").children[i] ?? by_id("status").append(make("span"))
      const cell = by_id("status").children[i], words = `${figure} ${unit}`
      if (cell.textContent !== words) {
        cell.replaceChildren(make("b", {textContent: figure}), ` ${unit}`)
        cell.style.minWidth = `${Math.max(parseFloat(cell.style.minWidth) || 0, 0.58 * words.length)}em`
      }
    })
    by_id("scrubber").value = frame
    by_id("scrubber").setAttribute("aria-valuetext", filled(words.place, [frame + 1, last + 1, film.steps[frame]]))
    by_id("where").textContent = `${frame + 1} / ${last + 1}`
  }

  function head(card) {
    const [title, note, description] = value_of(film.words[card.name], frame)
    const legend = value_of(film.legends[card.name][Number(page.dark)], frame)
    if (card.title.textContent !== title) { card.title.textContent = title }
    if (card.note.textContent !== note) { card.note.textContent = note }
    card.home.setAttribute("aria-label", description)
    // Markup of the views, with escaped names; the page's policy forbids scripts in it.
    if (card.legend_shown !== legend) { card.legend_shown = legend; card.legend.innerHTML = legend }
  }

  function seek(to) {
    const requested = Math.min(Math.max(Math.round(to), 0), last)
    if (requested === frame) { return }
    frame = requested
    show_figures()
    show_words()
    document.body.dataset.frame = frame
    document.dispatchEvent(new CustomEvent("bnnviz-frame", {detail: frame}))
  }

  // A task that is asked for in an animation frame runs when that frame has been painted.
  function when_painted() {
    return new Promise((resolve) => requestAnimationFrame(() => {
      const after = new MessageChannel()
      after.port1.onmessage = () => { after.port1.close(); painted += 1; resolve(painted) }
      after.port2.postMessage(null)
    }))
  }

  // Makes room for another film.
  function close() {
    set_playing(false)
    ended.abort()
    shown.clear()
    for (const card of cards.values()) { card.bar ? card.home.replaceChildren() : card.section.remove() }
    by_id("status").replaceChildren()
    show_words.rows = undefined
  }

  // ---- playing

  function set_playing(requested) {
    if (playing === requested) { return }
    playing = requested
    by_id("play").textContent = playing ? words.pause : words.play
    // A screen reader cannot announce ten texts a second.
    by_id("caption").setAttribute("aria-live", playing ? "off" : "polite")
    if (!playing) { return }
    if (frame === last || frame === page.until) { seek(0) }
    due = performance.now() + 1000 / by_id("speed").value
    requestAnimationFrame(go_on)
  }

  function go_on(now) {
    if (!playing) { return }
    if (now >= due - 4) {
      const period = 1000 / by_id("speed").value
      // A slow page still shows each frame, later.
      due = Math.max(due + period, now)
      seek(frame + 1)
      if (frame === last || frame === page.until) { set_playing(false); return }
    }
    requestAnimationFrame(go_on)
  }

  function go(to) { set_playing(false); seek(to) }

  function repaint() {
    show_figures()
    show_words()
  }

  by_id("play").onclick = () => set_playing(!playing)
  by_id("back").onclick = () => go(frame - 1)
  by_id("next").onclick = () => go(frame + 1)
  by_id("scrubber").oninput = (event) => go(Number(event.target.value))
  document.addEventListener("keydown", (event) => {
    const {key, target} = event
    const own = target.closest?.("select, dialog[open]") || (key === " " && target.closest?.("button, summary"))
    if (own || event.ctrlKey || event.altKey || event.metaKey) { return }
    const does = {
      " ": () => set_playing(!playing), ArrowRight: () => go(frame + 1), ArrowLeft: () => go(frame - 1),
      Home: () => go(0), End: () => go(last), PageDown: () => go(frame + 10), PageUp: () => go(frame - 10),
    }[key]
    if (does) { event.preventDefault(); does() }
  }, {signal: ended.signal})

  fit_type()
  const order = doc.roots().map((root) => [...cards.values()].find((card) => card.root === root.id).home)
  const shown = await Bokeh.embed.add_document_standalone(doc, document.body, order)
  for (const card of cards.values()) {
    const {inner_width, inner_height} = doc.get_model_by_id(card.root).properties
    for (const size of [inner_width, inner_height]) { size.change.connect(fit) }
  }
  seek(page.until ?? 0)
  await when_painted()
  return {
    doc, cards, last, seek, when_painted, repaint, fit_type, close, play: () => set_playing(true), pause: () => set_playing(false),
    theme: set_theme, show: show_card, get frame() { return frame }, get playing() { return playing }, get dark() { return page.dark },
  }
}

// How much larger the type is than at a desk.
const scale = () => page.large ? page.reported.magnified : 1

function set_large(requested) {
  page.large = requested
  document.documentElement.toggleAttribute("data-large", requested)
  by_id("projector").setAttribute("aria-pressed", String(requested))
  page.film?.fit_type()
}

function set_theme(requested) {
  page.dark = requested
  document.documentElement.dataset.theme = requested ? "dark" : "light"
  by_id("theme").textContent = requested ? "☀" : "☾"
  by_id("theme").setAttribute("aria-pressed", String(requested))
  page.film?.repaint()
}

// Replaces the current film by another one, or by none.
async function show_film(number) {
  page.film?.close()
  page.film = null
  document.documentElement.toggleAttribute("data-filmless", number === null)
  if (number !== null) { page.film = await build(number) }
  return page.film
}

// Phases as stretches over the scrubber, and a mark where something happened.
function mark_scrubber(film, last) {
  by_id("marks").replaceChildren()
  const share = (frame) => `${100 * frame / Math.max(last, 1)}%`
  const phases = film.marks.filter((mark) => mark.phase !== undefined)
  phases.forEach(({at, phase}, i) => {
    const end = phases[i + 1]?.at ?? last, stretch = make("div", {className: "phase"})
    Object.assign(stretch.style, {left: share(at), width: `calc(${share(end - at)} - 1px)`})
    if (end - at > 0.07 * last) { stretch.append(make("span", {textContent: phase})) }
    by_id("marks").append(stretch)
  })
  for (const {at, role, high} of film.marks) {
    if (role === undefined) { continue }
    const mark = make("i", {className: high ? "high" : ""})
    Object.assign(mark.style, {left: share(at), background: `var(--${role})`})
    by_id("marks").append(mark)
  }
}

function tell_settings(film) {
  const cells = (row) => make("tr", {}, ...row.map((text) => make("td", {textContent: text})))
  const {words} = page.reported, more = by_id("more")
  by_id("settings").replaceChildren(...film.settings.map(cells))
  more.replaceChildren()
  if (film.changes.length) {
    more.append(make("h2", {textContent: words.changes}), make("table", {}, ...film.changes.map(([step, what]) => cells([`${words.step} ${step}`, what]))))
  }
  for (const note of film.notes) { more.append(make("p", {textContent: note})) }
  if (film.command) {
    more.append(make("h2", {textContent: words.command}), make("pre", {textContent: film.command}))
  }
}

// A page that embeds this one has a heading for it, and gives its colours in the address.
const asked = () => ({"#dark": true, "#light": false})[location.hash]

async function open_page() {
  page.reported = await reported("shared")
  if (self !== top) { document.documentElement.dataset.framed = "true" }
  set_theme(asked() ?? page.reported.dark ?? matchMedia("(prefers-color-scheme: dark)").matches)
  set_large(page.reported.large)
  by_id("theme").onclick = () => set_theme(!page.dark)
  by_id("projector").onclick = () => set_large(!page.large)
  by_id("about").onclick = () => by_id("dialog").showModal()
  addEventListener("hashchange", () => { if (asked() !== undefined) { set_theme(asked()) } })
  return page.reported.lesson ? open_lesson(page.reported.lesson) : show_film(0)
}

globalThis.bnnviz_player = open_page()
bnnviz_player.catch((error) => {
  const words = page.reported?.words.failed ?? "The film cannot be shown"
  by_id("caption").replaceChildren(make("p", {className: "warning", textContent: `${words}: ${error.message}`}))
  throw error
})
