// The list of lessons, or a step of one: text with terms that say what they mean, ticks and a language that this browser
// keeps, the question, and the way on.

const KEPT = "bnnviz-lessons"

function seen_of(name) {
  try { return new Set(JSON.parse(localStorage.getItem(KEPT) ?? "{}")[name] ?? []) } catch { return new Set() }
}
function keep(name, number) {
  try {
    const all = JSON.parse(localStorage.getItem(KEPT) ?? "{}")
    all[name] = [...new Set([...(all[name] ?? []), number])].sort((a, b) => a - b)
    localStorage.setItem(KEPT, JSON.stringify(all))
  } catch { /* a browser that keeps nothing shows no ticks */ }
}
function forget() {
  try { localStorage.removeItem(KEPT) } catch { /* nothing was kept */ }
}

export function render({model}) {
  const root = make("div", {className: "learn"}), below = make("div")
  const choice = make_language_choice(model)
  let overview, lesson
  const speak = () => {
    root.lang = model.words.code
    overview = make_overview(model)
    lesson = make_lesson(model)
    choice.fill()
  }
  const fill = () => {
    const content = model.content
    if (!content.kind) { return }
    const shown = content.kind === "all" ? overview : lesson
    if (below.firstChild !== shown.element) { below.replaceChildren(shown.element) }
    shown.fill(content)
  }
  root.append(choice.element, below)
  model.on("words", () => { speak(); fill() })  // they may come before the content in their language, or after it
  model.on("content", fill)
  speak()
  fill()
  return root
}

function make_overview(model) {
  const sentence = make("p", {className: "sentence", role: "alert"})
  const list = make("ol", {className: "lessons"})
  const words = model.words
  const again = make_button(words.forget, {className: "forget"}, () => { forget(); fill(model.content) })
  const fill = (content) => {
    sentence.textContent = content.sentence
    list.replaceChildren(...content.lessons.map((item) => {
      const done = seen_of(item.name).size, all = done >= item.count
      const link = make("a", {href: item.href, textContent: item.title})
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) { return }
        event.preventDefault()
        model.send_msg({lesson: item.name})
      })
      const ticks = make("span", {className: all ? "done" : "ticks"})
      const some = done ? filled(words.seen_some, {seen: done, count: item.count}) : filled(words.unseen, {steps: item.count - 1})
      ticks.textContent = all ? `✓ ${words.done}` : some
      const line = make("div", {className: "line"}, make("span", {textContent: filled(words.minutes, item)}), ticks)
      return make("li", {}, make("h2", {}, link), make("p", {textContent: item.aim}), line)
    }))
  }
  const head = make("div", {className: "about"}, make("h1", {textContent: words.heading}), make("p", {textContent: words.about}), sentence)
  return {element: make("div", {className: "overview"}, head, list, again), fill}
}

function make_lesson(model) {
  const words = model.words
  const send = (message) => () => model.send_msg(message)
  const title = make("h1"), about = make("p", {className: "aim"}), sentence = make("p", {className: "sentence", role: "alert"})
  const steps = make("ol", {className: "steps"})
  const heading = make("h2"), text = make("div", {className: "text"}), choices = make("div", {className: "choices", role: "group", label: words.your_answer})
  const verdict = make("p", {className: "verdict"}), reason = make("div", {className: "text reason"})
  const meaning = make("div", {className: "meaning", role: "tooltip", id: "meaning", hidden: true})
  const article = make("div", {role: "status"}, heading, text)
  const answer = make("div", {className: "answer", role: "status"}, verdict, reason)
  const back = make_button(words.back, {className: "back"}, send("back"))
  const again = make_button(words.again, {className: "again"}, send("again"))
  const next = make_button(words.next, {className: "next"}, send("next"))
  const way = make("nav", {className: "way", label: words.steps}, back, again, next)
  const all = make_button(words.all, {className: "all-lessons"}, send("all"))
  const told = make("div", {className: "told"}, article, choices, answer, meaning)
  const element = make("section", {className: "lesson", label: words.lesson}, make("div", {className: "line"}, all), title, about, sentence, steps, told, way)
  const terms = explained(told, meaning)
  let asked = "", listed = ""

  const fill = (content) => {
    const question = content.kind === "question", answered = question && content.chosen !== undefined
    const count = content.titles.length, number = content.number
    if (!question || answered) { keep(content.name, number) }
    const seen = seen_of(content.name)
    title.textContent = content.title
    about.textContent = `${filled(words.minutes, content)}. ${content.aim}`
    sentence.textContent = content.sentence
    element.classList.toggle("under-way", number > 0)
    // The same buttons as long as their names are the same: one of them may have the focus.
    if (listed !== content.titles.join("|")) {
      steps.replaceChildren(...content.titles.map((name, i) => {
        const button = make_button("", {className: "step"}, send(i))
        button.append(make("span", {className: "mark"}), make("span", {className: "name", textContent: name}))
        return make("li", {}, button)
      }))
      listed = content.titles.join("|")
    }
    for (const [i, button] of [...steps.querySelectorAll(".step")].entries()) {
      const mark = button.querySelector(".mark")
      mark.textContent = seen.has(i) ? "✓" : String(i + 1)
      mark.toggleAttribute("data-seen", seen.has(i))
      button.title = seen.has(i) ? words.seen : ""
      if (i === number) { button.setAttribute("aria-current", "step") } else { button.removeAttribute("aria-current") }
    }
    heading.textContent = question ? content.heading : `${number + 1}. ${content.heading}`
    text.innerHTML = content.html
    const key = content.name + content.choices.join("|")
    if (asked !== key) {
      choices.replaceChildren(...content.choices.map((label, i) => make_button(label, {className: "choice"}, send({choose: i}))))
      asked = key
    }
    for (const [i, button] of [...choices.children].entries()) {
      button.classList.toggle("right", answered && i === content.right)
      button.classList.toggle("wrong", answered && i === content.chosen && i !== content.right)
      button.setAttribute("aria-pressed", answered && i === content.chosen)
    }
    verdict.textContent = !answered ? "" : content.chosen === content.right ? words.right : filled(words.wrong, {choice: content.choices[content.right]})
    verdict.className = answered && content.chosen === content.right ? "verdict good" : "verdict"
    reason.innerHTML = answered ? content.reason : ""
    back.disabled = number === 0
    again.hidden = question
    next.textContent = !question ? (number === count - 2 ? words.question : words.next) : content.after ? words.next_lesson : words.all
    next.title = question && content.after ? content.after : ""
    next.disabled = question && !answered
    terms.tell(content.terms)
    steps.querySelector("[aria-current]")?.scrollIntoView({block: "nearest", inline: "nearest"})
    if (answered) { answer.scrollIntoView({block: "nearest"}) }
  }
  return {element, fill}
}

// Says what a term means while the pointer or the focus is on it, and after a touch until the next one.
function explained(told, box) {
  let meanings = {}, shown = null, touched = false
  const show = (term) => {
    shown?.removeAttribute("aria-describedby")
    shown = term
    box.hidden = term === null
    if (term === null) { return }
    const name = term.dataset.term
    box.replaceChildren(make("b", {textContent: name}), ` ${meanings[name]}`)
    term.setAttribute("aria-describedby", box.id)
    const at = term.getBoundingClientRect(), frame = told.getBoundingClientRect()
    box.style.top = `${at.bottom - frame.top + told.scrollTop + 4}px`
  }
  const term_of = (event) => event.target.closest?.(".term") ?? null
  told.addEventListener("pointerover", (event) => { if (event.pointerType === "mouse" && term_of(event)) { show(term_of(event)) } })
  told.addEventListener("pointerout", (event) => { if (event.pointerType === "mouse" && term_of(event)) { show(null) } })
  told.addEventListener("focusin", (event) => { if (term_of(event)) { show(term_of(event)) } })
  told.addEventListener("focusout", (event) => { if (term_of(event)) { show(null) } })
  told.addEventListener("pointerdown", (event) => { touched = event.pointerType !== "mouse" && shown !== null && term_of(event) === shown })
  told.addEventListener("click", (event) => { if (term_of(event)) { show(touched ? null : term_of(event)); touched = false } })
  told.addEventListener("keydown", (event) => { if (event.key === "Escape" && shown) { show(null); event.stopPropagation() } })
  return {tell: (found) => { meanings = found; show(null) }}
}
