// Shared helpers: make elements, paint an image, copy a text, and wait a little.

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

// Without a clipboard, the text is selected and copied by a command.
async function copy(text, select) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    select()
    return document.execCommand("copy")
  }
}

// Act once, a little later, however often it is called meanwhile.
function throttled(act, milliseconds) {
  let timer = null
  const later = () => { timer ??= setTimeout(() => { timer = null; act() }, milliseconds) }
  later.stop = () => clearTimeout(timer)
  return later
}

// Put values into a text.
const filled = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole)
