// Updates the address bar by replacing the entry, which adds nothing to the history.

const REST = 250 // milliseconds: browsers refuse to write more often than about six times a second

export function render({model}) {
  const write = () => {
    const query = "?" + model.query
    if (model.query && location.search !== query) {
      history.replaceState(history.state, "", location.pathname + query + location.hash)
    }
  }
  const later = throttled(write, REST)
  write()
  model.on("query", later)
  model.on("remove", later.stop)
}
