"""Enter a row in a dialog, and show the prediction of the running sampler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn
import param
from panel.custom import JSComponent

from bnnviz.specs import upload
from bnnviz.specs.run import Spec
from bnnviz.specs.upload import UserTable, fields_of, read_texts
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.guidance.dialogs import Dialog
from bnnviz_app.components.tables.answer import answer_html
from bnnviz_app.components.widgets import Text, script, set_changed
from bnnviz_app.theme import styles

_STYLES = styles(__file__)
_PART = "row"
_WAITS = (
    "<p class='quiet'>The prediction comes with the first draws: play, and wait until the sampler has warmed up.</p>"
)
_WRONG = "<p class='quiet'>Correct the fields marked in red.</p>"


class RowForm(JSComponent):
    """Show a field for each input."""

    fields = param.List(doc="name, value, levels and hint of each input.")
    errors = param.Dict({}, doc="Errors of the fields by name.")

    _esm = script(__file__, "row_form.js")


class RowQuestion(PageComponent):
    """Predict a row that the user enters."""

    def __init__(self, spec: Callable[[], Spec], on_row: Callable[[list[float]], None]) -> None:
        self._spec, self._on_row = spec, on_row
        self._attachment: bytes | None = None  # that the form is of: of one file other columns may be inputs
        self._table: UserTable | None = None
        self._values: dict[str, str] = {}
        self._row: np.ndarray | None = None
        self._form: RowForm | None = None
        self._answer: Text | None = None
        self._dialog = Dialog("Predict a row", self._build)
        self.root = self._dialog.root

    @property
    def needs(self) -> frozenset[str]:
        """The prediction, while the dialog is open."""
        return frozenset({_PART}) if self._dialog.is_open else frozenset()

    def show(self) -> None:
        """Open."""
        self._dialog.show()
        pn.state.execute(self._fill)

    def reset(self, scene: dict[str, Any]) -> None:
        """Ask the new run for the row."""
        if self._answer is not None:
            self._say(_WAITS)
        if self._dialog.is_open:
            pn.state.execute(self._fill)

    def update(self, frame: dict[str, Any]) -> None:
        """Show the prediction of the row in the form."""
        part = frame.get(_PART)
        if part is None or self._row is None or self._table is None:
            return
        if part["row"].shape == self._row.shape and np.allclose(part["row"], self._row):
            values = self._table.y
            self._say(answer_html(part, self._table.target, (float(values.min()), float(values.max()))))

    def _build(self) -> list[Any]:
        self._form = RowForm(sizing_mode="stretch_width", stylesheets=[_STYLES["form"]])
        self._form.on_msg(self._receive)
        self._answer = Text(_WAITS, margin=(10, 0, 0, 0), stylesheets=[_STYLES["answer"]])
        return [self._form, self._answer]

    async def _fill(self) -> None:
        """Build the form of the running table if it is new, and request a prediction."""
        spec = self._spec()
        if spec.attachment is None:
            self._say("<p>This run is on no table of yours: open one under Your data.</p>")
        elif spec.attachment != self._attachment:
            self._table, found = await asyncio.to_thread(_read, spec.attachment)
            self._attachment, self._row = spec.attachment, None
            self._values = {field.name: field.value for field in found}
            fields = [field._asdict() | {"levels": list(field.levels)} for field in found]
            self._form.param.update(fields=fields, errors={})
            self._ask({})
        elif self._row is not None:
            self._on_row(self._row.tolist())

    def _receive(self, event: Any) -> None:
        texts = event.data.get("texts") if isinstance(event.data, dict) else None
        if isinstance(texts, dict) and self._table is not None:
            self._ask(texts)

    def _ask(self, texts: dict[str, Any]) -> None:
        """Request the prediction of the row in the form, or show its errors."""
        self._row, wrong = read_texts(self._values | texts, self._table)
        set_changed(self._form, errors=wrong)
        if wrong:
            self._say(_WRONG)
        else:
            self._on_row(self._row.tolist())

    def _say(self, text: str) -> None:
        set_changed(self._answer, object=text)


def _read(attachment: bytes) -> tuple[UserTable, list[upload.RowField]]:
    """Return the table that a spec carries, and its fields."""
    table = UserTable.unpack(attachment)
    return table, fields_of(table)
