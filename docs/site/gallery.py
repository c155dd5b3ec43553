"""Draw the example of each figure's docstring, light and dark, and write its page and the gallery."""

from __future__ import annotations

import doctest
import html
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import holoviews as hv

from bnnviz import plots
from bnnviz.figures.still import style

#: Titles of the folders of figures.
GROUPS = {
    "chain": "Chains and paths",
    "predictive": "Predictions",
    "importance": "Weighted draws and functionals",
    "comparison": "Several runs",
    "": "Lay out, link and save",
}
_DPI = 120


def write(folder: Path) -> None:
    """Draw all figures, and write a page for each and the gallery."""
    pictures = folder / "_static" / "gallery"
    for place in (pictures, folder / "gallery"):
        place.mkdir(parents=True, exist_ok=True)
    style.use("matplotlib", "bokeh")
    drawn = {name for name in plots.__all__ if draw(name, pictures)}
    for name in plots.__all__:
        (folder / "gallery" / f"{name}.rst").write_text(_page(name, name in drawn), encoding="utf-8")
    (folder / "gallery" / "index.rst").write_text(_gallery(drawn), encoding="utf-8")


def draw(name: str, pictures: Path) -> bool:
    """Run a figure's example, write its last figure, light and dark, and return whether there is one."""
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(getattr(plots, name)))
    *lines, last = (example.source for example in examples if doctest.SKIP not in example.options)
    names: dict[str, Any] = {}
    for line in lines:
        exec(line, names)
    for theme, dark in (("light", False), ("dark", True)):
        figure = eval(last, names | {"plots": _Plots(dark)})
        if not isinstance(figure, hv.core.Dimensioned):
            return False
        plots.save(figure, pictures / f"{name}-{theme}.png", dpi=_DPI)
    return True


class _Plots:
    """The functions of `bnnviz.plots` for a light or a dark page."""

    def __init__(self, dark: bool) -> None:
        self._dark = dark

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(plots, name)
        takes = "dark" in inspect.signature(function).parameters
        return partial(function, dark=self._dark) if takes else function


def sentence(name: str) -> str:
    """Return the summary of a figure's docstring."""
    return inspect.getdoc(getattr(plots, name)).partition("\n")[0]


def _picture(name: str, theme: str, alt: str) -> str:
    source = f"../_static/gallery/{name}-{theme}.png"
    return f'<img class="only-{theme}" src="{source}" alt="{html.escape(alt)}" loading="lazy">'


def _page(name: str, drawn: bool) -> str:
    title = f"{name}\n{'=' * len(name)}\n"
    shown = "".join(_picture(name, theme, sentence(name)) for theme in ("light", "dark"))
    picture = f'\n.. raw:: html\n\n   <div class="figure">{shown}</div>\n' if drawn else ""
    return f"{title}{picture}\n.. autofunction:: bnnviz.plots.{name}\n"


def _group(name: str) -> str:
    folder = getattr(plots, name).__module__.removeprefix("bnnviz.figures.").partition(".")[0]
    return folder if folder in GROUPS else ""


def _gallery(drawn: set[str]) -> str:
    """Return the page with a picture of each figure, by groups, each with a link to its page."""
    text = [
        "Gallery\n=======\n",
        "The figures of ``bnnviz.plots``. Each picture is the output of the example on its page with Matplotlib; Bokeh",
        "draws the same for pages. See :doc:`/manual/figures` for their arguments and composition.\n",
    ]
    for group, title in GROUPS.items():
        names = [name for name in plots.__all__ if _group(name) == group]
        text.append(f'{title}\n{"-" * len(title)}\n\n.. raw:: html\n\n   <ul class="gallery">')
        text += [f"   <li>{_card(name, name in drawn)}</li>" for name in names]
        text.append("   </ul>\n")
    pages = "\n".join(f"   {name}" for name in plots.__all__)
    return "\n".join(text) + f"\n.. toctree::\n   :hidden:\n\n{pages}\n"


def _card(name: str, drawn: bool) -> str:
    shown = "".join(_picture(name, theme, "") for theme in ("light", "dark")) if drawn else ""
    return f'<a href="{name}.html">{shown}<b>{name}</b> <span>{html.escape(sentence(name))}</span></a>'
