"""Compare FuncHMC with HMC on the double well: two runs of 400 chains each, the first chain of which is watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics
from bnnviz.engine.race.comparison import Comparison, Entry
from bnnviz.engine.run.initialization import Start
from bnnviz.errors import BnnvizError
from bnnviz.numerals import number
from bnnviz.samplers.observers import Draws, StepBatch
from bnnviz.specs.wells import FUNCTIONAL, POINT, RUNS, WellsSpec

_COVERED = 0.2  # of the draws on either side: both wells are covered
_BINS, _POINTS = 40, 241
_SHOWN = 40  # functionals, and points, in a picture
_LEDGER = 200  # moves in the ledger
# The ratio: benchmark points, maximum draws, kernel width relative to the distance of a mode from 0, kernels.
_BENCHMARK, _DRAWS, _WIDTH, _CENTRES = 400, 1000, 0.3, 30
_FEWEST = 3  # draws for a ratio
_SIDES = {"func": FUNCTIONAL, "point": POINT}


class _Moved(NamedTuple):
    """A move of the watched chain: the functional's coefficients or the point, and the parts of its energy."""

    at: Tensor
    accepted: bool
    potential: float
    entropy: float
    kinetic: float


class Side(Entry):
    """Run one sampler, of functionals or points, and keep moves of the watched chain and histograms of all."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.limit = 0  # moves
        self.edges = torch.linspace(*self.target.window()[0], _BINS + 1, dtype=torch.float64)
        self.counts = torch.zeros(RUNS, _BINS + 2, dtype=torch.float64)  # the outer two are outside the window
        self.places: list[Tensor] = []  # means or points (chains,) after each move
        self.moves: list[_Moved] = []  # the last
        self.listeners.append(self._keep)

    @property
    def spent(self) -> int:
        """Moves so far."""
        return self.steps

    @property
    def over(self) -> bool:
        """Whether all moves are made, or no chain is left."""
        return self.finished or self.steps >= self.limit

    def collect(self, rows: Draws) -> None:
        """Count the draws of all chains in bins, and keep those of the watched one."""
        at = rows.chain * self.counts.shape[1] + torch.bucketize(rows.x[:, 0], self.edges)
        self.counts += torch.bincount(at, minlength=self.counts.numel()).view(self.counts.shape)
        watched = rows.chain == 0
        super().collect(Draws(*(None if part is None else part[watched] for part in rows)))

    def _keep(self, step_batch: StepBatch) -> None:
        for step, info in enumerate(step_batch.infos):
            state = step_batch.state_after(step)
            self.places.append(state.x[:, 0].clone())
            if self.sampler.traits.functional:
                at, energy = state.c[0], [float(part[0]) for part in (info.potential, info.entropy, info.kinetic)]
            else:
                at, energy = state.x[0], [float(state.potential[0]), 0.0, 0.5 * float(state.momentum[0].square().sum())]
            self.moves = [*self.moves, _Moved(at.clone(), bool(info.accepted[0]), *energy)][-_LEDGER:]

    @property
    def watched_draws(self) -> np.ndarray:
        """Draws (draws,) of the watched chain, evenly thinned."""
        draws = self.store.buffer[0, : self.store.counts[0], 0].numpy()
        return draws[:: max(1, len(draws) // _DRAWS)]

    def distances(self, mass: Tensor) -> Tensor:
        """Return the total variation (chains,) between the draws of each chain and the truth, in bins."""
        share = self.counts / self.counts.sum(1, keepdim=True).clamp_min(1.0)
        return 0.5 * (share - mass).abs().sum(1)

    def covered(self) -> Tensor:
        """Return for each chain (chains,) whether a fifth of its draws is on either side."""
        right = self.counts[:, 1 + _BINS // 2 :].sum(1) / self.counts.sum(1).clamp_min(1.0)
        return torch.minimum(right, 1 - right) >= _COVERED

    def save(self) -> dict[str, Any]:
        """Return the run's checkpoint, counts and moves."""
        return super().save() | {"counts": self.counts, "places": self.places, "moves": [tuple(m) for m in self.moves]}

    def load(self, saved: dict[str, Any]) -> None:
        """Restore counts and moves."""
        self.counts, self.places = saved["counts"], saved["places"]
        self.moves = [_Moved(*move) for move in saved["moves"]]


class Wells(Comparison):
    """Run a `WellsSpec`: FuncHMC from N(0, sd^2) and HMC from draws of it; views show the first chain."""

    spec_class: ClassVar[type[WellsSpec]] = WellsSpec
    entry_class: ClassVar[type[Side]] = Side
    fixed: ClassVar[str] = "Nothing can change while the wells are sampled; begin again."

    def __init__(self, spec: WellsSpec, *, saved: dict[str, Any] | None = None) -> None:
        super().__init__(spec.checked(), saved=saved)
        self._values = self.spec.settings
        self.sides: dict[str, Side] = dict(zip(_SIDES, self.entries, strict=True))
        for side in self.entries:
            side.limit = self._values["moves"]
        self.target, edges = self.entries[0].target, self.entries[0].edges.numpy()
        self.line = np.linspace(edges[0], edges[-1], _POINTS)
        # The density on the line, and its mass in the bins.
        fine = np.linspace(-6, 6, 48_001)
        weight = np.exp(-self.target.potential(torch.as_tensor(fine[:, None])).numpy())
        weight /= np.trapezoid(weight, fine)
        below = np.concatenate([[0.0], np.cumsum(0.5 * (weight[1:] + weight[:-1]) * np.diff(fine))])
        self.truth = np.interp(self.line, fine, weight)
        self.mass = torch.as_tensor(np.diff(np.concatenate([[0.0], np.interp(edges, fine, below), [1.0]])))
        sd = self._values["first_sd"]
        self._first = np.exp(-0.5 * (self.line / sd) ** 2) / (sd * (2 * np.pi) ** 0.5)  # functional, as a density
        self._ratios: tuple[int, dict[str, np.ndarray]] = (-1, {})  # after so many moves

    @property
    def steps(self) -> int:
        """Moves that each sampler has made."""
        return min(side.steps for side in self.entries)

    @property
    def progress(self) -> float:
        """Share of the moves that are made."""
        return self.steps / self._values["moves"]

    def _prepare_some(self) -> None:
        """Start both samplers."""
        rng = torch.Generator().manual_seed(self._values["seed"])
        x0 = self._values["first_sd"] * torch.randn(RUNS, 1, generator=rng, dtype=torch.float64)
        for side in self.entries:
            side.set_out(Start(x0, None))
        self.phase = "sampling"

    def _end_phase(self) -> None:
        """Note the end of the first sampler: a failed one has no moves to compare with."""
        if any(side.over for side in self.entries):
            self.phase = "done"

    def step_event(self) -> None:
        """Step until both have accepted a move, or all are made."""
        self.step_proposal()
        while not self.finished and not all(side.moves[-1].accepted for side in self.entries):
            self.step_proposal()

    # ---- views

    def scene(self) -> dict[str, Any]:
        """Return the static view data: the truth, the first functional, and its distance from the truth."""
        return {
            "spec": self.spec.to_json(),
            "title": f"FuncHMC and HMC on {self.target.describe_value()}",
            "emits": list(self.parts()),
            "x": self.line,
            "truth": self.truth,
            "first": self._first,
            "first_distance": self.first_distance,
            "moves": self._values["moves"],
            "runs": RUNS,
        }

    @property
    def first_distance(self) -> float:
        """Total variation between the first functional and the truth."""
        # The integral over the window misses half of the part of the first functional outside it.
        outside = max(0.0, 1 - float(np.trapezoid(self._first, self.line)))
        return float(0.5 * (np.trapezoid(np.abs(self._first - self.truth), self.line) + outside))

    def parts(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Return the builders of the parts of a frame, by name."""
        return {
            "status": self._status,
            "caption": self._caption,
            "table": self._table,
            "wells": self._wells,
            "ledger": self._ledger,
            "pooled": self._pooled,
            "ratio": self._ratio,
        }

    def _status(self) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "device": "cpu",
            "kernel": "eager",
            "step": self.steps,
            "moves": self._values["moves"],
            "gradients": self.gradients // RUNS,
            "elapsed": self.seconds,
            "progress": self.progress,
            "message": " ".join(self.notes),
        }

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the results so far of each sampler by its registered name.

        ``distance``: total variation of the watched chain's draws from the truth, in 40 bins; ``median``: over all
        chains; ``covered``: fraction of chains with a fifth of their draws on either side; ``accepted``; ``crossings``
        of the barrier by the watched chain's mean or point, and ``crossings_mean`` over all chains; ``longest``: its
        longest stay in moves; ``stay``: mean moves of a stay over all chains; ``gradients`` of a move.
        """
        found = {}
        for name, side in self.sides.items():
            distances = side.distances(self.mass)
            crossed = diagnostics.crossings(torch.stack(side.places, 1).numpy())
            found[_SIDES[name]] = {
                "distance": float(distances[0]),
                "median": float(distances.median()),
                "covered": float(side.covered().double().mean()),
                "accepted": side.stats["accepted"],
                "crossings": int(crossed.count[0]),
                "crossings_mean": float(crossed.count.mean()),
                "longest": int(crossed.longest[0]),
                "stay": crossed.stay,
                "gradients": side.sampler.gradients_per_step,
            }
        return found

    def _caption(self) -> dict[str, Any]:
        distance = self.first_distance
        if not self.steps:
            text = (
                f"FuncHMC begins with the dashed functional, {distance:.2f} from the truth (total variation), HMC with"
                " a point drawn from it. Press play, or step."
            )
            return {"text": text, "kind": "phase", "warning": "", "remedies": []}
        figures = self.figures()
        func, hmc = figures[FUNCTIONAL], figures[POINT]
        fates = ["accepted" if side.moves[-1].accepted else "rejected" for side in self.entries]
        fate = f"FuncHMC {fates[0]}; HMC {fates[1]}" if fates[0] != fates[1] else f"both {fates[0]}"
        text = (
            f"Move {self.steps}: {fate}. Over {RUNS} runs FuncHMC's draws are {func['median']:.2f} from the"
            f" truth and HMC's {hmc['median']:.2f}; both wells are covered in {100 * func['covered']:.0f}% and"
            f" {100 * hmc['covered']:.0f}% of them."
        )
        return {"text": text, "kind": "summary", "warning": self._warning(func, hmc), "remedies": []}

    def _warning(self, func: dict[str, float], hmc: dict[str, float]) -> str:
        """Explain the difference by the start, the cost and the sampled quantity."""
        times = func["gradients"] / hmc["gradients"]
        cost = f"FuncHMC takes {times:.0f} times the gradients"
        if func["median"] > hmc["median"]:
            return f"HMC is nearer now: a mixture of functionals is wider than the target; and {cost}."
        if self.first_distance <= func["median"]:
            return f"The first functional alone is {self.first_distance:.2f} from it: the lead was there at the start."
        if self.first_distance < hmc["median"]:
            start = f"The first functional alone is {self.first_distance:.2f} from it: part of the lead was there at"
            return f"{start} the start; and {cost}."
        return f"The first functional is {self.first_distance:.2f} from it, no help here; but {cost}."

    def _table(self) -> dict[str, Any]:
        if not self.steps:
            return {"rows": []}
        func, hmc = self.figures().values()
        rows = [
            (f"From the truth (median of {RUNS} runs)", ("distance", ".2f"), ("median", ".2f")),
            ("Runs that cover both wells", ("covered", ".0%"), None),
            ("Moves accepted", ("accepted", ".0%"), None),
            (f"Barrier crossed (mean of {RUNS})", ("crossings", "d"), ("crossings_mean", ".1f")),
            ("Longest stay in moves (mean stay)", ("longest", "d"), ("stay", ".1f")),
            ("Gradients of a move", ("gradients", "d"), None),
        ]
        body = [[label, "; ".join(_cell(side, *keys) for side in (func, hmc)), ""] for label, *keys in rows]
        return {"rows": [["", "FuncHMC; HMC", ""], *body]}

    def summary(self) -> dict[str, float]:
        """Return `figures`, prefixed by the sampler's name, and the distance of the first functional from the truth."""
        each = {f"{name}_{key}": value for name, side in self.figures().items() for key, value in side.items()}
        return each | {"first_distance": self.first_distance}

    def _wells(self) -> dict[str, Any]:
        func, hmc = (side.moves[-_SHOWN:] for side in self.entries)
        y = np.empty((0, len(self.line)))
        if func:
            coefficients = torch.stack([move.at for move in func])
            y = self.sides["func"].sampler.reading.density(coefficients, torch.as_tensor(self.line)).numpy()
        return {
            "y": y,
            "accepted": np.array([move.accepted for move in func], dtype=bool),
            "points": np.array([float(move.at[0]) for move in hmc]),
            "moves": self.steps,
        }

    def _ledger(self) -> dict[str, Any]:
        count = min(self.steps, _LEDGER)
        part: dict[str, Any] = {"move": np.arange(self.steps - count, self.steps) + 1}
        for name, side in self.sides.items():
            for column in ("potential", "entropy", "kinetic"):
                part[f"{name}_{column}"] = np.array([getattr(move, column) for move in side.moves])
            part[f"{name}_accepted"] = np.array([move.accepted for move in side.moves], dtype=bool)
        return part

    def _pooled(self) -> dict[str, Any]:
        edges = self.entries[0].edges.numpy()
        width = edges[1] - edges[0]
        part: dict[str, Any] = {"x": edges[:-1] + width / 2, "width": width}
        for name, side in self.sides.items():
            part[name] = (side.counts[0, 1:-1] / side.counts[0].sum().clamp_min(1.0) / width).numpy()
            part[f"{name}_draws"] = int(side.counts[0].sum())
            part[f"{name}_distance"] = float(side.distances(self.mass)[0]) if self.steps else float("nan")
        return part

    def _ratio(self) -> dict[str, Any]:
        """Return the ratio of the truth's density to that of each sampler's draws, by KLIEP from samples of both."""
        if self._ratios[0] != self.steps:
            found = {name: self._ratio_of(side.watched_draws) for name, side in self.sides.items()}
            self._ratios = self.steps, found
        return {"x": self.line, **self._ratios[1]}

    def _ratio_of(self, draws: np.ndarray) -> np.ndarray:
        if len(np.unique(draws)) < _FEWEST:
            return np.full(len(self.line), np.nan)
        benchmark = self.target.exact_draws(_BENCHMARK, self._values["seed"])[:, 0]
        width = _WIDTH / self.target.quartic**0.5
        try:
            return diagnostics.kliep(benchmark, draws, width, centres=_CENTRES)(self.line)
        except BnnvizError:
            # The few draws are at points without mass under the truth: there is no ratio yet.
            return np.full(len(self.line), np.nan)


def _cell(figures: dict[str, float], first: tuple[str, str], second: tuple[str, str] | None) -> str:
    """Format a number with a related one in brackets."""
    text = number(figures[first[0]], first[1]).replace("%", " %")
    return text if second is None else f"{text} ({number(figures[second[0]], second[1])})"
