// Draws the glyphs of `glyphs` on a canvas of its own over the frame of `figure`. Runs when the strokes or their data
// change, and once the figure has been laid out; after that the figure's own repaints take the canvas along.

spare_styles()
clear_all()
const pens = globalThis.bnnviz_pens ??= new WeakMap()
// Looking for a figure's view takes 1 ms: only where there is none yet, or it was rendered anew.
if (!pens.get(figure)?.here()) {
  const view = cb_context.index.find_one(figure)
  if (view !== null) { pens.set(figure, new_pen(view)) }
}
pens.get(figure)?.ask()

// Bokeh rewrites the style sheets of all parts of a figure at each of its paints, nearly always with the same words,
// and each time the browser computes the page's styles anew: 5 to 10 ms a frame.
function spare_styles() {
  const sheet = globalThis.Bokeh?.require?.("core/dom")?.InlineStyleSheet?.prototype
  if (sheet === undefined || sheet.bnnviz_spares) { return }
  sheet.bnnviz_spares = true
  const update = sheet._update
  sheet._update = function (css) { if (this.el.textContent !== css) { update.call(this, css) } }
}

// Bokeh paints half a pixel further right and down than where it clears from: of words that are longer than their figure
// a row of pixels would stay for good.
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

  // Over the figure's frame, under its tools; a figure that is rendered anew has lost it.
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
    return {x: scale(view.frame.x_scale, bbox.left), y: scale(view.frame.y_scale, bbox.top)}
  }

  function draw() {
    if (!view.is_displayed || !view.frame.bbox.is_valid) { return }
    const to = place()
    placed = true
    draw_strokes(ctx, glyphs.tags, to)
    document.dispatchEvent(new CustomEvent("bnnviz:paint", {detail: figure.name}))
  }

  view.repainted.connect(draw)
  return {
    view,
    here() { return !placed || canvas.isConnected },
    // On another canvas, or on what writes an SVG, where the figure itself has been drawn; with other colours, if asked.
    draw_on(other, recoloured = (colour) => colour) {
      const {left, top, width, height} = view.frame.bbox
      other.save()
      other.beginPath()
      other.rect(left, top, width, height)
      other.clip()
      const strokes = glyphs.tags.map((stroke) => {
        const {colour, fill, ramp} = stroke
        return {...stroke, colour: recoloured(colour), fill: fill && recoloured(fill), ramp: ramp.map(recoloured)}
      })
      draw_strokes(other, strokes, {x: scale(view.frame.x_scale, 0), y: scale(view.frame.y_scale, 0)})
      other.restore()
    },
    ask() {
      if (!asked) {
        asked = true
        requestAnimationFrame(() => { asked = false; draw() })
      }
    },
  }
}

function draw_strokes(ctx, strokes, to) {
  const sheets = new Map()
  for (const stroke of strokes) {
    if (!sheets.has(stroke.source)) { sheets.set(stroke.source, unpack(stroke.source)) }
    const data = sheets.get(stroke.source)
    if (stroke.shown && data[stroke.x]?.length) {
      ctx.save()
      ctx.globalAlpha = stroke.opacity
      hands[stroke.kind](ctx, stroke, data, to)
      ctx.restore()
    }
  }
}

// The columns of a sheet, which lie one after another in one array.
function unpack({data: {packed}, tags: [names]}) {
  const count = packed.length / names.length
  const column = (i) => new Float32Array(packed.buffer, packed.byteOffset + 4 * i * count, count)
  return packed.length ? Object.fromEntries(names.map((name, i) => [name, column(i)])) : {}
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
  line(ctx, {x, y, colour, width, dash}, data, to) {
    Object.assign(ctx, {strokeStyle: colour, lineWidth: width, lineJoin: "round"})
    ctx.setLineDash(dash)
    trace(ctx, data[x], data[y], to, 0, data[x].length)
  },

  // A line whose older part, which comes first, fades.
  trail(ctx, {x, y, colour, width}, data, to) {
    const count = data[x].length, pieces = Math.min(16, count - 1)
    Object.assign(ctx, {strokeStyle: colour, lineJoin: "round", lineCap: "round"})
    for (let i = 0; i < pieces; i++) {
      const youth = ((i + 1) / pieces) ** 2
      Object.assign(ctx, {globalAlpha: 0.16 + 0.84 * youth, lineWidth: width * (0.5 + 0.5 * youth)})
      const begin = Math.floor(i * (count - 1) / pieces), end = Math.floor((i + 1) * (count - 1) / pieces)
      trace(ctx, data[x], data[y], to, begin, end + 1)
    }
  },

  band(ctx, {x, y, top, colour}, data, to) {
    const xs = data[x], low = data[y], high = data[top]
    const inside = []
    for (let i = 0; i < xs.length; i++) {
      if (Number.isFinite(xs[i]) && Number.isFinite(low[i]) && Number.isFinite(high[i])) { inside.push(i) }
    }
    ctx.fillStyle = colour
    ctx.beginPath()
    for (const i of inside) { ctx.lineTo(to.x(xs[i]), to.y(low[i])) }
    for (const i of inside.reverse()) { ctx.lineTo(to.x(xs[i]), to.y(high[i])) }
    ctx.fill()
  },

  bars(ctx, {x, y, width, colour}, data, to) {
    const xs = data[x], ys = data[y], zero = to.y(0)
    ctx.fillStyle = colour
    for (let i = 0; i < xs.length; i++) {
      const left = to.x(xs[i] - width / 2), right = to.x(xs[i] + width / 2), end = to.y(ys[i])
      if (left === left && end === end) { ctx.fillRect(left, end, right - left, zero - end) }
    }
  },

  marks(ctx, {x, y, code, of, alpha, scale, shape, size, width, colour, fill}, data, to) {
    const xs = data[x], ys = data[y], codes = data[of], alphas = data[alpha], scales = data[scale], put = shapes[shape]
    Object.assign(ctx, {strokeStyle: colour, fillStyle: fill ?? "transparent", lineWidth: width})
    for (let i = 0; i < xs.length; i++) {
      const px = to.x(xs[i]), py = to.y(ys[i])
      if (px !== px || py !== py || (codes && codes[i] !== code)) { continue }
      if (alphas) { ctx.globalAlpha = alphas[i] }
      ctx.beginPath()
      put(ctx, px, py, (scales ? scales[i] : 1) * size / 2)
      if (fill) { ctx.fill() }
      ctx.stroke()
    }
  },

  segments(ctx, {x, y, dx, dy, of, code, scale, width, dash, colour}, data, to) {
    const xs = data[x], ys = data[y], codes = data[of], scales = data[scale]
    Object.assign(ctx, {strokeStyle: colour, lineWidth: width})
    ctx.setLineDash(dash)
    for (let i = 0; i < xs.length; i++) {
      if (codes && codes[i] !== code) { continue }
      if (scales) { ctx.lineWidth = width * scales[i] }
      ctx.beginPath()
      ctx.moveTo(to.x(xs[i]), to.y(ys[i]))
      ctx.lineTo(to.x(xs[i] + data[dx][i]), to.y(ys[i] + data[dy][i]))
      ctx.stroke()
    }
  },

  arrow(ctx, {x, y, dx, dy, size, width, colour}, data, to) {
    const HEAD = 8, SPREAD = 0.5
    Object.assign(ctx, {strokeStyle: colour, lineWidth: width, lineJoin: "round", lineCap: "round"})
    for (let i = 0; i < data[x].length; i++) {
      const px = to.x(data[x][i]), py = to.y(data[y][i])
      const across = to.x(data[x][i] + data[dx][i]) - px, up = to.y(data[y][i] + data[dy][i]) - py
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

  // One pixel for each value, drawn large: the canvas blends between them, or makes cells of them.
  cells(ctx, {x, box, across, ramp, low, high, blended}, data, to) {
    const values = data[x], rows = values.length / across
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
    const left = to.x(x0 - w), top = to.y(y1 + h), width = to.x(x1 + w) - left, height = to.y(y0 - h) - top
    if (ctx instanceof CanvasRenderingContext2D) {
      ctx.imageSmoothingEnabled = blended
      ctx.drawImage(picture, left, top, width, height)
      return
    }
    // Whoever shows an SVG blends its pictures or does not, as it likes: this one is drawn large enough before.
    const size = {width: Math.max(Math.round(width), 1), height: Math.max(Math.round(height), 1)}
    const large = Object.assign(document.createElement("canvas"), size), drawn = large.getContext("2d")
    drawn.imageSmoothingEnabled = blended
    drawn.drawImage(picture, 0, 0, large.width, large.height)
    ctx.drawImage(large, left, top)
  },

  // Words beside points, on the side where there is room.
  words(ctx, {x, y, text, font, colour, centred}, data, to) {
    Object.assign(ctx, {fillStyle: colour, font, textBaseline: centred ? "middle" : "top"})
    const needed = ctx.measureText(text).width + 10
    for (let i = 0; i < data[x].length; i++) {
      const px = to.x(data[x][i]), py = to.y(data[y][i])
      if (px !== px || py !== py) { continue }
      ctx.textAlign = centred ? "center" : px > needed ? "right" : "left"
      ctx.fillText(text, px + (centred ? 0 : px > needed ? -5 : 5), py)
    }
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
