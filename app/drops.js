/* Ignores files dropped outside a field: the browser would replace the page by the file. */
for (const name of ["dragover", "drop"]) {
  addEventListener(name, (event) => {
    const taken = event.defaultPrevented || event.composedPath().some((el) => el.matches?.("input"))
    if (taken || !event.dataTransfer?.types.includes("Files")) { return }
    event.preventDefault()
    event.dataTransfer.dropEffect = "none"
  })
}
