// The wall of the hardest images. A click selects an image.

export function render({model}) {
  const wall = make("div", {className: "tiles"}), reported = make("p"), root = make("div", {}, wall, reported)
  const tiles = new Map()

  function tile(image) {
    const button = make_button("", {}, () => { model.chosen = [image.index, Date.now()] })
    const canvas = make("canvas"), words = make("span")
    paint(canvas, bytes_of(image.pixels.data), image.pixels.width, image.pixels.height)
    button.append(canvas, words)
    return {button, words}
  }

  function fill() {
    const requested = new Set(model.tiles.map((image) => image.index))
    for (const index of tiles.keys()) { if (!requested.has(index)) { tiles.delete(index) } }
    const buttons = model.tiles.map((image) => {
      if (!tiles.has(image.index)) { tiles.set(image.index, tile(image)) }
      const {button, words} = tiles.get(image.index)
      const guesses = [...new Set(image.guesses)].join("/")
      const message = `${image.truth}, taken for ${guesses}, ${image.figure}`
      if (button.title !== message) {
        button.title = message
        button.setAttribute("aria-label", `Image ${image.index}, ${image.short}: ${message}`)
        words.textContent = image.short
        words.className = image.wrong ? "wrong" : ""
      }
      button.setAttribute("aria-pressed", String(image.index === model.index))
      return button
    })
    reported.hidden = buttons.length > 0
    reported.textContent = model.waiting
    const now = [...wall.children]
    if (buttons.length !== now.length || buttons.some((button, i) => button !== now[i])) {
      const focused = wall.getRootNode().activeElement
      wall.replaceChildren(...buttons)
      if (focused && buttons.includes(focused)) { focused.focus() }
    }
  }

  model.on("tiles", () => { if (model.fresh) { tiles.clear() } fill() })
  model.on("index", fill)
  model.on("waiting", fill)
  fill()
  return root
}
