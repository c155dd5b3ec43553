"""Show the dashboard: `bnnviz_app` in an environment, the folder `app` here, which `panel serve app` serves.

This module is imported before Panel and the views.
"""

#: The cookie in which a browser keeps the theme that it was left in.
THEME_COOKIE = "bnnviz-theme"
#: Colour of the page behind everything, by whether it is dark.
BACKGROUND = {False: "#f2f4f6", True: "#10171e"}
