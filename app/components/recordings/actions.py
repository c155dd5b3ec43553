"""Rename, send and delete the chosen recording."""

from __future__ import annotations

import html
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz.engine.recording import reader
from bnnviz.engine.recording.archive import pack
from bnnviz.engine.recording.export import export, suffix
from bnnviz.errors import BnnvizError
from bnnviz_app.components.guidance.dialogs import Dialog
from bnnviz_app.components.recordings.listing import RecordingList
from bnnviz_app.components.widgets import Text, button, download_button
from bnnviz_app.theme import SHEETS

_FORMS = {"Packed, to be sent (.zip)": "zip", "NetCDF, for ArviZ (.nc)": "netcdf", "NumPy (.npz)": "npz", "CSV": "csv"}


class RecordingActions:
    """Offer the actions on one chosen recording."""

    def __init__(
        self,
        listing: RecordingList,
        say: Callable[[str, bool], None],
        on_change: Callable[[str | None], None],
    ) -> None:
        self._list, self._say, self._on_change = listing, say, on_change
        field = {"size": "small", "margin": (6, 6, 4, 2)}
        look, beside = {"variant": "outlined"}, (10, 18, 4, 0)
        self._new_name = pmui.TextInput(label="Name", width=230, **field)
        self._form = pmui.Select(label="As", options=_FORMS, width=220, **field)
        self._form.param.watch(lambda event: self._name_file(), "value")
        self._download = download_button(
            callback=self._packed, filename="recording.zip", label="Download", margin=beside, **look
        )
        rename = button("Rename", self._rename, margin=beside, **look)
        delete = button("Delete", self._ask, color="error", margin=(10, 0, 4, 12), **look)
        naming, sending = (self._new_name, rename), (self._form, self._download)
        self.root = pn.FlexBox(*naming, *sending, delete, sizing_mode="stretch_width")
        self._question = Text(margin=(0, 4, 10, 4), stylesheets=[SHEETS["text"]])
        self.dialog = Dialog("Delete this recording?", self._confirmation)

    def show(self) -> None:
        """Offer the actions on the chosen recording."""
        name = self._list.chosen
        self.root.visible = name is not None
        if name is not None:
            self._new_name.param.update(value=name, value_input=name)
        self._name_file()

    def _name_file(self) -> None:
        if self._list.chosen is not None:
            self._download.filename = self._list.chosen + suffix(self._form.value)

    def _confirmation(self) -> list[Any]:
        yes = button("Delete it for good", self._delete, color="error", variant="contained", margin=4)
        no = button("Keep it", lambda: self.dialog.show(False), variant="outlined", margin=4)
        return [self._question, pn.Row(no, yes)]

    def _rename(self) -> None:
        name, new = self._list.chosen, (self._new_name.value_input or "").strip()
        self._change(lambda: reader.rename(name, new), f"{name} is now {new}.", new)

    def _ask(self) -> None:
        name = self._list.chosen
        size = self._list.found[name].size / 1e6
        self._question.object = f"<p><b>{html.escape(name)}</b>, {size:,.1f} MB. This cannot be undone.</p>"
        self.dialog.show()

    def _delete(self) -> None:
        self.dialog.show(False)
        name = self._list.chosen
        self._change(lambda: reader.delete(name), f"{name} was deleted.", None)

    def _change(self, change: Callable[[], None], sentence: str, chosen: str | None) -> None:
        """Change the recordings, and report the result or the error."""
        try:
            change()
        except BnnvizError as error:
            self._say(error.message.text, True)
            return
        self._say(sentence, False)
        self._on_change(chosen)

    def _packed(self) -> io.BytesIO:
        """Return the chosen recording in the chosen form; show errors on the page."""
        recording = self._list.found[self._list.chosen]
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
            self._say(error.message.text, True)
            raise
