"""Draw figures with HoloViews, by Bokeh and by Matplotlib."""
