// A tour in a modal dialog: it points at one part of the page after another, and is offered once to a browser.

const SEEN = "bnnviz-tour"
const GAP = 12
const KEPT = "path" // what moves is not covered either

// The parts are marked by classes of their elements, which lie within nested shadow roots.
function find(name, root = document) {
  const found = root.querySelector(`.tour-${name}`)
  if (found) { return found }
  for (const el of root.querySelectorAll("*")) {
    const inside = el.shadowRoot && find(name, el.shadowRoot)
    if (inside) { return inside }
  }
  return null
}

const box_of = (el) => el?.getBoundingClientRect()
const shown = (box) => box !== undefined && box.width > 0 && box.height > 0

// By how many pixels two boxes cover each other.
function shared(one, other) {
  const across = Math.min(one.left + one.width, other.left + other.width) - Math.max(one.left, other.left)
  const down = Math.min(one.top + one.height, other.top + other.height) - Math.max(one.top, other.top)
  return Math.max(0, across) * Math.max(0, down)
}

// Where a window covers nothing of what it speaks of, and then as little as possible of another box: at one of its sides,
// or else in a corner of the page.
function place_beside(box, {width, height}, kept) {
  const across = [box.left, box.right - width], down = [box.top, box.bottom - height]
  const far = [GAP, innerWidth - width - GAP], low = [GAP, innerHeight - height - GAP]
  const places = [
    ...across.map((left) => ({left, top: box.bottom + GAP})),
    ...down.map((top) => ({left: box.right + GAP, top})),
    ...down.map((top) => ({left: box.left - width - GAP, top})),
    ...across.map((left) => ({left, top: box.top - height - GAP})),
    ...far.flatMap((left) => low.map((top) => ({left, top}))),
  ].map(({left, top}) => ({
    left: Math.max(GAP, Math.min(left, innerWidth - width - GAP)), top: Math.max(GAP, Math.min(top, innerHeight - height - GAP)), width, height,
  }))
  const cost = (place) => 10 * shared(place, box) + (shown(kept) ? shared(place, kept) : 0)
  return places.reduce((best, place) => cost(place) < cost(best) ? place : best)
}

function remember() {
  // A browser that may not keep anything is offered the tour again: no reason to fail.
  try { localStorage.setItem(SEEN, "seen") } catch (error) { console.debug(error) }
}

function seen() {
  try { return localStorage.getItem(SEEN) !== null } catch { return false }
}

export function render({model}) {
  const shade = make("div", {className: "shade"}), ring = make("div", {className: "ring"})
  const title = make("h2", {id: "tour-title"}), text = make("p", {id: "tour-text"})
  const place = make("span", {className: "place"})
  // On the body, over everything: within the page the header and the sidebar would lie above it.
  const host = make("div")
  const root = host.attachShadow({mode: "open"})
  const sheet = make("style", {textContent: model.sheet})
  let stops = [], at = 0, before = null

  const close = () => {
    host.remove()
    document.removeEventListener("keydown", keys, true)
    window.removeEventListener("resize", point)
    remember()
    before?.focus?.()
  }
  const skip = make_button("Skip", {className: "skip"}, close)
  const back = make_button("Back", {className: "back"}, () => go(at - 1))
  const next = make_button("Next", {className: "next"}, () => at === stops.length - 1 ? close() : go(at + 1))
  const row = make("div", {className: "row"}, place, skip, back, next)
  const stop = make("div", {className: "stop", role: "dialog", tabIndex: -1}, title, text, row)
  stop.setAttribute("aria-modal", "true")
  stop.setAttribute("aria-labelledby", title.id)
  stop.setAttribute("aria-describedby", text.id)

  function point() {
    const box = box_of(find(stops[at][0]))
    if (!shown(box)) { return }
    Object.assign(ring.style, {
      left: `${box.left}px`, top: `${box.top}px`, width: `${box.width - 6}px`, height: `${box.height - 6}px`,
    })
    const {left, top} = place_beside(box, stop.getBoundingClientRect(), box_of(find(KEPT)))
    Object.assign(stop.style, {left: `${left}px`, top: `${top}px`})
  }

  function go(number) {
    at = number
    title.textContent = stops[at][1]
    text.textContent = stops[at][2]
    place.textContent = `${at + 1} of ${stops.length}`
    back.disabled = at === 0
    next.textContent = at === stops.length - 1 ? "Done" : "Next"
    point()
    next.focus()
  }

  // Keys belong to the tour while it is open: Tab stays inside, Esc skips.
  function keys(event) {
    if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); close(); return }
    if (event.key === "Tab") {
      const all = [skip, back, next].filter((el) => !el.disabled)
      const here = all.indexOf(root.activeElement)
      const step = event.shiftKey ? -1 : 1
      event.preventDefault()
      all.at((here + step + all.length) % all.length).focus()
    }
    event.stopPropagation()
  }

  const start = () => {
    stops = model.stops.filter(([name]) => shown(box_of(find(name))))
    if (!stops.length || host.isConnected) { return }
    before = document.activeElement
    root.replaceChildren(sheet, shade, ring, stop)
    document.body.append(host)
    document.addEventListener("keydown", keys, true)
    window.addEventListener("resize", point)
    go(0)
  }
  // The dialogs of the page close first: a tour must not lie under one.
  model.on("started", () => setTimeout(start, 400))
  // Not before the first frame is painted: what is pointed at must be in its place.
  const offer = () => { if (model.offered && !seen()) { requestAnimationFrame(() => setTimeout(start, 400)) } }
  model.on("offered", offer)
  offer()
  model.on("remove", () => { if (host.isConnected) { close() } })
}
