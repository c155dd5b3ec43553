"""Frames: small immutable pictures of a run, built only when somebody asks."""

from __future__ import annotations

import time
import uuid
from typing import Any

import numpy as np
import torch

from bnnviz import diagnostics
from bnnviz.engine.evaluation.predictions import Predictor
from bnnviz.engine.frames import correlations
from bnnviz.engine.frames.selection import NOTHING, Selection
from bnnviz.engine.frames.watched_chain import WatchedChain
from bnnviz.engine.monitor.components import CANONICAL, PCA_FIRST, Components
from bnnviz.engine.monitor.importance import Weighing
from bnnviz.engine.monitor.mixing import LiveMixing
from bnnviz.engine.monitor.test_metrics import Quality
from bnnviz.engine.monitor.variances import AGED, Measures
from bnnviz.engine.protocol import SingleRun
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError
from bnnviz.samplers.observers import Projection
from bnnviz.targets import BNN

_ENGINE_PARTS = ("status", "caption", "trace", "acf", "table", "selection")
# Of draws with weights: their order means nothing.
_WEIGHTED_PARTS = ("status", "caption", "table")
_RESAMPLED = 200  # draws of which predictions are shown
_TRACE_CHAINS, _TRACE_DRAWS = 8, 400
_MOST_NAMES = 2000
_CONTOUR_POINTS = 160
# A part may cost this share of the time while the run goes at full speed.
_SHARE = 0.05
_LONGEST_WAIT = 2.0
_SELDOM = {
    "weights": 2.0,
    "marginal": 2.0,
    "ratios": 1.0,
}  # seconds between two at full speed, at least: they change slowly
_RARELY = 10.0
# Between two frames: many steps, or more than a few at a pace that nobody steps by hand.
_MANY_STEPS, _FEW_STEPS, _PACE = 20, 6, 100.0
_LONG_S = 3.0  # of a way down to the start, from which on it is said how far that is
_COUNT_S = 1.5  # at full speed the counts change this often, in all views together
_CHANGED, _CHANGED_S = "Changed: the chains go on, and the estimates begin anew. ", 6.0
_BINS, _DENSITY_POINTS, _CURVE_POINTS = 60, 300, 161


class FrameBuilder:
    """Builds scene and frames of one run; holds nothing that a draw depends on.

    Parameters
    ----------
    run : SingleRun
    chain : WatchedChain
        Whose path is shown.
    """

    def __init__(self, run: SingleRun, chain: WatchedChain) -> None:
        self.run, self._chain = run, chain
        self.run_id = uuid.uuid4().hex[:12]
        target = run.target
        self._names = target.names()
        self.predictor = Predictor(target) if isinstance(target, BNN) else None
        self._selection = Selection(run, chain)
        self._wanted_plane: dict[str, Any] | None = None
        self._components = Components(run)
        self._blocks = correlations.blocks(target)
        self._block = self._blocks[0]
        self._seq = self._last_steps = 0
        self._last_frame = -np.inf
        self._paces: dict[str, Throttle] = {}  # of the parts
        self._rates = _Rates()
        self._measures, self._mixing = Measures(run), LiveMixing(run, self.predictor)
        self._weighing = Weighing(run, chain)
        measured = run.sampler.weighted and self.predictor is not None
        self._quality = Quality(run, chain, self._weighing) if measured else None
        self._counted = _Counted()
        self._begun = time.perf_counter()  # this era

    def forget(self) -> None:
        """Drop what was computed of earlier draws; the plane stays until there are enough for another."""
        self._components.forget()
        self._selection.clear()
        self._measures.forget()
        self._mixing.forget()
        self._weighing.forget()
        if self._quality is not None:
            self._quality.forget()
        self._counted, self._begun = _Counted(), time.perf_counter()
        if self.predictor is not None:
            self.predictor.forget()

    def look_like(self, other: FrameBuilder) -> None:
        """Show what another builder of the same target shows."""
        self._chain.choose(other._chain.number)
        self._wanted_plane, self._block = other._wanted_plane, other._block
        self._components.look_like(other._components)
        self._measures.expire()

    @property
    def following(self) -> tuple[str, int]:
        """What is followed, in words, and the number of the axes that it is a projection on."""
        return self._components.label, self._components.basis

    def projected(self, draws: torch.Tensor) -> np.ndarray:
        """Return what is followed (chains, draws), of any draws (chains, draws, dim)."""
        return self._components.of(draws)

    def watch(
        self,
        chain: int | None,
        plane: dict[str, Any] | None,
        component: dict[str, Any] | None,
        block: int | None,
    ) -> None:
        """Choose the watched chain, the plane of paths, what is followed, and the block of correlations."""
        if chain is not None:
            if not 0 <= chain < self.run.spec.chains:
                raise BnnvizError(f"There is no chain {chain}; choose 0 to {self.run.spec.chains - 1}.", "chain")
            self._chain.choose(chain)
        if plane is not None:
            self._check_plane(plane)
            self._components.canonicalise(bool(plane.get("canonical")))
            self._wanted_plane = plane
            self._components.basis += 1
        if component is not None:
            self._components.follow(component)
            self._measures.expire()
            self._paces.pop("marginal", None)
        if block is not None:
            self._choose_block(block)

    def _choose_block(self, block: int) -> None:
        if not isinstance(block, int) or not 0 <= block < len(self._blocks):
            raise BnnvizError(f"There is no block {block!r}; choose 0 to {len(self._blocks) - 1}.", "block")
        self._block = self._blocks[block]
        self._paces.pop("weights", None)

    def select(self, choice: dict[str, Any] | None) -> None:
        """Pick draws or an event (`ViewedRun.select`)."""
        self._selection.choose(choice, self.plane(), self._components.followed.key)

    def _check_plane(self, plane: dict[str, Any]) -> None:
        if plane.get("kind") == "pca":
            return
        for key in ("i", "j"):
            index = plane.get(key)
            if not isinstance(index, int) or not 0 <= index < self.run.target.dim:
                raise BnnvizError(f"There is no coordinate {index!r}; choose 0 to {self.run.target.dim - 1}.", "plane")

    def scene(self) -> dict[str, Any]:
        """Return what stays the same for the whole run."""
        run, target = self.run, self.run.target
        weighted = run.sampler.weighted
        parts = [*(_WEIGHTED_PARTS if weighted else _ENGINE_PARTS), *sorted(run.sampler.emits)]
        has_density = target.dim == 1 and target.window() is not None
        if has_density:
            parts.append("density")
        if target.dim > 1 and not weighted:
            parts += ["weights", "marginal"]
        if self.predictor is not None:
            parts.append("prediction")
            if self.predictor.kind == "area":
                parts.append("spread")
        if self._quality is not None:
            parts += self._quality.emits
        truth = None
        if target.mean() is not None:
            truth = {"mean": target.mean(), "sd": np.sqrt(np.diag(target.cov()))}
        return {
            "run": self.run_id,
            "spec": run.spec.to_json(),
            "title": f"{run.sampler.title} on {target.describe_value()}",
            "dim": target.dim,
            "names": self._names[:_MOST_NAMES],
            "blocks": self._blocks,
            "emits": parts,
            "sampler": run.sampler.title,
            "target": target.describe_value(),
            "remarks": target.remarks(),
            "plane": self._scene_plane(),
            "density": self._known_density() if has_density else None,
            "data": None if self.predictor is None else self.predictor.scene(),
            "truth": truth,
            "canonical": self._components.caution,
        }

    def _scene_plane(self) -> dict[str, Any]:
        target, plane = self.run.target, self.plane()
        window = target.window()
        if plane.axes is None:
            speed = 3.5
            window = (window[0] if window else (-3.5, 3.5), (-speed, speed))
        x_range, y_range = window or ((-3.0, 3.0), (-3.0, 3.0))
        contour = self._contour(x_range, y_range) if target.dim == 2 else None
        return {
            "x_label": plane.labels[0],
            "y_label": plane.labels[1],
            "x_range": x_range,
            "y_range": y_range,
            "contour": contour,
        }

    def _contour(self, x_range: tuple[float, float], y_range: tuple[float, float]) -> dict[str, np.ndarray]:
        target = self.run.target
        x, y = (np.linspace(*side, _CONTOUR_POINTS) for side in (x_range, y_range))
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        potential = target.potential(torch.as_tensor(grid, dtype=target.dtype, device=target.device))
        potential = potential.double().cpu().numpy().reshape(len(y), len(x))
        return {"x": x, "y": y, "density": np.exp(np.nanmin(potential) - potential)}

    def _awaited(self) -> str:
        """Say why the path is not drawn in the plane that is asked for; "" where it is."""
        by_choice = self._wanted_plane is not None and self._wanted_plane["kind"] == "coordinates"
        if by_choice or self._components.pca is not None or self.run.target.dim <= 2:
            return ""
        return f"PC 1, PC 2 from {PCA_FIRST} draws on"

    def _known_density(self) -> dict[str, np.ndarray]:
        """Return the target's density of its only coordinate, which is one over the window."""
        target = self.run.target
        x = np.linspace(*target.window()[0], _DENSITY_POINTS)
        potential = target.potential(torch.as_tensor(x[:, None], dtype=target.dtype, device=target.device))
        potential = potential.double().cpu().numpy()
        density = np.exp(np.nanmin(potential) - potential)
        curved = self.run.sampler.functional
        return {"label": self._names[0], "x": x, "y": density / np.trapezoid(density, x), "curved": curved}

    def plane(self) -> Projection:
        """Return the plane that paths are drawn in."""
        target, wanted, components = self.run.target, self._wanted_plane, self._components
        if target.dim == 1:
            return Projection("phase", (self._names[0], "velocity"), np.zeros(1), None, components.basis)
        names, fold = self._names, components.fold
        said = "" if fold is None else f" ({CANONICAL})"
        by_choice = wanted is not None and wanted["kind"] == "coordinates"
        if not by_choice and components.pca is not None:
            return Projection("pca", (f"PC 1{said}", f"PC 2{said}"), *components.pca, components.basis, fold)
        i, j = (wanted["i"], wanted["j"]) if by_choice else (0, 1)
        axes = np.zeros((target.dim, 2))
        axes[i, 0] = axes[j, 1] = 1
        labels = (names[i] + said, names[j] + said)
        return Projection("coordinates", labels, np.zeros(target.dim), axes, components.basis, fold)

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Build the wanted parts; at full speed a costly part is left out until it can be afforded."""
        run = self.run
        fast = self._goes_fast()
        self._seq += 1
        self._rates.note(run)
        self._counted.note(run, fast)
        frame: dict[str, Any] = {"seq": self._seq}
        for name in want:
            pace = self._paces.setdefault(name, Throttle(_SHARE, most=_LONGEST_WAIT))
            if fast and not pace.due:
                continue
            # CPU time: what else runs on this machine does not make a part dear.
            begun = time.thread_time() - self._apart
            part = self._part(name, fast)
            if part:
                frame[name] = part
            pace.spent(time.thread_time() - self._apart - begun, least=self._seldom(name))
        return frame

    def _seldom(self, name: str) -> float:
        """Return for how long a part that changes slowly stays at full speed: longer the more draws there are."""
        least = _SELDOM.get(name, 0.0)
        return least and max(least, min(AGED * (time.perf_counter() - self._begun), _RARELY))

    @property
    def _apart(self) -> float:
        """CPU seconds of what takes its own time when it is due, in whichever part that falls."""
        return self._measures.cpu_seconds + self._mixing.cpu_seconds

    def _goes_fast(self) -> bool:
        """Return whether more steps were made since the last frame than anybody follows one by one."""
        now = time.perf_counter()
        steps, seconds = self.run.steps - self._last_steps, now - self._last_frame
        self._last_steps, self._last_frame = self.run.steps, now
        return steps > _MANY_STEPS or (steps > _FEW_STEPS and steps > _PACE * seconds)

    def aside(self, name: str, since: int) -> dict[str, Any]:
        """Build one part, the last one being so many steps ago, for somebody beside the page, which notices nothing."""
        fast = since > _FEW_STEPS
        self._counted.note(self.run, fast)
        return self._part(name, fast)

    def _part(self, name: str, fast: bool) -> dict[str, Any]:
        run = self.run
        if name == "caption":
            return self._caption(fast)
        if name in ("status", "weights", "marginal"):
            return getattr(self, f"_{name}")()
        if name == "table":
            return self._table(fast)
        if name == "density":
            return self._density()
        if name in ("trace", "acf"):
            self._components.refit()
            if not run.store.common(run.alive):
                return {}
            return self._trace() if name == "trace" else self._acf(fast)
        if name == "selection":
            if self._selection.empty:
                return NOTHING
            return self._selection.part(self.plane(), self._components.followed, self.predictor)
        if name in ("prediction", "spread"):
            return {} if self.predictor is None or self._chain.chain_trace.now is None else self._predicted(name)
        if self._quality is not None and name in self._quality.emits:
            return self._quality.part(name)
        # A target that has failed is not asked again for the rate along a segment.
        if name not in run.sampler.emits or (name == "envelope" and run.phase == "failed"):
            return {}
        if name == "ratios":
            return run.sampler_stats.box()
        if run.sampler.weighted:
            self._components.refit()
        part = self._chain.chain_trace.part(name, self.plane(), fast)
        if part and name == "path":
            part = part | {"awaits": self._awaited()}
        return part | self._counted.figures if part and name == "envelope" else part

    def _predicted(self, name: str) -> dict[str, Any]:
        run = self.run
        if run.sampler.weighted:
            theta = self._weighing.current(_RESAMPLED)
            return self.predictor.spread_of(theta) if name == "spread" else self._predicted_by(theta)
        make = self.predictor.spread if name == "spread" else self.predictor.part
        return make(run.store, run.alive, self._chain.chain_trace.current_point())

    def _predicted_by(self, theta: torch.Tensor) -> dict[str, Any]:
        return self.predictor.part_of(theta, self._chain.chain_trace.current_point())

    def _status(self) -> dict[str, Any]:
        run = self.run
        return {
            "phase": run.phase,
            "device": str(run.device),
            "kernel": run.kernel,
            "step": run.steps,
            "events": run.sampler_stats.events,
            "gradients": run.gradients,
            "draws": run.store.common(run.alive),
            "chains": run.spec.chains,
            "ess": self._weighing.worth if run.sampler.weighted else self._measures.ess,
            "events_per_s": self._rates.events,
            "gradients_per_s": self._rates.gradients,
            "elapsed": run.seconds,
            "era": run.era,
            "message": run.error or (run.notes[-1] if run.notes else ""),
            "progress": run.progress,
        }

    def _caption(self, fast: bool) -> dict[str, Any]:
        run = self.run
        part = self._chain.chain_trace.part("caption", self.plane(), False)
        if not part:
            return {"text": _PHASES[run.phase] + self._way(), "kind": "phase", "warning": "", "remedies": []}
        if fast and run.phase != "start":
            changed = _CHANGED if run.era and time.perf_counter() < self._begun + _CHANGED_S else ""
            part = {"text": changed + self._counted.sentence + self._measures.remark(), "kind": "summary"}
        warning, remedies = run.sampler.text(run.sampler).warning(self._counted.figures)
        measured = self._measures.sentence()
        return part | {"warning": " ".join(s for s in (warning, measured) if s), "remedies": remedies}

    def _way(self) -> str:
        """Say how far it is to the start, where that takes so long that one would ask."""
        way = self.run.descent
        if way is None or not way.seconds_left > _LONG_S:
            return ""
        return f" Step {way.taken:,} of {way.steps:,}, about {way.seconds_left:,.0f} s more."

    def _trace(self) -> dict[str, Any]:
        label, values = self._components.followed[:2]
        values = values[:, -_TRACE_DRAWS:]
        last = self.run.store.common(self.run.alive)
        index = (np.arange(last - values.shape[1], last)) * self.run.store.every
        shown = values[:_TRACE_CHAINS]
        return {
            "label": label,
            "basis": self._components.basis,
            "index": index,
            "values": shown,
            "chains": len(values),
        }

    def _acf(self, fast: bool) -> dict[str, Any]:
        followed = self._components.followed
        acf = diagnostics.autocorrelation(followed.values)
        self._measures.take(self._components.first, followed, fast)
        return {
            "label": followed.label,
            "lag": np.arange(len(acf)),
            "acf": acf,
            "ess": self._measures.followed,
            "draws": followed.values.size,
        }

    def _weights(self) -> dict[str, Any]:
        return correlations.part(self.run.store, self.run.alive, self._block, self._components)

    def _marginal(self) -> dict[str, Any]:
        """Return the density of what is followed, over all chains."""
        followed = self._components.followed
        x, y = diagnostics.density(followed.values)
        if not x.size:
            return {}
        return {"label": followed.label, "basis": self._components.basis, "x": x, "y": y, "draws": followed.values.size}

    def _density(self) -> dict[str, Any]:
        """Return the histogram of all draws of the only coordinate, as a density."""
        run = self.run
        draws = run.store.view(run.alive)[..., 0].double().cpu().numpy().ravel()
        if not draws.size:
            return {}
        low, high = run.target.window()[0]
        equal = np.full(draws.size, 1 / draws.size)
        shares = diagnostics.normalised(run.log_weights).ravel() if run.sampler.weighted else equal
        mass, edges = np.histogram(draws, _BINS, (low, high), weights=shares)
        width = edges[1] - edges[0]
        part = {"x": edges[:-1] + width / 2, "y": mass / width, "width": width, "draws": draws.size}
        return part | self._curves(low, high)

    def _curves(self, low: float, high: float) -> dict[str, Any]:
        """Return densities that the watched chain has been, where its states are densities."""
        run = self.run
        if not run.sampler.functional or self._chain.chain_trace.now is None:
            return {"curves": None}
        line = np.linspace(low, high, _CURVE_POINTS)
        return {"curves": self._chain.chain_trace.curves(line) | {"x": line}}

    def _table(self, fast: bool) -> dict[str, Any]:
        run = self.run
        counts = self._counted.rows if run.sampler_stats.events else []
        own = [] if run.state is None else run.sampler.text(run.sampler).rows(run.state)
        if run.sampler.weighted:
            return {"rows": [*self._weighing.rows(), *counts, *own]}
        first = self._components.first
        if first.values.size:
            self._measures.take(first, self._components.followed, fast)
            self._mixing.take(first.values)
        mixing = self._measures.mixing(first.label, self._mixing.tail)
        return {"rows": [*self._measures.rows(), *counts, *mixing[:1], *self._mixing.rows(), *mixing[1:], *own]}


_PHASES = {
    "start": "Looking for a place to start: each chain descends to a mode by Adam.",
    "tuning": "Press play, or take one step.",
    "warm-up": "Estimates begin anew with what was changed.",
    "sampling": "Press play, or take one step.",
    "done": "All draws are made.",
    "failed": "The run stopped.",
}


class _Counted:
    """What all chains did so far; at full speed it stays for long enough to be read."""

    def __init__(self) -> None:
        self._pace = Throttle(least=_COUNT_S)
        self.figures: dict[str, float] = {}
        self.rows: list[list[str]] = []
        self.sentence = ""

    def note(self, run: SingleRun, fast: bool) -> None:
        """Count anew, unless it is too soon."""
        if fast and not self._pace.due:
            return
        if fast:
            self._pace.spent()
        else:
            self._pace.expire()
        sampler_stats = run.sampler_stats
        self.figures, self.rows, self.sentence = sampler_stats.summary(), sampler_stats.rows(), sampler_stats.sentence()


class _Rates:
    """Events and gradients per second, over the last second or so."""

    def __init__(self) -> None:
        self.events = self.gradients = 0.0
        self._at: tuple[float, int, int] | None = None

    def note(self, run: SingleRun) -> None:
        """Note where the run is now."""
        now = (time.perf_counter(), run.sampler_stats.events, run.gradients)
        if self._at is None or now[1] < self._at[1]:
            self._at = now
        elapsed = now[0] - self._at[0]
        if elapsed > 0.5:
            self.events = (now[1] - self._at[1]) / elapsed
            self.gradients = (now[2] - self._at[2]) / elapsed
            self._at = now
