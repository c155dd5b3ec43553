"""Build frames on demand: small immutable views of a run."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.evaluation.predictions import Predictor, chosen_draws, weights
from bnnviz.engine.frames.own_table import OWN_PARTS, OwnTable
from bnnviz.engine.frames.parts import (
    contour,
    coordinate_blocks,
    correlations,
    count_rows,
    histogram,
    line,
    network_layers,
    network_weights,
)
from bnnviz.engine.frames.selection import Selection, projected
from bnnviz.engine.monitor.components import CANONICAL, PCA_FIRST, Components
from bnnviz.engine.monitor.importance import Importance, TestMetrics
from bnnviz.engine.monitor.mixing import LiveMixing
from bnnviz.engine.monitor.variances import Variances
from bnnviz.engine.protocol import MOVING, AnyRun
from bnnviz.errors import BnnvizError
from bnnviz.samplers.observers import Projection
from bnnviz.targets import BNN

_ENGINE_PARTS = ("status", "caption", "trace", "acf", "table", "selection")
# Weighted draws have no meaningful order.
_WEIGHTED_PARTS = ("status", "caption", "table")
# Chains with a single point do not mix.
_POINT_PARTS = ("status", "caption", "table", "selection")
_RESAMPLED = 200  # maximum draws with displayed predictions
_TRACE_CHAINS, _TRACE_DRAWS = 8, 400
_MOST_NAMES = 2000
_DOTS = 300  # draws in the plane of the path

_RATE_S = 0.5  # over which rates are measured
_FEW_STEPS = 6  # maximum between two frames at which single steps are followed
_CHANGED, _CHANGED_S = "Changed: the chains continue and the estimates restart. ", 6.0
_CURVE_POINTS = 161


class FrameBuilder:
    """Build scene and frames of one run without affecting any draw."""

    def __init__(self, run: AnyRun) -> None:
        self.run = run
        self.run_id = uuid.uuid4().hex[:12]
        target, weighted = run.target, run.sampler.traits.weighted
        self._names = target.names()
        self.predictor = Predictor(target) if isinstance(target, BNN) and target.likelihood.task != "outputs" else None
        self._own = OwnTable(run) if self.predictor is not None and run.spec.file is not None else None
        self._chosen_plane: dict[str, Any] | None = None
        self.components = Components(run)
        self._blocks = coordinate_blocks(target)
        self._block = self._blocks[0]
        self._layers = [] if weighted else network_layers(target)
        self._seq = self._last_steps = 0
        self._fast = False  # more than a few steps have been taken since the last frame
        self._rates, self._rated = (0.0, 0.0), (time.perf_counter(), run.sampler_stats.events, run.gradients)
        self._dots = np.empty((0, 2), np.float32)
        self._way_beside: tuple[str, str] = ("", "")  # the counts in a frame, and the progress to the first draw
        #: Makers of the parts of a frame.
        self._makers: dict[str, Callable[[], dict[str, Any]]] = {
            "status": self._status,
            "caption": self._caption,
            "table": self._table,
            "trace": self._trace,
            "acf": self._acf,
            "weights": lambda: correlations(run.store, run.alive, self._block, self.components),
            "marginal": self._marginal,
            "density": self._density,
            "graph": lambda: network_weights(run, self.components),
            "selection": lambda: self._selection.part(self.plane(), self.components.followed, self.predictor),
            "prediction": lambda: self._predicted("prediction"),
            "spread": lambda: self._predicted("spread"),
        }
        self.forget()

    def forget(self) -> None:
        """Drop results of earlier draws; keep the plane until there are enough draws for another."""
        run, weighted = self.run, self.run.sampler.traits.weighted
        for each in filter(None, (self.components, self.predictor, self._own)):
            each.forget()
        self._selection = Selection(run)
        self._variances, self._mixing = (None, None) if weighted else (Variances(run), LiveMixing(run, self.predictor))
        self._importance = Importance(run) if weighted else None
        self._test_metrics = TestMetrics(run, self._importance) if weighted and self.predictor is not None else None
        self._counts: dict[str, float] = {}  # of all chains since the last change
        self._counted, self._begun = "", time.perf_counter()
        self._dotted = (0, -1)  # draws so far and basis of the dots

    def look_like(self, other: FrameBuilder) -> None:
        """Show what another builder of the same target shows."""
        self.run.watch_chain(other.run.watched)
        self._chosen_plane, self._block = other._chosen_plane, other._block
        self.components.look_like(other.components)
        if self._variances is not None:
            self._variances.expire()
        if self._own is not None:
            self._own.row = other._own.row

    def watch(
        self,
        chain: int | None = None,
        plane: dict[str, Any] | None = None,
        component: dict[str, Any] | None = None,
        block: int | None = None,
        row: list[float] | None = None,
    ) -> None:
        """Choose the watched chain, the path plane, the followed quantity, the correlation block and a row."""
        if chain is not None:
            if not 0 <= chain < self.run.spec.chains:
                raise BnnvizError(f"There is no chain {chain}; choose 0 to {self.run.spec.chains - 1}.", "chain")
            self.run.watch_chain(chain)
        if plane is not None:
            for key in () if plane.get("kind") == "pca" else ("i", "j"):
                index, dim = plane.get(key), self.run.target.dim
                if not isinstance(index, int) or not 0 <= index < dim:
                    raise BnnvizError(f"There is no coordinate {index!r}; choose 0 to {dim - 1}.", "plane")
            self.components.show_canonical(bool(plane.get("canonical")))
            self._chosen_plane = plane
            self.components.basis += 1
        if component is not None:
            self.components.follow(component)
            if self._variances is not None:
                self._variances.expire()
        if block is not None:
            if not isinstance(block, int) or not 0 <= block < len(self._blocks):
                raise BnnvizError(f"There is no block {block!r}; choose 0 to {len(self._blocks) - 1}.", "block")
            self._block = self._blocks[block]
        if row is not None and self._own is None:
            raise BnnvizError("Predicting an entered row requires a run on an uploaded table.", "row")
        if row is not None:
            self._own.choose(row)

    def select(self, choice: dict[str, Any] | None) -> None:
        """Select draws or an event (`ViewedRun.select`)."""
        self._selection.choose(choice, self.plane(), self.components.followed.key)

    def scene(self) -> dict[str, Any]:
        """Return the static view data of the run."""
        run, target = self.run, self.run.target
        weighted, one_point = run.sampler.traits.weighted, run.sampler.traits.one_point
        own = _WEIGHTED_PARTS if weighted else _POINT_PARTS if one_point else _ENGINE_PARTS
        parts = [*own, *sorted(run.sampler.traits.emits)]
        has_density = target.dim == 1 and target.window() is not None
        if has_density:
            parts.append("density")
        if target.dim > 1 and not weighted and not one_point:
            parts += ["weights", "marginal"]
        if self._layers:
            parts.append("graph")
        if self.predictor is not None:
            parts.append("prediction")
            if self.predictor.kind == "area":
                parts.append("spread")
        if self._test_metrics is not None:
            parts += self._test_metrics.emits
        if self._own is not None:
            parts += OWN_PARTS
        exact, truth = None, None
        if has_density:
            curved = run.sampler.traits.functional
            exact = {"label": self._names[0], **line(target), "curved": curved}
        if target.mean() is not None:
            truth = {"mean": target.mean(), "sd": np.sqrt(np.diag(target.cov()))}
        plane, window = self.plane(), target.window()
        if plane.axes is None:  # position and velocity
            window = (window[0] if window else (-3.5, 3.5), (-3.5, 3.5))
        x_range, y_range = window or ((-3.0, 3.0), (-3.0, 3.0))
        return {
            "run": self.run_id,
            "spec": run.spec.to_json(),
            "title": f"{run.sampler.title} on {target.describe_value()}",
            "dim": target.dim,
            "names": self._names[:_MOST_NAMES],
            "sample_stats": list(run.sampler.sample_stats()),
            "blocks": self._blocks,
            "layers": self._layers,
            "emits": parts,
            "sampler": run.sampler.title,
            "target": target.describe_value(),
            "remarks": [each.text for each in target.remarks()],
            "plane": {
                "x_label": plane.labels[0],
                "y_label": plane.labels[1],
                "x_range": x_range,
                "y_range": y_range,
                "contour": contour(target, x_range, y_range) if target.dim == 2 else None,
            },
            "density": exact,
            "data": None if self.predictor is None else self.predictor.scene(),
            "truth": truth,
            "canonical": self.components.canonical_warning,
        }

    def plane(self) -> Projection:
        """Return the plane that paths are drawn in."""
        target, chosen, components = self.run.target, self._chosen_plane, self.components
        if target.dim == 1:
            return Projection("phase", (self._names[0], "velocity"), np.zeros(1), None, components.basis)
        names, canonicalise = self._names, components.canonicalise
        suffix = "" if canonicalise is None else f" ({CANONICAL})"
        by_choice = chosen is not None and chosen["kind"] == "coordinates"
        if not by_choice and components.pca is not None:
            return Projection(
                "pca", (f"PC 1{suffix}", f"PC 2{suffix}"), *components.pca, components.basis, canonicalise
            )
        i, j = (chosen["i"], chosen["j"]) if by_choice else (0, 1)
        axes = np.zeros((target.dim, 2))
        axes[i, 0] = axes[j, 1] = 1
        labels = (names[i] + suffix, names[j] + suffix)
        return Projection("coordinates", labels, np.zeros(target.dim), axes, components.basis, canonicalise)

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Build the requested parts."""
        run = self.run
        self._fast = run.steps - self._last_steps > _FEW_STEPS
        self._last_steps = run.steps
        self._seq += 1
        now = (time.perf_counter(), run.sampler_stats.events, run.gradients)
        elapsed = now[0] - self._rated[0]
        if now[1] < self._rated[1]:  # the counts began anew
            self._rated = now
        elif elapsed > _RATE_S:
            self._rates, self._rated = tuple((now[i] - self._rated[i]) / elapsed for i in (1, 2)), now
        if not MOVING.issuperset(want):
            self._counts, self._counted = run.sampler_stats.summary(), run.sampler_stats.sentence()
        # The table measures what the caption warns of.
        parts = {name: self._part(name) for name in sorted(want, key="table".__ne__)}
        return {"seq": self._seq, **{name: part for name, part in parts.items() if part}}

    def _part(self, name: str) -> dict[str, Any]:
        """Build one part; empty if there is nothing to show."""
        run = self.run
        if name in self._makers:
            return self._makers[name]()
        if self._test_metrics is not None and name in self._test_metrics.emits:
            return self._test_metrics.part(name)
        if self._own is not None and name in OWN_PARTS:
            return self._own.part(name, self.components.first.values, self._mixing)
        # Do not evaluate a failed target again for the rate along a segment.
        if name not in run.sampler.traits.emits or (name == "envelope" and run.phase == "failed"):
            return {}
        if name == "ratios":
            return run.sampler_stats.box()
        # The views that fit the axes may not be shown first.
        self.components.refit()
        part = run.chain_trace.part(name, self.plane(), self._fast)
        if part and name == "path":
            return part | self._drawn()
        return part | self._counts if part and name == "envelope" else part

    def _drawn(self) -> dict[str, Any]:
        """Return the draws in the plane of the path, at full speed updated after a tenth more, and which it awaits."""
        run, plane, chosen = self.run, self.plane(), self._chosen_plane
        awaits = ""
        if (chosen is None or chosen["kind"] == "pca") and self.components.pca is None and run.target.dim > 2:
            one_point = run.sampler.traits.one_point
            awaits = "no PC 1, PC 2 of one point" if one_point else f"PC 1, PC 2 from {PCA_FIRST} draws on"
        made, (before, basis) = int(run.store.made.sum()), self._dotted
        if basis != plane.basis or made > (1.1 * before if self._fast else before):
            known = [] if plane.axes is None else chosen_draws(run.store, run.alive, _DOTS)
            places = projected(weights(run.store, known), plane) if known else np.empty((0, 2))
            self._dotted, self._dots = (made, plane.basis), places.astype(np.float32)
        return {"awaits": awaits, "draw_x": self._dots[:, 0], "draw_y": self._dots[:, 1]}

    def _predicted(self, name: str) -> dict[str, Any]:
        """Return the prediction, or the spread of the draws of a map."""
        run = self.run
        if self.predictor is None or run.chain_trace.now is None:
            return {}
        current = run.chain_trace.current_point()
        if not run.sampler.traits.weighted:
            return self.predictor.part(name, run.store, run.alive, current)
        return self.predictor.part_of(name, self._importance.current(_RESAMPLED), current)

    def _status(self) -> dict[str, Any]:
        run = self.run
        drawn = run.store.common(run.alive)
        return {
            "phase": run.phase,
            "device": str(run.device),
            "kernel": run.kernel,
            "step": run.steps,
            "events": run.sampler_stats.events,
            "gradients": run.gradients,
            "draws": min(drawn, 1) if run.sampler.traits.one_point else drawn,
            "chains": run.spec.chains,
            "ess": self._importance.weight_ess if run.sampler.traits.weighted else self._variances.ess,
            "events_per_s": self._rates[0],
            "gradients_per_s": self._rates[1],
            "elapsed": run.seconds,
            "generation": run.generation,
            "message": (run.error or run.notes[-1]).text if run.error or run.notes else "",
            "progress": run.progress,
        }

    def _caption(self) -> dict[str, Any]:
        run = self.run
        part = run.chain_trace.part("caption", self.plane(), False)
        found = run.waiting.message()
        way = "" if found is None else f" {found.text}"
        if not part:
            return {"text": _PHASES[run.phase] + way, "kind": "phase", "warning": "", "remedies": []}
        rests = run.sampler.traits.one_point and run.finished
        if run.phase != "start" and not rests:
            remark = None if self._variances is None else self._variances.remark
            narrow = "" if remark is None else f" {remark.text}"
            # The counts begin anew after it.
            summary = ("During tuning. " if run.phase == "tuning" else "") + self._counted + narrow
            if self._fast:
                changed = _CHANGED if run.generation and time.perf_counter() < self._begun + _CHANGED_S else ""
                if self._way_beside[0] != self._counted:
                    self._way_beside = self._counted, way
                # The progress is kept as long as the counts.
                part = {"text": changed + summary + self._way_beside[1], "kind": "summary"}
            else:
                part = part | {"summary": summary}
        warnings = run.sampler.text(run.sampler).warnings(self._counts)
        # Remedies of a sampler are buttons: settings to change.
        remedies = [
            {"label": f"{each.text[0].upper()}{each.text[1:]}", "settings": each.options["settings"]}
            for message in warnings
            for each in message.remedies
        ]
        statements = [message.statement for message in warnings]
        measures = self._importance if run.sampler.traits.weighted else self._variances
        measured = [message.text for message in measures.messages]
        return part | {"warning": " ".join(statements + measured), "remedies": remedies}

    def _trace(self) -> dict[str, Any]:
        self.components.refit()
        last = self.run.store.common(self.run.alive)
        label, values = self.components.followed[:2]
        early = np.empty((len(values), 0))
        # Sample statistics of the warm-up are not kept.
        if last < _TRACE_DRAWS and self.components.label == label:
            early = self.components.of(self.run.store.settling(self.run.alive))
        if not last and not early.shape[1]:
            return {}
        values = values[:, -_TRACE_DRAWS:]
        index = np.arange(last - values.shape[1], last) * self.run.store.every
        shown = {"index": index, "values": values[:_TRACE_CHAINS], "warmup": early[:_TRACE_CHAINS]}
        return {"label": label, "basis": self.components.basis, "chains": len(values), **shown}

    def _acf(self) -> dict[str, Any]:
        self.components.refit()
        if not self.run.store.common(self.run.alive):
            return {}
        followed = self.components.followed
        acf = diagnostics.autocorrelation(followed.values)
        self._variances.take(self.components.first, followed)
        return {
            "label": followed.label,
            "lag": np.arange(len(acf)),
            "acf": acf,
            "ess": self._variances.followed,
            "draws": followed.values.size,
        }

    def _marginal(self) -> dict[str, Any]:
        """Return the density of the followed quantity over all chains."""
        followed = self.components.followed
        x, y = diagnostics.density(followed.values)
        if not x.size:
            return {}
        return {"label": followed.label, "basis": self.components.basis, "x": x, "y": y, "draws": followed.values.size}

    def _density(self) -> dict[str, Any]:
        """Return the histogram of the draws, with past densities of the watched chain if its states are densities."""
        part = histogram(self.run)
        if not part or not self.run.sampler.traits.functional or self.run.chain_trace.now is None:
            return part and part | {"curves": None}
        line = np.linspace(*self.run.target.window()[0], _CURVE_POINTS)
        return part | {"curves": self.run.chain_trace.curves(line) | {"x": line}}

    def _table(self) -> dict[str, Any]:
        run = self.run
        counts = count_rows(run) if run.sampler_stats.events else []
        own = [] if run.state is None else run.sampler.text(run.sampler).rows(run.state)
        if run.sampler.traits.weighted:
            return {"rows": [*self._importance.rows(), *counts, *own]}
        if run.sampler.traits.one_point:
            return {"rows": [*counts, *own]}
        first = self.components.first
        if first.values.size:
            self._variances.take(first, self.components.followed)
            self._mixing.take(first.values)
        mixing = self._variances.mixing(first.label)
        return {"rows": [*self._variances.rows(), *counts, *mixing[:3], *self._mixing.rows(), *mixing[3:], *own]}


_PHASES = {
    "start": "Looking for a place to start: each chain descends to a mode by Adam.",
    "tuning": "Press play, or take one step.",
    "warm-up": "Estimates restart after the change.",
    "sampling": "Press play, or take one step.",
    "done": "All draws are made.",
    "failed": "The run stopped.",
}
