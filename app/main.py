"""Build the page that the address asks for; Bokeh runs this script once for each session."""

import panel as pn

from bnnviz_app.access.gate import GATE
from bnnviz_app.page import open_page

if GATE not in pn.state.cache:
    raise RuntimeError("Serve the dashboard with `bnnviz serve`: other commands let everybody in.")
open_page()
