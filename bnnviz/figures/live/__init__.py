"""Draw figures in the browser, on a canvas over a Bokeh figure."""
