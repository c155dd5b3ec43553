"""Run the training and validation curves on traffic signs, Figure 4 of the functional-BNN paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bnnviz.experiments.experiment import Case, Panel, repeated
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.specs.run import Spec

_SEEDS, _SMALL_SEEDS = range(5), range(2)
_BATCH = 128
_HEADINGS = {"train": "Training error", "validation": "Validation error"}
_EACH = 5  # draws per functional: the paper's M, and the sampler's default


class _CurveSize(NamedTuple):
    """Numbers of training and validation images, runs, moves in total and between points, and two memories.

    The memories are the shares of the mean square that pSGLD and SGFuncRLD keep in a move: beta 2.
    """

    rows: int
    test_rows: int
    seeds: range
    moves: int
    every: int
    memories: tuple[float, float]


# With the paper's memories the tuning alone would take as many moves as the small scale has in total.
_SMALL = _CurveSize(860, 430, _SMALL_SEEDS, 476, 34, (0.95, 0.98))
_PAPER = _CurveSize(39_209, 12_630, _SEEDS, 8160, 272, (0.99, 0.999))


class _CurveEntry(NamedTuple):
    """A sampler with its settings, number of tuning moves, and draws per point."""

    sampler: str
    settings: dict[str, Any]
    tuning: int = 0
    each: int = 1


def _entries(size: _CurveSize) -> dict[str, _CurveEntry]:
    """Return the samplers with the paper's learning rates, which refer to the mean loss; U is a multiple of it.

    Without noise SGLD moves by half of its step size times the gradient of U, SGHMC by all of it, and SGFuncRLD and
    pSGLD by their step sizes over the root mean square of the gradient, of U and of the loss of a row.
    """
    of_psgld, of_functional = size.memories
    functional = {"step_size": 1e-3, "first_sd": 0.02}
    tuned = {"smoothing": of_functional, **functional}
    return {
        "SGFuncRLD": _CurveEntry("sgfuncrld", tuned, _until(2 / (1 - of_functional)), _EACH),
        "SGFuncRLD, as printed": _CurveEntry("sgfuncrld", {"variant": "paper", **functional}, _until(1), _EACH),
        "pSGLD": _CurveEntry(
            "psgld", {"smoothing": of_psgld, "step_size": 2e-4 / size.rows}, _until(5 / (1 - of_psgld))
        ),
        "SGLD": _CurveEntry("sgld", {"step_size": 0.2 / size.rows}),
        "SGHMC": _CurveEntry("sghmc", {"step_size": 0.1 / size.rows, "friction": 0.4}),
    }


def _until(moves: float) -> int:
    """Return the moves of a tuning that ends with a window of 50."""
    return 50 * math.ceil(round(moves / 50, 6))


@dataclass(frozen=True)
class CurvesExperiment(PredictiveExperiment):
    """A figure of how the errors of draws fall while samplers train, over runs with different seeds."""

    runner: str = "functional.curves_run:result"

    def panels(self, done: dict[str, list[dict[str, Any]]]) -> list[Panel]:
        """Return (heading, view, part) of each picture: the means of all runs, and their standard deviations."""
        pictures = {case.name: [each["pictures"] for each in done.get(case.name, [])] for case in self.cases}
        curves = {name: [each["curves"] for each in found if each] for name, found in pictures.items()}
        panels = []
        for picture in self.pictures:
            lines = [_line(name, found, picture) for name, found in curves.items() if found]
            if lines:
                panels.append((_HEADINGS[picture], "history", {"label": "error", "along": "epoch", "lines": lines}))
        return panels


def _line(name: str, curves: Sequence[dict[str, Any]], picture: str) -> dict[str, Any]:
    errors = np.array([curve[picture] for curve in curves])
    return {"name": name, "iteration": curves[0]["epoch"], "mean": errors.mean(0), "sd": errors.std(0)}


def _specs(target: dict[str, Any], size: _CurveSize, entry: _CurveEntry) -> tuple[Spec, ...]:
    settings = {"batch_size": _BATCH, "thin": size.every, "start": "random", **entry.settings}
    draws = entry.each * ((size.moves - entry.tuning) // size.every)
    return repeated("images", target, entry.sampler, settings, seeds=size.seeds, draws=draws, warmup=0)


def _figure(data: str, scale: str) -> CurvesExperiment:
    small = scale == "small"
    size = _SMALL if small else _PAPER
    target = {"data": data, "network": "gtsrb", "train_rows": size.rows, "test_rows": size.test_rows}
    reduced = f"Reduced: {size.rows} training images, where the paper has 34,799. " if small else ""
    return CurvesExperiment(
        name="func-fig4",
        title="Training and validation curves on traffic signs (functional paper, Fig. 4)",
        doc=f"{reduced}The network of the paper, conv6-conv16-128-43, from random weights, in batches of 128,"
        f" {len(size.seeds)} runs; {size.moves:,} moves including the tuning, and a point of the curves every"
        f" {size.every} moves. Learning rates are the paper's: .001 (SGFuncRLD), .0001 (pSGLD) and .1, for the mean"
        " loss of a row. A point is the mean error of its draws: one, or five of a functional of SGFuncRLD, whose first"
        " standard deviation, .02, is ours, like the prior N(0, 1). Validation uses images of the test set, since the"
        " paper does not state its 4,410 validation images. Images have colours, whereas the paper's are grey."
        " roughness: mean change of the validation error between points over the second half.",
        measures=("error_train", "error_validation", "roughness", "halfway"),
        cases=tuple(Case(name, _specs(target, size, entry)) for name, entry in _entries(size).items()),
        why="A point of SGFuncRLD is a mean of five draws; those of the others are single draws. As printed, the noise"
        " of SGFuncRLD has no bound where the gradient is almost zero. With the paper's learning rates and the noise"
        " that belongs to them, SGLD and SGHMC leave the mode for the posterior, which predicts badly with 860 images.",
        pictures=tuple(_HEADINGS),
        minutes=4 if small else None,
        data=data,
        scale=scale,
        parts=("gtsrb", "svhn", "cifar10"),
        build=_figure,
    )


FIG4 = _figure("gtsrb", "small")
