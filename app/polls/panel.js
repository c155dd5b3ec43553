// The question that a class is asked with its numbers, and a form for the next one.

export function render({model}) {
  const root = make("div", {className: "asking"}), choice = make_language_choice(model)
  const typed = {text: "", choices: ["", "", ""], answer: null}
  let which = model.chosen
  let present, form
  const speak = () => {
    root.lang = model.words.code
    present = make_present(model)
    form = make_form(model, typed, () => which, (name) => { which = name })
    const head = make("div", {className: "about"}, make("h1", {textContent: model.words.heading}), make("p", {textContent: model.words.about}))
    root.replaceChildren(choice.element, head, present.element, form.element)
    choice.fill()
    fill()
  }
  const fill = () => {
    present.fill()
    form.fill()
  }
  model.on("words", speak)
  for (const name of ["content", "offers", "sentence"]) { model.on(name, fill) }
  speak()
  return root
}

function make_present(model) {
  const words = model.words
  const send = (message) => () => model.send_msg(message)
  const text = make("p", {className: "text"}), bars = make("ol", {className: "bars"})
  const numbers = make("p", {className: "numbers"}), phase = make("p", {className: "phase", role: "status"})
  const reason = make("p", {className: "reason"})
  const buttons = Object.fromEntries(["close", "show", "end", "again"].map((name) => [name, make_button(words[name], {className: name}, send(name))]))
  const row = make("div", {className: "row"}, ...Object.values(buttons))
  const element = make("section", {className: "present", label: words.asked}, make("h2", {textContent: words.asked}), text, bars, numbers, phase, reason, row)
  const fill = () => {
    const {phase: now = "none", choices = [], counts = [], people = 0, answer = null} = model.content
    const all = counts.reduce((sum, count) => sum + count, 0)
    text.textContent = model.content.text ?? ""
    bars.replaceChildren(...choices.map((label, i) => {
      const share = all ? counts[i] / all : 0
      const bar = make("span", {className: "bar"}), name = make("span", {className: "name", textContent: label})
      bar.style.setProperty("--share", share)
      const count = make("span", {className: "count", textContent: filled(words.count, {count: counts[i], share: Math.round(100 * share)})})
      return make("li", {className: i === answer ? "right" : ""}, name, bar, count)
    }))
    numbers.textContent = now === "none" ? "" : filled(words.answers, {answers: all, people})
    phase.textContent = now === "none" ? words.nothing : words[now]
    reason.textContent = model.content.reason ?? ""
    buttons.close.disabled = now !== "open"
    buttons.show.disabled = now === "none" || now === "shown"
    buttons.end.disabled = buttons.again.disabled = now === "none"
  }
  return {element, fill}
}

// What is typed stays while the language changes or a question is refused.
function make_form(model, typed, which, choose) {
  const words = model.words, limits = model.limits
  const select = make("select", {id: "which"}), shown = make("div", {className: "shown"}), own = make("div", {className: "own"})
  const sentence = make("p", {className: "sentence", role: "alert"})
  const ask = make_button(words.ask, {className: "next"}, () => model.send_msg({ask: which() ? {lesson: which()} : typed}))
  const label = make("label", {htmlFor: "which", textContent: words.which})
  const element = make("section", {className: "form", label: words.which}, make("h2", {textContent: words.ask}),
    make("div", {className: "row"}, label, select), shown, own, sentence, make("div", {className: "row"}, ask))
  select.addEventListener("change", () => { choose(select.value); fill() })

  const area = make("textarea", {id: "text", maxLength: limits.text, rows: 2, value: typed.text})
  area.addEventListener("input", () => { typed.text = area.value })
  const lines = make("div", {className: "lines"})
  const more = make_button(words.more, {className: "more"}, () => {
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
      const line = make("input", {type: "text", maxLength: limits.choice, value: text, label: filled(words.choice, {number: i + 1})})
      line.placeholder = filled(words.choice, {number: i + 1})
      line.addEventListener("input", () => { typed.choices[i] = line.value })
      return make("div", {className: "line"}, line, radio(i, words.right))
    }), radio(null, words.none_right))
    more.disabled = typed.choices.length >= limits.most
  }
  own.append(make("label", {htmlFor: "text", textContent: words.text}), area, lines, more)
  draw()

  const fill = () => {
    const names = ["", ...model.offers.map((offer) => offer.name)]
    if (!names.includes(which())) { choose("") }
    const titles = [words.own, ...model.offers.map((offer) => offer.title)]
    if ([...select.options].map((option) => option.text).join("|") !== titles.join("|")) {
      select.replaceChildren(...names.map((name, i) => make("option", {value: name, textContent: titles[i]})))
    }
    select.value = which()
    const offer = model.offers.find((each) => each.name === which())
    own.hidden = offer !== undefined
    shown.replaceChildren(...offer === undefined ? [] : [make("p", {textContent: offer.text}),
      make("ul", {}, ...offer.choices.map((choice) => make("li", {textContent: choice})))])
    sentence.textContent = model.sentence
  }
  return {element, fill}
}
