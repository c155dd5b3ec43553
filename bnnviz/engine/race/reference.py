"""Make the long reference run for the errors of a race when the truth is unknown."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bnnviz import samplers
from bnnviz.engine.race.estimates import Estimates, TrueMoments, loaded_arrays, saved_arrays, worst_mixing
from bnnviz.engine.run.run import Run
from bnnviz.engine.throttle import Throttle
from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec
from bnnviz.targets import Target

CHAINS, DRAWS, WARMUP = 16, 125, 25
SEED = 2**31 - 1  # differs from the samplers' seeds, and all races on a target share it
_NUMBERS = 50_000_000  # maximum numbers of its draws: fewer draws in high dimensions
_FEWEST = 25  # minimum draws per chain of a reference
_MEASURED = 8  # quantities with reported R-hat and ESS
_EVERY_S = 1.0

#: Results of finished references of this process, for later races on the same target.
_MADE: dict[str, tuple[TrueMoments, dict[str, Any]]] = {}


class Reference:
    """Run the best-ranked reference sampler, or take the result of an earlier race."""

    def __init__(self, spec: RaceSpec, target: Target | None = None) -> None:
        self.spec, self._own = reference_spec(spec, target), target
        self.title = samplers.REGISTRY.get(self.spec.sampler).title
        self.error: str | None = None
        self._run: Run | None = None
        self._estimates: Estimates | None = None
        #: Current means and standard deviations; None with too few draws.
        self.truth: TrueMoments | None = None
        self._status: dict[str, Any] = {"draws": 0, "rhat": float("nan"), "ess": float("nan")}
        self._pace, self._goal = Throttle(least=_EVERY_S), CHAINS * DRAWS
        self.finished = target is None and self._key in _MADE
        if self.finished:
            self.truth, self._status = _MADE[self._key]
            self._goal = self._status["draws"]

    def status(self) -> dict[str, Any]:
        """Return title, phase, current and final number of draws, worst R-hat and smallest ESS."""
        run = self._run
        phase = "done" if self.finished else "start" if run is None else run.phase
        draws = {} if run is None else {"draws": run.store.common(run.alive) * int(run.alive.sum())}
        facts = {"title": self.title, "phase": phase, "goal": self._goal, "error": self.error}
        return {**facts, "finished": self.finished, **self._status, **draws}

    def advance(self, seconds: float) -> int:
        """Work for about the given seconds; return the number of steps."""
        if self._run is None:
            self._begin(Run(self.spec, target=self._own))
        run = self._run
        steps = run.advance(seconds)
        if run.phase == "failed":
            self.error, self.finished = f"The reference run failed: {run.error}", True
        elif run.finished or self._pace.due:
            self._measure(run)
            self._pace.spent()
        if run.finished and self.error is None:
            self.finished = True
            if self._own is None:
                _MADE[self._key] = self.truth, self._status
        if self.finished:
            self._run = self._estimates = None
        return steps

    def _begin(self, run: Run) -> None:
        self._run, self._estimates = run, Estimates(run)
        self._goal = self.spec.chains * self.spec.draws

    def save(self) -> dict[str, Any]:
        """Return its run and results as tensors and plain values."""
        truth = None if self.truth is None else saved_arrays(self.truth)
        run = None if self._run is None else self._run.checkpoint()
        return {"run": run, "truth": truth, "status": self._status, "ended": (self.finished, self.error, self._goal)}

    def load(self, saved: dict[str, Any]) -> None:
        """Restore its run and results."""
        if self.finished:
            return
        if saved["run"] is not None:
            self._begin(Run.restore(saved["run"], target=self._own))
        self.truth = None if saved["truth"] is None else TrueMoments(*loaded_arrays(saved["truth"]))
        self._status, (self.finished, self.error, self._goal) = saved["status"], saved["ended"]

    def _measure(self, run: Run) -> None:
        """Update the estimates."""
        if run.store.common(run.alive) < _FEWEST:
            return
        values = self._estimates.values()
        self.truth = self._estimates.truth(values.mean((0, 1)), values.std((0, 1)))
        columns = np.unique(np.linspace(0, values.shape[2] - 1, _MEASURED).astype(int))
        rhat, ess = worst_mixing(values[..., columns])
        self._status = {"draws": run.store.common(run.alive) * int(run.alive.sum()), "rhat": rhat, "ess": ess}

    @property
    def _key(self) -> str:
        spec = {name: value for name, value in self.spec.to_json().items() if name not in ("device", "kernel")}
        return json.dumps(spec, sort_keys=True)


def reference_spec(spec: RaceSpec, target: Target | None = None) -> Spec:
    """Return the spec of the reference run of a race: another seed, more chains, the best-ranked sampler."""
    sampler = max(samplers.REGISTRY, key=lambda cls: cls.traits.reference_rank)
    entry = spec.entries[0]
    dim = entry.known_dim if target is None else target.dim
    fewer = _NUMBERS // (CHAINS * max(dim, 1))
    return Spec(
        target=entry.target,
        target_settings=entry.target_settings,
        sampler=sampler.registered,
        chains=CHAINS,
        draws=max(_FEWEST, min(DRAWS, fewer)),
        warmup=WARMUP,
        seed=SEED,
        device=entry.device,
        dtype=entry.dtype,
        file=entry.file,
        attachment=entry.attachment,
    ).checked(own_target=target is not None)
