"""Run ``bnnviz replay``: repeat a run or show a recording, and write pages, images and tables of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bnnviz import optional
from bnnviz.cli.options import examples, free_place
from bnnviz.cli.output import INTERRUPTED, progress, say
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.engine.recording.replay_frames import ReplayFrames

_FRAMES = 300
_MOVIES = ("gif", "mp4")
_Report = Callable[[float, str], None]  # takes the share that is done, and the phase

app = typer.Typer()


@app.command(
    epilog=examples(
        "bnnviz replay spec.json --html bouncy.html",
        "bnnviz replay run.nc --html run.html --gif run.gif --frames 120",
        "bnnviz replay recording --recorded --html run.html",
        "bnnviz replay recording --svg figures --png figures --at 200 --dark",
    )
)
def replay(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="A recording: its name or folder; a saved run (.nc), a spec (.json), a film (.npz)."
        ),
    ],
    html: Annotated[Path | None, typer.Option(metavar="FILE.html", help="One page: no server, no network.")] = None,
    gif: Annotated[Path | None, typer.Option(metavar="FILE.gif", help="The page as a moving picture.")] = None,
    mp4: Annotated[Path | None, typer.Option(metavar="FILE.mp4", help="The page as a video.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A picture of each view at one frame.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A drawing of each view at one frame.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="The table of figures at each frame.")] = None,
    film: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="The film itself, to replay it later.")] = None,
    frames: Annotated[int, typer.Option(help="Frames, at most: the first third are single steps.")] = _FRAMES,
    steps: Annotated[int | None, typer.Option(min=1, help="The last step; default: where the run ended.")] = None,
    recorded: Annotated[
        bool | None,
        typer.Option(
            "--recorded/--again",
            help="Show the frames that a recording kept, or do the run again; default: again where its device is here.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[int | None, typer.Option(min=1, help="Frame of --png and --svg, from 1; default: the last.")] = None,
    speed: Annotated[int, typer.Option(min=1, max=60, help="Frames a second of --gif and --mp4.")] = 10,
    dark: Annotated[
        bool, typer.Option("--dark", help="Dark colours; by default the page follows the reader's browser.")
    ] = False,
) -> None:
    """Repeat a run from its spec and change log, or show a recording, as a page that plays without a server."""
    from bnnviz.engine.recording.recorded_frames import frames_of

    files = {"html": html, "gif": gif, "mp4": mp4, "csv": csv, "film": film}
    suffixes = {name: ".npz" if name == "film" else f".{name}" for name in files}
    places = {name: free_place(path, suffixes[name], name) for name, path in files.items() if path is not None}
    folders = {name: folder for name, folder in (("png", png), ("svg", svg)) if folder is not None}
    _check(places, folders)
    try:
        with _showing_progress() as report:
            found = frames_of(run, steps=steps, recorded=recorded, progress=report, frames=frames)
            made = [
                *_write_tables(found, places),
                *_write_movies(found, places, speed, dark, report),
                *_write_stills(found, folders, at, dark),
            ]
    except KeyboardInterrupt:
        say("stopped; nothing more was written.")
        raise typer.Exit(INTERRUPTED) from None
    print("\n".join(map(str, made)))
    for note in found.header["notes"]:
        say(note)


@contextmanager
def _showing_progress() -> Iterator[_Report]:
    with progress() as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share, phase: bar.update(task, completed=share, description=phase)


def _check(places: Mapping[str, Path], folders: Mapping[str, Path]) -> None:
    """Refuse outputs that cannot be written before repeating the run."""
    if not places and not folders:
        raise BnnvizError("Specify an output: --html FILE, or --gif, --mp4, --png, --svg, --csv, --film.", "html")
    if set(places) - {"csv", "film"} or folders:
        optional.check("bokeh", "A replay needs")
    for name, folder in folders.items():
        if folder.exists() and not folder.is_dir():
            raise BnnvizError(f"{folder} is a file; choose a folder for --{name}.", name)
        if folder.is_dir() and any(folder.glob(f"*.{name}")):
            raise BnnvizError(f"There are {name} files in {folder} already; choose another folder for --{name}.", name)
    if folders or set(places) & set(_MOVIES):
        from bnnviz.replays import pictures

        pictures.check(movie="mp4" in places)


def _write_tables(found: ReplayFrames, places: Mapping[str, Path]) -> Iterator[Path]:
    """Write the film and its table of figures; yield the files."""
    from bnnviz.engine.recording.replay_frames import save

    if "film" in places:
        yield found.save(places["film"])
    if "csv" in places:
        save(places["csv"], _table(found).encode())
        yield places["csv"]


def _write_movies(
    found: ReplayFrames, places: Mapping[str, Path], speed: int, dark: bool, report: _Report
) -> Iterator[Path]:
    """Write the page that plays, and its moving pictures; yield the files."""
    if "html" in places:
        from bnnviz.replays import player

        yield player.write(found, places["html"], dark or None)
    for name in _MOVIES:
        if name in places:
            from bnnviz.replays import pictures

            yield pictures.movie(found, places[name], speed, dark, lambda share, kind=name: report(share, kind))


def _write_stills(found: ReplayFrames, folders: Mapping[str, Path], at: int | None, dark: bool) -> Iterator[Path]:
    """Write a picture of each view at one frame; yield the files."""
    for name, folder in folders.items():
        from bnnviz.replays import pictures

        yield from pictures.stills(found, folder, name, at, dark)


def _table(found: ReplayFrames) -> str:
    """Return the table of figures at each frame as CSV: step, figure, and how it is written."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("step", "figure", "value"))
    for step, frame in zip(found.steps, found.frames, strict=True):
        rows.writerows((step, label, text) for label, text, _ in frame.get("table", {"rows": []})["rows"])
    return out.getvalue()
