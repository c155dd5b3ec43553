/* A file that is dropped beside its field.

The browser would open it in the place of the page, and the run would be gone. */
for (const name of ["dragover", "drop"]) {
  addEventListener(name, (event) => {
    const taken = event.defaultPrevented || event.composedPath().some((el) => el.matches?.("input"))
    if (taken || !event.dataTransfer?.types.includes("Files")) { return }
    event.preventDefault()
    event.dataTransfer.dropEffect = "none"
  })
}
