"""Run ``bnnviz replay``: repeat a run or show a recording, and write a page of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bnnviz import optional
from bnnviz.cli.options import examples, free_place
from bnnviz.cli.output import INTERRUPTED, progress, say
from bnnviz.errors import BnnvizError

_FRAMES = 300

app = typer.Typer()


@app.command(
    epilog=examples(
        "bnnviz replay spec.json --html bouncy.html",
        "bnnviz replay run.nc --html run.html --frames 120",
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
    film: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="The film itself, to replay it later.")] = None,
    frames: Annotated[int, typer.Option(help="Frames, at most: the first third are single steps.")] = _FRAMES,
    steps: Annotated[int | None, typer.Option(min=1, help="The last step; default: where the run ended.")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Dark colours; the page else follows its reader's.")] = False,
) -> None:
    """Repeat a run from its spec and change log as a page that plays without a server."""
    from bnnviz.engine.recording.replay_frames import frames_of

    files = {"html": html, "film": film}
    suffixes = {"html": ".html", "film": ".npz"}
    places = {name: free_place(path, suffixes[name], name) for name, path in files.items() if path is not None}
    if not places:
        raise BnnvizError("Specify an output: --html FILE or --film FILE.", "html")
    if html is not None:
        optional.check("bokeh", "A replay needs")
    try:
        with progress() as bar:
            task = bar.add_task("", total=1.0)

            def report(share: float, phase: str) -> None:
                bar.update(task, completed=share, description=phase)

            found = frames_of(run, frames, steps=steps, progress=report)
            made = [found.save(places["film"])] if "film" in places else []
            if "html" in places:
                from bnnviz.replays import player

                made.append(player.write(found, places["html"], dark or None))
    except KeyboardInterrupt:
        say("stopped; nothing more was written.")
        raise typer.Exit(INTERRUPTED) from None
    print("\n".join(map(str, made)))
    for note in found.header["notes"]:
        say(note)
