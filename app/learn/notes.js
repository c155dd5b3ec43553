// Notes of the step that a lesson shows in another window of this browser, which tells where it is; this one can take it
// on and back. A clock says how long the notes have been open.

const CHANNEL = "bnnviz-lesson", MINUTE = 60000

export function render({model}) {
  const root = make("div", {className: "notes"})
  const channel = new BroadcastChannel(CHANNEL)
  let begun = Date.now(), shown = null  // the window with the lesson
  const about = make("p", {className: "about"}), none = make("p", {className: "none"})
  const lesson = make("h1"), place = make("p", {className: "place"}), title = make("h2")
  const note = make("p", {className: "note"}), right = make("p", {className: "right"}), next = make("p", {className: "after"})
  const article = make("div", {role: "status"}, lesson, place, title, note, right, next)
  const back = make_button("", {className: "back"}, () => channel.postMessage({go: "back", to: shown}))
  const on = make_button("", {className: "next"}, () => channel.postMessage({go: "next", to: shown}))
  const clock = make("span", {className: "clock"})
  const again = make_button("", {className: "again"}, () => { begun = Date.now(); tick() })
  const open = make("a", {target: "_blank"})
  root.append(article, none, open, make("nav", {className: "way"}, back, again, clock, on), about)

  const tick = () => { clock.textContent = filled(model.words.clock, {minutes: Math.floor((Date.now() - begun) / MINUTE)}) }
  const fill = () => {
    const words = model.words, told = model.content, known = Boolean(told.title)
    root.lang = words.code
    article.hidden = back.hidden = on.hidden = !known
    none.hidden = open.hidden = known
    about.textContent = words.about
    none.textContent = words.none
    open.textContent = words.open
    open.href = model.lessons
    back.textContent = words.back
    on.textContent = words.on
    again.textContent = words.again
    tick()
    if (!known) { return }
    lesson.textContent = told.lesson
    place.textContent = filled(words.place, {number: told.number + 1, count: told.count})
    title.textContent = told.title
    note.textContent = told.note
    right.textContent = told.right ? filled(words.right, {choice: told.right}) : ""
    next.textContent = told.next ? filled(words.next, {title: told.next}) : ""
    back.disabled = told.number === 0
  }
  channel.onmessage = ({data}) => {
    if (!data || data.at === undefined) { return }
    shown = data.from
    model.send_msg(data.at)
  }
  model.on("words", fill)
  model.on("lessons", fill)
  model.on("content", fill)
  fill()
  const every = setInterval(tick, 5000)
  model.on("remove", () => { clearInterval(every); channel.close() })
  channel.postMessage({ask: true})
  return root
}
