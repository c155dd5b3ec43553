// A step of a scene: what is said, the choices where something is to be predicted, and the way on.

function button(label, name, message, model) {
  const made = document.createElement("button")
  made.type = "button"
  made.textContent = label
  made.className = name
  made.addEventListener("click", () => model.send_msg(message))
  return made
}

export function render({model}) {
  const bar = document.createElement("section")
  const said = document.createElement("div")
  const title = document.createElement("span")
  const text = document.createElement("div")
  const choices = document.createElement("div")
  const steps = document.createElement("div")
  const place = document.createElement("span")
  const back = button("Back", "back", "back", model)
  const next = button("Next", "next", "next", model)
  bar.className = "scene"
  said.className = "told"
  title.className = "title"
  text.className = "text"
  choices.className = "choices"
  steps.className = "steps"
  place.className = "place"
  bar.setAttribute("aria-label", "Scene")
  text.setAttribute("role", "status")
  choices.setAttribute("role", "group")
  choices.setAttribute("aria-label", "Your prediction")
  said.append(title, text, choices)
  steps.append(place, back, next, button("Leave", "leave", "leave", model))
  bar.append(said, steps)

  const fill = () => {
    title.textContent = model.title
    text.textContent = model.text
    place.textContent = model.place
    back.disabled = !model.back
    next.textContent = model.next
    choices.replaceChildren(...model.choices.map((label, i) => button(label, "choice", i, model)))
  }
  for (const name of ["title", "text", "place", "choices", "back", "next"]) { model.on(name, fill) }
  fill()
  return bar
}
