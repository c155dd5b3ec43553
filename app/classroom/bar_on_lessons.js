// The bar of a class on a page of a lesson; the teacher's page reports its step, and has no bar.

const {dashboard} = document.documentElement.dataset, home = document.createElement("div")
const reported = async (event) => {
  const headers = {"Content-Type": "application/json"}
  await fetch(CLASS, {method: "POST", headers, body: JSON.stringify({at: event.detail})})
}
const answer = await fetch(CLASS)
if (answer.ok && "people" in await answer.json()) {
  document.addEventListener("bnnviz-step", reported)
  const {lesson, step} = document.documentElement.dataset
  if (step) { reported({detail: {lesson, step: Number(step)}}) }
} else {
  const colours = {
    "palette-background-default": "--back", "palette-background-paper": "--surface", "palette-text-primary": "--text",
    "palette-text-secondary": "--soft", "palette-primary-main": "--main", "palette-success-main": "--good", "palette-divider": "--line",
  }
  const mapped = Object.entries(colours).map(([name, own]) => `--mui-${name}: var(${own});`).join(" ")
  const model = {
    words: given.words, get language() { return document.documentElement.lang }, link: (query) => (query.startsWith("?") ? dashboard : "../") + query,
  }
  home.attachShadow({mode: "open"}).append(make("style", {textContent: `:host {${mapped}} ${given.styles}`}), render({model}))
  const place = document.getElementById("lesson") ?? document.body
  place.prepend(home)
}
