// The columns of a file with content and role. A message assigns a role to a column.

const ROLES = {input: "input", target: "target", left: "left out"}

export function render({model}) {
  const table = make("table"), frame = make("div", {className: "frame", role: "region", label: "Columns", tabIndex: 0}, table)
  const heads = ["Column", "Kind", "Missing", "Examples", "Role"]
  const head = make("tr", {}, ...heads.map((text) => {
    return make("th", {scope: "col", textContent: text, className: text === "Missing" ? "count" : ""})
  }))

  function choice(row) {
    const select = make("select", {label: `Role of ${row.name}`, disabled: row.fixed})
    for (const [value, text] of Object.entries(ROLES)) {
      select.append(make("option", {value, textContent: text, selected: value === row.role}))
    }
    select.dataset.column = row.name
    select.addEventListener("change", () => model.send_msg({column: row.name, role: select.value}))
    return select
  }

  function line(row) {
    const name = make("th", {scope: "row", className: "name", textContent: row.name})
    const missing = make("td", {className: row.missing ? "count" : "count none", textContent: row.missing.toLocaleString("en")})
    missing.dataset.label = "missing"
    const kind = make("td", {className: "kind", textContent: row.kind})
    const examples = make("td", {className: "examples", textContent: row.examples.join(", ")})
    const cells = [name, kind, missing, examples, make("td", {className: "role"}, choice(row))]
    const lines = [make("tr", {className: row.role}, ...cells)]
    if (row.remark) {
      lines.push(make("tr", {className: "remark"}, make("td", {colSpan: heads.length, textContent: row.remark})))
    }
    return lines
  }

  function fill() {
    const focused = table.getRootNode().activeElement?.dataset?.column
    table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...model.rows.flatMap(line)))
    if (focused !== undefined) {
      [...table.querySelectorAll("select")].find((select) => select.dataset.column === focused)?.focus()
    }
  }

  model.on("rows", fill)
  fill()
  return frame
}
