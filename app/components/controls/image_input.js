// The selected image as the networks see it; a slider rotates it.

export function render({model}) {
  const canvas = make("canvas", {role: "img", label: "No image yet"}), angle = make("output")
  const slider = make("input", {type: "range", min: -180, max: 180, step: 5, value: 0, label: "Angle in degrees"})

  function show() {
    const image = model.shown, [, height, width] = model.shape
    if (!image.data) { return }
    paint(canvas, bytes_of(image.data), width, height)
    canvas.setAttribute("aria-label", image.words)
  }
  function turn() {
    slider.value = model.angle
    angle.textContent = `${slider.value}°`
  }
  slider.addEventListener("input", () => { model.angle = Number(slider.value) })
  model.on("shown", show)
  model.on("angle", turn)
  turn()
  show()
  return make("div", {className: "asking"}, canvas, make("label", {}, "turn", slider, angle))
}
