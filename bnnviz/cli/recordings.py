"""Run ``bnnviz resume``, ``export`` and ``recordings``: manage recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnnviz import paths
from bnnviz.cli.options import Details, Json, RecordingWord, examples, free_place
from bnnviz.cli.output import print_rows, say
from bnnviz.cli.sample import carry_out, print_results
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.engine.recording.reader import Recording

app = typer.Typer()
group = typer.Typer(help="The runs that were recorded: list, check, rename, delete, pack and unpack them.")


@app.command(epilog=examples("bnnviz resume concrete", "bnnviz resume runs/concrete --json"))
def resume(run: RecordingWord, details: Details = False, as_json: Json = False) -> None:
    """Resume a recorded run and complete it, with the same draws as without the interruption."""
    from bnnviz.engine.recording import reader
    from bnnviz.engine.recording import resume as resuming

    reader.check_zarr()
    folder = reader.find(run)
    found = resuming.resume(folder)
    if found.spec.draws is None:
        raise BnnvizError("This run is unlimited. Resume the recording of a live run on the dashboard.", "run")
    if found.finished:
        say("this run has all its draws.")
        print_results(found, as_json, details)
        return
    raise typer.Exit(carry_out(found, None, folder, as_json, details))


@app.command(
    epilog=examples(
        "bnnviz export concrete --format netcdf",
        "bnnviz export concrete --format torch --out draws.pt",
        "bnnviz export concrete --format ensemble --draws 100 --out ensemble.pt2",
    )
)
def export(
    run: RecordingWord,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="netcdf, zarr, npz, csv, torch (state dicts), onnx, or ensemble (a program that predicts rows, for"
            " torch.export.load without bnnviz).",
        ),
    ],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: the recording's name, here.")] = None,
    draws: Annotated[
        int | None,
        typer.Option(min=1, help="Draws of torch, ensemble or onnx, evenly spread; default: all of torch, else 50."),
    ] = None,
) -> None:
    """Export a recording's draws to a standard file format; print its path."""
    from bnnviz.engine.recording import export as exports
    from bnnviz.engine.recording import reader

    reader.check_zarr()
    recording = _open(run)
    print(exports.export(recording, form, out or Path(recording.name).with_suffix(exports.suffix(form)), draws))


def _open(run: str) -> Recording:
    from bnnviz.engine.recording import reader

    return reader.Recording(reader.find(run))


@group.command("list", epilog=examples("bnnviz recordings list", "bnnviz recordings list --json"))
def recordings_list(as_json: Json = False) -> None:
    """List the recordings, newest first, and report broken ones."""
    from bnnviz.engine.recording import reader

    rows = [_row(recording, wrong) for recording, wrong in reader.recordings()]
    heads = ("name", "target", "sampler", "draws", "", "size", "begun with")
    print_rows(rows, as_json, heads, map(_cells, rows))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    if row["wrong"]:
        return row["name"], *[""] * 5, row["wrong"]
    state = "done" if row["finished"] else "not done"
    size = f"{row['bytes'] / 1e6:,.1f} MB"
    return row["name"], row["target"], row["sampler"], str(row["draws"]), state, size, row["version"]


def _row(recording: Recording, wrong: str | None) -> dict[str, Any]:
    """Return the row of a recording, which may be broken."""
    if wrong is not None:
        return {"name": recording.name, "folder": str(recording.folder), "wrong": wrong}
    header, progress = recording.header, recording.progress
    return {
        "name": recording.name,
        "folder": str(recording.folder),
        "wrong": None,
        "target": header["spec"]["target"],
        "sampler": header["spec"]["sampler"],
        "draws": recording.whole,
        "finished": progress["finished"],
        "seconds": progress["seconds"],
        "bytes": recording.size,
        "version": header["bnnviz"],
    }


@group.command("check", epilog=examples("bnnviz recordings check concrete"))
def recordings_check(run: RecordingWord) -> None:
    """Read a whole recording and verify its checksums."""
    recording = _open(run)
    recording.check()
    print(f"{recording.folder}: {recording.whole} draws of each chain, {recording.size / 1e6:.1f} MB, sound.")


@group.command("rename", epilog=examples("bnnviz recordings rename concrete concrete-2"))
def recordings_rename(run: RecordingWord, name: Annotated[str, typer.Argument(help="Its new name.")]) -> None:
    """Rename a recording."""
    from bnnviz.engine.recording import reader

    print(reader.rename(run, name))


@group.command("delete", epilog=examples("bnnviz recordings delete concrete --yes"))
def recordings_delete(
    run: RecordingWord, yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False
) -> None:
    """Remove a recording from the recordings folder, for good."""
    from bnnviz.engine.recording import reader

    folder = reader.find(run)
    if folder != reader.place(folder.name):
        raise BnnvizError(
            f"{folder} is not in the recordings folder {paths.recordings()}; remove that folder by hand.", "run"
        )
    if not yes:
        typer.confirm(f"Remove the recording {folder}?", abort=True, err=True)
    reader.delete(folder.name)


@group.command("pack", epilog=examples("bnnviz recordings pack concrete --out concrete.zip"))
def recordings_pack(
    run: RecordingWord,
    out: Annotated[Path | None, typer.Option(metavar="FILE.zip", help="Default: the recording's name, here.")] = None,
) -> None:
    """Pack a recording into one file for sharing; print its path."""
    from bnnviz.engine.recording.archive import pack

    recording = _open(run)
    print(pack(recording, free_place(out or Path(recording.name).with_suffix(".zip"), ".zip")))


@group.command("unpack", epilog=examples("bnnviz recordings unpack concrete.zip"))
def recordings_unpack(
    file: Annotated[Path, typer.Argument(metavar="FILE.zip", help="A file of `bnnviz recordings pack`.")],
    name: Annotated[str | None, typer.Option(help="Its name in the recordings folder; default: the file's.")] = None,
) -> None:
    """Unpack a shared recording into the recordings folder after validation; print its path."""
    from bnnviz.engine.recording.archive import unpack

    print(unpack(file, name))
