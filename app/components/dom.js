// What several components do: make elements, paint an image, copy a text, wait a little, and choose a language.

function make(tag, properties = {}, ...children) {
  const {role, label, ...rest} = properties
  const element = Object.assign(document.createElement(tag), rest)
  if (role) { element.setAttribute("role", role) }
  if (label) { element.setAttribute("aria-label", label) }
  element.append(...children)
  return element
}

function make_button(text, properties, on_click) {
  const button = make("button", {type: "button", textContent: text, ...properties})
  button.addEventListener("click", on_click)
  return button
}

// Bytes channel by channel, row by row; one channel is grey.
function paint(canvas, bytes, width, height) {
  const size = width * height, grey = bytes.length === size
  if (canvas.width !== width || canvas.height !== height) { Object.assign(canvas, {width, height}) }
  const context = canvas.getContext("2d"), data = context.createImageData(width, height)
  for (let i = 0; i < size; i++) {
    for (let c = 0; c < 3; c++) { data.data[4 * i + c] = bytes[grey ? i : c * size + i] }
    data.data[4 * i + 3] = 255
  }
  context.putImageData(data, 0, 0)
}

const bytes_of = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))

// Where the browser has no clipboard to give, the text is selected and copied the old way.
async function copy(text, select) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    select()
    return document.execCommand("copy")
  }
}

// Act once, a little later, however often it is asked for meanwhile.
function throttled(act, milliseconds) {
  let timer = null
  const later = () => { timer ??= setTimeout(() => { timer = null; act() }, milliseconds) }
  later.stop = () => clearTimeout(timer)
  return later
}

// Put values into a sentence.
const filled = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole)

// The language of lessons and of questions, which this browser keeps for addresses that name none. The server reads it too.
function kept_language() {
  try { return document.cookie.match(/(?:^|; )LANGUAGE_COOKIE=([^;]+)/)?.[1] ?? null } catch { return null }
}

function keep_language(code) {
  try { document.cookie = `LANGUAGE_COOKIE=${code}; path=/; max-age=31536000; SameSite=Lax` } catch { /* the address keeps it */ }
}

// A button for each language, in its own words; the same ones all the time, as one of them may have the focus. The model
// has `words` with their `code`, and the names of all `languages` by their codes.
function make_language_choice(model) {
  const buttons = Object.entries(model.languages).map(([code, name]) => make_button(name, {className: "language", lang: code}, () => {
    keep_language(code)
    if (code !== model.words.code) { model.send_msg({language: code}) }
  }))
  const element = make("div", {className: "languages", role: "group"}, ...buttons)
  const fill = () => {
    element.setAttribute("aria-label", model.words.languages)
    for (const button of buttons) { button.setAttribute("aria-pressed", button.lang === model.words.code) }
  }
  return {element, fill}
}
