"""Estimate the CPU time (on a GPU the wall time) and memory of an experiment from three short runs of each case.

The time of a run is modelled as a + b * steps + c * draws, where steps lead to a mode or train. Short runs have the
network, batches and chains of the experiment, and at most 100 images; work on all rows per evaluation or epoch is
scaled up. Missing data sets are replaced by random numbers.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bnnviz import data as datasets
from bnnviz import samplers
from bnnviz import settings as settings_of
from bnnviz.engine.drive import drive
from bnnviz.engine.run.run import Run
from bnnviz.experiments.experiment import Experiment
from bnnviz.experiments.record import device
from bnnviz.specs.run import Spec

_ROWS = 100  # images of a short run
_STEPS = ("mode_steps", "steps", "first_epochs")
_FEW, _MORE = 2, 10  # steps of a short run
_PREDICTED = 100  # test rows with timed predictions
_PASSES = 2  # over the test rows and rows out of distribution


@dataclass(frozen=True)
class Cost:
    """Estimated hours and memory; ``synthetic``: data sets replaced by random numbers."""

    hours: float
    gigabytes: float
    synthetic: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The estimate in a line."""
        stand_in = f" (random numbers for {', '.join(self.synthetic)})" if self.synthetic else ""
        return f"about {self.hours:.2g} h and {self.gigabytes:.2g} GB on {device()}{stand_in}"

    def row(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        return {"hours": float(f"{self.hours:.2g}"), "gigabytes": float(f"{self.gigabytes:.2g}"), "device": device()}


def pilot(experiment: Experiment, repetitions: int | None = None) -> Cost:
    """Estimate the cost of the runs of an experiment that are not stored yet."""
    seconds, stored, synthetic = 0.0, 0.0, set()
    for case in experiment.cases:
        missing = [spec for spec in case.specs[:repetitions] if experiment._read(spec) is None]
        if not missing or not isinstance(missing[0], Spec):
            continue  # the double well takes a second
        data = missing[0].target_settings.get("data")
        absent = data is not None and not _complete(data)
        synthetic |= {data} if absent else set()
        with _random_data(data) if absent else nullcontext():
            each, bytes_ = _cost(_without_weights(missing[0]) if absent else missing[0].checked())
        seconds, stored = seconds + len(missing) * each, max(stored, bytes_)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(seconds / 3600, (peak + stored) / 1e9, tuple(sorted(synthetic)))


def _cost(spec: Spec) -> tuple[float, float]:
    """Return the seconds of a run, and the bytes of its draws and images."""
    settings, target = spec.settings, dict(spec.target_settings)
    facts = datasets.describe(target["data"]) if "data" in target else {"rows": 0, "shape": None}
    rows = target.get("train_rows") or facts["rows"] or _ROWS
    images = 0.0 if facts["shape"] is None else float(rows * np.prod(facts["shape"]))  # bytes
    if "train_rows" in target:
        target |= {"train_rows": min(rows, _ROWS), "test_rows": min(target["test_rows"], _PREDICTED)}
    chosen = samplers.REGISTRY.get(spec.sampler)(**settings)
    known = {setting["name"]: getattr(chosen, setting["name"]) for setting in settings_of.describe(type(chosen))}
    steps = {name: known[name] for name in _STEPS if name in known}
    each, moves = known.get("draws_each", 1), known.get("thin", 1)
    quick = {"warmup_events": 20} if "warmup_events" in known else {}
    quick |= {"thin": min(moves, _MORE)} if moves > 1 else {}

    def timed(few: int, draws: int) -> tuple[float, Run]:
        short = settings | quick | {name: min(few, value) for name, value in steps.items()}
        run = Run(spec.replace(target_settings=target, settings=short, draws=draws * each, warmup=0))
        begun = _clock()
        drive(run, 60.0)
        return _clock() - begun, run

    timed(_FEW, 1)  # one-time work, such as reading the data, is not counted
    (base, run), (more, _), (longer, _) = timed(_FEW, 1), timed(_MORE, 1), timed(_FEW, 3)
    whole = rows / min(rows, _ROWS) if "train_rows" in target and not settings.get("batch_size") else 1.0
    by_epochs = rows / min(rows, _ROWS) if "train_rows" in target and "first_epochs" in steps else 1.0
    per_step = max(more - base, 0.0) / (_MORE - _FEW) * by_epochs
    per_draw = max(longer - base, 0.0) / 2 * max(whole, by_epochs) * moves / quick.get("thin", 1)
    draws = (spec.draws + spec.warmup) / each + known.get("warmup_events", 0)
    seconds = base + per_step * sum(steps.values()) + per_draw * draws + _prediction(run, spec)
    return seconds, 4.0 * run.target.dim * spec.chains * spec.draws + images


def _prediction(run: Run, spec: Spec) -> float:
    """Return the time in seconds for predictions of all draws."""
    if run.error is not None:
        return 0.0
    x, _ = run.target.held_out()
    x = x[:_PREDICTED]
    theta = torch.as_tensor(run.draws[:1, 0], dtype=run.target.dtype, device=run.target.device)
    begun = _clock()
    run.target.outputs(theta, x)
    each = (_clock() - begun) / len(x)
    return _PASSES * each * spec.target_settings.get("test_rows", len(run.target.held_out()[0])) * spec.draws


def _clock() -> float:
    """Return the CPU time of this process, independent of other processes; on a GPU the wall time."""
    return time.perf_counter() if torch.cuda.is_available() else time.process_time()


# --- missing data


def _without_weights(spec: Spec) -> Spec:
    """Return a spec that starts at random instead of at published weights."""
    target = {name: value for name, value in spec.target_settings.items() if name != "initial_weights"}
    return spec.replace(target_settings=target).checked()


def _complete(name: str) -> bool:
    """Return whether a data set is on this machine and has training rows."""
    return datasets.is_here(name) and len(datasets.load(name).y_train) > 0


@contextmanager
def _random_data(name: str) -> Iterator[None]:
    """Replace a data set by random numbers of its shape."""
    loaded, facts, rng = datasets.load, datasets.describe(name), np.random.default_rng(0)

    def load(*_: Any, **__: Any) -> datasets.DataSet | datasets.ImageSet:
        rows = {"train": _ROWS, "test": _PREDICTED}
        classes = facts["classes"]
        y = {f"y_{part}": np.arange(n) % classes if classes else rng.normal(size=n) for part, n in rows.items()}
        given = {"name": name, "title": facts["title"], "doc": "", **y}
        if facts["shape"] is None:
            x = {f"x_{part}": rng.normal(size=(n, facts["inputs"])) for part, n in rows.items()}
            return datasets.DataSet(**given, **x, task=facts["task"])
        x = {f"x_{part}": rng.integers(0, 256, (n, *facts["shape"]), dtype=np.uint8) for part, n in rows.items()}
        return datasets.ImageSet(**given, **x, class_names=tuple(map(str, range(classes))))

    datasets.load = load
    try:
        yield
    finally:
        datasets.load = loaded
