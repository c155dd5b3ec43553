"""Compare FuncHMC with HMC on the double well: many runs of each in lock-step, one of them watched."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics, samplers, targets
from bnnviz.engine.comparison import SamplerComparison
from bnnviz.errors import BnnvizError
from bnnviz.numerals import number
from bnnviz.samplers.random import RandomNumbers
from bnnviz.specs.wells import FUNCTIONAL, POINT, TARGET, WellsSpec

RUNS = 400
_COVERED = 0.2  # of the draws on either side: both wells are covered
_BINS, _POINTS = 40, 241
_SHOWN = 40  # functionals, and points, in a picture
_LEDGER = 200  # moves in the ledger
# The ratio: benchmark points, maximum draws, kernel width relative to the distance of a mode from 0, kernels.
_BENCHMARK, _DRAWS, _WIDTH, _CENTRES = 400, 1000, 0.3, 30
_FEWEST = 3  # draws for a ratio
_SIDES = {"func": FUNCTIONAL, "point": POINT}


class _Moved(NamedTuple):
    """A move of the watched run: the functional's coefficients or the point, and the parts of its energy."""

    at: Tensor
    accepted: bool
    potential: float
    entropy: float
    kinetic: float


class Side:
    """One sampler, of functionals or points: the states of all runs, the watched run's moves, and histograms."""

    def __init__(self, sampler: samplers.Sampler, state: Any, edges: Tensor, rng: RandomNumbers) -> None:
        self.sampler, self.state, self._edges, self._rng = sampler, state, edges, rng
        self.moves: list[_Moved] = []
        self.counts = torch.zeros(RUNS, len(edges) + 1, dtype=torch.float64)  # the outer two are outside the window
        self.right = torch.zeros(RUNS, dtype=torch.float64)
        self.places: list[Tensor] = []  # of all runs, (runs,) each move
        self.draws: list[Tensor] = []  # of the watched run
        self.accepted = 0.0

    def move(self) -> None:
        """Move every run once, and draw."""
        self.state, info = self.sampler.step(self._rng, self.state)
        self.accepted += float(info.accepted.mean())
        self.places.append(self.state.x[:, 0].clone())
        state, accepted = self.state, bool(info.accepted[0])
        if self.sampler.traits.functional:
            z = self._rng.normal((RUNS, self.sampler.draws_each, 1), state.c.dtype)
            draws = self.sampler.reading.at(state.c, z)[..., 0]
            energy = [float(part[0]) for part in (info.potential, info.entropy, info.kinetic)]
            self.moves.append(_Moved(state.c[0].clone(), accepted, *energy))
        else:
            draws, potential = state.x, float(self.sampler.target.potential(state.x[:1]))
            kinetic = 0.5 * float(state.momentum[0].square().sum())
            self.moves.append(_Moved(state.x[0], accepted, potential, 0.0, kinetic))
        self.draws.append(draws[0].clone())
        self.right += (draws > 0).sum(1)
        at = torch.bucketize(draws, self._edges)
        self.counts.scatter_add_(1, at, torch.ones_like(draws))

    def distances(self, mass: Tensor) -> Tensor:
        """Return the total variation (runs,) between the draws of each run and the truth, in bins."""
        share = self.counts / self.counts.sum(1, keepdim=True).clamp_min(1.0)
        return 0.5 * (share - mass).abs().sum(1)

    def covered(self) -> Tensor:
        """Return for each run (runs,) whether a fifth of its draws is on either side."""
        share = self.right / self.counts.sum(1).clamp_min(1.0)
        return torch.minimum(share, 1 - share) >= _COVERED


class Wells(SamplerComparison):
    """Run a `WellsSpec` of FuncHMC and HMC from N(0, sd^2); views show the first run."""

    spec_class: ClassVar[type[WellsSpec]] = WellsSpec
    fixed: ClassVar[str] = "Nothing can change while the wells are sampled; begin again."
    parts: ClassVar[tuple[str, ...]] = ("status", "caption", "table", "wells", "ledger", "pooled", "ratio")

    def __init__(self, spec: WellsSpec) -> None:
        super().__init__(spec)
        self.device = torch.device("cpu")
        self.seconds = 0.0
        self.notes: list[str] = []
        self.error: str | None = None
        self._seq = 0
        self._values = self.spec.settings
        self.target = targets.REGISTRY.get(TARGET)(reading=self._values["reading"]).to("cpu", torch.float64)
        low, high = self.target.window()[0]
        self.line = np.linspace(low, high, _POINTS)
        self.edges = torch.linspace(low, high, _BINS + 1, dtype=torch.float64)
        # The density on the line, and its mass in the bins.
        fine = np.linspace(-6, 6, 48_001)
        weight = np.exp(-self.target.potential(torch.as_tensor(fine[:, None])).numpy())
        weight /= np.trapezoid(weight, fine)
        below = np.concatenate([[0.0], np.cumsum(0.5 * (weight[1:] + weight[:-1]) * np.diff(fine))])
        at = np.interp(self.edges.numpy(), fine, below)
        self.truth = np.interp(self.line, fine, weight)
        self._mass = torch.as_tensor(np.diff(np.concatenate([[0.0], at, [1.0]])))
        sd = self._values["first_sd"]
        self._first = np.exp(-0.5 * (self.line / sd) ** 2) / (sd * (2 * np.pi) ** 0.5)  # functional, as a density
        self.rng = torch.Generator().manual_seed(self._values["seed"])
        self.sides: dict[str, Side] = {}
        self._ratios: tuple[int, dict[str, np.ndarray]] = (-1, {})  # after so many steps

    @property
    def steps(self) -> int:
        """Moves of both samplers so far."""
        return len(self.sides["point"].moves) if self.sides else 0

    @property
    def gradients(self) -> int:
        """Gradients of one run of each sampler; a mean of U counts those of its quadrature."""
        return self.steps * sum(side.sampler.gradients_per_step for side in self.sides.values())

    @property
    def progress(self) -> float:
        """Share of the moves that are made."""
        return self.steps / self._values["moves"]

    def prepare(self) -> None:
        """Initialize both samplers."""
        if self.phase != "start":
            return
        values = self._values
        names = ("step_size", "num_leapfrog_steps", "momentum_persistence")
        shared = {name: values[name] for name in names} | {"metric": "unit"}
        functional = {name: values[name] for name in ("form", "terms", "entropy", "first_sd", "draws_each")}
        func = samplers.REGISTRY.get(FUNCTIONAL)(**shared, **functional)
        hmc = samplers.REGISTRY.get(POINT)(**shared, jitter=False)
        x0 = values["first_sd"] * torch.randn(RUNS, 1, generator=self.rng, dtype=torch.float64)
        sides: dict[str, Side] = {}
        for name, sampler in (("func", func), ("point", hmc)):
            sampler.prepare(self.target, None)
            rng = RandomNumbers(self.rng)
            # Nothing is tuned: the step size is given.
            state = sampler.freeze(rng, sampler.init(x0, rng))
            sides[name] = Side(sampler, state, self.edges, rng)
        # At once: another thread may query the progress.
        self.sides = sides
        self.phase = "sampling"

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about ``seconds``; return the number of moves."""
        begun, first = time.perf_counter(), self.steps
        if self.phase == "start":
            self.prepare()
            return 0
        while not self.finished and time.perf_counter() - begun < seconds:
            self.step_proposal()
        return self.steps - first

    def step_proposal(self) -> None:
        """Move both samplers once."""
        self.prepare()
        if self.finished:
            return
        begun, threads = time.perf_counter(), torch.get_num_threads()
        torch.set_num_threads(1)  # faster for so few numbers
        for side in self.sides.values():
            side.move()
        torch.set_num_threads(threads)
        self.seconds += time.perf_counter() - begun
        if self.steps >= self._values["moves"]:
            self.phase = "done"

    def step_event(self) -> None:
        """Step until both have accepted a move, or all are made."""
        self.step_proposal()
        while not self.finished and not all(side.moves[-1].accepted for side in self.sides.values()):
            self.step_proposal()

    # ---- views

    def scene(self) -> dict[str, Any]:
        """Return the static view data: the truth, the first functional, and its distance from the truth."""
        return {
            "spec": self.spec.to_json(),
            "title": f"FuncHMC and HMC on {self.target.describe_value()}",
            "emits": list(self.parts),
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

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the requested `parts`; before the start only the status."""
        self._seq += 1
        makers: dict[str, Callable[[], dict[str, Any]]] = {
            "status": self._status,
            "caption": self._caption,
            "table": self._table,
            "wells": self._wells,
            "ledger": self._ledger,
            "pooled": self._pooled,
            "ratio": self._ratio,
        }
        known = self.parts if self.sides else ("status",)
        return {"seq": self._seq} | {name: makers[name]() for name in want if name in known}

    def _status(self) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "device": "cpu",
            "kernel": "eager",
            "step": self.steps,
            "moves": self._values["moves"],
            "gradients": self.gradients,
            "elapsed": self.seconds,
            "progress": self.progress,
            "message": "",
        }

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the results so far of each sampler by its registered name.

        ``distance``: total variation of the watched run's draws from the truth, in 40 bins; ``median``: over all runs;
        ``covered``: fraction of runs with a fifth of their draws on either side; ``accepted``; ``crossings`` of the
        barrier by the watched run's mean or point, and ``crossings_mean`` over all runs; ``longest``: its longest stay
        in moves; ``stay``: mean moves of a stay over all runs; ``gradients`` of a move.
        """
        found = {}
        for name, side in self.sides.items():
            distances = side.distances(self._mass)
            places = torch.stack(side.places, 1).numpy()
            crossed = diagnostics.crossings(places)
            found[_SIDES[name]] = {
                "distance": float(distances[0]),
                "median": float(distances.median()),
                "covered": float(side.covered().double().mean()),
                "accepted": side.accepted / self.steps,
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
        fates = ["accepted" if self.sides[name].moves[-1].accepted else "rejected" for name in _SIDES]
        fate = f"FuncHMC {fates[0]}; HMC {fates[1]}" if fates[0] != fates[1] else f"both {fates[0]}"
        text = (
            f"Move {self.steps}: {fate}. Over {RUNS} runs FuncHMC's draws are {func['median']:.2f} from the"
            f" truth and HMC's {hmc['median']:.2f}; both wells are covered in {100 * func['covered']:.0f} % and"
            f" {100 * hmc['covered']:.0f} % of them."
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
        func, hmc = (self.sides[name].moves[-_SHOWN:] for name in _SIDES)
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
        first = max(0, self.steps - _LEDGER)
        part: dict[str, Any] = {"move": np.arange(first, self.steps) + 1}
        for name in _SIDES:
            moves = self.sides[name].moves[first:]
            for column in ("potential", "entropy", "kinetic"):
                part[f"{name}_{column}"] = np.array([getattr(move, column) for move in moves])
            part[f"{name}_accepted"] = np.array([move.accepted for move in moves], dtype=bool)
        return part

    def _pooled(self) -> dict[str, Any]:
        edges = self.edges.numpy()
        width = edges[1] - edges[0]
        part: dict[str, Any] = {"x": edges[:-1] + width / 2, "width": width}
        for name, side in self.sides.items():
            part[name] = (side.counts[0, 1:-1] / side.counts[0].sum().clamp_min(1.0) / width).numpy()
            part[f"{name}_draws"] = int(side.counts[0].sum())
            part[f"{name}_distance"] = float(side.distances(self._mass)[0]) if self.steps else float("nan")
        return part

    def _ratio(self) -> dict[str, Any]:
        """Return the ratio of the truth's density to that of each sampler's draws, by KLIEP from samples of both."""
        if self._ratios[0] != self.steps:
            self._ratios = self.steps, {name: self._ratio_of(side) for name, side in self.sides.items()}
        return {"x": self.line, **self._ratios[1]}

    def _ratio_of(self, side: Side) -> np.ndarray:
        draws = torch.cat(side.draws).numpy() if side.draws else np.empty(0)
        draws = draws[:: max(1, len(draws) // _DRAWS)]
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
