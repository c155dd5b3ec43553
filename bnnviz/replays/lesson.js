// Shows the steps of a lesson beside their films: texts, terms, the question, and the way from step to step.
"use strict"

async function open_lesson(lesson) {
  const {words, steps, question} = lesson, last = steps.length - 1
  const heading = make("h2", {id: "lesson-heading"}), text = make("p"), terms = make("dl")
  const told = make("div", {className: "told"}, heading, text, terms, asked_question(question, words))
  const buttons = steps.map((step, i) => make("button", {type: "button", textContent: step.number, title: step.title, onclick: () => turn(i)}))
  const back = make("button", {type: "button", textContent: words.back, onclick: () => turn(number - 1)})
  const next = make("button", {type: "button", textContent: words.next, className: "on", onclick: () => turn(number + 1)})
  const way = make("nav", {hidden: last === 0}, back, make("span", {className: "numbers"}, ...buttons), next)
  way.setAttribute("aria-labelledby", "title")
  let number = 0, turning = Promise.resolve()

  by_id("title").textContent = lesson.title
  by_id("lesson").append(told, way)
  by_id("lesson").hidden = false
  document.documentElement.dataset.lesson = "true"
  document.addEventListener("keydown", ({key, target, ctrlKey, altKey, metaKey}) => {
    if (ctrlKey || altKey || metaKey || target.closest?.("select, dialog[open]")) { return }
    if (key === "n") { turn(number + 1) }
    if (key === "p") { turn(number - 1) }
  })

  function turn(to) {
    if (to < 0 || to > last || to === number) { return }
    number = to
    globalThis.bnnviz_player = turning = turning.then(show)
  }

  function show() {
    const step = steps[number]
    heading.textContent = `${step.number}. ${step.title}`
    text.replaceChildren(...passage(step.text))
    terms.replaceChildren(...meanings(step.terms))
    told.querySelector("details").hidden = number !== last
    told.scrollTop = 0
    back.disabled = number === 0
    next.disabled = number === last
    for (const [i, button] of buttons.entries()) {
      if (i === number) { button.setAttribute("aria-current", "step") } else { button.removeAttribute("aria-current") }
    }
    if (step.film === null) { by_id("caption").replaceChildren(make("p", {textContent: step.note})) }
    return show_film(step.film)
  }

  turning = show()
  return turning
}

const passage = (pieces) => pieces.map(([words, explained]) => explained ? make("span", {className: "term", textContent: words}) : words)

const meanings = (terms) => terms.flatMap(([term, meaning]) => [make("dt", {textContent: term}), make("dd", {textContent: meaning})])

// What is right is not shown before somebody has chosen.
function asked_question(question, words) {
  const verdict = make("p", {className: "verdict"}), reason = make("p"), terms = make("dl")
  const answer = make("div", {}, verdict, reason)
  answer.setAttribute("role", "status")
  const choices = question.choices.map((choice, i) => make("button", {type: "button", textContent: choice, onclick: () => choose(i)}))
  function choose(chosen) {
    const right = chosen === question.answer
    choices.forEach((button, i) => {
      button.className = i === question.answer ? "right" : i === chosen ? "wrong" : ""
      button.setAttribute("aria-pressed", String(i === chosen))
    })
    verdict.textContent = right ? words.right : filled(words.wrong, {choice: question.choices[question.answer]})
    verdict.classList.toggle("good", right)
    reason.replaceChildren(...passage(question.reason))
    terms.replaceChildren(...meanings(question.terms))
    answer.scrollIntoView({block: "nearest"})
  }
  return make("details", {}, make("summary", {textContent: words.question}), make("p", {}, ...passage(question.text)),
    make("div", {className: "choices"}, ...choices), answer, terms)
}
