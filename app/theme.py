"""Style the page: colours, fonts and style sheets, light and dark, and the projector's type.

The page has the views' own fonts and surface. Roboto comes with panel-material-ui, from this server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bnnviz.figures.palette import DARK, FONT, LIGHT
from bnnviz_app import BACKGROUND, THEME_COOKIE


def styles(module: str) -> dict[str, str]:
    """Read the style sheets of a module from its CSS file, each under a comment such as ``/* @title */``.

    Every pane has a separate shadow root, and therefore needs a separate sheet.
    """
    parts = re.split(r"^/\* @(\w+).*\*/\n", Path(module).with_suffix(".css").read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


#: Style sheets that several modules share.
SHEETS = styles(__file__)
HEADER = {False: "#24435d", True: "#0f1c28"}

#: For a menu in the header, which the library would colour by its own default.
HEADER_MENU = {
    mode: {"palette": {"background": {"paper": HEADER[dark]}}} for mode, dark in (("light", False), ("dark", True))
}

DRAWER_BELOW = 1100  # pixels
LARGE = 1.4  # type of the figures in projector mode

#: For a select in a line with other elements.
FLAT = {"& .MuiSelect-select": {"padding": "4px 30px 4px 11px !important", "minHeight": "0 !important"}}
#: The same in the heading of a card, which leaves room for the legend, also in projector mode.
TIGHT = {
    "& .MuiSelect-select": {
        "padding": "2px 28px 2px 10px !important",
        "minHeight": "0 !important",
        "lineHeight": "1.2 !important",
    }
}
#: For a widget over the stage: what explains it covers no other control.
EXPLAINED_ABOVE = {"components": {"MuiTooltip": {"defaultProps": {"slotProps": {"popper": {"placement": "top"}}}}}}
_COMPONENTS = {
    # The level of a heading follows from its content, not from its size.
    "MuiTypography": {"defaultProps": {"variantMapping": {"h5": "div", "subtitle1": "div"}}},
    # In dark mode, elevated paper would be lighter than the surface that the views assume.
    "MuiPaper": {"styleOverrides": {"root": {"backgroundImage": "none"}}},
    "MuiLinearProgress": {"styleOverrides": {"root": {"display": "none"}}},
    "MuiToolbar": {
        "defaultProps": {"variant": "dense"},
        "styleOverrides": {
            "root": {
                # The page opens its settings itself.
                "& [aria-label$=drawer]": {"display": "none"},
            }
        },
    },
    "MuiFormLabel": {"styleOverrides": {"root": {"fontSize": "0.8125rem"}}},
    "MuiButton": {"styleOverrides": {"root": {"borderRadius": 18, "lineHeight": 1.3}}},
    "MuiTooltip": {
        # The pointer reaches elements below a tooltip.
        "defaultProps": {"disableInteractive": True, "enterDelay": 400},
        # As wide as its words: beside the last button of the header each would have a line of its own, and most be cut.
        "styleOverrides": {
            "tooltip": {"fontSize": "0.8125rem", "lineHeight": 1.4, "width": "max-content", "maxWidth": 480}
        },
    },
}


#: Colours of the page as CSS variables, light and dark: ``error.main`` is ``var(--mui-palette-error-main)``.
_COLOURS = {
    "primary": {"main": ("#2a6eb0", "#6fb1ee"), "contrastText": ("#ffffff", "#08131d")},
    # The chip without a verdict, whose hovered text would be hard to read in the library's grey.
    "default": {"main": ("#16202a", "#9fb0c0"), "dark": ("#51616f", "#2f3d4a")},
    "error": {"main": ("#b3134f", "#ff86b0")},
    "success": {"main": ("#23703a", "#7fd08f")},
    "background": {"default": (BACKGROUND[False], BACKGROUND[True]), "paper": (LIGHT.surface, DARK.surface)},
    "text": {"primary": ("#16202a", "#e6edf3"), "secondary": ("#51616f", "#9fb0c0")},
    "caption": {
        "main": ("#edf3fa", "#1a2531"),
        "warned": ("#fdf5e2", "#2b2517"),
        "failed": ("#fdeaea", "#331b1c"),
    },
    "entries": {str(number): pair for number, pair in enumerate(zip(LIGHT.chains, DARK.chains, strict=True))},
    "divider": ("#d9e0e6", "#2f3d4a"),
}
_NO_TOOLBAR = {"& .MuiDrawer-paper > .MuiToolbar-root": {"display": "none"}}
_SHADE = {False: "rgb(22 32 42 / .22)", True: "rgb(0 0 0 / .6)"}


def entry_colour(number: int) -> str:
    """Return the colour of a sampler or a branch for a style sheet."""
    return f"var(--mui-palette-entries-{number})"


def _chosen(colours: dict, dark: bool) -> dict:
    return {name: _chosen(value, dark) if isinstance(value, dict) else value[dark] for name, value in colours.items()}


def _settings_surface(dark: bool) -> dict:
    """Return the surface of the settings, with a shade at its lower edge as long as there are more of them below."""
    paper = _COLOURS["background"]["paper"][dark]
    return {
        # The scrolling end of the content hides the fixed shade.
        "backgroundImage": f"linear-gradient({paper}, {paper}), linear-gradient(transparent, {_SHADE[dark]})",
        "backgroundAttachment": "local, scroll",
        "backgroundPosition": "bottom",
        "backgroundSize": "100% 34px",
        "backgroundRepeat": "no-repeat",
    }


def _scheme(dark: bool, size: int) -> dict:
    bar = {"root": {"backgroundColor": HEADER[dark], "color": "#ffffff", "backgroundImage": "none"}}
    return {
        "palette": {"mode": "dark" if dark else "light"} | _chosen(_COLOURS, dark),
        "typography": {"fontFamily": FONT, "fontSize": size},
        "components": {
            **_COMPONENTS,
            "MuiAppBar": {"styleOverrides": bar},
            # The room for the header, which a drawer over the page covers.
            "MuiDrawer": {"styleOverrides": {"paper": _settings_surface(dark), "modal": _NO_TOOLBAR}},
        },
        # Below this width the settings cover the page as a drawer.
        "breakpoints": {"values": {"xs": 0, "sm": DRAWER_BELOW, "md": 1200, "lg": 1280, "xl": 1536}},
    }


def is_dark(arguments: Mapping[str, Sequence[bytes]], cookies: Mapping[str, str]) -> bool:
    """Return whether a page opens dark, by its address or by the cookie."""
    asked = arguments["theme"][0].decode(errors="replace") if arguments.get("theme") else cookies.get(THEME_COOKIE)
    return asked == "dark"


def material(large: bool = False) -> dict:
    """Return both themes of the page, with larger type for a projector."""
    return {"light": _scheme(False, 15 if large else 13), "dark": _scheme(True, 15 if large else 13)}
