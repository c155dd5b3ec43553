"""Draw accuracy and entropy against the size of a change of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import SHARES, Figure
from bnnviz.figures.marks import SERIES, Axis, Band, Drawing, Mark, Panels, chain, curve
from bnnviz.figures.ranges import extent, padded

SHADE = 0.16
_LABELS = {"pixels": "change of each pixel (of 1)", "scaled": "change of each input (sd)"}
_STEP = "size of the step"


class Attack(Figure):
    """Draw the accuracy of attacked rows with its interval over the rows."""

    name, title = "attack", "Attacked: accuracy"
    needs = ("attack",)
    figure: ClassVar[str] = "accuracy"
    x, y = Axis(_STEP, (0.0, 0.3), "exact"), Axis("accuracy", SHARES, "exact")

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw results of `bnnviz.attack`, each with a ``name``, over steps with the ``label``."""
        entries = part["entries"][:SERIES]
        names = ("eps", self.figure, f"{self.figure}_low", f"{self.figure}_high")
        missing = [name for sampler in entries for name in names if name not in sampler]
        if missing:
            raise BnnvizError(f"A result of an attack has no {missing[0]!r}; give that of bnnviz.attack.", "source")
        marks: list[Mark] = []
        ends: list[tuple[str, float, float]] = []
        for place, sampler in enumerate(entries):
            eps, mean, low, high = (np.asarray(sampler[name], dtype=float) for name in names)
            marks.append(Band(eps, low, high, colour=chain(place), opacity=SHADE, label="95% interval"))
            marks += curve(eps, mean, place, sampler["name"] or self.figure, size=8)
            ends.append((sampler["name"], eps[-1], mean[-1]))
        x = Axis(part.get("label", _STEP), padded(extent(*(sampler["eps"] for sampler in entries)), 0.02), "exact")
        last = max((eps for _, eps, _ in ends), default=0.0)
        texts = "; ".join(f"{name} {y:.3f}".strip() for name, eps, y in ends if eps == last and np.isfinite(y))
        return self.drawing(marks, x=x, note=texts and f"at {last:g}: {texts}")


class AttackEntropy(Attack):
    """Draw the mean predictive entropy of attacked rows with its interval."""

    name, title = "attack_entropy", "Attacked: entropy"
    needs = ("attack_entropy",)
    figure = "entropy"
    y = Axis("entropy", SHARES, "exact")

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw results of `bnnviz.attack` up to the largest entropy, ``top``, if it is known."""
        label = f"entropy ({part.get('unit', 'nats')})"
        y = Axis(label, extent([0.0], *(sampler.get("entropy_high", ()) for sampler in part["entries"])))
        if "top" in part:
            y = Axis(label, (0.0, float(part["top"])), follow="exact")
        return replace(super().draw(part), y=y)


def attack(source: Any) -> Panels:
    """Plot accuracy and mean predictive entropy of attacked rows against the step size, with 95% intervals.

    Parameters
    ----------
    source : Run, dict or list
        A run of a classification network, in which draw 0 is attacked and the other draws are evaluated; the result of
        `bnnviz.attack`; a list or dict of these; or the part ``attack`` of a frame.

    Examples
    --------
    >>> from bnnviz import plots
    >>> accuracy = {"accuracy": [0.9, 0.7, 0.3], "accuracy_low": [0.8, 0.6, 0.2], "accuracy_high": [1.0, 0.8, 0.4]}
    >>> entropy = {"entropy": [0.2, 0.4, 0.3], "entropy_low": [0.1, 0.3, 0.2], "entropy_high": [0.3, 0.5, 0.4]}
    >>> plots.attack({"eps": [0.0, 0.1, 0.2], **accuracy, **entropy})
    :Layout...
    """
    part = source
    if not (isinstance(source, Mapping) and "entries" in source):
        if isinstance(source, list | tuple):
            named = {f"attack {place + 1}": each for place, each in enumerate(source)}
        else:
            named = source if isinstance(source, Mapping) and "eps" not in source else {"": source}
        entries = [_result(each) | {"name": str(name)} for name, each in named.items()]
        units = {str(sampler.get("unit", "")) for sampler in entries}
        bits = all(sampler.get("base") == 2 for sampler in entries)
        part = {"entries": entries, "label": _LABELS.get(units.pop(), _STEP), "unit": "bits" if bits else "nats"}
    return Panels([parts.drawn(figure, part, "an attack") for figure in (Attack(), AttackEntropy())], 2)


def _result(source: Any) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return dict(source)
    from bnnviz.engine.evaluation.attack import attack as attacked

    given = parts.network_draws(source)
    shape = (given.chains, -1, given.theta.shape[-1])
    return attacked(given.target, given.theta.reshape(shape), given.log_weights, examples=0)
