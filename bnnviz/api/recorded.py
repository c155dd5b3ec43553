"""Read what was recorded: draws, summaries, predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnnviz.api.predict import WithPredictions
from bnnviz.engine.evaluation.metrics import NetworkDraws, network_draws
from bnnviz.engine.recording import export, reader
from bnnviz.engine.recording import resume as resuming
from bnnviz.engine.recording.reader import Recording

if TYPE_CHECKING:
    from bnnviz.targets import BNN, Target


class PublicRecording(Recording, WithPredictions):
    """A recording, with what else a program asks of it."""

    def network_draws(self, target: BNN | None = None) -> NetworkDraws:
        """Return the network and its draws; a ``target`` of your own, where the run began with such.

        Raises
        ------
        BnnvizError
            If it is no network on data, there are no draws, or the recording is damaged.
        """
        return network_draws(resuming.resume(self.folder, target=target))

    def _attached(self) -> bytes | None:
        return self.attachment()

    def verdict(self) -> str | None:
        """Return what the run's verdict was when this was last written; None of a density, or where there is none."""
        return (self.summary or {}).get("verdict")

    def to_arviz(self, predictions: bool | None = None, *, target: Target | None = None) -> Any:
        """Return the draws that all living chains have as an ArviZ data tree (an ``xarray.DataTree``).

        Parameters
        ----------
        predictions : bool, optional
            Whether a network's groups are in it, as of `bnnviz.Run.to_arviz`; left out, they are where a target is
            given.
        target : Target, optional
            Your own network or density, for a recording of a run on such: it gives names, and log densities.

        Raises
        ------
        BnnvizError
            If there are none, or the recording is damaged.
        """
        if target is None and not predictions:
            return export.to_arviz(self)
        return resuming.resume(self.folder, target=target).to_arviz(predictions)


def recording(word: str | Path) -> PublicRecording:
    """Return a recording, by its name or its folder.

    Its ``header``, ``progress`` and ``summary`` say what it is; ``draws()``, ``log_weights()`` and ``steps()`` read its
    arrays, and ``to_arviz()`` makes an ArviZ data tree of the draws.

    Raises
    ------
    BnnvizError
        If there is none.

    Examples
    --------
    >>> import bnnviz
    >>> import tempfile
    >>> folder = f"{tempfile.mkdtemp()}/mine"
    >>> run = bnnviz.sample("gaussian", "hmc", draws=20, warmup=10, chains=2, record=folder)
    >>> bnnviz.recording(folder).draws().shape
    (2, 20, 2)
    """
    return PublicRecording(reader.find(word))
