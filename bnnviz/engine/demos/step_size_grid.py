"""Measure the stationary error against the step size.

On a target whose variance is known there are many chains of each stochastic-gradient sampler at each of several step
sizes, with the gradients of all rows, beside a sampler that has none. It is driven as a run is: `StepSizeGrid.advance`,
then `StepSizeGrid.frame`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
import torch
from torch import Tensor

from bnnviz import diagnostics, samplers, settings, targets
from bnnviz.engine.run import checkpoint
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.samplers import warmup
from bnnviz.samplers.observers import DrawCollector, StepBatch
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.sgmcmc.base import StochasticGradient
from bnnviz.samplers.tree import as_dicts
from bnnviz.specs.run import Spec

CHAINS, SIZES = 512, 8
_BLOCK = 8  # moves of one cell at a turn, and between its draws
_AHEAD = 4  # turns of a cell that is soon to count, after each turn of another
_LEFT = 1e-3  # of the bias is still missing when a cell begins to count
_OVER_FOUND = 10.0  # times the step size that a sampler finds: the largest that is looked at, if no law is known
_BINS, _REACH = 61, 4.5  # of the histogram; standard deviations on each side
_CURVE = 80
_LINEAR = 0.25  # of the largest stable size: below it the error grows as a power
_LEAST_ERRORS = 3.0  # standard errors by which a point must be off to count in the slope
_REFERENCE_SHARE = 0.3  # of the time
_REFERENCE_CHAINS = 256
_ALIGNED = 1e-9  # by so much a direction may differ from a coordinate's


@dataclass
class StepSizeCell:
    """Hold the chains of one sampler at one step size, and what they have been so far."""

    sampler: StochasticGradient
    size: float
    limit: float  # the largest stable size; infinite where it is not known
    wait: int  # moves after the tuning before counting
    guessed: bool  # how long the start is remembered is not known
    state: Any
    squares: Tensor  # (chains,): of the draws' distances from the mean, their sum
    draws: Tensor  # (chains,)
    draw_collector: DrawCollector | None = None  # None while it is tuned
    tuned: int = 0
    moves: int = 0
    counts: np.ndarray = field(default_factory=lambda: np.zeros(_BINS))

    @property
    def counted(self) -> int:
        """Moves that count."""
        return max(self.moves - self.wait, 0)

    @property
    def diverged(self) -> bool:
        """Whether a chain has met a value that is not finite."""
        return not bool(self.state.alive.all())

    def save(self) -> dict[str, Any]:
        """Return everything for a checkpoint."""
        kept = {name: getattr(self, name) for name in ("moves", "tuned", "squares", "draws")}
        draw_collector = None if self.draw_collector is None else self.draw_collector.save()
        kept |= {"counts": torch.as_tensor(self.counts), "emitter": draw_collector}
        return kept | {"kernel": as_dicts(self.state)}

    def load(self, saved: dict[str, Any], rng: RandomNumbers) -> None:
        """Take everything over."""
        for name in ("moves", "tuned", "squares", "draws"):
            setattr(self, name, saved[name])
        self.counts = saved["counts"].numpy().copy()
        frozen = saved["emitter"] is not None
        self.state = checkpoint.restored_state(self.sampler, saved["kernel"], rng, frozen)
        if frozen:
            self.draw_collector = self.sampler.draw_collector(rng, self.state)
            self.draw_collector.load(saved["emitter"])


class StepSizeGrid:
    """Sample the stationary law of each sampler at each of several step sizes."""

    def __init__(self, target: targets.Target, *, sizes: int = SIZES, chains: int = CHAINS, seed: int = 0) -> None:
        _refuse_unknown(target)
        if sizes < 2 or chains < 2:
            raise BnnvizError(f"sizes = {sizes} and chains = {chains} must both be at least 2.", "sizes")
        self.target = target.to("cpu", torch.float64)
        self.rng = torch.Generator().manual_seed(seed)
        self.numbers = RandomNumbers(self.rng)
        self.chains = chains
        self._direction, self.precision = _stiffest(target)
        self._mean = float(self._direction @ target.mean())
        self.variance = float(self._direction @ target.cov() @ self._direction)
        sd = math.sqrt(self.variance)
        self._edges = np.linspace(self._mean - _REACH * sd, self._mean + _REACH * sd, _BINS + 1)
        self._along = torch.as_tensor(self._direction)
        self.cells = {cls.registered: self._cells(cls, sizes) for cls in _with_a_step_size()}
        self._everyone = [cell for cells in self.cells.values() for cell in cells]
        self._chosen = next(iter(self.cells)), sizes // 2
        self._reference = _reference(target, seed)
        self._turn = 0

    def _cells(self, cls: type[StochasticGradient], sizes: int) -> list[StepSizeCell]:
        limit = self._limit(cls())
        sizes_of_it = np.geomspace(0.0095, 0.95, sizes) * limit
        return [self._cell(cls(step_size=float(size), every=_BLOCK), limit) for size in sizes_of_it]

    def _limit(self, sampler: StochasticGradient) -> float:
        """Return the largest stable step size; where the recursion is not known, ten times what the sampler finds."""
        if sampler.recursion(1e-3 / self.precision, self.precision) is None:
            return _OVER_FOUND * self._begun(sampler).adaptation.step_size
        return diagnostics.largest_stable(lambda size: sampler.recursion(size, self.precision), 1e-3 / self.precision)

    def _begun(self, sampler: StochasticGradient) -> Any:
        """Bind a sampler; return the state of chains that have set out from exact draws."""
        sampler.prepare(self.target, None)
        seed = int(torch.randint(2**31, (), generator=self.rng))
        return sampler.init(torch.as_tensor(self.target.exact_draws(self.chains, seed=seed)).double(), self.numbers)

    def _cell(self, sampler: StochasticGradient, limit: float) -> StepSizeCell:
        state, size = self._begun(sampler), sampler.step_size
        recursion = sampler.recursion(size, self.precision)
        # A variance forgets twice as fast as a position; where nothing is known, as under SGLD with the size it found.
        forgotten = (
            1 - 0.1 * size / state.adaptation.step_size if recursion is None else diagnostics.forgetting(recursion[0])
        )
        wait = math.log(_LEFT) / (2 * math.log(max(abs(forgotten), 0.5)))
        nothing = torch.zeros(self.chains, dtype=torch.float64)
        return StepSizeCell(
            sampler,
            size,
            math.inf if recursion is None else limit,
            math.ceil(wait),
            recursion is None or self.target.quadratic() is None,
            state,
            nothing,
            nothing.clone(),
        )

    @property
    def moves(self) -> int:
        """Moves that each cell has made, but for those that are or were tuned: they have made fewer."""
        return max(cell.moves for cell in self._everyone)

    @property
    def gradients(self) -> int:
        """Gradients that the chains of all cells have taken."""
        return self.chains * sum((cell.tuned + cell.moves) * cell.sampler.gradients_per_step for cell in self._everyone)

    @property
    def counting(self) -> int:
        """How many cells count."""
        return sum(cell.counted > 0 for cell in self._everyone)

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about so many seconds; return the moves of the cells, each of all its chains."""
        begun, moves = time.perf_counter(), 0
        if self._reference is not None:
            self._reference.advance(_REFERENCE_SHARE * seconds)
        while time.perf_counter() - begun < seconds:
            moves += _BLOCK * self._next()
        return moves

    def round(self) -> None:
        """Let each cell make a few moves, and the sampler without a step size have its share of the time."""
        begun = time.perf_counter()
        for cell in self._everyone:
            self._look(cell)
        if self._reference is not None:
            self._reference.advance(_REFERENCE_SHARE * (time.perf_counter() - begun))

    def _next(self) -> int:
        """Look at the next cell, then at those that are soon to count; return how many looks these were.

        A sampler that is tuned for long would else keep the others' errors from being seen.
        """
        self._look(self._everyone[self._turn % len(self._everyone)])
        self._turn += 1
        for ahead in range(_AHEAD):
            waiting = [cell for cell in self._everyone if cell.draw_collector is not None and not cell.counted]
            if not waiting:
                return 1 + ahead
            self._look(min(waiting, key=lambda cell: cell.wait - cell.moves))
        return 1 + _AHEAD

    def _look(self, cell: StepSizeCell) -> None:
        """Move a cell's chains on, and count where they are."""
        if cell.draw_collector is None:
            self._tune(cell)
            return
        before, infos = [], []
        for _ in range(_BLOCK):
            before.append(cell.state)
            cell.state, info = cell.sampler.step(self.numbers, cell.state)
            infos.append(info)
        rows = cell.draw_collector.collect(StepBatch(before, infos, cell.state, cell.moves))
        cell.moves += _BLOCK
        if cell.moves > cell.wait:
            x = rows.x @ self._along
            cell.squares.index_add_(0, rows.chain, (x - self._mean) ** 2)
            cell.draws.index_add_(0, rows.chain, torch.ones_like(x))
            cell.counts += np.histogram(x.numpy(), self._edges)[0]

    def _tune(self, cell: StepSizeCell) -> None:
        for _ in range(warmup.WINDOW):
            cell.state, _ = warmup.step(cell.sampler, self.numbers, cell.state)
        cell.tuned += warmup.WINDOW
        cell.state, over = warmup.end_window(cell.sampler, self.numbers, cell.state, cell.tuned)
        if over:
            cell.state = cell.sampler.freeze(self.numbers, cell.state)
            cell.draw_collector = cell.sampler.draw_collector(self.numbers, cell.state)

    def choose(self, sampler: str, place: int) -> None:
        """Choose whose density is shown: a sampler by its registered name, and the place of a step size."""
        if sampler not in self.cells:
            raise BnnvizError(f"{sampler!r} has no step size here; choose one of {', '.join(self.cells)}.", "sampler")
        if not 0 <= place < len(self.cells[sampler]):
            raise BnnvizError(f"There are step sizes 0 to {len(self.cells[sampler]) - 1}, and no {place}.", "place")
        self._chosen = sampler, place

    def scene(self) -> dict[str, Any]:
        """Return what stays the same: the samplers, their step sizes, the known curves, the exact density."""
        x = np.linspace(self._edges[0], self._edges[-1], 241)
        return {
            "target": self.target.describe_value(),
            "variance": self.variance,
            "samplers": [self._described(name, cells) for name, cells in self.cells.items()],
            "reference": "" if self._reference is None else self._reference.sampler.title,
            "density": {"label": self._label(), "x": x, "y": self._exact(x), "curved": False},
        }

    def _described(self, name: str, cells: list[StepSizeCell]) -> dict[str, Any]:
        sampler = cells[0].sampler
        sizes = np.array([cell.size for cell in cells])
        fine = np.geomspace(sizes[0], sizes[-1], _CURVE)
        # For a Gaussian alone: elsewhere the gradient is no straight line.
        linear = self.target.quadratic() is not None and sampler.recursion(sizes[0], self.precision) is not None
        known = None
        if linear:
            values = [diagnostics.stationary_variance(*sampler.recursion(size, self.precision)) for size in fine]
            known = {"size": fine, "error": np.array(values) / self.variance - 1}
        return {"name": name, "title": sampler.title, "size": sizes, "known": known}

    def _label(self) -> str:
        k = int(np.abs(self._direction).argmax())
        return self.target.names()[k] if abs(self._direction[k]) > 1 - _ALIGNED else "stiffest direction"

    def _exact(self, x: np.ndarray) -> np.ndarray:
        """Return the density along the direction that is looked at."""
        if self.target.quadratic() is not None:
            return scipy.stats.norm.pdf(x, self._mean, math.sqrt(self.variance))
        potential = self.target.potential(torch.as_tensor(x)[:, None]).numpy()
        density = np.exp(potential.min() - potential)
        return density / np.trapezoid(density, x)

    def frame(self) -> dict[str, Any]:
        """Return what is known now."""
        errors = [self._errors(name, cells) for name, cells in self.cells.items()]
        return {"errors": {"samplers": errors, "reference": self._reference_error()}, "cell": self._seen()}

    def _errors(self, name: str, cells: list[StepSizeCell]) -> dict[str, Any]:
        sizes = np.array([cell.size for cell in cells])
        error, se = np.array([self._error(cell) for cell in cells]).T
        chosen = (np.abs(error) > _LEAST_ERRORS * se) & (sizes <= _LINEAR * sizes[-1])
        slope = diagnostics.log_slope(sizes[chosen], np.abs(error[chosen]), se[chosen])
        moves = np.array([cell.counted for cell in cells])
        return {"name": name, "size": sizes, "error": error, "se": se, "slope": slope, "moves": moves}

    def _error(self, cell: StepSizeCell) -> tuple[float, float]:
        """Return the relative error of a cell's variance and its standard error; nan before it counts."""
        if not cell.counted or cell.diverged:
            return float("nan"), float("nan")
        each = cell.squares / cell.draws / self.variance
        return float(each.mean()) - 1, float(each.std() / self.chains**0.5)

    def _reference_error(self) -> dict[str, float] | None:
        moments = None if self._reference is None else self._reference.path_moments()
        k = int(np.abs(self._direction).argmax())
        if moments is None or abs(self._direction[k]) < 1 - _ALIGNED:
            return None
        # About the known mean, as the others are.
        square = moments.variance[k] + (moments.mean[k] - self.target.mean()[k]) ** 2
        return {"error": float(square / self.variance - 1), "se": float(moments.variance_se[k] / self.variance)}

    def save(self) -> dict[str, Any]:
        """Return everything for a checkpoint."""
        return {
            "lenses": [cell.save() for cell in self._everyone],
            "reference": None if self._reference is None else self._reference.checkpoint(),
            "rng": self.rng.get_state(),
            "turn": self._turn,
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Go on from a checkpoint of the same target, sizes, chains and seed."""
        for cell, kept in zip(self._everyone, saved["lenses"], strict=True):
            cell.load(kept, self.numbers)
        if saved["reference"] is not None:
            self._reference = Run.restore(saved["reference"])
        self.rng.set_state(saved["rng"])
        self._turn = saved["turn"]

    def _seen(self) -> dict[str, Any]:
        name, place = self._chosen
        cell, width = self.cells[name][place], self._edges[1] - self._edges[0]
        total = max(cell.counts.sum(), 1.0)
        return {
            "name": name,
            "title": cell.sampler.title,
            "size": cell.size,
            "limit": cell.limit,
            "wait": max(cell.wait - cell.moves + 1, 0),
            "tuned": cell.draw_collector is None,
            "guessed": cell.guessed,
            "diverged": cell.diverged,
            "x": (self._edges[:-1] + self._edges[1:]) / 2,
            "y": cell.counts / (total * width),
            "width": float(width),
            "draws": int(cell.counts.sum()),
            "curves": None,
        }


def _with_a_step_size() -> list[type[StochasticGradient]]:
    return [cls for cls in samplers.REGISTRY if issubclass(cls, StochasticGradient)]


def _reference(target: targets.Target, seed: int) -> Run | None:
    """Return a run of the first sampler along paths that needs no mode; None where none fits."""
    for cls in samplers.REGISTRY:
        if issubclass(cls, PDMP) and not cls().needs_mode and cls.traits.exact:
            chosen = Spec(
                target=target.registered,
                target_settings={name: getattr(target, name) for name in settings.declared(type(target))},
                sampler=cls.registered,
                chains=_REFERENCE_CHAINS,
                draws=None,
                warmup=20,
                seed=seed,
            )
            run = Run(chosen.replace(dtype="float64", device="cpu"), target=target)
            run.prepare()
            return run
    return None


def _refuse_unknown(target: targets.Target) -> None:
    if target.mean() is None or target.exact_draws(1) is None:
        raise BnnvizError(
            f"Nobody knows the variance of {target.describe_value()}; the step-size grid needs a target with known"
            " moments, such as gaussian.",
            "target",
        )
    if target.quadratic() is None and target.dim > 1:
        raise BnnvizError(
            f"{target.describe_value()} is not Gaussian and has {target.dim} coordinates; choose one with one"
            " coordinate, or a Gaussian.",
            "target",
        )


def _stiffest(target: targets.Target) -> tuple[np.ndarray, float]:
    """Return the direction (dim,) of the largest curvature and that curvature; a typical one where it varies."""
    quadratic = target.quadratic()
    if quadratic is not None:
        values, vectors = np.linalg.eigh(quadratic[1].double().numpy())
        return vectors[:, -1], float(values[-1])
    x = torch.as_tensor(target.exact_draws(1000), dtype=torch.float64)
    curvature = target.gradient_and_product(x, torch.ones_like(x))[2].abs()
    return np.ones(1), float(torch.quantile(curvature, 0.95))
