"""Build the page that the address asks for; Bokeh runs this script once for each session."""

from bnnviz_app.page import open_page

open_page()
