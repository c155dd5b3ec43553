"""Read a run at one instant (a part of a frame), and the predictions of a network's draws at test rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Drawing
from bnnviz.figures.sources import is_array, recording_of


def part(source: Any, name: str, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the scene of a run, {} without one, and a part of its frame."""
    if isinstance(source, Mapping):
        own = {key: as_arrays(value) for key, value in source.items() if key != "scene"}
        return as_arrays(dict(source.get("scene") or {})), own
    run, problem = source, f"This {type(source).__name__} shows no {what}, or not yet."
    if not (hasattr(source, "frame") and hasattr(source, "scene")):
        recording = recording_of(source)
        if recording is None:
            raise BnnvizError(
                f"{what.capitalize()} cannot be read from {type(source).__name__}: give a Run or a recording.", "source"
            )
        from bnnviz.engine.recording.resume import resume

        run = resume(recording.folder, target=getattr(recording, "target", None))
        problem = f"The recording {recording.name} has no {what}. Run its spec again to draw it."
    found = run.frame([name]).get(name)
    if not found:
        raise BnnvizError(problem, "source")
    return run.scene(), found


def drawn(figure: Figure, source: Any, what: str) -> Drawing:
    """Return the drawing of the part that a figure needs."""
    scene, found = part(source, figure.needs[0], what)
    figure.begin(scene)
    return figure.draw(found)


def given(figure: Figure, source: Any, *keys: str) -> Drawing | None:
    """Return the drawing of a part of a frame, which has these keys; None for other sources."""
    return drawn(figure, source, "") if isinstance(source, Mapping) and set(keys) <= set(source) else None


def as_arrays(value: Any) -> Any:
    """Return lists of numbers as arrays, where nothing is not a number."""
    if isinstance(value, Mapping):
        return {key: as_arrays(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    if value and all(each is None or isinstance(each, int | float) for each in value):
        return np.array(value, dtype=float)
    made = [as_arrays(each) for each in value]
    shapes = {each.shape if isinstance(each, np.ndarray) else None for each in made}
    return np.array(made) if len(shapes) == 1 and None not in shapes else made


# --- predictions of test rows


class ClassPredictions(NamedTuple):
    """Predictions of a classifier's draws at test rows."""

    name: str
    probabilities: np.ndarray  # (draws, rows, classes)
    weights: np.ndarray | None  # (draws,) of sum 1
    observed: np.ndarray  # (rows,), class numbers
    classes: list[str]

    @property
    def mean(self) -> np.ndarray:
        """The predictive distribution (rows, classes)."""
        if self.weights is None:
            return self.probabilities.mean(0)
        return np.tensordot(self.weights, self.probabilities, 1)


def network_draws(source: Any) -> Any:
    """Return the network of a run or of a recording with its draws."""
    if hasattr(source, "network_draws"):
        return source.network_draws()
    from bnnviz.engine.evaluation import metrics

    if isinstance(source, metrics.NetworkDraws):
        return source
    from bnnviz.engine.recording.resume import resume

    recording = recording_of(source)
    run = source if recording is None else resume(recording.folder)
    if not hasattr(run, "target"):
        raise BnnvizError(
            f"Predictions cannot be read from {type(source).__name__}: give a Run or a recording of a network, or"
            " probabilities as an array.",
            "source",
        )
    return metrics.network_draws(run)


def class_predictions(
    source: Any, observed: Any = None, classes: Sequence[str] | None = None, name: str | None = None
) -> ClassPredictions:
    """Return the predicted class probabilities of test rows."""
    if is_array(source) or isinstance(source, list):
        return _of_array(np.asarray(source, dtype=float), observed, classes, name)
    from bnnviz.engine.evaluation import metrics
    from bnnviz.engine.evaluation.predictions import observed_rows

    given = network_draws(source)
    if given.target.likelihood.task != "classification":
        raise BnnvizError("This figure requires a classification network.", "source")
    probabilities = metrics.predict(given.target, given.theta)
    weights = None if given.log_weights is None else metrics.normalised(given.log_weights)
    labels = list(classes or metrics.class_names(given.target))
    rows = observed_rows(given.target).astype(int)
    return ClassPredictions(name or _named(source), probabilities, weights, rows, labels)


def _named(source: Any) -> str:
    recording = recording_of(source)
    spec = getattr(source, "spec", None)
    return recording.name if recording is not None else getattr(spec, "sampler", "predictions")


def _of_array(
    probabilities: np.ndarray, observed: Any, classes: Sequence[str] | None, name: str | None
) -> ClassPredictions:
    if observed is None:
        raise BnnvizError("Give observed=, the class number of each row, with an array of probabilities.", "observed")
    observed = np.asarray(observed)
    if probabilities.ndim == 2:
        probabilities = probabilities[None]
    if probabilities.ndim != 3 or observed.shape != probabilities.shape[1:2] or not observed.size:
        raise BnnvizError(
            "Give probabilities as (rows, classes) or (draws, rows, classes) and an observation for each row, not"
            f" shapes {probabilities.shape} and {observed.shape}.",
            "observed",
        )
    count = probabilities.shape[2]
    if observed.dtype.kind not in "biu" or observed.min() < 0 or observed.max() >= count:
        raise BnnvizError(f"observed must hold integer class labels from 0 to {count - 1}.", "observed")
    labels = list(map(str, range(count)) if classes is None else classes)
    if len(labels) != count:
        raise BnnvizError(f"{len(labels)} class names were given for {count} classes.", "classes")
    return ClassPredictions(name or "predictions", probabilities, None, observed.astype(int), labels)


def each(source: Any, observed: Any = None) -> list[ClassPredictions]:
    """Return the predictions of one or several sources; several arrays must have the same rows."""
    return [class_predictions(one, observed, name=name) for name, one in _several(source)]


def number_transforms(source: Any) -> list[tuple[str, np.ndarray]] | None:
    """Return names and probability integral transforms (rows,) of sources; None where one predicts classes."""
    from bnnviz.engine.evaluation.metrics import transforms

    found = []
    for name, one in _several(source):
        if is_array(one) or isinstance(one, list):
            values = np.asarray(one, dtype=float)
        else:
            given = network_draws(one)
            values = None if given.target.likelihood.task == "classification" else transforms(given)
        if values is None or values.ndim != 1:
            return None
        found.append((name or _named(one), values))
    return found


def _several(source: Any) -> list[tuple[str | None, Any]]:
    """Return pairs of a name, None without names, and a source."""
    if isinstance(source, Mapping):
        return [(str(name), one) for name, one in source.items()]
    if isinstance(source, list) and source and not isinstance(source[0], list | int | float):
        return [(None, one) for one in source]
    return [(None, source)]


def uncertainty_results(source: Any) -> list[tuple[str, dict[str, Any]]] | None:
    """Return names and results of `bnnviz.uncertainty`, of one or of a dict of them; None for other sources."""
    if not isinstance(source, Mapping):
        return None
    named = [("predictions", source)] if "arrays" in source else [(str(name), each) for name, each in source.items()]
    fit = all(isinstance(each, Mapping) and {"arrays", "summary"} <= set(each) for _, each in named)
    return named if fit and named else None
