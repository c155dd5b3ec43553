"""Begin with the user's own table: drop a CSV file, check the roles of its columns, play."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz.errors import BnnvizError
from bnnviz.messages import Remedy
from bnnviz.specs import upload
from bnnviz.specs.run import Spec
from bnnviz.specs.upload import TableQuestion
from bnnviz_app.access import roles
from bnnviz_app.components.controls.upload import File
from bnnviz_app.components.guidance.dialogs import Dialog
from bnnviz_app.components.tables.column_table import LEFT, TARGET, ColumnTable
from bnnviz_app.components.tables.opening import OpenedTable, TableChoices, TableReading, first_choices, look
from bnnviz_app.components.widgets import Message, ReaderChoice, Text, WideColumn, WideRow, button
from bnnviz_app.theme import styles

_STYLES = styles(__file__)
_ASK = "detected"
_TASKS = {_ASK: _ASK, "regression": "regression", "classification": "classification"}
_DECIMALS = {_ASK: _ASK, "points": ".", "commas": ","}
_EMPTY = "That file is empty; choose one with a line of names and lines of numbers under it."
_FIELD = {"size": "small", "margin": (10, 10, 2, 0)}
_INSIDE = {"stylesheets": [_STYLES["inside"]]}
_WRAPPED = _INSIDE | {"styles": {"flex-wrap": "wrap"}}
_ZONE = {
    "minHeight": 84,
    "fontSize": "15px",
    "borderStyle": "dashed",
    "borderWidth": 2,
    "borderRadius": 2,
    "textTransform": "none",
    "&:focus-within": {"outline": "3px solid", "outlineColor": "text.primary", "outlineOffset": 2},
}


class YourData:
    """Open a file in a dialog, ask about its columns, and begin with it."""

    def __init__(self, on_spec: Callable[[Spec, list[str]], None]) -> None:
        self._on_spec, self._role = on_spec, roles.present()
        self._dialog = Dialog("Your data", self._build)
        self.root = self._dialog.root
        self._content, self._name = b"", "your file"
        self._overview: Any = None
        self._left: tuple[str, ...] = ()
        self._opened: OpenedTable | None = None
        self._read_of: TableChoices | None = None
        self._readings = 0

    def show(self) -> None:
        """Open the dialog."""
        self._dialog.show()

    # ---- construction -------------------------------------------------------------------------------------

    def _build(self) -> list[Any]:
        self.file = self._drop_zone()
        self._message = Message(margin=(4, 0))
        self._target = pmui.Select(label="Predict the column", options=[], width=230, **_FIELD)
        self._task = pmui.Select(label="As", options=_TASKS, value=_ASK, width=150, **_FIELD)
        self._decimal = pmui.Select(label="Decimal marks", options=_DECIMALS, value=_ASK, width=150, **_FIELD)
        self._missing = pmui.TextInput(
            label="Missing values", placeholder="such as -999; unknown", value="", width=210, **_FIELD
        )
        chosen = (self._target, self._task, self._decimal, self._missing)
        self._choice = ReaderChoice(chosen, lambda event: self._read())
        self._columns = ColumnTable(self._choose_role)
        self._question = Message(margin=(4, 0))
        self._answers = WideRow(**_WRAPPED)
        self._notes = Text(margin=(4, 0), stylesheets=[_STYLES["notes"]])
        self._play = button("Play", self._begin, variant="contained", icon="play_arrow", disabled=True, margin=(8, 0))
        fields = WideRow(*chosen, **_WRAPPED)
        asked = (fields, self._columns.root, self._question.root, self._answers, self._play, self._notes)
        self._asked = WideColumn(*asked, visible=False, **_INSIDE)
        return [self.file, self._message.root, self._asked]

    def _drop_zone(self) -> File:
        most = self._role.upload(upload.MOST_BYTES) // 1_000_000
        zone = File(
            self._refuse,
            f"That file is larger than the {most} MB that a page takes; use fewer rows, or the command line"
            " (bnnviz sample --data FILE.csv).",
            _EMPTY,
            label=f"Drop a CSV file here, or press to choose one (up to {most} MB, a line of names first)",
            max_file_size=upload.MOST_BYTES,
            variant="outlined",
            sizing_mode="stretch_width",
            margin=(2, 0),
            sx=_ZONE,
        )
        zone.param.watch(self._open, "value", onlychanged=False)  # the same file again is looked at again
        return zone

    # ---- a file -------------------------------------------------------------------------------------------

    async def _open(self, event: Any) -> None:
        if event.new is None:
            return
        self._content, self._name = event.new, self.file.filename or "your file"
        self._message.say("The file is being read.")
        self._readings += 1
        number = self._readings
        try:
            found = await asyncio.to_thread(look, self._content, self._name, None, self._role)
        except BnnvizError as error:
            self._refuse(error.message.text)
            return
        if number == self._readings:
            self._show_new(found)

    def _show_new(self, found: TableReading) -> None:
        """Show a newly opened file with the default options."""
        self._read_of = first_choices(found.overview)
        self._left = self._read_of.leave_out
        names = [column.name for column in found.overview.columns]
        with self._choice.setting():
            self._target.param.update(options=names, value=self._read_of.target)
            self._task.value = self._decimal.value = _ASK
            self._missing.value = ""
        self._message.say("")
        self.file.sx = _ZONE | {"minHeight": 40}  # there is more to see now
        self._show(found)
        self._asked.visible = True

    def _refuse(self, sentence: str) -> None:
        self._asked.visible = False
        self._message.say(sentence, failed=True)

    # ---- the user's options -------------------------------------------------------------------------------

    def _choices(self) -> TableChoices:
        missing = self._statement_missing()
        return TableChoices(
            self._target.value,
            None if self._task.value == _ASK else self._task.value,
            None if self._decimal.value == _ASK else self._decimal.value,
            tuple(missing) if missing else None,
            tuple(name for name in self._left if name != self._target.value),
        )

    def _read(self) -> None:
        pn.state.execute(self._read_again)

    async def _read_again(self) -> None:
        """Read the file again if the options have changed."""
        choices = self._choices()
        if choices == self._read_of or not self._content:
            return
        self._read_of, self._opened = choices, None
        self._play.disabled = True
        self._readings += 1
        number = self._readings
        try:
            found = await asyncio.to_thread(look, self._content, self._name, choices, self._role)
        except BnnvizError as error:
            if number == self._readings:
                self._ask(error)
            return
        if number == self._readings:
            self._show(found)

    def _show(self, found: TableReading) -> None:
        self._overview, self._opened = found.overview, found.opened
        self._columns.show(found.overview, self._read_of)
        self._ask(found.error)
        self._play.disabled = found.opened is None
        self._notes.object = "" if found.opened is None else _notes_html(found)

    def _ask(self, error: BnnvizError | None) -> None:
        """Ask the open question, if there is one, with a button for each answer."""
        if error is None:
            self._question.say("")
            self._answers[:] = []
            return
        is_question = isinstance(error, TableQuestion)
        answers = [answer for answer in error.answers if self._able(answer)] if is_question else []
        self._question.say(error.question if answers else error.message.text, failed=True)
        look = {"variant": "outlined", "margin": (2, 8, 4, 0)}
        self._answers[:] = [
            button(each.text[0].upper() + each.text[1:], lambda each=each: self._answer(**each.options), **look)
            for each in answers
        ]

    def _able(self, answer: Remedy) -> bool:
        """Return whether an answer can be given: the target is not left out."""
        return self._target.value not in answer.options.get("leave_out", ())

    def _answer(
        self, leave_out: Sequence[str] = (), missing: Sequence[str] = (), task: str = "", decimal: str = ""
    ) -> None:
        self._left = (*self._left, *leave_out)
        with self._choice.setting():
            self._missing.value = "; ".join([*self._statement_missing(), *missing])
            self._task.value = task or self._task.value
            self._decimal.value = decimal or self._decimal.value
        self._read()

    def _statement_missing(self) -> list[str]:
        return [text.strip() for text in self._missing.value.split(";") if text.strip()]

    def _choose_role(self, name: str, role: str) -> None:
        """Take the role that was chosen for a column."""
        self._left = tuple(each for each in self._left if each != name)
        if role == LEFT:
            self._left = (*self._left, name)
        with self._choice.setting():
            if role == TARGET:
                self._target.value = name
            elif name == self._target.value:
                # Something has to be predicted.
                others = [column for column in self._overview.columns if column.name != name]
                self._target.value = self._overview._replace(columns=others).target
        self._read()

    # ---- begin --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._opened is not None:
            self._dialog.show(False)
            self._on_spec(self._opened.spec, [self._opened.why])


def _notes_html(found: TableReading) -> str:
    """Show the changes to the file, and the initial run."""
    opened = found.opened
    file = opened.spec.file
    facts = (
        f"{file['rows']:,} of {found.overview.rows:,} rows and {file['inputs']:,} inputs are used, for a {file['task']}"
        f" of {file['target']}; a tenth of the rows is held out for the verdict."
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in opened.notes)
    kept = f"<ul>{notes}</ul>" if notes else ""
    return f"<p>{html.escape(facts)}</p>{kept}<p class='quiet'>{html.escape(opened.why)}</p>"
