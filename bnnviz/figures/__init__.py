"""Describe each figure once, as marks; draw it live on a canvas, or with HoloViews.

Each module of a figure defines a `Figure`, which turns parts of frames into marks, and a function that draws finished
runs (`bnnviz.plots` renders what it returns). Modules are found by their files: a new figure takes one.
"""

from pathlib import Path

_FOLDERS = ("chain", "predictive", "importance", "comparison")
#: Modules of figures and their files, by subject.
MODULES = {
    f"{__name__}.{folder}.{path.stem}": path
    for folder in _FOLDERS
    for path in sorted((Path(__file__).parent / folder).glob("[a-z]*.py"))
}
