// A field for each input of a table. The values are sent shortly after the last key.

export function render({model}) {
  const form = make("form", {label: "A row to predict", autocomplete: "off"})
  const controls = new Map()
  const tell = throttled(() => {
    model.send_msg({texts: Object.fromEntries([...controls].map(([name, control]) => [name, control.value]))})
  }, 250)

  function control(field) {
    if (field.levels.length) {
      const select = make("select", {name: field.name})
      for (const level of field.levels) {
        select.append(make("option", {value: level, textContent: level, selected: level === field.value}))
      }
      select.addEventListener("change", tell)
      return select
    }
    const input = make("input", {type: "text", inputMode: "decimal", name: field.name, value: field.value})
    input.addEventListener("input", tell)
    return input
  }

  function fill() {
    controls.clear()
    form.replaceChildren(...model.fields.map((field, i) => {
      const made = control(field), wrong = make("span", {className: "wrong", role: "alert", id: `wrong${i}`})
      made.setAttribute("aria-describedby", wrong.id)
      controls.set(field.name, made)
      const hint = make("span", {className: "hint", textContent: field.hint})
      return make("label", {}, make("span", {className: "name", textContent: field.name}), made, hint, wrong)
    }))
    complain()
  }

  function complain() {
    for (const [name, made] of controls) {
      const sentence = model.errors[name] ?? ""
      made.setAttribute("aria-invalid", sentence ? "true" : "false")
      made.parentElement.querySelector(".wrong").textContent = sentence
    }
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); tell() })
  model.on("fields", fill)
  model.on("errors", complain)
  fill()
  return form
}
