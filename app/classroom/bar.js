// The teacher's page and question, with its choices, and the counts once they are shown.

const EVERY_MS = 2000
// Pages of lessons are one folder below the dashboard.
const CLASS = document.documentElement.dataset.dashboard ? "../class" : "class"

export function render({model}) {
  const place = make("p", {className: "place", role: "status"})
  const text = make("summary"), choices = make("div", {className: "choices", role: "group"})
  const status = make("p", {className: "statement", role: "status"}), reason = make("p", {className: "reason"})
  const poll = make("details", {className: "poll", open: true, hidden: true}, text, choices, status, reason)
  const root = make("section", {}, place, poll)
  let seen = {place: null, question: null}, number = "", chosen = null, counted = null, failure = "", timer = null, queue = Promise.resolve()

  async function look() {
    clearTimeout(timer)
    try {
      const answer = await fetch(CLASS, {headers: {Accept: "application/json"}})
      if (answer.ok) { seen = await answer.json(); fill() }
    } catch { /* the page itself reports a lost server */ }
    if (!document.hidden) { timer = setTimeout(look, EVERY_MS) }
  }

  // One request at a time, since answers may arrive out of order.
  function answer(choice) {
    chosen = choice
    fill()
    queue = queue.then(() => post(number, choice))
  }

  async function post(question, choice) {
    if (question !== number || choice !== chosen) { return }
    const body = JSON.stringify({question, choice}), headers = {"Content-Type": "application/json"}
    let code = 0
    try { code = (await fetch(CLASS, {method: "POST", headers, body})).status } catch { /* code stays 0 */ }
    if (question !== number) { return }
    if (code === 204) { counted = choice } else if (choice === chosen) { chosen = counted }
    failure = code === 204 ? "" : code === 409 ? "late" : "failed"
    fill()
  }

  function fill() {
    const words = model.words
    const language = model.language ?? "en"
    root.lang = language
    show_place(words)
    const {question} = seen
    poll.hidden = question === null
    if (question === null) { return }
    if (question.number !== number) {
      number = question.number
      chosen = counted = null
      failure = ""
      poll.open = true
      choices.replaceChildren()
    }
    const statement = question.texts[language] ?? Object.values(question.texts)[0]
    const shown = question.phase === "shown", counts = question.counts ?? []
    const all = counts.reduce((sum, count) => sum + count, 0)
    root.setAttribute("aria-label", words.heading)
    choices.setAttribute("aria-label", words.your_answer)
    choices.classList.toggle("counted", shown)
    text.textContent = statement.text
    // Keep the buttons of an unchanged question: one of them may have the focus.
    if (choices.childElementCount === 0) {
      choices.append(...statement.choices.map((label, i) => make_button("", {className: "choice"}, () => answer(i))))
    }
    for (const [i, button] of [...choices.children].entries()) {
      const share = shown && all ? counts[i] / all : 0
      button.replaceChildren(make("span", {textContent: statement.choices[i]}))
      if (shown) {
        const numbers = filled(words.count, {count: counts[i], share: Math.round(100 * share)})
        button.append(make("span", {className: "count", textContent: numbers}))
      }
      button.style.setProperty("--share", share)
      button.disabled = question.phase !== "open"
      button.setAttribute("aria-pressed", chosen === i)
      button.classList.toggle("right", shown && question.answer === i)
    }
    const taken = chosen !== null && chosen === counted
    const phase = question.phase === "open" && (failure || (taken && "counted")) || question.phase
    status.textContent = filled(words[phase], {answers: all})
    reason.textContent = shown ? statement.reason ?? "" : ""
  }

  function show_place(words) {
    const at = seen.place
    place.hidden = at === null
    if (at === null) { return }
    const title = at.titles[model.language ?? "en"] ?? Object.values(at.titles)[0]
    const sentence = filled(at.step ? words.place_step : words.place, {title, step: at.step})
    if (place.dataset.shown === sentence + at.query) { return }
    place.dataset.shown = sentence + at.query
    place.replaceChildren(make("span", {textContent: sentence}), make("a", {href: model.link?.(at.query) ?? at.query, textContent: words.go}))
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) { look() } })
  look()
  return root
}
