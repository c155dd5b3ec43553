"""Run ``bnnviz lessons``: write the lessons as a folder of static files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bnnviz import optional
from bnnviz.cli.options import examples
from bnnviz.errors import BnnvizError

app = typer.Typer()


@app.command(epilog=examples("bnnviz lessons public/lessons"))
def lessons(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new or empty folder.")]) -> None:
    """Write the lessons as static files, for any web server or to open from the disk."""
    optional.check("bokeh", "Lessons need")
    from bnnviz.lessons import site

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BnnvizError(f"{folder} exists already; choose a new or an empty folder.", "folder")
    site.write(folder)
    print(folder / site.INDEX)
