/* What Bokeh and Panel do again and again while a page opens, done once.

Fifty components of React come into the page one by one. Each of them has everything laid out again, all figures with it,
when it has its size and once more when its children are in it. It has no need to: what lies in the page by CSS tells
the figures beside it by itself when their own sizes change. */
{
  const {LayoutDOMView} = Bokeh.require("models/layouts/layout_dom")
  const {VisualProperties} = Bokeh.require("core/visuals/visual")
  const Component = Bokeh.Models.get("panel.models.esm.ReactComponent").prototype.default_view.prototype

  // A component without children has nothing to lay out.
  const after_resize = LayoutDOMView.prototype._after_resize
  LayoutDOMView.prototype._after_resize = function () {
    if ("react_root" in this && !this.child_views?.length) { return }
    after_resize.call(this)
  }

  // A column that hears of its figure's new size takes note of it, so that the figure itself would find none. What tells
  // is the canvas, which still has the size before.
  const {PlotView} = Bokeh.require("models/plots/plot_canvas")
  const figure_after_resize = PlotView.prototype.after_resize
  PlotView.prototype.after_resize = function () {
    figure_after_resize.call(this)
    const {width, height} = this.canvas_view.bbox
    if (Math.abs(width - this.bbox.width) >= 1 || Math.abs(height - this.bbox.height) >= 1) { this._after_resize() }
  }

  // Those that have mounted before the next frame are laid out together.
  const due = new Set()
  const lay_out = () => {
    const roots = [...due]
    due.clear()
    for (const root of roots.filter((view) => !view.is_destroyed)) { root.invalidate_layout() }
  }
  Component._on_mounted = function () {
    this.mounted = true
    let root = this
    while (root.is_managed) { root = root.parent }
    if (due.size === 0) { requestAnimationFrame(lay_out) }
    due.add(root)
  }

  // Where the settings lie over the page, it opens without them, and shows none as its window gets so narrow.
  const {Document} = Bokeh.require("document/document")
  const from_json = Document.from_json
  const put_away = new WeakSet() // pages whose settings come back when there is room
  let narrow = innerWidth < DRAWER_BELOW
  const settle = (page) => {
    const root = page.roots().find(({data}) => data?.sidebar?.length && data.sidebar_variant === "auto")
    if (root && narrow && root.data.sidebar_open) {
      root.data.sidebar_open = false
      put_away.add(root)
    } else if (root && !narrow && put_away.delete(root)) {
      root.data.sidebar_open = true
    }
  }
  Document.from_json = function (...args) {
    const page = from_json.apply(this, args)
    settle(page)
    return page
  }
  addEventListener("resize", () => {
    if (narrow === innerWidth < DRAWER_BELOW) { return }
    narrow = !narrow
    Bokeh.documents.forEach(settle)
  })

  // All models of the page are the server's. Bokeh takes those that came last for the browser's own, and its next message
  // would hold them whole, which the server refuses: a control that has just come would not answer to its first press.
  const create_json_patch = Document.prototype.create_json_patch
  Document.prototype.create_json_patch = function (events) {
    this._new_models.clear()
    return create_json_patch.call(this, events)
  }

  // No figure takes a colour from a style sheet, for which each would have the browser work out all styles first.
  VisualProperties.prototype._get_css_value = () => ""
}
