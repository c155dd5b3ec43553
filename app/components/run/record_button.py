"""Record the run that is watched, and go on with a recording that the address names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bnnviz.engine.recording import reader
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from bnnviz_app.address import Visit
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import header_button
from bnnviz_app.session import Session

_START, _STOP = "Record", "Stop recording"


class RecordButton(PageComponent):
    """Begin and end the recording of what runs, and say which it is."""

    needs = frozenset({"status"})

    def __init__(self, session: Session, say: Callable[[str], None]) -> None:
        self._session, self._say, self._name = session, say, None
        self.root = header_button(_START, self._turn)

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run, which is not recorded."""
        self._show(None)

    def update(self, frame: dict[str, Any]) -> None:
        """Show whether the run is recorded."""
        self._show(frame["status"].get("record"))

    def _turn(self) -> None:
        spec = self._session.spec
        subject = spec.target_settings.get("data") or spec.target
        self._session.record(None if self._name else reader.free_name(f"{spec.sampler}-{subject}"))

    def _show(self, name: str | None) -> None:
        if name == self._name:
            return
        if name is not None:
            self._say(f"This run is kept as {name} from now on; the page Recordings shows it.")
        self._name = name
        self.root.param.update(
            label=_START if name is None else _STOP, icon=None if name is None else "fiber_manual_record"
        )


def going_on(visit: Visit) -> str | None:
    """Return the recording that an address asks to go on with, and take its spec for the visit's.

    What is wrong with it is added to the visit's sentences.
    """
    name = visit.flags.pop("recording", None)
    if name is None:
        return None
    try:
        recording = Recording(reader.place(name))
        visit.spec = recording.spec()
    except BnnvizError as error:
        visit.sentences.append(error.message.text)
        return None
    return name
