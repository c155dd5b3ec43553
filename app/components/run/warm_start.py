"""Start from points of a recording that the address names; they are read here, so that a reset takes the same ones."""

from __future__ import annotations

import math

from bnnviz.engine.recording import reader, warm_start
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from bnnviz.specs import url
from bnnviz.specs.run import Spec
from bnnviz_app.address import Visit

_MOST_NUMBERS = 20_000_000  # read by a page; of larger recordings the worker takes the points
_DROPPED = "The new run has another target or other weights, so it cannot start from the points of {}."


def apply_start(visit: Visit, whole: bool) -> None:
    """Give a visit's spec its initial points from a recording, and announce them.

    Errors of the recording are added to the visit's messages, and the spec then has no start.
    """
    start = visit.spec.start
    if start is None:
        return
    try:
        recording = Recording(reader.place(start["recording"]))
        if not whole:
            visit.spec = _like(recording.spec(), start)
        visit.spec = _with_points(visit.spec, recording)
    except BnnvizError as error:
        visit.sentences.append(error.message.text)
        visit.spec = visit.spec.replace(start=None, start_points=None)
        return
    what = "the last points" if start["points"] == warm_start.LAST else "draws"
    visit.notes.append(f"The chains start from {what} of the recording {recording.name}, also after a reset.")


def dropped(before: Spec, after: Spec) -> str:
    """Return the message about a lost start of a spec, or an empty text."""
    if before.start is None or after.start is not None:
        return ""
    return _DROPPED.format(before.start["recording"])


def _like(spec: Spec, start: dict) -> Spec:
    """Return a spec that begins a new run: with a recording's own seed its random numbers would come again."""
    chains = min(spec.chains, url.MOST_CHAINS)
    return spec.replace(draws=None, seed=spec.seed + 1, chains=chains, start=start, start_points=None).checked()


def _with_points(spec: Spec, recording: Recording) -> Spec:
    """Return the spec with its points if that needs neither torch nor much time; otherwise the worker adds them."""
    if spec.start["points"] != warm_start.LAST:
        return spec
    recording.check_written()
    numbers = math.prod((len(recording.progress["counts"]), recording.whole, len(recording.names())))
    return warm_start.resolved(spec) if numbers <= _MOST_NUMBERS else spec
