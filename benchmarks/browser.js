// What a benchmark asks of the page, by name: an expression, called in the page by browser.py.
(() => {
  // Every figure stands where it is to stand, can be seen there, and nothing lies over the first one. Bokeh has
  // figures finished seconds before that: they are not in the page yet, or under its loader.
  const figuresSeen = () => {
    const at = (x, y) => {
      let found = document.elementFromPoint(x, y), inner = found
      while ((inner = found?.shadowRoot?.elementFromPoint(x, y)) && inner !== found) { found = inner }
      return found
    }
    const within = (node, outer) => {
      for (; node; node = node.parentNode ?? node.host) { if (node === outer) { return true } }
      return false
    }
    const models = [...(window.Bokeh?.documents[0]?._all_models.values() ?? [])]
    const views = models.filter((model) => model.type === "Figure").map((figure) => Bokeh.index.find_one(figure))
    // The page also holds figures that another target needs; they are hidden.
    const seen = views.filter((view) => view?.el?.checkVisibility())
    if (seen.length === 0 || !seen.every((view) => view.has_finished())) { return false }
    const {left, top, width, height} = seen[0].el.getBoundingClientRect()
    return within(at(left + width / 2, top + height / 2), seen[0].el)
  }
  // Then the controls come one by one; when the last is there Bokeh calls the document idle.
  const painted = () => figuresSeen() && Bokeh.documents[0].is_idle
  const frameCame = () => [...Bokeh.documents[0]._all_models.values()].some(
    (model) => model.type === "ColumnDataSource" && model.data.number?.[0] > 0
  )
  // A frame is painted when the task after the animation frame with the figures in it begins: as the page's own
  // heartbeat counts. A figure counts when it was repainted after its data had changed. All moments are on the clock of
  // the machine, which the server shares.
  const probe = () => {
    const models = [...Bokeh.documents[0]._all_models.values()]
    const probe = window.bnnvizProbe = {frames: [], paints: {}}
    const beats = (model) => model.type === "ColumnDataSource" && "number" in model.data
    const sent = models.find((model) => beats(model) && model.js_property_callbacks["change:data"])
    sent.properties.data.change.connect(() => {
      const at = 1000 * (sent.data.at?.[0] ?? NaN), came = Date.now()
      requestAnimationFrame(() => {
        const after = new MessageChannel()
        after.port1.onmessage = () => { probe.frames.push([at, came, Date.now()]); after.port1.close() }
        after.port2.postMessage(null)
      })
    })
    for (const figure of models.filter((model) => model.type === "Figure")) {
      const view = Bokeh.index.get_one(figure), paints = []
      if (!view.el.checkVisibility()) { continue }
      probe.paints[figure.name] = paints
      let last = []
      const painted = () => {
        const data = [...figure.renderers.map((r) => r.data_source), ...figure.tags].map((source) => source.data)
        if (data.some((columns, i) => columns !== last[i])) { paints.push(Date.now()) }
        last = data
      }
      view.repainted.connect(painted)
      document.addEventListener("bnnviz:paint", (event) => { if (event.detail === figure.name) { painted() } })
    }
  }
  const read = () => JSON.stringify([Date.now(), window.bnnvizProbe])
  // Milliseconds from a click on this button to the paint of the first frame that was made after it.
  const untilPainted = async (button) => {
    const {frames} = bnnvizProbe, before = frames.length, begin = Date.now()
    button.click()
    while (true) {
      const first = frames.slice(before).find(([at]) => at >= begin)
      if (first) { return first[2] - begin }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
  // Milliseconds until the middle of the predictive band at x has moved by so much from where it is now.
  const untilMoved = async ([x, least]) => {
    const models = [...Bokeh.documents[0]._all_models.values()]
    const [styles, ...sheets] = models.find((model) => model.type === "Figure" && model.name === "prediction").tags
    const sheet = sheets[styles.tags.find(({kind}) => kind === "band").still ? 1 : 0]
    // The sheet has the number of points of each of its marks, then their columns one after another.
    const middle = () => {
      const {packed} = sheet.data, own = styles.tags.filter(({still}) => sheets[still ? 1 : 0] === sheet)
      const which = own.findIndex(({kind}) => kind === "band"), points = packed[which]
      const begin = own.slice(0, which).reduce((sum, {columns}, i) => sum + columns.length * packed[i], own.length)
      const at = (column, i) => packed[begin + own[which].columns.indexOf(column) * points + i]
      const here = [...Array(points).keys()].findIndex((i) => at("x", i) >= x)
      return (at("low", here) + at("high", here)) / 2
    }
    const before = middle(), begin = performance.now()
    return new Promise((resolve, reject) => {
      sheet.properties.data.change.connect(() => {
        if (Math.abs(middle() - before) > least) { requestAnimationFrame(() => resolve(performance.now() - begin)) }
      })
      setTimeout(() => reject(new Error("the band did not move")), 30000)
    })
  }
  const place = ([x, y]) => {
    const models = [...Bokeh.documents[0]._all_models.values()]
    const figure = models.find((model) => model.type === "Figure" && model.name === "prediction")
    const view = Bokeh.index.get_one(figure)
    const {left, top} = view.canvas_view.events_el.getBoundingClientRect()
    return [left + view.frame.x_scale.compute(x), top + view.frame.y_scale.compute(y)]
  }
  return {figuresSeen, painted, frameCame, probe, read, untilPainted, untilMoved, place}
})()
