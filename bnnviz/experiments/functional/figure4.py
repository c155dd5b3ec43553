"""Run the training and validation curves on traffic signs, Figure 4 of the functional-BNN paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bnnviz.experiments import cache
from bnnviz.experiments.experiment import Case, repeated
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.experiments.scales import ScaledExperiment
from bnnviz.specs.run import Spec

_SEEDS = range(5)
_BATCH = 128
_HEADINGS = {"train": "Training error", "validation": "Validation error"}


class _CurveSize(NamedTuple):
    """Images to train on and to validate on, moves in all, and moves from one point to the next."""

    rows: int | None
    test_rows: int
    moves: int
    every: int


_SMALL, _PAPER = _CurveSize(860, 430, 2040, 68), _CurveSize(None, 12_630, 8160, 272)


class _Lane(NamedTuple):
    """A sampler with its settings, the moves that it is tuned in, and the draws of a point."""

    sampler: str
    settings: dict[str, Any]
    tuning: int
    each: int = 1


_LANES = {
    "SGFuncRLD": _Lane("sgfuncrld", {"smoothing": 0.99}, 200, each=5),
    "SGFuncRLD, as printed": _Lane("sgfuncrld", {"variant": "paper", "step_size": 1e-3}, 50, each=5),
    "pSGLD": _Lane("psgld", {}, 500),
    "SGLD": _Lane("sgld", {}, 0),
    "SGHMC": _Lane("sghmc", {"step_size": 5e-6}, 0),
}
_NOTES: dict[str, str] = {}


@dataclass(frozen=True)
class CurvesExperiment(ScaledExperiment, PredictiveExperiment):
    """A figure of how the errors of draws fall while samplers train, over runs with different seeds."""

    def _place(self, spec: Spec) -> Any:
        return cache.place(spec.checked().to_json(), ["learning curves"])

    def result(self, spec: Spec) -> dict[str, Any]:
        """Run a spec of one of its cases to the end, and return what is kept of it."""
        from bnnviz.experiments.functional.curves_run import result  # with torch

        return result(spec)

    def panels(self, done: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, dict[str, Any]]]:
        """Return (heading, view, part) of each picture: the means of all runs, and their standard deviations.

        Parameters
        ----------
        done : dict of str to list of dict
            What `reproduce` gave, by the cases' names.
        """
        curves = {case.name: _curves_of(done.get(case.name, [])) for case in self.cases}
        return [
            (
                _HEADINGS[picture],
                "history",
                {
                    "label": "error",
                    "along": "epoch",
                    "lines": [_line(name, found, picture) for name, found in curves.items() if found],
                },
            )
            for picture in self.pictures
            if any(curves.values())
        ]


def _curves_of(summaries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [summary["pictures"]["curves"] for summary in summaries if summary["pictures"]]


def _line(name: str, curves: Sequence[dict[str, Any]], picture: str) -> dict[str, Any]:
    errors = np.array([curve[picture] for curve in curves])
    return {"name": name, "iteration": curves[0]["epoch"], "mean": errors.mean(0), "sd": errors.std(0)}


def _specs(target: dict[str, Any], size: _CurveSize, lane: _Lane) -> tuple[Spec, ...]:
    settings = {"batch_size": _BATCH, "every": size.every, "start": "random", **lane.settings}
    draws = lane.each * ((size.moves - lane.tuning) // size.every)
    return repeated("images", target, lane.sampler, settings, seeds=_SEEDS, draws=draws, warmup=0)


def _figure(data: str, scale: str) -> CurvesExperiment:
    small = scale == "small"
    size = _SMALL if small else _PAPER
    target = {"data": data, "network": "gtsrb", "train_rows": size.rows, "test_rows": size.test_rows}
    reduced = f"Reduced: {size.rows} training images, where the paper has 34,799. " if small else ""
    return CurvesExperiment(
        name="func-fig4",
        title="Training and validation curves on traffic signs (functional paper, Fig. 4)",
        doc=f"{reduced}The network of the paper, conv6-conv16-128-43, from random weights, in batches of 128, five"
        f" seeds; {size.moves:,} moves, the tuning among them, and a point of the curves every {size.every} moves. A"
        " point is the mean error of the draws there, each by itself: one, or five of a functional of SGFuncRLD."
        " Validation is on images of the test set: which 4,410 of the training images the paper takes, it does not say."
        " Images have colours, where the paper's are grey, and step sizes follow from the curvature at the start."
        " roughness: by how much the validation error changes from a point to the next, over the second half.",
        measures=("error_train", "error_validation", "roughness", "halfway"),
        cases=tuple(Case(name, _specs(target, size, lane), {}, _NOTES.get(name, "")) for name, lane in _LANES.items()),
        pictures=tuple(_HEADINGS),
        minutes=5 if small else None,
        data=data,
        scale=scale,
        parts=("gtsrb", "svhn", "cifar10"),
        build=_figure,
    )


FIG4 = _figure("gtsrb", "small")
