"""Run a sampler on images, and evaluate each draw on training and held-out rows during the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.engine.evaluation.predictions import at_once
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.experiments.experiment import ran
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.experiments.predictive_run import outcome
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN

_MOST_ROWS = 5000  # maximum number of predicted training rows
_LAST = 5  # points over which a final error is averaged


def result(spec: Spec, experiment: PredictiveExperiment) -> dict[str, Any]:
    """Run a spec of one chain and return its final errors, and its curves."""
    run = ran(spec)
    if run.error is not None:
        return outcome(run)
    curves = _curves(run)
    return outcome(run, figures(curves, run.target.data_set.classes), {"curves": curves})


def figures(curves: dict[str, list[float]], classes: int) -> dict[str, float]:
    """Return the final errors of curves, their mean change between points, and the epoch of half the training drop."""
    train, validation = np.array(curves["train"]), np.array(curves["validation"])
    last = float(train[-_LAST:].mean())
    halfway = (1 - 1 / classes + last) / 2
    return {
        "error_train": last,
        "error_validation": float(validation[-_LAST:].mean()),
        "roughness": float(np.abs(np.diff(validation[len(validation) // 2 :])).mean()),
        "halfway": curves["epoch"][int((train <= halfway).argmax())],
    }


def _curves(run: ViewedRun) -> dict[str, list[float]]:
    """Return the mean error of the draws of each point, by epochs since the start, including tuning."""
    target, settings = run.target, run.spec.settings
    each = getattr(run.sampler, "draws_each", 1)
    theta = torch.as_tensor(run.draws[0], dtype=target.dtype, device=target.device)
    few = slice(None, None, max(1, len(target.x) // _MOST_ROWS))
    rows = {"train": (target.x[few], target.y[few]), "validation": target.held_out()}
    points = np.arange(1, len(theta) // each + 1)
    moves = float(run.draw_collector.first.max()) + settings["thin"] * points
    epochs = moves * (settings.get("batch_size") or len(target.x)) / len(target.x)
    errors = {name: _errors(target, theta, *part).reshape(-1, each).mean(1).tolist() for name, part in rows.items()}
    return {"epoch": epochs.tolist(), **errors}


def _errors(target: BNN, theta: Tensor, x: Tensor, y: Tensor) -> np.ndarray:
    """Return the share (draws,) of misclassified rows for each draw."""
    pieces = torch.split(theta, at_once(target, len(x)))
    wrong = [(target.outputs(piece, x).argmax(-1) != y).double().mean(-1) for piece in pieces]
    return torch.cat(wrong).cpu().numpy()
