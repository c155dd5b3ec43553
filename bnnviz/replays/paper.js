// The page on paper: texts and figures of a frame in the colours of the light theme, on the only printed sheet.
"use strict"

const SHEET = "paper"

// The colours of a drawing, written in either way; `light` gives a colour of the dark theme in those of the light one.
function recoloured(text, light) {
  const channel = (number) => Number(number).toString(16).padStart(2, "0")
  return text
    .replace(/rgb\((\d+), ?(\d+), ?(\d+)\)/g, (all, ...rgb) => `#${rgb.slice(0, 3).map(channel).join("")}`)
    .replace(/#[0-9a-f]{6}\b/gi, light)
}

// The text of a step as it is shown, and the question with a box before each choice.
function text_on_paper() {
  const told = by_id("lesson").querySelector(".told")?.cloneNode(true)
  if (!told) { return [[], []] }
  const asked = told.querySelector("details.asked"), question = make("div", {className: "told"}, asked)
  told.querySelector("h2").removeAttribute("id")
  for (const part of [asked, ...told.querySelectorAll("details")]) { part.open = true }
  for (const button of asked.querySelectorAll("button")) {
    button.replaceWith(make("p", {className: `choice ${button.className}`, textContent: button.textContent}))
  }
  return [[told], asked.hidden ? [] : [question]]
}

// A figure with its heading and its legend; the drawing fits the width that it gets.
function figure_on_paper(film, [part, card], light) {
  const drawn = make("div", {className: "drawing", innerHTML: recoloured(film.svg(part, light), light)})
  const svg = drawn.querySelector("svg"), [width, height] = ["width", "height"].map((name) => parseFloat(svg.getAttribute(name)))
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`)
  for (const name of ["width", "height"]) { svg.removeAttribute(name) }
  const head = make("h3", {}, card.title.textContent, " ", make("small", {textContent: card.note.textContent}))
  return make("section", {className: "figure"}, head, make("div", {className: "legend", innerHTML: film.legend(part)}), drawn)
}

function film_on_paper(film) {
  const light = page.dark ? (colour) => page.told.light[colour.toLowerCase()] ?? colour : (colour) => colour
  const cards = [...film.cards].filter(([, card]) => !card.bar && !card.section.hidden).sort(([, a], [, b]) => a.order - b.order)
  const figures = cards.map((card) => figure_on_paper(film, card, light))
  if (!by_id("table").hidden) { figures.push(by_id("table").querySelector("table").cloneNode(true)) }
  const status = [...by_id("status").children].map((cell) => cell.textContent.trim()).join(" · ")
  return [
    make("p", {}, ...by_id("caption").querySelector("p").cloneNode(true).childNodes),
    make("div", {className: "figures"}, ...figures), make("p", {className: "small", textContent: status}),
  ]
}

// If nothing has been played yet, the film's end is printed.
function lay_on_paper() {
  if (by_id(SHEET) || !page.told) { return }
  const {film} = page, at = film?.frame
  if (at === 0) { film.seek(film.last) }
  const made = make("p", {className: "small", textContent: by_id("made").textContent})
  const heading = make("h1", {textContent: by_id("title").textContent}), [told, question] = text_on_paper()
  const shown = film ? film_on_paper(film) : [by_id("caption").querySelector("p").cloneNode(true)]
  document.body.append(make("article", {id: SHEET}, heading, ...told, ...shown, ...question, made))
  if (at === 0) { film.seek(0) }
}

const clear_paper = () => by_id(SHEET)?.remove()
addEventListener("beforeprint", lay_on_paper)
addEventListener("afterprint", clear_paper)
matchMedia("print").addEventListener("change", ({matches}) => (matches ? lay_on_paper() : clear_paper()))
