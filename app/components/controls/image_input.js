// The selected image as the networks see it; users draw on it, open a file or rotate it.

const PEN = 1.15 // pixels of the image, to each side
const SEND_MS = 90

export function render({model}) {
  const canvas = make("canvas", {tabIndex: 0, role: "img"})
  const file = make("input", {type: "file", accept: "image/*", hidden: true})
  const slider = make("input", {type: "range", min: -180, max: 180, step: 5, value: 0, label: "Angle in degrees"})
  const angle = make("output")
  const tools = make("div", {className: "tools"},
    make_button("Draw", {title: "Begin with an empty image and draw on it"}, empty),
    make_button("Upload", {title: "Predict your own picture"}, () => file.click()),
    make_button("0°", {title: "Turn it upright again"}, () => { straighten(); shown() }))
  const root = make("div", {className: "asking"}, canvas, tools, make("label", {}, "turn", slider, angle), file)

  let buffer = null // bytes of the drawing, channel by channel; null: the image of the server
  let last = null

  function show(bytes) {
    const [, height, width] = model.shape
    paint(canvas, bytes, width, height)
  }

  function shown() {
    const image = model.shown
    if (!image.data || (buffer !== null && Number(slider.value) === 0)) { return }
    show(bytes_of(image.data))
    canvas.setAttribute("aria-label", image.words)
  }

  const send = throttled(() => { if (buffer !== null) { model.drawn = Array.from(buffer, Math.round) } }, SEND_MS)

  function empty() {
    const [channels, height, width] = model.shape
    buffer = new Float32Array(channels * height * width)
    straighten()
    show(buffer)
    send()
  }

  function straighten() {
    slider.value = 0
    label()
    if (model.angle !== 0) { model.angle = 0 }
  }

  function label() { angle.textContent = `${slider.value}°` }

  function place(event) {
    const box = canvas.getBoundingClientRect(), [, height, width] = model.shape
    return [(event.clientX - box.left) / box.width * width, (event.clientY - box.top) / box.height * height]
  }

  function stroke(from, to) {
    const [channels, height, width] = model.shape, size = width * height
    const steps = Math.max(1, Math.ceil(2 * Math.hypot(to[0] - from[0], to[1] - from[1])))
    for (let s = 0; s <= steps; s++) {
      const x = from[0] + (to[0] - from[0]) * s / steps, y = from[1] + (to[1] - from[1]) * s / steps
      for (let row = Math.floor(y - 3); row <= y + 3; row++) {
        for (let column = Math.floor(x - 3); column <= x + 3; column++) {
          if (row < 0 || column < 0 || row >= height || column >= width) { continue }
          const far = Math.hypot(column + 0.5 - x, row + 0.5 - y) * 28 / width
          const ink = 255 * Math.min(1, Math.max(0, PEN + 0.6 - far))
          for (let c = 0; c < channels; c++) {
            const at = c * size + row * width + column
            buffer[at] = Math.max(buffer[at], ink)
          }
        }
      }
    }
    show(buffer)
    send()
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (buffer === null || Number(slider.value) !== 0) { empty() }
    canvas.setPointerCapture(event.pointerId)
    last = place(event)
    stroke(last, last)
    event.preventDefault()
  })
  canvas.addEventListener("pointermove", (event) => {
    if (last === null) { return }
    const next = place(event)
    stroke(last, next)
    last = next
  })
  for (const name of ["pointerup", "pointercancel"]) { canvas.addEventListener(name, () => { last = null }) }
  file.addEventListener("change", async () => {
    const chosen = file.files[0]
    file.value = ""
    if (!chosen) { return }
    let picture
    try { picture = await createImageBitmap(chosen) } catch { model.complaint = [chosen.name, Date.now()]; return }
    read(picture)
  })

  // A picture is scaled to fit the image. If images are light on black, a picture on a light ground is inverted.
  function read(picture) {
    const [channels, height, width] = model.shape, size = width * height
    const context = make("canvas", {width, height}).getContext("2d")
    const scale = Math.min(width / picture.width, height / picture.height)
    const [w, h] = [picture.width * scale, picture.height * scale]
    context.imageSmoothingQuality = "high"
    context.drawImage(picture, (width - w) / 2, (height - h) / 2, w, h)
    const data = context.getImageData(0, 0, width, height).data
    const luma = (i) => 0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]
    buffer = new Float32Array(channels * size)
    let edge = 0, count = 0
    for (let i = 0; i < size; i++) {
      if (data[4 * i + 3] === 0) { continue }
      const row = Math.floor(i / width), column = i % width
      if (row < 2 || column < 2 || row >= height - 2 || column >= width - 2) { edge += luma(i); count++ }
    }
    const inverted = channels === 1 && count > 0 && edge / count > 127
    for (let i = 0; i < size; i++) {
      if (data[4 * i + 3] === 0) { continue }
      for (let c = 0; c < channels; c++) {
        const value = channels === 1 ? luma(i) : data[4 * i + c]
        buffer[c * size + i] = inverted ? 255 - value : value
      }
    }
    straighten()
    show(buffer)
    send()
  }

  slider.addEventListener("input", () => { label(); model.angle = Number(slider.value) })
  model.on("shown", shown)
  model.on("angle", () => { slider.value = model.angle; label() })
  model.on("shape", () => { buffer = null })
  model.on("taken", () => { buffer = null; shown() })
  label()
  shown()
  return root
}
