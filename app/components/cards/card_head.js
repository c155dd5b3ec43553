// The heading of a paper's experiment: a button that opens and closes its card.

export function render({model}) {
  const [arrow, place, title, comparison] = ["arrow", "place", "title", "comparison"].map((className) => make("span", {className}))
  const bar = make("b"), meter = make("i", {}, bar), text = make("span")
  comparison.append(text, meter)
  arrow.textContent = "›"
  arrow.setAttribute("aria-hidden", "true")
  const button = make_button("", {}, () => model.send_msg({open: !model.open}))
  button.dataset.experiment = model.experiment
  const picture = model.thumbnail ? make("img", {className: "thumbnail", alt: "", src: model.thumbnail}) : make("span")
  button.append(arrow, picture, place, title, comparison)
  const heading = make("h3", {}, button)

  const fill = () => {
    place.textContent = model.place
    title.textContent = model.title
    text.textContent = model.comparison
    const [near, judged] = model.share
    meter.hidden = judged === 0
    bar.style.width = `${judged ? 100 * near / judged : 0}%`
    comparison.classList.toggle("none", !model.known)
    button.setAttribute("aria-expanded", String(model.open))
  }
  for (const name of ["place", "title", "comparison", "share", "known", "open"]) { model.on(name, fill) }
  fill()
  // Scroll to the card in the address once it has its height.
  if (model.sought) { setTimeout(() => heading.scrollIntoView({block: "start"}), 300) }
  return heading
}
