"""The Recordings: the runs that were kept, to look at, to compare, to rename, send, take in and remove."""

from __future__ import annotations

import asyncio
import html
import io
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz.engine.recording import compare, reader
from bnnviz.engine.recording.archive import pack, unpack
from bnnviz.engine.recording.export import Kept, export, suffix
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from bnnviz.specs import url
from bnnviz.specs.run import Spec
from bnnviz.views.comparison.overlay import MOST, Course, legend_html, overlays
from bnnviz_app import deep_links
from bnnviz_app.address import Address, named
from bnnviz_app.components.cards.recordings import RecordingList
from bnnviz_app.components.controls.upload import File
from bnnviz_app.components.guidance.help import Guide
from bnnviz_app.components.guidance.narrator import Narrator
from bnnviz_app.components.run.tools import tool

_NAME, _CHOSEN = "recordings", "runs"
_PATIENCE_S = 60  # of a run that is done again for its replay
_MOST_BYTES = 16_000_000  # of a file that a page takes; the command line takes larger ones
_FORMS = {"Packed, to be sent (.zip)": "zip", "NetCDF, for ArviZ (.nc)": "netcdf", "NumPy (.npz)": "npz", "CSV": "csv"}
_SIZE = "var(--size, 1)"
_WHOLE = {"flex": "0 0 auto", "max-height": "none"}
# The figures go beside the table where there is room for both, else under it.
_BESIDE, _REST = {"flex": "0 1 auto", "max-width": "100%"}, {"flex": "1 1 440px", "min-width": "0"}
_WORDS = {
    "recording": "a run on disk: its spec, its draws, a log of its steps, and checkpoints to go on from",
    "not done": "its process ended, or goes on still: bnnviz resume NAME takes it to its end, with the same draws",
    "replay": "one page that plays a run without a server; the run is done again to make it, or, where that took over a"
    " minute, the frames are shown that were recorded",
    "overlay": "the same quantity of the chosen recordings in one figure, each in the colour that the legend says",
}
_PAGE = """
:host {height: 100%; min-height: 0; overflow: hidden auto; background: var(--mui-palette-background-default)}
:host(.large) {--size: 1.25}
.scroll-button {display: none !important}
"""
_TEXT = f"""
:host {{color: var(--mui-palette-text-primary); font-size: calc(14.5px * {_SIZE}); line-height: 1.45}}
h1 {{font-size: calc(24px * {_SIZE}); font-weight: 500; margin: 0 0 2px; line-height: 1.25}}
h2 {{font-size: calc(18px * {_SIZE}); font-weight: 500; margin: 6px 0 2px; overflow-wrap: anywhere}}
p, details {{margin: 2px 0 4px; color: var(--mui-palette-text-secondary); max-width: 110ch}}
summary {{cursor: pointer; width: fit-content}}
code {{font: .94em ui-monospace, "DejaVu Sans Mono", monospace}}
a {{color: var(--mui-palette-primary-main)}}
.scroll {{overflow-x: auto}}
table {{border-collapse: collapse; font-size: calc(13.5px * {_SIZE}); font-variant-numeric: tabular-nums}}
th {{font-weight: 600; padding: 3px 14px; text-align: right; max-width: 260px; overflow-wrap: anywhere}}
td {{padding: 3px 14px; text-align: right; border-top: 1px solid var(--mui-palette-divider)}}
th:first-child, td:first-child {{text-align: left; padding-left: 0; color: var(--mui-palette-text-secondary)}}
tr.head td {{font-weight: 600; color: var(--mui-palette-text-primary); padding-top: 10px; border: 0}}
.error {{color: #b3134f; font-weight: 600}}
:host(.dark) .error {{color: #ff86b0}}
"""
_SURFACE = {"borderRadius": "8px"}


class RecordingsPage:
    """The page of one session.

    Parameters
    ----------
    dark : bool
        Whether it begins dark.
    flags : dict of str
        Parameters of the address that stay in it.
    chosen : sequence of str
        The recordings that are chosen at first.
    """

    def __init__(self, dark: bool, flags: Mapping[str, str], chosen: Sequence[str]) -> None:
        self._flags, self._dark = dict(flags), dark
        self.large = self._flags.get("projector", "0") not in ("0", "")
        self.on_large: Callable[[], None] = lambda: None  # told when the projector is switched on or off
        self.guide, self.narrator, self.address = Guide(None, _WORDS), Narrator(), Address()
        self.list = RecordingList(self._show)
        self._kept: dict[str, Kept] = {}
        self._showing = False
        self._making: asyncio.subprocess.Process | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="bnnviz-replay-")
        self._build_controls()
        self._text = self._pane(margin=(0, 2, 6, 2))
        self._table = pn.pane.HTML("", stylesheets=[_TEXT], margin=(8, 34, 6, 2), styles=_BESIDE)
        self._legend = self._pane(margin=(4, 2, 4, 2))
        self._picture = pn.Column(sizing_mode="stretch_width", margin=0)
        left = pmui.Paper(
            pn.Column(self._tools(), self.list.root, sizing_mode="stretch_width", margin=(4, 10, 10, 10)),
            width=390, margin=(0, 18, 0, 0), elevation=1, sx=_SURFACE,
        )  # fmt: skip
        drawn = pn.Column(self._quantity, self._legend, self._picture, margin=0, styles=_REST)
        right = pn.Column(
            self._text, self._actions, pn.FlexBox(self._table, drawn, sizing_mode="stretch_width", margin=0),
            sizing_mode="stretch_width", margin=0, styles={"min-width": "0"},
        )  # fmt: skip
        head = self._pane(margin=(14, 2, 10, 2))
        head.object = (
            "<h1>Recordings</h1><p>Runs that were kept on disk while they went on. Choose one to look at it, two or"
            f" more to compare them. They lie in <code>{html.escape(str(reader.recordings_folder()))}</code>.</p>"
        )
        body = pn.Row(left, right, sizing_mode="stretch_width", margin=0, styles=_WHOLE)
        column = pn.Column(head, self._said, body, sizing_mode="stretch_width", margin=(0, 24, 30, 24), styles=_WHOLE)
        hidden = (self.guide.root, self.address, self.narrator.root, self._dialog)
        self._outer = pn.Column(column, *hidden, sizing_mode="stretch_both", margin=0, stylesheets=[_PAGE])
        self.main, self.sidebar = [self._outer], []
        self.tools = pn.Row(tool("Projector", lambda event: self._project()), margin=0, align="center")
        self._dress()
        self._reload(chosen)

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self._dark = dark
        self._flags |= {"theme": "dark" if dark else "default"}
        self.guide.theme(dark)
        self._dress()
        self._show()

    def close(self) -> None:
        """End what the page runs: a replay that is being made."""
        if self._making is not None and self._making.returncode is None:
            self._making.terminate()
        self._scratch.cleanup()

    # ---- controls -------------------------------------------------------------------------------------------

    def _pane(self, **params: Any) -> pn.pane.HTML:
        return pn.pane.HTML("", sizing_mode="stretch_width", stylesheets=[_TEXT], **params)

    def _tools(self) -> pn.Row:
        again = pmui.Button(label="Look again", variant="text", size="small", margin=(6, 2), align="center")
        again.on_click(lambda event: self._reload(self.list.chosen))
        self._file = File(
            self._refuse,
            label="Take in a .zip",
            accept=".zip",
            max_file_size=_MOST_BYTES,
            variant="text",
            size="small",
            margin=(6, 2),
            description=f"A packed recording, up to {_MOST_BYTES // 1_000_000} MB; larger ones by bnnviz recordings"
            " unpack FILE.zip.",
        )
        self._file.param.watch(self._took, "value")
        return pn.Row(again, self._file, margin=0, sizing_mode="stretch_width")

    def _build_controls(self) -> None:
        """Make what is done with one chosen recording, and the choice of what is drawn."""
        self._said = self._pane(margin=(0, 2, 8, 2), visible=False)
        self._new_name = pmui.TextInput(label="Name", size="small", width=230, margin=(6, 6, 4, 2))
        rename = pmui.Button(label="Rename", variant="outlined", size="small", margin=(10, 18, 4, 0))
        rename.on_click(lambda event: self._rename())
        self._form = pmui.Select(label="As", options=_FORMS, size="small", width=220, margin=(6, 6, 4, 2))
        self._download = pmui.FileDownload(
            callback=self._packed, filename="recording.zip", label="Download", variant="outlined", size="small",
            margin=(10, 18, 4, 0), embed=False, auto=True,
        )  # fmt: skip
        self._form.param.watch(lambda event: self._name_file(), "value")
        self._film = pmui.Button(
            label="Make a replay", variant="outlined", size="small", margin=(10, 6, 4, 0),
        )  # fmt: skip
        self._film.on_click(self._replay)
        self._replayed = pmui.FileDownload(
            file=None, label="Download the replay", variant="contained", size="small", margin=(10, 6, 4, 0),
            embed=False, auto=True, visible=False,
        )  # fmt: skip
        delete = pmui.Button(label="Delete", variant="outlined", color="error", size="small", margin=(10, 0, 4, 12))
        delete.on_click(lambda event: self._ask())
        self._actions = pn.FlexBox(
            self._new_name, rename, self._form, self._download, self._film, self._replayed, delete,
            margin=0, sizing_mode="stretch_width",
        )  # fmt: skip
        self._coordinate = pmui.Select(
            label="Coordinate", options=[], size="small", width=230, margin=(6, 14, 4, 2), searchable=True
        )
        self._coordinate.param.watch(lambda event: None if self._showing else self._draw(), "value")
        self._quantity = pn.Row(self._coordinate, margin=0, visible=False)
        self._question = self._pane(margin=(0, 4, 10, 4))
        yes = pmui.Button(label="Delete it for good", color="error", variant="contained", size="small", margin=4)
        no = pmui.Button(label="Keep it", variant="outlined", size="small", margin=4)
        yes.on_click(lambda event: self._delete())
        no.on_click(lambda event: self._dialog.param.update(open=False))
        self._dialog = pmui.Dialog(
            self._question, pn.Row(no, yes, margin=0), title="Delete this recording?", open=False
        )

    # ---- what is done ---------------------------------------------------------------------------------------

    def _reload(self, chosen: Sequence[str]) -> None:
        self.list.fill(list(reader.recordings()), chosen)
        self._show()

    def _refuse(self) -> None:
        self._say(
            f"That file is larger than the {_MOST_BYTES // 1_000_000} MB that a page takes; use the command line:"
            " bnnviz recordings unpack FILE.zip.",
            failed=True,
        )

    async def _took(self, event: Any) -> None:
        if event.new is None:
            return
        try:
            taken = await asyncio.to_thread(_take_in, event.new, self._file.filename or "recording.zip")
        except BnnvizError as error:
            self._say(error.sentence, failed=True)
            return
        self._say(f"{taken} was taken in.")
        self._reload([taken])

    def _rename(self) -> None:
        (name,), new = self.list.chosen, (self._new_name.value_input or "").strip()
        try:
            reader.rename(name, new)
        except BnnvizError as error:
            self._say(error.sentence, failed=True)
            return
        self._say(f"{name} is now {new}.")
        self._reload([new])

    def _ask(self) -> None:
        (name,) = self.list.chosen
        size = self.list.found[name][0].size / 1e6
        self._question.object = f"<p><b>{html.escape(name)}</b>, {size:,.1f} MB. Nobody can bring it back.</p>"
        self._dialog.open = True

    def _delete(self) -> None:
        self._dialog.open = False
        for name in self.list.chosen[:1]:
            try:
                reader.delete(name)
            except BnnvizError as error:
                self._say(error.sentence, failed=True)
                return
            self._say(f"{name} was deleted.")
        self._reload([])

    def _packed(self) -> io.BytesIO:
        """Return the chosen recording in the chosen form; a failure is said on the page."""
        (name,) = self.list.chosen
        recording = self.list.found[name][0]
        try:
            with tempfile.TemporaryDirectory() as scratch:
                out = Path(scratch) / "out"
                if self._form.value == "zip":
                    made = pack(recording, out)
                else:
                    recording.check_written()
                    made = export(recording, self._form.value, out)
                return io.BytesIO(made.read_bytes())
        except BnnvizError as error:
            self._say(error.sentence, failed=True)
            raise

    async def _replay(self, event: Any) -> None:
        """Make a replay of the chosen recording in a process of its own: this one has no torch, and others wait."""
        (name,) = self.list.chosen
        out = Path(self._scratch.name) / f"{name}.html"
        out.unlink(missing_ok=True)
        progress = self.list.found[name][0].progress
        recorded = bool(progress.get("frames")) and progress.get("seconds", 0) > _PATIENCE_S
        how = ["--recorded"] if recorded else []
        self._film.param.update(disabled=True, label="Making it …" if recorded else "Doing the run again …")
        try:
            self._making = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bnnviz.cli", "replay", str(reader.place(name)), "--html", str(out), *how,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            _, told = await self._making.communicate()
        finally:
            self._film.param.update(disabled=False, label="Make a replay")
        if self._making.returncode:
            lines = told.decode(errors="replace").strip().splitlines() or ["no reason was given"]
            self._say(f"The replay was not made: {lines[-1].removeprefix('bnnviz: ')}", failed=True)
        elif self.list.chosen == [name]:
            self._replayed.param.update(file=str(out), filename=out.name, visible=True)
            self._say(f"The replay of {name} is made, {out.stat().st_size / 1e6:,.1f} MB.")

    def _name_file(self) -> None:
        if len(self.list.chosen) == 1:
            self._download.filename = self.list.chosen[0] + suffix(self._form.value)

    def _say(self, sentence: str, failed: bool = False) -> None:
        role = "class='error' role='alert'" if failed else "role='status'"
        self._said.object = f"<div {role}>{html.escape(sentence)}</div>"
        self._said.visible = True

    # ---- what is shown --------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Show what is chosen: nothing, one recording, or several beside each other."""
        names = self.list.chosen
        found = [self.list.found[name][0] for name in names]
        self._actions.visible = len(names) == 1
        self._replayed.visible = False
        if len(names) == 1:
            self._new_name.param.update(value=names[0], value_input=names[0])
        self._name_file()
        try:
            self._text.object = _about(found, {k: v for k, v in self._flags.items() if k in ("theme", "projector")})
            self._table.object = _results(found)
            self._kept = {recording.name: compare.readable(recording) for recording in found[:MOST]}
        except BnnvizError as error:
            self._text.object += f"<p class='error'>{html.escape(error.sentence)}</p>"
            self._table.object, self._kept = "", {}
        shared = _shared([kept.names for kept in self._kept.values()])
        self._quantity.visible = bool(shared)
        value = self._coordinate.value if self._coordinate.value in shared else (shared[0] if shared else None)
        self._showing = True
        self._coordinate.param.update(options=shared, value=value)
        self._showing = False
        self._draw()
        self.narrator.say(f"{len(names)} recordings chosen")
        said = {_CHOSEN: ",".join(names)} if names else {}
        self.address.query = url.query_text({"page": _NAME, **said, **self._flags})

    def _draw(self) -> None:
        label = self._coordinate.value
        if not self._kept or label is None or any(label not in kept.names for kept in self._kept.values()):
            self._picture[:], self._legend.object = [], ""
            return
        seen = {name: compare.seen(kept, kept.names.index(label)) for name, kept in self._kept.items()}
        courses = [Course(name, one.density, one.trace, one.acf) for name, one in seen.items()]
        ess = [f"{name}: ESS {one.ess:,.0f}" for name, one in seen.items() if one.ess == one.ess]
        self._legend.object = legend_html([html.escape(name) for name in seen], self._dark) + (
            f"<p>{html.escape(label)}, all chains. {html.escape('; '.join(ess))}.</p>" if ess else ""
        )
        drawn = overlays(courses, label, self._dark, self.large)
        self._picture[:] = [pn.pane.Bokeh(drawn, sizing_mode="stretch_width", margin=(2, 0, 6, 0))]

    def _dress(self) -> None:
        self._outer.css_classes = ["large"] if self.large else []
        for pane in (self._text, self._table, self._said, self._question):
            pane.css_classes = ["dark"] if self._dark else []
        self.list.theme(self._dark)

    def _project(self) -> None:
        """Turn projector mode on or off."""
        self.large = not self.large
        self._flags = {name: text for name, text in self._flags.items() if name != "projector"}
        self._flags |= {"projector": "1"} if self.large else {}
        self._dress()
        self._show()
        self.on_large()


def _take_in(content: bytes, name: str) -> str:
    """Unpack a file that was sent by the browser; return the recording's name."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / f"{reader.free_name(Path(name).stem)}.zip"
        file.write_bytes(content)
        return unpack(file).name


def _shared(names: list[list[str]]) -> list[str]:
    """Return the coordinates that all have, in the order of the first."""
    others = [set(each) for each in names[1:]]
    return [name for name in names[0] if all(name in other for other in others)] if names else []


def _about(found: list[Recording], flags: Mapping[str, str]) -> str:
    """Say what the chosen recordings are."""
    if not found:
        return (
            "<h2>Nothing is chosen</h2><p>The button <b>Record</b> in the Lab keeps what runs there from then on. On"
            " the command line it is <code>bnnviz sample --data boston --sampler boomerang --record boston</code>, and"
            " a run that was cut off goes on by <code>bnnviz resume boston</code>.</p>"
        )
    if len(found) == 1:
        return _one(found[0], flags)
    more = f"<p>The figures show the first {MOST}.</p>" if len(found) > MOST else ""
    return f"<h2>{len(found)} recordings</h2>{more}"


def _results(found: list[Recording]) -> str:
    """Say what came out of them, in a table."""
    if not found:
        return ""
    body = "".join(_line(said, values) for said, values in compare.rows(found))
    if len(found) > 1:
        heads = "".join(f"<th>{html.escape(one.name)}</th>" for one in found)
        body = f"<tr><th></th>{heads}</tr>{body}"
        differing = compare.differences(found)
        body += "<tr class='head'><td>settings that differ</td></tr>" if differing else ""
        body += "".join(_line(name, values) for name, values in differing)
    return f"<div class='scroll'><table>{body}</table></div>"


def _one(recording: Recording, flags: Mapping[str, str]) -> str:
    """Say what one recording is, and where its spec can be run again."""
    header = recording.header
    spec = Spec(**{name: value for name, value in header["spec"].items() if name != "version"})
    opening = deep_links.opening(spec) if not header["changes"] else None
    text = f"<h2>{html.escape(recording.name)}</h2><p>Made with bnnviz {html.escape(str(header['bnnviz']))} on"
    text += f" {html.escape(str(header['device']))}."
    if recording.progress.get("error"):
        text += f" <span class='error'>{html.escape(recording.progress['error'])}</span>"
    elif not recording.progress["finished"] and spec.draws is not None:
        text += f" It is not done: <code>bnnviz resume {html.escape(recording.name)}</code> goes on."
    if not recording.progress["finished"] and (opening is None or opening.page == "lab"):
        query = url.query_text({"page": "lab", "recording": recording.name, **flags})
        text += f" <a href='?{html.escape(query, quote=True)}'>Go on with it in the Lab</a>."
    if recording.whole and recording.plain and (opening is None or opening.page == "lab"):
        query = url.query_text({"page": "lab", "start": recording.name, **flags})
        text += f" <a href='?{html.escape(query, quote=True)}'>Start a new run from its last points in the Lab</a>."
    if opening is not None:
        text += f" <a href='?{html.escape(opening.query(flags), quote=True)}'>Run it again in {opening.title}</a>."
    return text + f"</p><details><summary>All settings</summary>{html.escape(_settings(spec))}</details>"


def _settings(spec: Spec) -> str:
    said = {"target": spec.target, **spec.target_settings, "sampler": spec.sampler, **spec.settings}
    if spec.start is not None:
        said["start"] = f"{spec.start['points']} of {spec.start['recording'] or 'a run that was not recorded'}"
    said |= {"chains": spec.chains, "draws": spec.draws, "seed": spec.seed}
    return ", ".join(f"{name} {_text(value)}" for name, value in said.items() if value is not None)


def _line(name: str, values: Sequence[Any]) -> str:
    return (
        f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{html.escape(_text(value))}</td>' for value in values)}</tr>"
    )


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)[:60]
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def build(dark: bool) -> RecordingsPage:
    """Build the page for the current session."""
    flags, chosen = named(pn.state.session_args, _CHOSEN)
    return RecordingsPage(dark, flags | ({"theme": "dark"} if dark else {}), chosen)
