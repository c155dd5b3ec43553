"""Colours and fonts of the page, light and dark, as panel-material-ui takes them.

The page has the views' own fonts and surface. Roboto comes with panel-material-ui, from this server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bnnviz.views import DARK, FONT, LIGHT

THEME_COOKIE = "bnnviz-theme"

HEADER = {False: "#24435d", True: "#0f1c28"}

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
            "default": "#10171e" if dark else "#f2f4f6",
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
