// Keeps the address bar at what the page shows. Replacing the entry adds nothing to the history.

const REST = 250 // milliseconds: browsers refuse to write more often than about six times a second

export function render({model}) {
  let timer = null
  const write = () => {
    timer = null
    const query = "?" + model.query
    if (model.query && location.search !== query) {
      history.replaceState(history.state, "", location.pathname + query + location.hash)
    }
  }
  write()
  model.on("query", () => { timer ??= setTimeout(write, REST) })
  model.on("remove", () => clearTimeout(timer))
}
