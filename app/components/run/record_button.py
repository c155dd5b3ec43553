"""Record the watched run, and resume a recording in the address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bnnviz.engine.recording import reader
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from bnnviz_app.address import Visit
from bnnviz_app.components.component import PageComponent
from bnnviz_app.session import Session

_START, _STOP = "Record", "Stop recording"


class Recorder(PageComponent):
    """Begin and end the recording of the run, and show its name."""

    needs = frozenset({"status"})

    def __init__(self, session: Session, say: Callable[[str], None]) -> None:
        self._session, self._say, self._name = session, say, None
        self.on_label: Callable[[], None] = lambda: None

    @property
    def label(self) -> str:
        """The menu's item: begin or end the recording."""
        return _START if self._name is None else _STOP

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run, which is not recorded."""
        self._show(None)

    def update(self, frame: dict[str, Any]) -> None:
        """Show whether the run is recorded."""
        self._show(frame["status"].get("record"))

    def turn(self) -> None:
        """Begin or end the recording."""
        spec = self._session.spec
        subject = spec.target_settings.get("data") or spec.target
        self._session.record(None if self._name else reader.free_name(f"{spec.sampler}-{subject}"))

    def _show(self, name: str | None) -> None:
        if name == self._name:
            return
        if name is not None:
            self._say(f"This run is kept as {name} from now on; the page Recordings shows it.")
        self._name = name
        self.on_label()


def going_on(visit: Visit) -> str | None:
    """Return the recording that an address resumes, and use its spec for the visit.

    Errors are added to the visit's messages.
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
