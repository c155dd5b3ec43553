"""Describe each figure once, as marks; draw it live on a canvas, or with HoloViews.

Each module of a figure defines a `Figure`, which turns parts of frames into marks, and a function that draws finished
runs (`bnnviz.plots` renders what it returns). Modules are found by their files: a new figure takes one.
"""

from pathlib import Path

_FOLDERS = ("chain", "predictive", "importance", "comparison")
#: Modules of figures, by subject.
MODULES = {
    path.stem: f"{__name__}.{folder}.{path.stem}"
    for folder in _FOLDERS
    for path in sorted((Path(__file__).parent / folder).glob("[a-z]*.py"))
}
