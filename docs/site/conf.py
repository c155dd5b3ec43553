"""Configure Sphinx: pages load only local files."""

from __future__ import annotations

from bnnviz.version import VERSION

project = "bnnviz"
author = "the bnnviz authors"
project_copyright = author
version = release = VERSION
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "bnnviz.lessons.directive",
    "docs.site.mathml",
    "docs.site.names",
]
root_doc = "index"
nitpicky = True
default_role = "py:obj"
show_warning_types = True

# --- texts

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # from elsewhere; a notebook keeps pictures of what its widgets showed
nb_mime_priority_overrides = [
    ("html", "application/vnd.jupyter.widget-view+json", None),
    ("html", "image/svg+xml", 10),
    ("html", "image/png", 20),
    ("html", "text/html", 30),
    ("html", "text/plain", 40),
]
suppress_warnings = ["mystnb.unknown_mime_type"]

# --- code

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# Exclude prompts and outputs of examples from copying.
copybutton_exclude = ".linenos, .gp, .go"

# --- pages

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = f"bnnviz {VERSION}"
# `docs/site/build.py` defines the folder of generated files.
html_static_path: list[str] = []
exclude_patterns = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "bnnviz"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "navigation_depth": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": True,
}
