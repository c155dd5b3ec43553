// The wall of the hardest images. A press on one asks about it.

export function paint(canvas, image) {
  const bytes = Uint8Array.from(atob(image.data), (letter) => letter.charCodeAt(0))
  const {width, height, channels} = image, size = width * height
  canvas.width = width
  canvas.height = height
  const context = canvas.getContext("2d"), data = context.createImageData(width, height)
  for (let i = 0; i < size; i++) {
    for (let c = 0; c < 3; c++) { data.data[4 * i + c] = bytes[channels === 1 ? i : c * size + i] }
    data.data[4 * i + 3] = 255
  }
  context.putImageData(data, 0, 0)
}

export function render({model}) {
  const wall = document.createElement("div")
  wall.className = "tiles"
  const tiles = new Map()

  function tile(image) {
    const button = document.createElement("button"), canvas = document.createElement("canvas")
    const words = document.createElement("span")
    button.type = "button"
    paint(canvas, image.pixels)
    button.append(canvas, words)
    button.addEventListener("click", () => { model.chosen = [image.index, Date.now()] })
    return {button, words}
  }

  function fill() {
    const wanted = new Set(model.tiles.map((image) => image.index))
    for (const index of tiles.keys()) { if (!wanted.has(index)) { tiles.delete(index) } }
    const buttons = model.tiles.map((image) => {
      if (!tiles.has(image.index)) { tiles.set(image.index, tile(image)) }
      const {button, words} = tiles.get(image.index)
      const guesses = [...new Set(image.guesses)].join("/")
      const told = `${image.truth}, taken for ${guesses}, ${image.figure}`
      if (button.title !== told) {
        button.title = told
        button.setAttribute("aria-label", `Image ${image.index}: ${told}`)
        words.textContent = image.short
        words.className = image.wrong ? "wrong" : ""
      }
      button.setAttribute("aria-pressed", String(image.index === model.index))
      return button
    })
    const now = [...wall.children]
    if (buttons.length !== now.length || buttons.some((button, i) => button !== now[i])) {
      const focused = wall.getRootNode().activeElement
      wall.replaceChildren(...buttons)
      if (focused && buttons.includes(focused)) { focused.focus() }
    }
  }

  model.on("tiles", () => { if (model.fresh) { tiles.clear() } fill() })
  model.on("index", fill)
  fill()
  return wall
}
