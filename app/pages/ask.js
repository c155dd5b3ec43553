// The open question of a class with its counts, and a form for the next one.

const EVERY_MS = 1000
const PHASES = {
  none: "No question is open.",
  open: "The question is open.",
  closed: "The question is closed. Students do not see the counts yet.",
  shown: "Students see the counts.",
}

export function render({model}) {
  const present = make_present(act), form = make_form(model, act)
  const about = "Students see the question at the top of their pages and answer it there. Answers are anonymous. You see the counts immediately; students see them when you show them."
  const head = make("div", {className: "about"}, make("p", {textContent: about}))
  let timer = null

  async function look() {
    clearTimeout(timer)
    try {
      const answer = await fetch("class", {headers: {Accept: "application/json"}})
      if (answer.ok) { present.fill(await answer.json()) }
    } catch { /* the page itself reports a lost server */ }
    if (!document.hidden) { timer = setTimeout(look, EVERY_MS) }
  }

  async function act(body) {
    let refusal = "The server did not respond. Try again."
    try {
      const answer = await fetch("class", {method: "POST", body: JSON.stringify(body)})
      refusal = answer.ok ? "" : await answer.text()
    } catch { /* the refusal reports it */ }
    form.refuse(refusal)
    look()
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) { look() } })
  present.fill({question: null, people: 0})
  look()
  return make("div", {className: "asking"}, head, present.element, form.element)
}

function make_present(act) {
  const text = make("p", {className: "text"}), bars = make("ol", {className: "bars"})
  const numbers = make("p", {className: "numbers"}), phase = make("p", {className: "phase", role: "status"})
  const reason = make("p", {className: "reason"})
  const names = {close: "Close", show: "Show the counts", end: "Take it off", again: "Ask it again"}
  const buttons = Object.fromEntries(Object.entries(names).map(([name, label]) =>
    [name, make_button(label, {className: name}, () => act({do: name}))]))
  const row = make("div", {className: "row"}, ...Object.values(buttons))
  const title = make("h2", {textContent: "The question"})
  const element = make("section", {className: "present", label: "The question"}, title, text, bars, numbers, phase, reason, row)
  const fill = ({question, people}) => {
    const now = question?.phase ?? "none", counts = question?.counts ?? []
    const statement = question === null ? {text: "", choices: []} : question.texts.en ?? Object.values(question.texts)[0]
    const all = counts.reduce((sum, count) => sum + count, 0)
    text.textContent = statement.text
    bars.replaceChildren(...statement.choices.map((label, i) => {
      const share = all ? counts[i] / all : 0
      const bar = make("span", {className: "bar"}), name = make("span", {className: "name", textContent: label})
      bar.style.setProperty("--share", share)
      const count = make("span", {className: "count", textContent: `${counts[i]} (${Math.round(100 * share)}%)`})
      return make("li", {className: i === question.answer ? "right" : ""}, name, bar, count)
    }))
    numbers.textContent = question === null ? `Students with an open page: ${people}.` : `Answers: ${all}. Students with an open page: ${people}.`
    phase.textContent = PHASES[now]
    reason.textContent = statement.reason ?? ""
    buttons.close.disabled = now !== "open"
    buttons.show.disabled = now === "none" || now === "shown"
    buttons.end.disabled = buttons.again.disabled = now === "none"
  }
  return {element, fill}
}

function make_form(model, act) {
  const limits = model.limits, typed = {text: "", choices: ["", "", ""], answer: null}
  const select = make("select", {id: "which"}), shown = make("div", {className: "shown"}), own = make("div", {className: "own"})
  const sentence = make("p", {className: "sentence", role: "alert"})
  const ask = make_button("Ask", {className: "next"}, () => act({ask: select.value ? {lesson: select.value} : typed}))
  const label = make("label", {htmlFor: "which", textContent: "Question"})
  const element = make("section", {className: "form", label: "Question"}, make("h2", {textContent: "Ask"}),
    make("div", {className: "row"}, label, select), shown, own, sentence, make("div", {className: "row"}, ask))
  select.append(make("option", {value: "", textContent: "One of my own"}),
    ...model.offers.map(({name, title}) => make("option", {value: name, textContent: title})))
  select.value = model.chosen

  const area = make("textarea", {id: "text", maxLength: limits.text, rows: 2, value: typed.text})
  area.addEventListener("input", () => { typed.text = area.value })
  const lines = make("div", {className: "lines"})
  const more = make_button("One more choice", {className: "more"}, () => {
    typed.choices.push("")
    draw()
    lines.querySelectorAll("input[type=text]")[typed.choices.length - 1].focus()
  })
  const radio = (value, name) => {
    const dot = make("input", {type: "radio", name: "right", checked: typed.answer === value})
    dot.addEventListener("change", () => { typed.answer = value })
    return make("label", {className: "mark"}, dot, name)
  }
  const draw = () => {
    lines.replaceChildren(...typed.choices.map((text, i) => {
      const line = make("input", {type: "text", maxLength: limits.choice, value: text, label: `Choice ${i + 1}`})
      line.placeholder = `Choice ${i + 1}`
      line.addEventListener("input", () => { typed.choices[i] = line.value })
      return make("div", {className: "line"}, line, radio(i, "Right"))
    }), radio(null, "None is right"))
    more.disabled = typed.choices.length >= limits.most
  }
  own.append(make("label", {htmlFor: "text", textContent: "The question"}), area, lines, more)
  draw()

  const choose = () => {
    const offer = model.offers.find((each) => each.name === select.value)
    own.hidden = offer !== undefined
    shown.replaceChildren(...offer === undefined ? [] : [make("p", {textContent: offer.text}),
      make("ul", {}, ...offer.choices.map((choice) => make("li", {textContent: choice})))])
  }
  select.addEventListener("change", choose)
  choose()
  return {element, refuse: (refusal) => { sentence.textContent = refusal }}
}
