"""Define an experiment: cases of repeated specs, and printed values."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import data as datasets
from bnnviz import files, paths
from bnnviz.engine.drive import drive
from bnnviz.errors import BnnvizError
from bnnviz.experiments.published import Values
from bnnviz.specs.run import Spec
from bnnviz.specs.wells import WellsSpec
from bnnviz.version import VERSION

if TYPE_CHECKING:
    from distributed import Client

    from bnnviz.engine.viewed_run import ViewedRun

SCALES = ("small", "paper")
_EDGES = ("x", "mean", "lo50", "hi50", "lo95", "hi95")  # plotted columns of a band
_SLICE_S = 0.5
_NEAR = 0.02  # of the width of the data: inputs within this distance of a training input are near the data

Panel = tuple[str, str, dict[str, Any]]  # heading, view and part of a picture


@dataclass(frozen=True)
class Case:
    """One row of a table; ``at`` is its place in a sweep or among bands."""

    name: str
    specs: tuple[Spec | WellsSpec, ...]
    published: Values = field(default_factory=dict)
    at: dict[str, Any] = field(default_factory=dict)

    @property
    def seeds(self) -> list[int]:
        """The seed of each repetition."""
        return [spec.settings["seed"] if isinstance(spec, WellsSpec) else spec.seed for spec in self.specs]


#: Our samplers learn these by default; the papers' do not.
_AS_PRINTED = {
    "bps": {"metric": "unit"},
    "zigzag": {"metric": "unit"},
    "boomerang": {"learn_reference": False, "start": "one_mode"},
}


def as_printed(sampler: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with those that select the papers' version of a sampler."""
    return settings | _AS_PRINTED.get(sampler, {})


def repeated(
    target: str,
    values: dict[str, Any],
    sampler: str,
    settings: dict[str, Any],
    *,
    seeds: Sequence[int],
    splits: Sequence[int] | None = None,
    draws: int,
    warmup: int,
    chains: int = 1,
) -> tuple[Spec, ...]:
    """Return the spec of one run for each seed."""
    targets = [values] * len(seeds) if splits is None else [values | {"split": split} for split in splits]
    pairs = zip(targets, seeds, strict=True)
    settings = as_printed(sampler, settings)
    return tuple(Spec(target, chosen, sampler, settings, chains, draws, warmup, seed) for chosen, seed in pairs)


@dataclass(frozen=True)
class Experiment:
    """A table, a sweep or a figure of a paper.

    ``doc`` describes the runs, and ``why`` known causes of differences from the paper. ``runner`` names a module of
    this package and its function of a spec and the experiment, which runs the spec. ``build`` makes the part for one of
    the data sets ``parts`` at a scale: one that takes minutes, or the paper's.
    """

    name: str
    title: str
    doc: str
    measures: tuple[str, ...]
    cases: tuple[Case, ...]
    why: str = ""
    bands: bool = False
    minutes: float | None = None
    pictures: tuple[str, ...] = ()
    runner: str = "experiment:summarised"
    data: str = ""
    scale: str = "small"
    parts: tuple[str, ...] = ()
    build: Callable[[str, str], Experiment] | None = field(default=None, repr=False, compare=False)

    @property
    def has_figure(self) -> bool:
        """Whether it has a figure."""
        return self.swept or self.bands or bool(self.pictures)

    @property
    def swept(self) -> bool:
        """Whether its cases are the points of a sweep, which a figure shows."""
        return any(case.at for case in self.cases) and not self.bands

    def at(self, data: str | None, scale: str | None) -> Experiment:
        """Return the part for a data set at a scale; None keeps the current one."""
        if self.build is None:
            for option, value in (("data", data), ("scale", scale)):
                if value is not None:
                    raise BnnvizError(f"{self.name} has no choice of {option}; leave out --{option}.", option)
            return self
        data, scale = data or self.data, scale or self.scale
        if data not in self.parts:
            raise BnnvizError(f"{self.name} has no part {data!r}; choose one of {', '.join(self.parts)}.", "data")
        if scale not in SCALES:
            raise BnnvizError(f"There is no scale {scale!r}; choose one of {', '.join(SCALES)}.", "scale")
        return self.build(data, scale)

    def check(self) -> None:
        """Raise a `BnnvizError` with alternatives if rows of its runs are missing."""
        if not self.data:
            return
        try:
            rows = datasets.load(self.data)
            missing = "" if len(rows.y_train) else f"There are no training images of {self.data} here: fetch the set."
        except BnnvizError as error:
            rows, missing = None, error.sentence
        if missing:
            others = [name for name in self.parts if name != self.data and datasets.is_here(name)]
            stand_in = f" Alternatively use --data {' or '.join(others)}." if others else ""
            raise BnnvizError(missing + stand_in, "data")
        if isinstance(rows, datasets.ImageSet) and rows.stands_in:
            self._check_rows(rows)

    def _check_rows(self, images: datasets.ImageSet) -> None:
        """Raise if its runs request more rows than a part of a set has."""
        asked = [spec.target_settings for case in self.cases for spec in case.specs]
        for what, there in (("train", len(images.y_train)), ("test", len(images.y_test))):
            requested = [settings.get(f"{what}_rows") for settings in asked]
            if any(rows is None or rows > there for rows in requested):
                kind = {"train": "training", "test": "test"}[what]
                raise BnnvizError(
                    f"{self.name} at the scale {self.scale!r} needs the whole of {images.title}, of which {there:,}"
                    f" {kind} images come with bnnviz: get it with 'bnnviz data fetch {self.data}', or choose --scale"
                    " small.",
                    "data",
                )

    def runs(self, repetitions: int | None = None) -> int:
        """Return the number of runs for ``repetitions`` of each case, at most all."""
        return sum(len(case.specs[:repetitions]) for case in self.cases)

    def kept(self, repetitions: int | None = None) -> int:
        """Return the number of its runs stored on disk."""
        return sum(self._read(spec) is not None for case in self.cases for spec in case.specs[:repetitions])

    def reproduce(
        self, repetitions: int | None = None, cluster: Client | None = None
    ) -> Iterator[tuple[Case, int, dict[str, Any]]]:
        """Run the cases, or read stored results, and yield (case, repetition, summary), in order."""
        self.check()
        planned = [(case, i, spec) for case in self.cases for i, spec in enumerate(case.specs[:repetitions])]
        if cluster is not None:
            yield from self._on_cluster(planned, cluster)
            return
        for case, i, spec in planned:
            found = self._read(spec)
            if found is None:
                begun = time.process_time()
                found = self.result(spec)
                found["cpu_seconds"] = time.process_time() - begun
                self._keep(spec, found)
            yield case, i, found

    def _on_cluster(self, planned: list[tuple[Case, int, Any]], cluster: Client) -> Iterator[tuple[Case, int, Any]]:
        """Run missing cases on a cluster; each result is stored on arrival, and yielded in order."""
        from bnnviz.engine.sweep import results  # with Dask

        left = [place for place, (_, _, spec) in enumerate(planned) if self._read(spec) is None]
        bare = replace(self, cases=())  # a job needs no cases
        specs = [planned[place][2] for place in left]
        gpu = [getattr(spec, "device", "").startswith("cuda") for spec in specs]
        coming = results(cluster, bare.result, [specs], gpu)
        made: dict[int, dict[str, Any]] = {}
        missing = set(left)
        for place, (case, i, spec) in enumerate(planned):
            while place in missing and place not in made:
                number, found = next(coming)
                if isinstance(found, BaseException):
                    raise BnnvizError(f"Run {number + 1} of {self.name} failed: {found}", "experiment") from found
                made[left[number]] = found
                self._keep(planned[left[number]][2], found)
            yield case, i, made.pop(place) if place in missing else self._read(spec)

    def result(self, spec: Spec | WellsSpec) -> dict[str, Any]:
        """Run a spec of one of its cases to the end, and return the stored results."""
        module, name = self.runner.split(":")
        return getattr(import_module(f"{__package__}.{module}"), name)(spec, self)

    # ---- results of single runs on disk, so that an interrupted experiment continues

    @property
    def _measured(self) -> list[str]:
        """Names of the measurements; experiments with the same ones share stored runs."""
        return [self.runner, *(["band"] if self.bands else []), *self.pictures]

    def _place(self, spec: Spec | WellsSpec) -> Path:
        key = json.dumps([VERSION, spec.checked().to_json(), sorted(self._measured)], sort_keys=True)
        return paths.reproduced() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"

    def _read(self, spec: Spec | WellsSpec) -> dict[str, Any] | None:
        """Return the stored result of a run; None if missing or unreadable."""
        try:
            return json.loads(self._place(spec).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _keep(self, spec: Spec | WellsSpec, found: dict[str, Any]) -> None:
        """Store the result of a run, if its folder is writable."""
        path = self._place(spec)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_whole(path, json.dumps(found, default=lambda array: array.tolist()).encode(), sync=False)
        except OSError:
            return

    # ---- rows and pictures

    def panels(self, done: dict[str, list[dict[str, Any]]]) -> list[Panel]:
        """Return (heading, view, part) of each picture of finished runs."""
        if not self.bands:
            return []
        shown = [(case, [summary["band"] for summary in done.get(case.name, [])]) for case in self.cases]
        return [(case.name, "band", _panel(case, bands)) for case, bands in shown if bands]

    def row(self, case: Case, summaries: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """Return a case's means over runs, and their standard errors (``_se``)."""
        summaries = list(summaries)
        return self._row(case, summaries, summaries) | case.at

    def _row(self, case: Case, summaries: list[dict[str, Any]], values: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the row of a case, with the seeds and a fingerprint of the specs of its runs."""
        runs = len(summaries)
        row = {"case": case.name, "runs": runs, "seeds": case.seeds[:runs], "specs": fingerprint(case.specs[:runs])}
        for key in self.measures:
            known = [value[key] for value in values if value.get(key) is not None]
            row[key], row[f"{key}_se"] = mean(known), standard_error(known)
        return row


def summarised(spec: Spec, experiment: Experiment) -> dict[str, Any]:
    """Run a spec to the end, and return the numbers of its summary."""
    run = ran(spec)
    return _numbers(run.summary()) | (_band(run) if experiment.bands else {})


def made(spec: Spec | WellsSpec) -> ViewedRun:
    """Return the run of a spec."""
    module, name = spec.factory.split(":")
    return getattr(import_module(module), name)(spec)


def ran(spec: Spec | WellsSpec) -> ViewedRun:
    """Run a spec to its end."""
    run = made(spec)
    drive(run, _SLICE_S)
    return run


def fingerprint(specs: Iterable[Spec | WellsSpec]) -> str:
    """Return a short hash of specs, to detect records with other settings."""
    text = json.dumps([spec.to_json() for spec in specs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _numbers(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a summary, and two derived ones."""
    ess, inflation = summary.get("ess_pc1"), summary.get("widening")
    return {key: value for key, value in summary.items() if isinstance(value, int | float)} | {
        "ess_per_million": None if ess is None else 1e6 * ess / summary["grad_evals"],
        "widening_share": None if inflation is None else inflation["share"],
    }


def _band(run: ViewedRun) -> dict[str, Any]:
    """Return a run's prediction with its data, and its half-widths near the data and away from them."""
    part, data = run.frame(["prediction"])["prediction"], run.scene()["data"]
    trained = np.asarray(data["x"])
    reach = _NEAR * (trained.max() - trained.min())
    near = np.abs(part["x"][:, None] - trained).min(1) < reach
    half = (part["hi95"] - part["lo95"]) / 2
    return {
        "band": {"part": part, "data": data},
        "band_near": float(half[near].mean()),
        "band_away": float(half[~near].mean()),
    }


def _panel(case: Case, bands: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the plot of a case's predictions: the first run's band, and the means of all."""
    first, *others = (band["part"] for band in bands)
    parts = [{n: first[n] for n in _EDGES}, *({n: other[n] for n in ("x", "mean")} for other in others)]
    return {"row": case.at["data"], "column": case.at["sampler"], "data": bands[0]["data"], "parts": parts}


def mean(values: list[float]) -> float | None:
    """Return the mean; None without values."""
    return sum(values) / len(values) if values else None


def standard_error(values: list[float]) -> float | None:
    """Return the standard error of the mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    middle = sum(values) / len(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1) / len(values))
