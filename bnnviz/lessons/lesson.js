// A lesson: texts next to films that a knob selects, a large number, questions, and the navigation between steps.
"use strict"

// Called by the scripts that have the films.
function bnnviz_hold(name, content, numbers) {
  for (const [kind, text] of [["content", content], ["numbers", numbers]]) {
    document.body.append(make("script", {type: "text/plain", id: `${kind}-${name}`, textContent: text}))
  }
}

const loading = new Map()

function load_film(name) {
  if (by_id(`content-${name}`)) { return Promise.resolve() }
  if (!loading.has(name)) {
    loading.set(name, new Promise((resolve, reject) => {
      document.head.append(make("script", {src: `films/${name}.js`, onload: resolve, onerror: () => reject(new Error(`films/${name}.js`))}))
    }))
  }
  return loading.get(name)
}

const written = (value) => value == null || !Number.isFinite(value) ? "–"
  : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString(page.language) : Number(value.toPrecision(3)).toLocaleString(page.language)

// Translates the texts of a film's figures; the catalogue has whole texts, in which {0} stands for a number or a name.
function translator(catalogue) {
  const pattern = (text) => new RegExp(`^${text.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\d\}/g, "(.+)")}$`)
  const known = catalogue.map(([text, other]) => [pattern(text), other])
  const number = (text) => text.replace(/(\d),(?=\d{3})/g, "$1\u202f")
  function translated(text) {
    for (const [each, other] of known) {
      const found = each.exec(text)
      if (found) { return filled(other, found.slice(1).map((part) => number(translated(part)))) }
    }
    return text
  }
  const in_markup = (markup) => markup.replace(/>([^<]+)</g, (_, text) => `>${translated(text.replace("&lt;", "<")).replace("<", "&lt;")}<`)
  return (film) => {
    for (const words of Object.values(film.words).flatMap((series) => series.values)) {
      words.splice(0, 2, ...words.slice(0, 2).map(translated))
      words[2] = words.slice(0, 2).filter(Boolean).join(": ")
    }
    for (const series of Object.values(film.legends).flat()) { series.values = series.values.map(in_markup) }
    for (const {light, dark} of film.values.filter(({attr}) => attr === "axis_label")) {
      for (const series of [light, dark]) { if (series) { series.values = series.values.map(translated) } }
    }
    for (const mark of film.marks) { if (mark.phase) { mark.phase = translated(mark.phase) } }
    const label = (key, value) => key === "axis_label" && typeof value === "string" ? translated(value) : value
    film.document = JSON.parse(JSON.stringify(film.document), label)
  }
}

async function open_lesson(lesson) {
  const {steps, films} = lesson, last = steps.length // the question comes after the steps
  const about = make("p", {className: "about"}), heading = make("h2", {id: "lesson-heading"}), text = make("div", {className: "text"})
  const ask = make("div", {className: "ask"}), why = make("details", {className: "why"}), asked = make("details", {className: "asked", open: true})
  const terms = make("dl"), reported = make("div", {className: "reported"}, about, heading, text, ask, why, asked, terms)
  const live = make("a", {className: "live"})
  const back = make("button", {type: "button", onclick: () => turn(number - 1)})
  const next = make("button", {type: "button", className: "on", onclick: () => number === last ? leave() : turn(number + 1)})
  const buttons = [...steps, null].map((step, i) => make("button", {type: "button", textContent: step ? i + 1 : "?", onclick: () => turn(i)}))
  const way = make("nav", {}, back, make("span", {className: "numbers"}, ...buttons), next)
  const figure = make("output"), named = make("span", {className: "named"}), knob = make("div", {className: "knob"})
  const bar = make("div", {id: "lesson-bar"}, make("div", {className: "number"}, figure, named), knob, live)
  const all = make("a", {id: "all", href: "index.html"}), language = make("button", {type: "button", id: "language"})
  const predicted = new Set()
  let number = -1, shown = "", place = 0, statement = null, turning = Promise.resolve()

  knob.setAttribute("role", "group")
  by_id("lesson").append(reported, way)
  by_id("lesson").setAttribute("aria-labelledby", "lesson-heading")
  by_id("lesson").hidden = false
  by_id("stage").prepend(bar)
  by_id("title").before(all)
  by_id("projector").before(language)
  way.setAttribute("aria-labelledby", "title")
  document.documentElement.dataset.lesson = lesson.name
  all.hidden = !lesson.linked
  language.onclick = () => { speak(lesson.languages.find((code) => code !== page.language)); refresh() }
  document.addEventListener("bnnviz-frame", show_number)
  document.addEventListener("keydown", ({key, target, ctrlKey, altKey, metaKey}) => {
    if (ctrlKey || altKey || metaKey || target.closest?.("select, dialog[open]")) { return }
    if (key === "n") { turn(number + 1) }
    if (key === "p") { turn(number - 1) }
  })
  addEventListener("hashchange", arrive)

  // ---- position of the reader

  function arrive() {
    const parts = location.hash.slice(1).split("&"), asked_for = parseInt(parts[0] || lesson.begin, 10)
    const code = parts.find((part) => part.startsWith("lang="))?.slice(5)
    if (parts.includes("projector")) { set_large(true) }
    for (const name of ["dark", "light"]) { if (parts.includes(name)) { set_theme(name === "dark") } }
    speak(lesson.languages.includes(code) ? code : page.language ?? lesson.languages[0])
    return turn(Math.min(Math.max((asked_for || 1) - 1, 0), last), true)
  }

  function turn(to, again = false) {
    if (to < 0 || to > last || (to === number && !again)) { return turning }
    number = to
    place = step().place
    const hash = `#${number + 1}&lang=${page.language}`
    if (lesson.linked && location.hash !== hash) { history.replaceState(null, "", hash) }
    document.dispatchEvent(new CustomEvent("bnnviz-step", {detail: {lesson: lesson.name, step: number + 1}}))
    return refresh()
  }

  function refresh() {
    globalThis.bnnviz_player = turning = turning.then(show)
    return turning
  }

  function leave() { if (lesson.linked) { location.href = `${lesson.after ?? "index"}.html#1&lang=${page.language}` } }

  const step = () => steps[Math.min(number, last - 1)]
  const step_statement = () => statement.steps[Math.min(number, last - 1)]

  function speak(code) {
    page.language = code
    statement = lesson.texts[code]
    page.translate = statement.figures.length ? translator(statement.figures) : null
    Object.assign(page.reported, {words: {...page.reported.words, ...statement.words}, heading: statement.title})
    document.documentElement.lang = code
    const labels = {play: "play", next: "step", back: "back", projector: "projector"}
    for (const [id, name] of Object.entries(labels)) { by_id(id).textContent = statement.words[name] }
    document.querySelector(".speed span").textContent = statement.words.speed
    language.textContent = statement.words.other
    shown = "" // its texts are in another language
  }

  // ---- content

  async function show() {
    const {words} = statement, question = number === last
    by_id("title").textContent = statement.title
    about.textContent = statement.aim
    about.hidden = number > 0
    heading.textContent = question ? words.question : `${number + 1}. ${step_statement().title}`
    text.innerHTML = question ? "" : step_statement().html
    why.hidden = question || !step_statement().why
    why.open = false
    why.innerHTML = `<summary>${words.why}</summary>${step_statement().why}`
    asked.hidden = !question
    if (question) { fill_question(asked, statement.question) }
    const waits = !question && step_statement().ask && !predicted.has(number)
    text.hidden = Boolean(waits)
    why.hidden ||= Boolean(waits)
    ask.replaceChildren()
    if (waits) { predict() }
    tell_terms()
    reported.scrollTop = 0
    back.textContent = words.back
    back.disabled = number === 0
    next.textContent = question ? words.all : words.next
    next.hidden = question && !lesson.linked
    all.textContent = words.all
    live.textContent = words.live
    for (const [i, button] of buttons.entries()) {
      button.title = i === last ? words.question : statement.steps[i].title
      if (i === number) { button.setAttribute("aria-current", "step") } else { button.removeAttribute("aria-current") }
    }
    by_id("stage").classList.toggle("covered", Boolean(waits))
    await show_film_at()
  }

  async function show_film_at() {
    const {film, frame} = step(), name = `${lesson.name}-${film}-${place}`
    page.until = frame
    fill_knob(film)
    show_number({detail: frame})
    if (shown !== name) {
      await load_film(name)
      await show_film(name)
      shown = name
    }
    const {dashboard} = document.documentElement.dataset
    live.href = `${dashboard ?? ""}?page=${films[film].page}&${films[film].live[place]}`
    live.hidden = dashboard === undefined
    page.film.pause()
    page.film.seek(frame)
    mark_claims()
    return page.film
  }

  function show_number({detail: frame}) {
    const {film} = step(), {number: quantity, measured} = films[film]
    const value = quantity ? measured[place][quantity][frame] : null
    bar.querySelector(".number").hidden = value === null
    if (value === null) { return }
    figure.textContent = written(value)
    named.textContent = statement.films[film].label
  }

  function fill_knob(film) {
    const {label, names} = statement.films[film]
    knob.hidden = names.length < 2
    knob.setAttribute("aria-label", label)
    const options = names.map((name, i) => {
      const option = make("button", {type: "button", textContent: name, onclick: () => { place = i; refresh_film() }})
      option.setAttribute("aria-pressed", String(i === place))
      return option
    })
    knob.replaceChildren(make("span", {textContent: statement.films[film].knob}), ...options)
  }

  // The knob keeps the focus of the keyboard.
  function refresh_film() {
    turning = turning.then(show_film_at).then((film) => { knob.querySelector("[aria-pressed=true]")?.focus(); return film })
    globalThis.bnnviz_player = turning
  }

  function mark_claims() {
    for (const claim of text.querySelectorAll(".claim")) {
      const {view, quantity} = step().claims[claim.dataset.claim]
      const box = view ? by_id(`card-${view}`) : bar.querySelector(".number")
      for (const [event, lit] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) {
        claim.addEventListener(event, () => box?.classList.toggle("lit", lit))
      }
      claim.onclick = () => { page.film.pause(); page.film.seek(page.until) }
      const low_high = step().claims[claim.dataset.claim].interval.map(written)
      claim.title = `${quantity}: ${low_high[0]} – ${low_high[1]}`
    }
  }

  function tell_terms() {
    const found = [...new Set([...reported.querySelectorAll(".term")].filter((term) => !term.closest("[hidden]")).map((term) => term.dataset.term))]
    terms.replaceChildren(...found.flatMap((term) => [make("dt", {textContent: statement.terms[term][0]}), make("dd", {textContent: statement.terms[term][1]})]))
  }

  // ---- questions

  function predict() {
    const show_it = make("button", {type: "button", className: "show", textContent: statement.words.show, onclick: reveal})
    ask.replaceChildren(make("p", {className: "first", textContent: statement.words.predict}))
    fill_question(ask, step_statement().ask)
    ask.append(show_it)
  }

  function reveal() {
    predicted.add(number)
    refresh().then((film) => film?.play())
  }

  // Each choice has separate feedback; after a wrong one the others stay available.
  function fill_question(box, question) {
    const verdict = make("p", {className: "verdict"}), reason = make("div"), answer = make("div", {className: "answer"}, verdict, reason)
    answer.setAttribute("role", "status")
    const choices = question.choices.map(({html, feedback}, i) => {
      const button = make("button", {type: "button", innerHTML: html})
      button.onclick = () => {
        const right = i === question.answer
        button.className = right ? "right" : "wrong"
        button.setAttribute("aria-pressed", "true")
        verdict.textContent = right ? statement.words.right : statement.words.wrong
        verdict.classList.toggle("good", right)
        reason.innerHTML = feedback + (right ? "" : `<p>${statement.words.again}</p>`)
        answer.scrollIntoView({block: "nearest"})
      }
      return button
    })
    const asking = make("div", {innerHTML: question.html})
    const parts = [asking, make("div", {className: "choices"}, ...choices), answer]
    if (box !== asked) { box.append(...parts); return }
    const reading = make("div", {className: "reading", innerHTML: `<h3>${statement.words.reading}</h3>${statement.reading}`})
    box.replaceChildren(make("summary", {textContent: statement.words.question}), ...parts, reading)
  }

  return arrive()
}
