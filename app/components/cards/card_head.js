// The heading of a paper's experiment: a button that opens and closes its card.

export function render({model}) {
  const heading = document.createElement("h3"), button = document.createElement("button")
  const part = (name) => {
    const element = document.createElement("span")
    element.className = name
    button.append(element)
    return element
  }
  const arrow = part("arrow"), place = part("place"), title = part("title"), verdict = part("verdict")
  const meter = document.createElement("i")
  meter.append(document.createElement("b"))
  const told = document.createElement("span")
  verdict.append(told, meter)
  arrow.textContent = "›"
  arrow.setAttribute("aria-hidden", "true")
  button.type = "button"
  button.dataset.experiment = model.experiment
  heading.append(button)

  const fill = () => {
    place.textContent = model.place
    title.textContent = model.title
    told.textContent = model.verdict
    const [near, judged] = model.share
    meter.hidden = judged === 0
    meter.firstChild.style.width = `${judged ? 100 * near / judged : 0}%`
    verdict.classList.toggle("none", !model.known)
    button.setAttribute("aria-expanded", String(model.open))
  }
  for (const name of ["place", "title", "verdict", "share", "known", "open"]) { model.on(name, fill) }
  button.addEventListener("click", () => model.send_msg({open: !model.open}))
  fill()
  // The card that the address names is looked for, once it has its height.
  if (model.sought) { setTimeout(() => heading.scrollIntoView({block: "start"}), 300) }
  return heading
}
