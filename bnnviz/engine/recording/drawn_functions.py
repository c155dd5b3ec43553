"""Compute the predictions of single draws of a recorded network, for figures with selectable draws."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_DRAWS, MOST_INPUTS = 120, 60


def drawn_functions(given: Any, draws: int = MOST_DRAWS, inputs: int = MOST_INPUTS) -> dict[str, np.ndarray]:
    """Return ``values`` (draws, inputs) of evenly thinned draws, with their chains, inputs, kind and labels."""
    from torch import as_tensor

    from bnnviz.engine.evaluation.predictions import Predictor, evenly

    predictor = Predictor(given.target)
    each = len(given.theta) // given.chains
    chosen = evenly(each * given.chains, draws)
    theta = given.theta[as_tensor(chosen, device=given.theta.device)]
    found = {"chain": chosen // each, "draw": chosen % each}
    scene = predictor.scene()
    if predictor.kind == "band":
        at = evenly(len(predictor.inputs), inputs)
        labels = [scene["x_label"], scene["y_label"]]
        more = {"x": predictor.raw[at, 0], "values": predictor.functions(theta, inputs)}
        more |= {"data_x": np.asarray(scene["x"]), "data_y": np.asarray(scene["y"])}
    elif predictor.kind == "intervals":
        observed = np.asarray(predictor.observed)[evenly(len(predictor.inputs), inputs)]
        labels = [f"observed {scene['label']}", f"predicted {scene['label']}"]
        more = {"x": observed, "values": predictor.functions(theta, inputs)}
    else:
        labels = ["test rows, the surest first", "probability of the own class"]
        more = _own_class(given, theta, inputs)
    kind = "classes" if predictor.kind == "area" else predictor.kind
    return found | more | {"kind": np.array(kind), "labels": np.array(labels)}


def _own_class(given: Any, theta: Any, most: int) -> dict[str, np.ndarray]:
    """Return ranks of test rows, and the probability (draws, rows) of a row's true class under each draw."""
    from bnnviz.engine.evaluation import metrics
    from bnnviz.engine.evaluation.predictions import evenly, observed_rows

    inputs, _ = given.target.held_out()
    rows = evenly(len(inputs), most)
    probabilities = metrics.probabilities_at(given.target, theta, inputs[rows])
    own = probabilities[:, np.arange(len(rows)), observed_rows(given.target)[rows].astype(int)]
    return {"x": np.arange(len(rows)), "values": own[:, np.argsort(-own.mean(0))]}
