// A step of a scene: its text, the choices of a prediction, and the navigation.

export function render({model}) {
  const send = (message) => () => model.send_msg(message)
  const title = make("span", {className: "title"}), text = make("div", {className: "text", role: "status"})
  const choices = make("div", {className: "choices", role: "group", label: "Your prediction"})
  const place = make("span", {className: "place"})
  const back = make_button("Previous", {className: "back"}, send("back"))
  const next = make_button("Next", {className: "next"}, send("next"))
  const leave = make_button("Close scene", {className: "leave"}, send("leave"))

  const fill = () => {
    title.textContent = model.title
    text.textContent = model.text
    place.textContent = model.place
    back.disabled = !model.back
    next.textContent = model.next
    choices.replaceChildren(...model.choices.map((label, i) => make_button(label, {className: "choice"}, send(i))))
  }
  for (const name of ["title", "text", "place", "choices", "back", "next"]) { model.on(name, fill) }
  fill()
  const step = make("div", {className: "reported"}, title, text, choices)
  return make("section", {className: "scene", label: "Scene"}, step, make("div", {className: "steps"}, place, back, next, leave))
}
