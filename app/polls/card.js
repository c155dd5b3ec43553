// A question of the teacher: choices, of which one is sent to the server, and once it is shown how many chose which.

export function render({model}) {
  const summary = make("summary"), choices = make("div", {className: "choices", role: "group"})
  const said = make("p", {className: "said", role: "status"}), reason = make("p", {className: "reason"})
  const details = make("details", {open: true}, summary, choices, said, reason)
  const root = make("section", {className: "poll"}, details)
  let number = "", chosen = null, counted = null, failure = "", sending = false

  const language = () => {
    const wanted = model.language || kept_language()
    return wanted in model.words ? wanted : model.content.language
  }
  const words = () => model.words[language()] ?? Object.values(model.words)[0]

  async function post(question, choice) {
    const body = JSON.stringify({question, choice}), headers = {"Content-Type": "application/json"}
    try { return (await fetch("answer", {method: "POST", headers, body})).status } catch { return 0 }
  }

  // One request at a time: of two the later one might come first.
  async function answer(choice) {
    chosen = choice
    failure = ""
    fill()
    if (sending) { return }
    sending = true
    while (chosen !== null && chosen !== counted) {
      const asked = number, wanted = chosen, status = await post(asked, wanted)
      if (asked !== number) { continue }
      if (status === 204) { counted = wanted; continue }
      chosen = counted
      failure = status === 409 ? "late" : status === 403 ? "teacher" : "failed"
    }
    sending = false
    fill()
  }

  function sentence(content) {
    if (failure && content.phase === "open") { return words()[failure] }
    const taken = chosen !== null && chosen === counted
    if (content.phase === "open") { return words()[!model.answers ? "watched" : taken ? "counted" : "open"] }
    return filled(words()[content.phase], {answers: (content.counts ?? []).reduce((sum, count) => sum + count, 0)})
  }

  function fill() {
    const content = model.content
    if (!content.number) { return }
    if (content.number !== number) {
      number = content.number
      chosen = counted = null
      failure = ""
      details.open = true
    }
    const text = content.texts[language()] ?? Object.values(content.texts)[0]
    const shown = content.phase === "shown"
    root.lang = language()
    root.setAttribute("aria-label", words().heading)
    choices.setAttribute("aria-label", words().your_answer)
    choices.classList.toggle("counted", shown)
    summary.textContent = text.text
    const all = (content.counts ?? []).reduce((sum, count) => sum + count, 0)
    // The same buttons as long as the question is the same: one of them may have the focus.
    if (choices.dataset.number !== number || choices.childElementCount !== text.choices.length) {
      choices.replaceChildren(...text.choices.map((label, i) => make_button("", {className: "choice"}, () => answer(i))))
      choices.dataset.number = number
    }
    for (const [i, button] of [...choices.children].entries()) {
      const count = content.counts?.[i] ?? 0, share = all ? count / all : 0
      button.replaceChildren(make("span", {textContent: text.choices[i]}))
      if (shown) {
        const numbers = filled(words().count, {count, share: Math.round(100 * share)})
        button.append(make("span", {className: "count", textContent: numbers}))
      }
      button.style.setProperty("--share", shown ? share : 0)
      button.disabled = content.phase !== "open" || !model.answers
      button.setAttribute("aria-pressed", chosen === i)
      button.classList.toggle("right", shown && content.answer === i)
    }
    said.textContent = sentence(content)
    reason.textContent = shown ? text.reason ?? "" : ""
  }
  for (const name of ["content", "words", "language"]) { model.on(name, fill) }
  fill()
  return root
}
