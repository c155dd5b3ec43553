"""Make the long reference run for the errors of a race when the truth is unknown."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np

from bnnviz import diagnostics, files, paths, samplers
from bnnviz.engine.race.estimates import Estimates, TrueMoments
from bnnviz.engine.run.run import Run
from bnnviz.engine.throttle import Throttle
from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec
from bnnviz.targets import Target
from bnnviz.version import VERSION

CHAINS, DRAWS, WARMUP = 16, 125, 25
SEED = 2**31 - 1  # differs from the samplers' seeds, and all races on a target share it
_NUMBERS = 50_000_000  # maximum numbers of its draws: fewer draws in high dimensions
_FEWEST = 25  # minimum draws per chain of a reference
_MEASURED = 8  # quantities with reported R-hat and ESS
_EVERY_S = 1.0
_KEPT = 50  # finished references on disk
_FORMAT = 1

log = logging.getLogger(__name__)


class Reference:
    """Run the best-ranked reference sampler, or read the result of such a run from disk."""

    def __init__(self, spec: RaceSpec, target: Target | None = None) -> None:
        self.spec, self._own = reference_spec(spec, target), target
        self.title = samplers.REGISTRY.get(self.spec.sampler).title
        self.seconds, self.error = 0.0, None
        self._run: Run | None = None
        self._estimates: Estimates | None = None
        self._truth: TrueMoments | None = None
        self._status: dict[str, Any] = {"draws": 0, "rhat": float("nan"), "ess": float("nan")}
        self._pace, self._wanted = Throttle(least=_EVERY_S), CHAINS * DRAWS
        self.finished = target is None and self._load()

    @property
    def truth(self) -> TrueMoments | None:
        """Current means and standard deviations; None with too few draws."""
        return self._truth

    def status(self) -> dict[str, Any]:
        """Return title, phase, current and final number of draws, worst R-hat and smallest ESS."""
        run = self._run
        phase = "done" if self.finished else "start" if run is None else run.phase
        draws = {} if run is None else {"draws": run.store.common(run.alive) * int(run.alive.sum())}
        facts = {"title": self.title, "phase": phase, "wanted": self._wanted, "error": self.error}
        return {**facts, "finished": self.finished, **self._status, **draws}

    def advance(self, seconds: float) -> int:
        """Work for about the given seconds; return the number of steps."""
        begun = time.perf_counter()
        run = self._started()
        steps = run.advance(seconds)
        if run.phase == "failed":
            self.error, self.finished = f"The reference run failed: {run.error}", True
        elif run.finished or self._pace.due:
            self._measure(run)
            self._pace.spent()
        if run.finished and self.error is None:
            self.finished = True
            if (
                self._own is None and diagnostics.has_arviz()
            ):  # a reference without R-hat would be stored unjudged, for every later race
                self._store()
        if self.finished:
            self._run = self._estimates = None
        self.seconds += time.perf_counter() - begun
        return steps

    def _started(self) -> Run:
        if self._run is None:
            self._run = Run(self.spec, target=self._own)
            self._estimates = Estimates(self._run)
            self._wanted = self.spec.chains * self.spec.draws
        return self._run

    def _measure(self, run: Run) -> None:
        """Update the estimates."""
        if run.store.common(run.alive) < _FEWEST:
            return
        values = self._estimates.values()
        self._truth = self._estimates.truth(values.mean((0, 1)), values.std((0, 1)))
        columns = np.unique(np.linspace(0, values.shape[2] - 1, _MEASURED).astype(int))
        measured = [(diagnostics.rhat(values[..., i]), diagnostics.ess(values[..., i])) for i in columns]
        rhat, ess = (np.array(column) for column in zip(*measured, strict=True))
        self._status = {
            "draws": run.store.common(run.alive) * int(run.alive.sum()),
            "rhat": float(np.nanmax(rhat)) if np.isfinite(rhat).any() else float("nan"),
            "ess": float(np.nanmin(ess)) if np.isfinite(ess).any() else float("nan"),
        }

    # on disk

    @property
    def _path(self) -> Path:
        spec = {name: value for name, value in self.spec.to_json().items() if name not in ("device", "kernel")}
        named = {"format": _FORMAT, "version": VERSION, "spec": spec}
        key = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:32]
        return paths.references() / f"{key}.npz"

    def _load(self) -> bool:
        """Restore the result of an earlier race; return whether there was one."""
        try:
            with np.load(self._path, allow_pickle=False) as saved:
                self._truth = TrueMoments(saved["mean"], saved["sd"], saved["scale"])
                draws, rhat, ess = saved["told"].tolist()
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, EOFError) as error:
            log.warning("the reference %s cannot be read and is made again: %s", self._path, error)
            return False
        self._status = {"draws": int(draws), "rhat": rhat, "ess": ess}
        self._wanted = int(draws)
        return True

    def _store(self) -> None:
        """Store it for later races; a full or read-only disk does not stop this one."""
        truth, told = self._truth, [self._status[name] for name in ("draws", "rhat", "ess")]
        try:
            folder = self._path.parent
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with files.replacing(self._path) as new, new.open("wb") as file:
                np.savez(file, mean=truth.mean, sd=truth.sd, scale=truth.scale, told=np.array(told, dtype=float))
            _sweep(folder)
        except OSError as error:
            log.warning("the reference could not be kept: %s", error)

    # checkpoints

    def save(self) -> bytes | None:
        """Return the state of the current work; None if there is nothing to continue."""
        return None if self._run is None else self._run.checkpoint()

    def load(self, saved: bytes) -> None:
        """Restore a saved state."""
        if self.finished:  # another race was quicker
            return
        self._run = Run.restore(saved)
        self._estimates = Estimates(self._run)
        self._wanted = self.spec.chains * self.spec.draws


def reference_spec(spec: RaceSpec, target: Target | None = None) -> Spec:
    """Return the spec of the reference run of a race: another seed, more chains, the best-ranked sampler."""
    sampler = max(samplers.REGISTRY, key=lambda cls: cls.traits.reference_rank)
    lane = spec.lanes[0]
    dim = lane.known_dim if target is None else target.dim
    fewer = _NUMBERS // (CHAINS * max(dim, 1))
    return Spec(
        target=lane.target,
        target_settings=lane.target_settings,
        sampler=sampler.registered,
        chains=CHAINS,
        draws=max(_FEWEST, min(DRAWS, fewer)),
        warmup=WARMUP,
        seed=SEED,
        device=lane.device,
        dtype=lane.dtype,
        file=lane.file,
        attachment=lane.attachment,
    ).checked(own_target=target is not None)


def _sweep(folder: Path) -> None:
    """Remove all but the newest references, and unfinished files of dead processes."""
    kept = sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_mtime, reverse=True)
    old = [path for path in folder.glob(files.HALF_WRITTEN) if time.time() - path.stat().st_mtime > 3600]
    for path in [*kept[_KEPT:], *old]:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
