// The table of a race. A heading sorts by its figure, the better way first; pressed again, the other way. An unknown
// figure comes last both ways.

export function render({model}) {
  const table = document.createElement("table")
  let by = model.first, turned = false

  function compare(column) {
    const sign = (column[3] ? -1 : 1) * (turned ? -1 : 1)
    return (a, b) => {
      const [x, y] = [a[5][by]?.[0] ?? null, b[5][by]?.[0] ?? null]
      if (x === null || y === null) { return (x === null) - (y === null) }
      return sign * (x - y)
    }
  }

  function sort(name) {
    turned = by === name && !turned
    by = name
    fill()
  }

  function heading(column) {
    const cell = document.createElement("th"), button = document.createElement("button")
    cell.scope = "col"
    button.type = "button"
    button.textContent = column[1]
    button.title = column[2]
    button.dataset.figure = column[0]
    if (column[0] === by) {
      const rising = column[3] === turned
      cell.setAttribute("aria-sort", rising ? "ascending" : "descending")
      button.textContent += rising ? " ▴" : " ▾"
    }
    button.addEventListener("click", () => sort(column[0]))
    cell.append(button)
    return cell
  }

  function line([rank, colour, name, settings, verdict, figures]) {
    const row = document.createElement("tr"), place = document.createElement("td"), who = document.createElement("td")
    place.textContent = rank ?? "–"
    who.className = "name"
    who.title = settings ? `${name}: ${settings}` : name
    const chip = document.createElement("i")
    chip.style.background = colour
    who.append(chip, name)
    if (verdict) { who.append(Object.assign(document.createElement("span"), {className: "lost", textContent: verdict})) }
    const cells = model.columns.map(([figure]) => {
      const cell = document.createElement("td")
      cell.textContent = figures[figure][1]
      cell.className = figure === by ? "sorted" : ""
      return cell
    })
    row.append(place, who, ...cells)
    return row
  }

  function fill() {
    const focused = table.getRootNode().activeElement?.dataset?.figure
    const column = model.columns.find(([name]) => name === by) ?? model.columns[0]
    if (column === undefined) { return }
    const head = document.createElement("tr"), first = document.createElement("th"), who = document.createElement("th")
    who.className = "name"
    head.append(first, who, ...model.columns.map(heading))
    table.replaceChildren(head, ...[...model.rows].sort(compare(column)).map(line))
    if (focused) { table.querySelector(`button[data-figure="${focused}"]`)?.focus() }
  }

  model.on("rows", fill)
  model.on("columns", fill)
  fill()
  return table
}
