"""Compute the predictions of single draws of a recorded network, for figures with selectable draws.

A page does not import torch; it runs this in a separate process by

    python -m bnnviz.engine.recording.drawn_functions FOLDER OUT.npz EVERY
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError

MOST_DRAWS, MOST_INPUTS = 120, 60


def drawn_functions(
    given: Any, draws: int = MOST_DRAWS, inputs: int = MOST_INPUTS, every: int = 1
) -> dict[str, np.ndarray]:
    """Return the predictions of evenly thinned draws, each separately.

    ``kind`` is ``band``, ``intervals`` or ``classes``; ``chain`` and ``draw`` (draws,) are indices; ``x`` (inputs,) has
    the inputs of a band, the observed numbers, or the ranks of rows by the probability of their true class; ``values``
    (draws, inputs) are in original units or that probability; ``labels`` are those of both axes; a band has ``data_x``
    and ``data_y`` too.
    """
    from torch import as_tensor

    from bnnviz.engine.evaluation.predictions import Predictor, evenly

    predictor = Predictor(given.target)
    each = len(given.theta) // given.chains
    numbers = (each * np.arange(given.chains)[:, None] + np.arange(0, each, every)).ravel()
    chosen = numbers[evenly(len(numbers), draws)]
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


def of_recording(folder: Path, every: int = 1) -> dict[str, np.ndarray]:
    """Return `drawn_functions` of a recording."""
    from bnnviz.engine.evaluation.metrics import network_draws
    from bnnviz.engine.recording.resume import resume

    return drawn_functions(network_draws(resume(folder)), every=every)


def main(arguments: list[str]) -> int:
    """Write the predictions of a recording's draws to a file; return the exit status."""
    folder, out, every = arguments
    try:
        np.savez(out, **of_recording(Path(folder), int(every)))
    except BnnvizError as error:
        sys.stderr.write(f"{error.sentence}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
