"""Build the page that the address asks for, unless `BuildInThread` has; Bokeh runs this once for each session."""

import panel as pn

from bnnviz_app.page import open_page

if not pn.state.curdoc.roots:
    open_page()
