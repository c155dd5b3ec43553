"""Read recordings: draws, summaries, predictions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bnnviz.api.parameters import WithParameters
from bnnviz.api.predict import WithPredictions
from bnnviz.engine.evaluation.metrics import NetworkDraws, network_draws
from bnnviz.engine.recording import export, reader
from bnnviz.engine.recording import resume as resuming
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import Suggesting
from bnnviz.messages import Message

if TYPE_CHECKING:
    import numpy as np
    import xarray

    from bnnviz.data import UserTable
    from bnnviz.engine.viewed_run import ViewedRun
    from bnnviz.targets import BNN, Target


@dataclass(frozen=True)
class PublicRecording(Recording, WithPredictions, WithParameters, Suggesting):
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

    def verdict(self) -> Message | None:
        """Return the last verdict written by the run, or None if there is no verdict."""
        return self.summary().get("verdict")

    @property
    def _run(self) -> ViewedRun:
        return self.restored()

    @property
    def stats(self) -> dict[str, Any]:
        """Counts and ratios of the kernel."""
        return self._run.stats

    def event_weights(self) -> np.ndarray | None:
        """Return weights (chains, draws) that correct the bias of draws at events, as in `bnnviz.Run.event_weights`."""
        return self._run.event_weights()

    def save(self, path: str | Path) -> Path:
        """Write draws and header to a NetCDF file that ArviZ can read and return its path."""
        return self._run.save(path)

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

    def restored(self, target: Target | None = None) -> ViewedRun:
        """Restore the run from its last checkpoint, on the given target or the target of the recording."""
        return resuming.resume(self.folder, target=self.target if target is None else target)

    def network_draws(self, target: BNN | None = None) -> NetworkDraws:
        """Return the network and its draws. Pass a custom network as ``target``.

        Raises
        ------
        BnnvizError
            If the target is not a network on data, there are no draws, or the recording is damaged.
        """
        return network_draws(self.restored(target))

    def _attached(self) -> bytes | None:
        return self.attachment()

    def table(self, target: BNN | None = None) -> UserTable | None:
        """Return the table that the network was trained on, or None without a user file."""
        return super().table(self.target if target is None else target)

    def to_arviz(self, predictions: bool | None = None, *, target: Target | None = None) -> xarray.DataTree:
        """Return the draws of all chains that have not failed as an ``xarray.DataTree`` for ArviZ.

        Parameters
        ----------
        predictions : bool, optional
            Whether to include predictions, as in `bnnviz.Run.to_arviz`. By default they are included if a target is
            given.
        target : Target, optional
            The custom network or density of the run. It provides names and log densities.

        Raises
        ------
        BnnvizError
            If there are no draws, or the recording is damaged.
        """
        if target is None and self.target is None and not predictions:
            return export.to_arviz(self)
        return self.restored(target).to_arviz(predictions)


def recording(word: str | Path, *, target: Target | None = None) -> PublicRecording:
    """Open a recording by name or folder.

    The result has the following attributes and methods of `Run`: ``draws``, ``summary()``, ``verdict()``,
    ``parameters()``, ``parameter_summary()``, ``predict(rows)``, ``functions(rows)``, ``to_arviz()``, ``save(path)``.
    The figures of `bnnviz.plots`, `bnnviz.measure`, `bnnviz.uncertainty` and `bnnviz.attack` also accept recordings.
    ``header`` and ``progress`` contain metadata.

    Parameters
    ----------
    word : str or Path
    target : Target, optional
        The custom network or density of the run, because recordings do not contain code. Without it, draws are
        available but predictions are not.

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
    return PublicRecording(reader.find(word), target)
