// The table of a race. A heading sorts by its figure, best first; a second click reverses the order. Unknown figures come
// last in both orders. Definitions of the columns can replace the rows.

export function render({model}) {
  const table = make("table"), reported = make("dl", {tabIndex: 0}), root = make("div", {}, table, reported)
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
    const button = make_button(column[1], {title: column[2]}, () => sort(column[0]))
    const cell = make("th", {scope: "col"}, button)
    button.dataset.column = column[0]
    if (column[0] === by) {
      const rising = column[3] === turned
      cell.setAttribute("aria-sort", rising ? "ascending" : "descending")
      button.textContent += rising ? " ▴" : " ▾"
    }
    return cell
  }

  function line([rank, colour, name, settings, verdict, figures]) {
    const chip = make("i")
    chip.style.background = colour
    const who = make("td", {className: "name", title: settings ? `${name}: ${settings}` : name}, chip, name)
    if (verdict) { who.append(make("span", {className: "lost", textContent: verdict})) }
    const cells = model.columns.map(([figure]) =>
      make("td", {className: figure === by ? "sorted" : "", textContent: figures[figure][1]}))
    return make("tr", {}, make("td", {textContent: rank ?? "–"}), who, ...cells)
  }

  function fill() {
    const focused = table.getRootNode().activeElement?.dataset?.column
    const column = model.columns.find(([name]) => name === by) ?? model.columns[0]
    if (column === undefined) { return }
    const head = make("tr", {}, make("th", {title: model.rank, textContent: "#"}), make("th", {className: "name", textContent: model.who}), ...model.columns.map(heading))
    table.replaceChildren(head, ...[...model.rows].sort(compare(column)).map(line))
    if (focused) { table.querySelector(`button[data-column="${focused}"]`)?.focus() }
  }

  function explain() {
    const terms = [["1, 2, 3", model.rank], ...model.columns.map(([, head, doc]) => [head, doc])]
    reported.replaceChildren(...terms.flatMap(([term, doc]) => [make("dt", {textContent: term}), make("dd", {textContent: doc})]))
    table.hidden = model.explaining
    reported.hidden = !model.explaining
  }

  model.on("rows", fill)
  model.on("columns", () => { fill(); explain() })
  model.on("explaining", explain)
  fill()
  explain()
  return root
}
