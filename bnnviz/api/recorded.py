"""Read recordings: draws, summaries, predictions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bnnviz.api import given
from bnnviz.api.predict import WithPredictions, table_of
from bnnviz.engine.recording import export, reader
from bnnviz.engine.recording import resume as resuming
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import Suggesting

if TYPE_CHECKING:
    import numpy as np
    import xarray

    from bnnviz.data import UserTable
    from bnnviz.engine.viewed_run import ViewedRun
    from bnnviz.targets import Target


@dataclass(frozen=True)
class PublicRecording(Recording, WithPredictions, Suggesting):
    """A recorded run with the same interface as `Run`.

    Parameters
    ----------
    folder : Path
    target : Target, optional
        The custom network or density of the run.

    Examples
    --------
    >>> import bnnviz
    >>> run = bnnviz.sample("banana", "hmc", draws=100, seed=1, record="example")
    >>> bnnviz.recording("example").draws.shape
    (4, 100, 2)
    """

    target: Target | None = field(default=None, repr=False, compare=False)
    _lock: ClassVar[AbstractContextManager[None]] = nullcontext()  # a restored run has no other users

    @property
    def draws(self) -> np.ndarray:
        """Draws of all chains that have not failed, shape (chains, draws, dim)."""
        return self._kept().draws

    @property
    def log_weights(self) -> np.ndarray | None:
        """Log weights of the draws, shape (chains, draws), or None for unweighted draws."""
        return self._kept().log_weights

    def _kept(self) -> export.ExportedDraws:
        return export.kept(self, target=self.target)

    def summary(self) -> dict[str, Any]:
        """Return the last summary written by the run."""
        return self.last_summary or {}

    @property
    def _run(self) -> ViewedRun:
        """The run, restored from its last checkpoint."""
        return resuming.resume(self.folder, target=self.target)

    def table(self) -> UserTable | None:
        """Return the table that the network was trained on, or None without a user file."""
        return table_of(self.attachment(), self.target)

    def export(self, form: str, out: str | Path, draws: int | None = None) -> Path:
        """Write the draws to a new file in a standard format and return its path.

        Parameters
        ----------
        form : {"netcdf", "zarr", "npz", "csv", "torch", "ensemble", "onnx"}
            ``torch`` has the state dict of each draw, ``ensemble`` a program of `torch.export` that predicts rows, and
            ``onnx`` that program for other runtimes.
        out : str or Path
        draws : int, optional
            Number of evenly spaced draws of ``torch``, ``ensemble`` and ``onnx``. By default all, or 50.

        Raises
        ------
        BnnvizError
            If there is no such format, the run is not one of a network, or the file exists or cannot be written.
        """
        return export.export(self, form, out, draws)

    def to_arviz(self, predictions: bool | None = None) -> xarray.DataTree:
        """Return the draws of all chains that have not failed as an ``xarray.DataTree`` for ArviZ.

        Parameters
        ----------
        predictions : bool, optional
            Whether to include predictions, as in `bnnviz.Run.to_arviz`. By default they are included if the recording
            has a custom target, which also provides names and log densities.

        Raises
        ------
        BnnvizError
            If there are no draws, or the recording is damaged.
        """
        if self.target is None and not predictions:
            return export.to_arviz(self)
        return self._run.to_arviz(predictions)


def recording(word: str | Path, *, target: Any = None) -> PublicRecording:
    """Open a recording by name or folder.

    The result has the following attributes and methods of `Run`: ``draws``, ``summary()``, ``verdict()``,
    ``parameters()``, ``parameter_summary()``, ``predict(rows)``, ``functions(rows)``, ``to_arviz()``, ``save(path)``.
    The figures of `bnnviz.plots`, `bnnviz.measure`, `bnnviz.uncertainty` and `bnnviz.attack` also accept recordings.
    ``header`` and ``progress`` contain metadata.

    Parameters
    ----------
    word : str or Path
    target : Target or callable, optional
        The custom network or density of the run, because recordings do not contain code; for a function with
        ``parameters`` its `ParameterDensity`. Without it, draws are available but predictions are not.

    Raises
    ------
    BnnvizError
        If the recording does not exist.

    Examples
    --------
    >>> import bnnviz
    >>> import tempfile
    >>> folder = f"{tempfile.mkdtemp()}/mine"
    >>> run = bnnviz.sample("gaussian", "hmc", draws=20, warmup=10, chains=2, record=folder)
    >>> bnnviz.recording(folder).draws.shape
    (2, 20, 2)
    """
    folder = reader.find(word)
    return PublicRecording(folder, given.recorded_target(target, reader.Recording(folder)))
