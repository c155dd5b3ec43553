"""Colours, fonts and style sheets of the page, light and dark, and in the type of the projector.

The page has the views' own fonts and surface. Roboto comes with panel-material-ui, from this server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bnnviz.views import DARK, FONT, LIGHT
from bnnviz_app import BACKGROUND, THEME_COOKIE

HEADER = {False: "#24435d", True: "#0f1c28"}

#: Style sheet of the stage, on which the cards lie.
STAGE = """
:host {display: grid !important; gap: 10px; padding: 10px 14px; box-sizing: border-box; overflow: hidden;
  grid-auto-rows: minmax(0, 1fr); min-height: 0; background: var(--mui-palette-background-default)}
@media (max-height: 800px) {:host {gap: 7px; padding: 7px 10px}}
:host(.waiting) {opacity: .4; transition: opacity .15s .2s}
/* Panel's hidden button would take a row of the grid for itself. */
.scroll-button {display: none !important}
"""
#: Of the page around it. The header grows with its type in projector mode, the room that is left for it does not.
PAGE = """
:host {height: 100%; min-height: 0; overflow: hidden}
:host(.large) {padding-top: 8px; box-sizing: border-box}
"""
#: Of a page of text, which scrolls.
TEXT_PAGE = """
:host {height: 100%; min-height: 0; overflow: hidden auto; background: var(--mui-palette-background-default)}
:host(.large) {--size: 1.25}
.scroll-button {display: none !important}
"""
#: Size of the type of a page of text, a number in CSS.
SIZE = "var(--size, 1)"
#: Of the texts on it.
TEXT = f"""
:host {{color: var(--mui-palette-text-primary); font-size: calc(14.5px * {SIZE}); line-height: 1.45}}
h1 {{font-size: calc(24px * {SIZE}); font-weight: 500; margin: 0 0 2px; line-height: 1.25}}
h2 {{font-size: calc(18px * {SIZE}); font-weight: 500; margin: 6px 0 2px; overflow-wrap: anywhere}}
p {{margin: 2px 0 4px; color: var(--mui-palette-text-secondary); max-width: 110ch}}
a {{color: var(--mui-palette-primary-main)}}
"""
LARGE = 1.4  # type of the figures in projector mode
#: What is read from afar is larger in projector mode: a pane with the class ``large`` follows its own sheet.
LARGE_CAPTION = """
:host(.large) {font-size: 20px; line-height: 26px; max-height: 78px}
@media (max-height: 800px) {:host(.large) {font-size: 16.5px; line-height: 21px; max-height: 63px}}
"""
LARGE_STRIP = """
:host(.large) {height: 88px !important}
@media (max-height: 800px) {:host(.large) {height: 68px !important}}
"""
LARGE_STATUS = """
:host(.large) .line {font-size: 15.5px}
@media (max-width: 1500px) {
  :host(.large) .line {font-size: 14.5px}
  :host(.large) .line .elapsed, :host(.large) .line .frames {display: none}
}
"""
LARGE_CARD = """
:host(.large) {font-size: 16px}
:host(.large) .bnnviz-legend > span {font-size: 15px !important}
"""
LARGE_TABLE = ":host(.large) table {font-size: 17px}"

#: For a select that stands in a line with other things.
FLAT = {"& .MuiSelect-select": {"padding": "4px 30px 4px 11px !important", "minHeight": "0 !important"}}
#: The same in the heading of a card.
TIGHT = {"& .MuiSelect-select": {"padding": "2px 28px 2px 10px !important", "minHeight": "0 !important"}}
#: For the style sheets of a select whose place says what it is for: only its label's words are heard.
UNLABELLED = """
.MuiInputLabel-root {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}
.MuiOutlinedInput-notchedOutline {top: 0 !important}
.MuiOutlinedInput-notchedOutline legend {display: none}
"""
_COMPONENTS = {
    # Which heading a text is follows from what it says, not from its size; the largest is the page's title.
    "MuiTypography": {"defaultProps": {"variantMapping": {"h3": "h1", "h5": "div", "subtitle1": "div"}}},
    # In the dark, paper that lies higher would be lighter than the surface that the views are drawn for.
    "MuiPaper": {"styleOverrides": {"root": {"backgroundImage": "none"}}},
    "MuiLinearProgress": {"styleOverrides": {"root": {"display": "none"}}},
    "MuiToolbar": {"defaultProps": {"variant": "dense"}},
    "MuiFormLabel": {"styleOverrides": {"root": {"fontSize": "0.8125rem"}}},
    "MuiButton": {"styleOverrides": {"root": {"borderRadius": 18, "lineHeight": 1.3}}},
    "MuiTooltip": {"styleOverrides": {"tooltip": {"fontSize": "0.8125rem", "lineHeight": 1.4}}},
}


def _scheme(dark: bool, size: int) -> dict:
    palette = {
        "mode": "dark" if dark else "light",
        "primary": {
            "main": "#6fb1ee" if dark else "#2a6eb0",
            "contrastText": "#08131d" if dark else "#ffffff",
        },
        "background": {
            "default": BACKGROUND[dark],
            "paper": (DARK if dark else LIGHT).surface,
        },
        "text": {
            "primary": "#e6edf3" if dark else "#16202a",
            "secondary": "#9fb0c0" if dark else "#51616f",
        },
        "divider": "#2f3d4a" if dark else "#d9e0e6",
    }
    bar = {"root": {"backgroundColor": HEADER[dark], "color": "#ffffff", "backgroundImage": "none"}}
    return {
        "palette": palette,
        "typography": {"fontFamily": FONT, "fontSize": size},
        "components": {**_COMPONENTS, "MuiAppBar": {"styleOverrides": bar}},
    }


def is_dark(arguments: Mapping[str, Sequence[bytes]], cookies: Mapping[str, str]) -> bool:
    """Tell whether a page opens dark: as its address says, or else as this browser was left."""
    asked = arguments["theme"][0].decode(errors="replace") if arguments.get("theme") else cookies.get(THEME_COOKIE)
    return asked == "dark"


def material(large: bool = False) -> dict:
    """Return both themes of the page, with larger type for a projector."""
    return {"light": _scheme(False, 15 if large else 13), "dark": _scheme(True, 15 if large else 13)}
