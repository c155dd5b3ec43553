// Draws `marks` on a canvas over the frame of `figure`. Runs when the marks or their data change, and once the figure
// has been laid out; after that the figure's own repaints redraw the canvas.

spare_styles()
clear_all()
const pens = globalThis.bnnviz_pens ??= new WeakMap()
// Finding a figure's view takes 1 ms: search only if it is missing or was rendered again.
if (!pens.get(figure)?.here()) {
  const view = cb_context.index.find_one(figure)
  if (view !== null) { pens.set(figure, new_pen(view)) }
}
pens.get(figure)?.ask()

// Bokeh rewrites the style sheets of all parts of a figure at each paint, usually unchanged, and each time the browser
// recomputes the page's styles: 5 to 10 ms a frame.
function spare_styles() {
  const sheet = globalThis.Bokeh?.require?.("core/dom")?.InlineStyleSheet?.prototype
  if (sheet === undefined || sheet.bnnviz_spares) { return }
  sheet.bnnviz_spares = true
  const update = sheet._update
  sheet._update = function (css) { if (this.el.textContent !== css) { update.call(this, css) } }
}

// Bokeh paints half a pixel further right and down than it clears: texts longer than their figure would leave a row of
// pixels.
function clear_all() {
  const layer = globalThis.Bokeh?.require?.("core/util/canvas")?.CanvasLayer?.prototype
  if (layer === undefined || layer.bnnviz_clears) { return }
  layer.bnnviz_clears = true
  const clear = layer.clear
  layer.clear = function () {
    const {ctx, bbox: {x, y, width, height}} = this
    if (ctx instanceof CanvasRenderingContext2D) { ctx.clearRect(x - 1, y - 1, width + 2, height + 2) } else { clear.call(this) }
  }
}

function new_pen(view) {
  const canvas = document.createElement("canvas")
  canvas.style.cssText = "position: absolute; pointer-events: none"
  const ctx = canvas.getContext("2d")
  let asked = false, placed = false

  // Over the figure's frame, under its tools; a figure that is rendered again loses it.
  function place() {
    const {bbox} = view.frame, ratio = view.canvas_view.pixel_ratio
    const home = view.canvas_view.shadow_el
    if (canvas.parentNode !== home) { home.insertBefore(canvas, view.canvas_view.overlays_el) }
    const box = `${bbox.left},${bbox.top},${bbox.width},${bbox.height},${ratio}`
    if (canvas.dataset.box !== box) {
      canvas.dataset.box = box
      Object.assign(canvas.style, {left: `${bbox.left}px`, top: `${bbox.top}px`})
      Object.assign(canvas.style, {width: `${bbox.width}px`, height: `${bbox.height}px`})
      canvas.width = Math.round(ratio * bbox.width)
      canvas.height = Math.round(ratio * bbox.height)
    }
    ctx.setTransform(1, 0, 0, 1, 0, 0)
    ctx.clearRect(0, 0, canvas.width, canvas.height)
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0)
    const edges = {left: 0, top: 0, right: bbox.width, bottom: bbox.height}
    return {...edges, x: scale(view.frame.x_scale, bbox.left), y: scale(view.frame.y_scale, bbox.top)}
  }

  function draw() {
    if (!view.is_displayed || !view.frame.bbox.is_valid) { return }
    const to = place()
    placed = true
    pen.before?.()
    draw_marks(ctx, unpacked(marks.tags), to)
    document.dispatchEvent(new CustomEvent("bnnviz:paint", {detail: figure.name}))
  }

  view.repainted.connect(draw)
  const pen = {
    view,
    before: null, // called before the marks are drawn
    marks: () => unpacked(marks.tags),
    here() { return !placed || canvas.isConnected },
    // On another canvas, or on what writes an SVG, where the figure itself has been drawn.
    draw_on(other) {
      const {left, top, width, height} = view.frame.bbox
      other.save()
      other.beginPath()
      other.rect(left, top, width, height)
      other.clip()
      draw_marks(other, unpacked(marks.tags), {...view.frame.bbox, x: scale(view.frame.x_scale, 0), y: scale(view.frame.y_scale, 0)})
      other.restore()
    },
    ask() {
      if (!asked) {
        asked = true
        requestAnimationFrame(() => { asked = false; draw() })
      }
    },
  }
  return pen
}

function draw_marks(ctx, marks, to) {
  for (const mark of marks) {
    if (!mark.data[mark.columns[0]]?.length) { continue }
    ctx.save()
    ctx.globalAlpha = mark.opacity
    hands[mark.kind](ctx, mark, mark.data, to)
    ctx.restore()
  }
}

// Marks with their columns: a source has the number of points of each of its marks, then their columns one after another.
function unpacked(marks) {
  const data = new Map()
  for (const [source, is_still] of [[moving, false], [still, true]]) {
    const {packed} = source.data, own = marks.filter((mark) => mark.still === is_still)
    let at = own.length
    const total = own.reduce((sum, {columns}, i) => sum + columns.length * packed[i], at)
    for (const [i, mark] of own.entries()) {
      const column = () => new Float32Array(packed.buffer, packed.byteOffset + 4 * at, packed[i])
      // Styles and data of one change may arrive one after the other.
      const columns = total !== packed.length ? [] : mark.columns.map((name) => {
        const pair = [name, column()]
        at += packed[i]
        return pair
      })
      data.set(mark, Object.fromEntries(columns))
    }
  }
  return marks.map((mark) => ({...mark, data: data.get(mark)}))
}

// From a value to a pixel of the frame; the scales are linear.
function scale(bokeh_scale, origin) {
  const zero = bokeh_scale.compute(0), slope = bokeh_scale.compute(1) - zero
  return (value) => slope * value + zero - origin
}

// A line through points from `begin` to `end`; a point that is not a number interrupts it.
function trace(ctx, x, y, to, begin, end) {
  let down = false
  ctx.beginPath()
  for (let i = begin; i < end; i++) {
    const px = to.x(x[i]), py = to.y(y[i])
    if (px !== px || py !== py) { down = false }
    else if (down) { ctx.lineTo(px, py) }
    else { ctx.moveTo(px, py); down = true }
  }
  ctx.stroke()
}

const hands = {
  line(ctx, {colour, width, dash, fading}, {x, y}, to) {
    Object.assign(ctx, {strokeStyle: colour, lineWidth: width, lineJoin: "round"})
    ctx.setLineDash(dash)
    if (!fading) { trace(ctx, x, y, to, 0, x.length); return }
    // The older part, which comes first, fades.
    ctx.lineCap = "round"
    const count = x.length, pieces = Math.min(16, count - 1)
    for (let i = 0; i < pieces; i++) {
      const youth = ((i + 1) / pieces) ** 2
      Object.assign(ctx, {globalAlpha: 0.16 + 0.84 * youth, lineWidth: width * (0.5 + 0.5 * youth)})
      const begin = Math.floor(i * (count - 1) / pieces), end = Math.floor((i + 1) * (count - 1) / pieces)
      trace(ctx, x, y, to, begin, end + 1)
    }
  },

  band(ctx, {colour}, {x, low, high}, to) {
    const inside = []
    for (let i = 0; i < x.length; i++) {
      if (Number.isFinite(x[i]) && Number.isFinite(low[i]) && Number.isFinite(high[i])) { inside.push(i) }
    }
    ctx.fillStyle = colour
    ctx.beginPath()
    for (const i of inside) { ctx.lineTo(to.x(x[i]), to.y(low[i])) }
    for (const i of inside.reverse()) { ctx.lineTo(to.x(x[i]), to.y(high[i])) }
    ctx.fill()
  },

  bars(ctx, {size, colour}, {x, y}, to) {
    const zero = to.y(0)
    ctx.fillStyle = colour
    for (let i = 0; i < x.length; i++) {
      const left = to.x(x[i] - size / 2), right = to.x(x[i] + size / 2), end = to.y(y[i])
      if (left === left && end === end) { ctx.fillRect(left, end, right - left, zero - end) }
    }
  },

  points(ctx, {shape, size, width, colour, fill, opacity}, {x, y, alpha, scale}, to) {
    Object.assign(ctx, {strokeStyle: colour, fillStyle: fill ?? "transparent", lineWidth: width})
    for (let i = 0; i < x.length; i++) {
      const px = to.x(x[i]), py = to.y(y[i])
      if (px !== px || py !== py) { continue }
      if (alpha) { ctx.globalAlpha = opacity * alpha[i] }
      ctx.beginPath()
      shapes[shape](ctx, px, py, (scale ? scale[i] : 1) * size / 2)
      if (fill) { ctx.fill() }
      ctx.stroke()
    }
  },

  segments(ctx, {width, dash, colour}, {x, y, dx, dy, widths}, to) {
    Object.assign(ctx, {strokeStyle: colour, lineWidth: width})
    ctx.setLineDash(dash)
    for (let i = 0; i < x.length; i++) {
      if (widths) { ctx.lineWidth = width * widths[i] }
      ctx.beginPath()
      ctx.moveTo(to.x(x[i]), to.y(y[i]))
      ctx.lineTo(to.x(x[i] + dx[i]), to.y(y[i] + dy[i]))
      ctx.stroke()
    }
  },

  arrows(ctx, {size, width, colour}, {x, y, dx, dy}, to) {
    const HEAD = 8, SPREAD = 0.5
    Object.assign(ctx, {strokeStyle: colour, lineWidth: width, lineJoin: "round", lineCap: "round"})
    for (let i = 0; i < x.length; i++) {
      const px = to.x(x[i]), py = to.y(y[i])
      const across = to.x(x[i] + dx[i]) - px, up = to.y(y[i] + dy[i]) - py
      if (!(Math.hypot(across, up) > 0)) { continue }
      const length = size || Math.hypot(across, up), angle = Math.atan2(up, across)
      const tip = [px + length * Math.cos(angle), py + length * Math.sin(angle)]
      const head = Math.min(HEAD, length / 2)
      const barb = (side) => [tip[0] - head * Math.cos(angle + side), tip[1] - head * Math.sin(angle + side)]
      ctx.beginPath()
      ctx.moveTo(px, py)
      ctx.lineTo(...tip)
      ctx.moveTo(...barb(SPREAD))
      ctx.lineTo(...tip)
      ctx.lineTo(...barb(-SPREAD))
      ctx.stroke()
    }
  },

  // A line across the frame, with a label at the end that has room.
  rule(ctx, {axis, width, dash, colour, text, font}, {at}, to) {
    Object.assign(ctx, {strokeStyle: colour, fillStyle: colour, lineWidth: width, font: `12px ${font}`})
    for (const place of at) {
      const px = axis === "x" ? to.x(place) : to.y(place)
      if (px !== px) { continue }
      ctx.setLineDash(dash)
      ctx.beginPath()
      if (axis === "x") { ctx.moveTo(px, to.top); ctx.lineTo(px, to.bottom) }
      else { ctx.moveTo(to.left, px); ctx.lineTo(to.right, px) }
      ctx.stroke()
      if (!text || axis !== "x" || px > to.right) { continue }
      const left = px - to.left > ctx.measureText(text).width + 10
      Object.assign(ctx, {textBaseline: "top", textAlign: left ? "right" : "left"})
      ctx.fillText(text, px + (left ? -5 : 5), to.top + 4)
    }
  },

  // Regions of several rings; overlaps of rings are holes.
  area(ctx, {colour}, {x, y}, to) {
    ctx.fillStyle = colour
    ctx.beginPath()
    let down = false
    for (let i = 0; i < x.length; i++) {
      if (x[i] !== x[i]) { ctx.closePath(); down = false }
      else if (down) { ctx.lineTo(to.x(x[i]), to.y(y[i])) }
      else { ctx.moveTo(to.x(x[i]), to.y(y[i])); down = true }
    }
    ctx.fill("evenodd")
  },

  text(ctx, {texts, size, colour, colours, font}, {x, y}, to) {
    Object.assign(ctx, {font: `${size}px ${font}`, textAlign: "center", textBaseline: "middle"})
    for (let i = 0; i < x.length; i++) {
      ctx.fillStyle = colours[i] ?? colour
      ctx.fillText(texts[i] ?? texts[0], to.x(x[i]), to.y(y[i]))
    }
  },

  // One pixel for each value, drawn large: the canvas blends between them, or makes cells of them.
  image(ctx, {box, across, ramp, low, high, blended}, {values}, to) {
    const rows = values.length / across
    const picture = Object.assign(document.createElement("canvas"), {width: across, height: rows})
    const small = picture.getContext("2d")
    const pixels = small.createImageData(across, rows), colours = ramp.map(rgb)
    for (let i = 0; i < values.length; i++) {
      // The lowest row comes first in the data, and last in a picture.
      const at = 4 * ((rows - 1 - Math.floor(i / across)) * across + i % across)
      if (Number.isFinite(values[i])) { pixels.data.set(blend(colours, (values[i] - low) / (high - low)), at) }
    }
    small.putImageData(pixels, 0, 0)
    // A single value has a cell of width one.
    const [x0, x1, y0, y1] = box, w = ((x1 - x0) / (across - 1) || 1) / 2, h = ((y1 - y0) / (rows - 1) || 1) / 2
    const left = to.x(x0 - w), right = to.x(x1 + w), below = to.y(y0 - h), above = to.y(y1 + h)
    // An axis may be upside down.
    const turned = below < above
    const place = [left, Math.min(below, above), right - left, Math.abs(below - above)]
    if (ctx instanceof CanvasRenderingContext2D) {
      ctx.imageSmoothingEnabled = blended
      if (turned) { ctx.translate(0, above + below); ctx.scale(1, -1) }
      ctx.drawImage(picture, ...place)
      return
    }
    // SVG viewers may or may not interpolate images: this one is scaled up first.
    const size = {width: Math.max(Math.round(place[2]), 1), height: Math.max(Math.round(place[3]), 1)}
    const large = Object.assign(document.createElement("canvas"), size), drawn = large.getContext("2d")
    drawn.imageSmoothingEnabled = blended
    if (turned) { drawn.translate(0, large.height); drawn.scale(1, -1) }
    drawn.drawImage(picture, 0, 0, large.width, large.height)
    ctx.drawImage(large, place[0], place[1])
  },
}

function rgb(hex) { return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) }

// The colour at a share between 0 and 1 of a ramp.
function blend(colours, share) {
  const place = Math.min(Math.max(share, 0), 1) * (colours.length - 1), i = Math.min(Math.floor(place), colours.length - 2)
  const part = place - i
  return [...colours[i].map((c, k) => c + part * (colours[i + 1][k] - c)), 255]
}

const shapes = {
  circle(ctx, x, y, r) { ctx.arc(x, y, r, 0, 2 * Math.PI) },
  square(ctx, x, y, r) { ctx.rect(x - r, y - r, 2 * r, 2 * r) },
  triangle(ctx, x, y, r) { ctx.moveTo(x, y - 1.1 * r); ctx.lineTo(x + 1.1 * r, y + 0.85 * r); ctx.lineTo(x - 1.1 * r, y + 0.85 * r); ctx.closePath() },
  diamond(ctx, x, y, r) { ctx.moveTo(x, y - r); ctx.lineTo(x + r, y); ctx.lineTo(x, y + r); ctx.lineTo(x - r, y); ctx.closePath() },
  x(ctx, x, y, r) { ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x - r, y + r); ctx.lineTo(x + r, y - r) },
  dash(ctx, x, y, r) { ctx.moveTo(x - r, y); ctx.lineTo(x + r, y) },
  dot(ctx, x, y, r) { ctx.arc(x, y, 0.4 * r, 0, 2 * Math.PI) },
}
