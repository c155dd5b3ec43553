// Reports actions in `figure` by mouse, touch or keys through `statement`. Runs once the figure has been laid out. A drag
// without shift is handled here, a drag with shift by Bokeh: it pans.

const pen = globalThis.bnnviz_pens?.get(figure)
const place = pen?.view.canvas_view.events_el
if (place !== undefined && !place.bnnviz_received && statement.tags[0].received) {
  place.bnnviz_received = true
  receive(pen.view, place)
}
place?.bnnviz_unbox?.(statement.tags[0].unboxed)

function receive(view, place) {
  const NEAR = 12, FAR = 5, LONG_MS = 600, HOVER_MS = 70, REST_MS = 400, STEPS = 40
  let count = 0, drag = null, picked = null, pinned = false, boxed = false, hovered = 0, resting = 0, cursor = null, held = null

  const say = (message) => { statement.data = {statement: [JSON.stringify({...message, n: ++count})]} }
  const editable = () => statement.tags[0].editable
  const cells = statement.tags[0].cells  // clicks choose positions, and drags draw no boxes
  const hovers = statement.tags[0].hovers
  const picks = statement.tags[0].picks  // clicks pick events
  const keyed = statement.tags[0].keyed  // otherwise the page has other keys for these actions
  const frame = () => view.frame.bbox

  function data_at({x, y}) {
    return {x: view.frame.x_scale.invert(x), y: view.frame.y_scale.invert(y)}
  }
  function pixel_of(x, y) {
    return {x: view.frame.x_scale.compute(x), y: view.frame.y_scale.compute(y)}
  }
  function pixel_at(event) {
    const {left, top} = place.getBoundingClientRect()
    return {x: event.clientX - left, y: event.clientY - top}
  }
  function inside({x, y}) {
    const {left, right, top, bottom} = frame()
    return x >= left && x <= right && y >= top && y <= bottom
  }
  function clamped({x, y}) {
    const {left, right, top, bottom} = frame()
    return {x: Math.min(Math.max(x, left), right), y: Math.min(Math.max(y, top), bottom)}
  }

  // The marks of movable points: each mark has all points by number, NaN for points of other marks.
  const movable = () => pen.marks().filter((mark) => mark.editable && mark.data.x)
  function points() {
    const [first, ...others] = movable()
    if (first === undefined) { return null }
    const merged = (name) => first.data[name].map((own, i) =>
      own === own ? own : others.map(({data}) => data[name][i]).find((value) => value === value) ?? NaN)
    return {x: merged("x"), y: merged("y")}
  }

  function nearest(data, pixel, reach) {
    if (data === null) { return null }
    const {x, y} = data
    let best = null, least = reach
    for (let i = 0; i < (x?.length ?? 0); i++) {
      const at = pixel_of(x[i], y[i]), distance = Math.hypot(at.x - pixel.x, at.y - pixel.y)
      if (distance < least) { best = i; least = distance }
    }
    return best
  }

  // ---- events

  function step_at(pixel, reach = NEAR) {
    let best = null, least = reach
    for (const {columns, data: {x, y, id_high, id_low}} of pen.marks()) {
      if (!columns.includes("id_high") || !x) { continue }
      const i = nearest({x, y}, pixel, least)
      if (i === null) { continue }
      const at = pixel_of(x[i], y[i])
      best = 4096 * id_high[i] + id_low[i]
      least = Math.hypot(at.x - pixel.x, at.y - pixel.y)
    }
    return best
  }

  function pick(step) {
    if (step === picked) { return }
    picked = step
    say({do: "pick", event: step})
  }

  function hover(event) {
    const now = performance.now()
    if (hovers) { rest_at(pixel_at(event)) }
    if ((!picks && !hovers) || drag !== null || pinned || now - hovered < HOVER_MS) { return }
    hovered = now
    const pixel = pixel_at(event)
    if (!hovers) { pick(inside(pixel) ? step_at(pixel) : null) }
    else if (inside(pixel)) { say({do: "over", ...data_at(pixel)}) }
  }

  // Reports the position of the mouse; a click chooses it.
  function rest_at(pixel) {
    clearTimeout(resting)
    if (inside(pixel)) { resting = setTimeout(() => say({do: "cell", ...data_at(pixel)}), REST_MS) }
  }

  // ---- points

  const point_at = (pixel) => editable() ? nearest(points(), pixel, NEAR) : null

  // The point follows the pointer immediately, and ignores old positions from the server.
  function hold(i, at) {
    held = {i, ...at}
    redraw()
  }
  function put_held() {
    if (held === null) { return }
    for (const {data: {x, y}} of movable()) {
      if (x[held.i] === x[held.i] && held.i < x.length) { x[held.i] = held.x; y[held.i] = held.y }
    }
  }
  function redraw() { put_held(); pen.ask() }
  pen.before = put_held

  function move(i, pixel, done) {
    const at = data_at(clamped(pixel))
    hold(i, at)
    const now = performance.now()
    if (done || now - (drag?.reported ?? 0) > 100) {
      if (drag !== null) { drag.reported = now }
      say({do: "move", i, ...at, done})
    }
    if (done) { setTimeout(() => { held = null }, 400) }
  }

  // ---- the box and the cursor of the keyboard, drawn over the figure

  function mark(style) {
    const element = document.createElement("div")
    element.style.cssText = `position: absolute; pointer-events: none; box-sizing: border-box; display: none; ${style}`
    place.append(element)
    return element
  }
  const rectangle = mark("border: 2px dashed #c2337f; background: #c2337f22")
  const cross = mark("width: 17px; height: 17px; border: 2px solid #c2337f; border-radius: 50%; margin: -8px 0 0 -8px")
  const reported = mark("")
  reported.setAttribute("aria-live", "polite")
  reported.style.cssText = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)"

  function show_box(from, to) {
    const left = Math.min(from.x, to.x), top = Math.min(from.y, to.y)
    const width = Math.abs(from.x - to.x), height = Math.abs(from.y - to.y)
    Object.assign(rectangle.style, {display: "block", left: `${left}px`, top: `${top}px`})
    Object.assign(rectangle.style, {width: `${width}px`, height: `${height}px`})
  }
  // The box stays until it is removed here or by a box in another figure.
  let kept = null, unboxed = statement.tags[0].unboxed
  function end_box(from, to) {
    const a = data_at(from), b = data_at(to)
    kept = {a, b}
    boxed = true
    say({do: "box", box: [Math.min(a.x, b.x), Math.max(a.x, b.x), Math.min(a.y, b.y), Math.max(a.y, b.y)]})
  }
  function drop_box() {
    rectangle.style.display = "none"
    kept = null
    boxed = false
  }
  view.repainted.connect(() => {
    if (kept === null || drag !== null) { return }
    const from = pixel_of(kept.a.x, kept.a.y), to = pixel_of(kept.b.x, kept.b.y), {left, right, top, bottom} = frame()
    const seen = Math.max(from.x, to.x) > left && Math.min(from.x, to.x) < right &&
      Math.max(from.y, to.y) > top && Math.min(from.y, to.y) < bottom
    if (seen) { show_box(clamped(from), clamped(to)) } else { rectangle.style.display = "none" }
  })
  place.bnnviz_unbox = (count) => {
    if (count !== unboxed) { drop_box() }
    unboxed = count
  }
  function clear() {
    drop_box()
    pinned = false
    picked = null
    say({do: "box", box: null})
  }

  // ---- mouse and finger

  function down(event) {
    const pixel = pixel_at(event)
    if (event.button !== 0 || event.shiftKey || !inside(pixel) || !event.isPrimary) { return }
    event.stopImmediatePropagation()
    if (keyed) { place.focus({preventScroll: true}) }
    place.setPointerCapture(event.pointerId)
    cross.style.display = "none"
    drag = {from: pixel, point: point_at(pixel), moved: false, long: setTimeout(long, LONG_MS), reported: 0}
    if (event.altKey && drag.point !== null) { remove(drag.point); drag = cancelled() }
  }
  function cancelled() { clearTimeout(drag?.long); return null }
  function long() {
    if (drag !== null && !drag.moved && drag.point !== null) { remove(drag.point); drag = null }
  }
  function remove(i) { say({do: "delete", i}) }

  function moved(event) {
    if (drag === null) { hover(event); return }
    event.stopImmediatePropagation()
    const pixel = clamped(pixel_at(event))
    if (!drag.moved && Math.hypot(pixel.x - drag.from.x, pixel.y - drag.from.y) < FAR) { return }
    drag.moved = true
    clearTimeout(drag.long)
    if (drag.point !== null) { move(drag.point, pixel, false) } else if (!cells) { show_box(drag.from, pixel) }
  }

  function up(event) {
    if (drag === null) { return }
    event.stopImmediatePropagation()
    const pixel = clamped(pixel_at(event)), {from, point, moved} = drag
    drag = cancelled()
    if (point !== null) { if (moved) { move(point, pixel, true) } }
    else if (moved && !cells) { end_box(from, pixel) }
    else if (!moved) { click(pixel) }
  }

  function click(pixel) {
    if (cells) { say({do: "cell", ...data_at(pixel)}); return }
    const step = picks ? step_at(pixel) : null
    if (step !== null) { picked = null; pick(step); pinned = true }
    else if (boxed || pinned) { clear() }
    else if (editable()) { say({do: "add", ...data_at(pixel)}) }
  }

  function menu(event) {
    const i = point_at(pixel_at(event))
    if (i !== null) { event.preventDefault(); event.stopImmediatePropagation(); remove(i) }
  }

  // ---- keys

  const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}
  let grabbed = null, corner = null

  function key(event) {
    if (act(event)) { event.preventDefault(); event.stopImmediatePropagation() }
  }

  function act(event) {
    const {key: name, ctrlKey, metaKey, shiftKey, altKey} = event
    if (ctrlKey || metaKey) {
      if (name !== "z" || !editable()) { return false }
      say({do: "undo"})
      return true
    }
    if (name in ARROWS) { go(ARROWS[name], shiftKey, altKey); return true }
    if (name === "Enter") { enter(); return true }
    if (name === "Escape") { grabbed = corner = null; cross.style.display = "none"; clear(); return true }
    if (editable() && (name === "Delete" || name === "Backspace")) { return take_away() }
    if (editable() && name === "c") { say({do: "class"}); return true }
    return false
  }

  function at_cursor() {
    const {left, right, top, bottom} = frame()
    cursor ??= {x: 0.5, y: 0.5}
    return {x: left + cursor.x * (right - left), y: top + cursor.y * (bottom - top)}
  }

  function go([dx, dy], box, fine) {
    if (box && !cells) { corner ??= at_cursor() }
    at_cursor()
    const step = 1 / (fine ? 5 * STEPS : STEPS)
    cursor = {x: Math.min(Math.max(cursor.x + dx * step, 0), 1), y: Math.min(Math.max(cursor.y + dy * step, 0), 1)}
    const pixel = at_cursor(), {x, y} = data_at(pixel)
    Object.assign(cross.style, {display: "block", left: `${pixel.x}px`, top: `${pixel.y}px`})
    if (grabbed !== null) { move(grabbed, pixel, false) }
    else if (corner !== null) { show_box(corner, pixel) }
    if (hovers) { say({do: "over", x, y}) }
    reported.textContent = cells ? `${Math.round(x)}, ${Math.round(y)}` : `${x.toPrecision(3)}, ${y.toPrecision(3)}`
  }

  // Chooses a place, picks up or puts down a point, ends a box, picks the nearest event, or adds a point.
  function enter() {
    const pixel = at_cursor(), point = point_at(pixel)
    if (cells) { click(pixel) }
    else if (grabbed !== null) { move(grabbed, pixel, true); grabbed = null }
    else if (corner !== null) { end_box(corner, pixel); corner = null }
    else if (point !== null) { grabbed = point; reported.textContent = "point picked up" }
    else if (picks) { picked = null; pinned = true; pick(step_at(pixel, Infinity)) }
    else if (editable()) { say({do: "add", ...data_at(pixel)}); reported.textContent = "point added" }
  }

  function take_away() {
    const i = nearest(points(), at_cursor(), 3 * NEAR)
    if (i !== null) { remove(i); reported.textContent = "point deleted" }
    return true
  }

  const ours = {capture: true}
  place.addEventListener("pointerdown", down, ours)
  place.addEventListener("pointermove", moved, ours)
  place.addEventListener("pointerup", up, ours)
  place.addEventListener("pointercancel", () => { drag = cancelled(); if (kept === null) { drop_box() } }, ours)
  if (hovers) { place.addEventListener("pointerleave", () => { clearTimeout(resting); say({do: "out"}) }) }
  place.addEventListener("pointerleave", () => { if (!pinned && picked !== null) { pick(null) } })
  place.addEventListener("contextmenu", menu, ours)
  if (keyed) { place.addEventListener("keydown", key, ours) } else { place.tabIndex = -1 }
  place.addEventListener("blur", () => { cross.style.display = "none" })
  place.style.touchAction = "none"
}
