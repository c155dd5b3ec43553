"""What of the draws is followed: principal components and single coordinates, kept up to date as draws come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.engine.run import Run

_PCA_ROWS = 600
_PCA_GROWTH = 1.6
PCA_FIRST = 40  # draws
FIRST: dict[str, Any] = {"kind": "pc", "number": 1}
_LABELS = {1: "PC 1", 2: "PC 2", -1: "last PC"}
Choice = tuple[str, int]


class Component(NamedTuple):
    """One number for each draw: its label, the values (living chains, draws), and what they are projections on."""

    label: str
    values: np.ndarray
    key: tuple


class Components:
    """Principal axes of a run's draws, and the draws' projections on them or on single coordinates.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    pca : Axes or None
        The first two principal axes; None until there are enough draws, and in two dimensions or fewer.
    basis : int
        Changes with the axes; whoever sets another plane adds to it too.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.pca: diagnostics.pca.Axes | None = None
        self.basis = 0
        self._fitted = 0  # draws
        self._last: tuple[diagnostics.pca.Axes, np.ndarray] | None = None
        self._choice: Choice = ("pc", 1)
        self._known: dict[Choice, tuple[tuple, np.ndarray]] = {}

    def forget(self) -> None:
        """Drop what was computed of earlier draws; the axes stay until there are draws enough for others."""
        self._fitted = 0
        self._known = {}

    def follow(self, choice: dict[str, Any]) -> None:
        """Follow what `Run.watch` describes as a component."""
        self._choice = self._checked(choice)
        self._known = {which: known for which, known in self._known.items() if which == ("pc", 1)}

    def _checked(self, choice: dict[str, Any]) -> Choice:
        dim = self._run.target.dim
        if choice.get("kind") == "coordinate":
            index = choice.get("i")
            if not isinstance(index, int) or not 0 <= index < dim:
                raise BnnvizError(f"There is no coordinate {index!r} to follow; choose 0 to {dim - 1}.", "component")
            return "coordinate", index
        number = choice.get("number")
        if choice.get("kind") != "pc" or number not in _LABELS:
            raise BnnvizError(f"A component is a coordinate or a pc of number 1, 2 or -1, not {choice!r}.", "component")
        return "pc", number

    def refit(self) -> None:
        """Fit the axes anew when the draws have grown by more than half since the last fit."""
        run = self._run
        count = run.store.common(run.alive) * int(run.alive.sum())
        if run.target.dim <= 2 or count < max(PCA_FIRST, _PCA_GROWTH * self._fitted):
            return
        self.pca, self._fitted = diagnostics.principal_axes(self._rows()), count
        self.basis += 1

    def _rows(self) -> np.ndarray:
        """Return the draws (n, dim) that axes are fitted to."""
        draws = self._run.store.view(self._run.alive)
        stride = max(1, -(-draws.shape[0] * draws.shape[1] // _PCA_ROWS))
        return draws.reshape(-1, draws.shape[2])[::stride].double().cpu().numpy()

    @property
    def first(self) -> Component:
        """The first principal component of all draws; the first coordinate, until there are axes."""
        return self._component(("pc", 1))

    @property
    def coordinate(self) -> int | None:
        """The number of the coordinate that is followed; None where it is something else."""
        return self._choice[1] if self._choice[0] == "coordinate" else None

    @property
    def followed(self) -> Component:
        """What is followed."""
        return self._component(self._choice)

    def _component(self, choice: Choice) -> Component:
        run = self._run
        kind, number = choice
        if kind == "pc" and self.pca is None:
            choice = kind, number = "coordinate", 0 if number == 1 else min(1, run.target.dim - 1)
        draws = run.store.view(run.alive)
        key = (*choice, self.basis, run.store.every, tuple(run.alive))
        held, values = self._known.get(choice, (None, None))
        if held != key:
            values = np.empty((len(draws), 0))
        if values.shape[1] < draws.shape[1]:
            new = self._values(choice, draws[:, values.shape[1] :])
            values = np.concatenate([values, new], axis=1)
            self._known[choice] = key, values
        return Component(self._label(choice), values, key)

    def _values(self, choice: Choice, draws: Tensor) -> np.ndarray:
        """Return the projections (chains, draws) of draws (chains, draws, dim)."""
        kind, number = choice
        if kind == "coordinate":
            return draws[..., number].double().cpu().numpy()
        direction = self._last_axis() if number == -1 else self.pca.axes[:, number - 1]
        axis = torch.as_tensor(direction, dtype=draws.dtype, device=draws.device)
        return (draws @ axis).double().cpu().numpy() - float(self.pca.centre @ direction)

    def _last_axis(self) -> np.ndarray:
        """Return the last principal axis (dim,), which is fitted only where somebody follows it."""
        if self._last is None or self._last[0] is not self.pca:
            self._last = self.pca, diagnostics.last_axis(self._rows())
        return self._last[1]

    def _label(self, choice: Choice) -> str:
        kind, number = choice
        return self._run.target.names()[number] if kind == "coordinate" else _LABELS[number]
