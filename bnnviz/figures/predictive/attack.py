"""Draw accuracy and entropy against the size of a change of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import SHARES, Figure
from bnnviz.figures.marks import SERIES, Axis, Band, Drawing, Mark, Panels, chain, curve, extent, padded

SHADE = 0.16
_LABELS = {"pixels": "change of each pixel (of 1)", "scaled": "change of each input (sd)"}
_STEP = "size of the step"


class Attack(Figure):
    """Draw the accuracy of attacked rows with its interval over the rows."""

    name = "attack"
    title = "Attacked: accuracy"
    needs = ("attack",)
    figure: ClassVar[str] = "accuracy"

    x, y = Axis(_STEP, (0.0, 0.3), "exact"), Axis("accuracy", SHARES, "exact")

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw results of `bnnviz.attack`, each with a ``name``, over steps with the ``label``."""
        entries = part["entries"][:SERIES]
        marks = [mark for place, sampler in enumerate(entries) for mark in self._curve(sampler, place)]
        x = Axis(part.get("label", _STEP), padded(extent(*(sampler["eps"] for sampler in entries)), 0.02), "exact")
        return self.drawing(marks, x=x, note=self._note(entries))

    def _curve(self, sampler: dict[str, Any], place: int) -> list[Mark]:
        names = ("eps", self.figure, f"{self.figure}_low", f"{self.figure}_high")
        missing = [name for name in names if name not in sampler]
        if missing:
            raise BnnvizError(f"A result of an attack has no {missing[0]!r}; give that of bnnviz.attack.", "source")
        eps, mean, low, high = (np.asarray(sampler[name], dtype=float) for name in names)
        band = Band(eps, low, high, colour=chain(place), opacity=SHADE, label="95 % interval")
        return [band, *curve(eps, mean, place, sampler["name"] or self.figure, size=8)]

    def _note(self, entries: list[dict[str, Any]]) -> str:
        if not entries:
            return ""
        last = max(float(np.max(sampler["eps"])) for sampler in entries)
        ends = [(sampler["name"], sampler[self.figure][-1]) for sampler in entries if sampler["eps"][-1] == last]
        texts = "; ".join(f"{name} {value:.3f}".strip() for name, value in ends if np.isfinite(value))
        return texts and f"at {last:g}: {texts}"


class AttackEntropy(Attack):
    """Draw the mean predictive entropy of attacked rows with its interval."""

    name = "attack_entropy"
    title = "Attacked: entropy"
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


_FIGURES = {"accuracy": Attack, "entropy": AttackEntropy}


def attack(source: Any, *, figure: Literal["accuracy", "entropy", "both"] = "both") -> Drawing | Panels:
    """Plot accuracy and mean predictive entropy of attacked rows against the step size, with 95 % intervals.

    Parameters
    ----------
    source : Run, dict or list
        A run of a classification network, in which draw 0 is attacked and the other draws are evaluated; the result of
        `bnnviz.attack`; a list or dict of these; or the part ``attack`` of a frame.
    figure : {"accuracy", "entropy", "both"}

    Examples
    --------
    >>> from bnnviz import plots
    >>> sizes = [0.0, 0.1, 0.2, 0.3]
    >>> ends = {"accuracy_low": [0.85, 0.6, 0.2, 0.1], "accuracy_high": [0.95, 0.8, 0.4, 0.2]}
    >>> plots.attack({"eps": sizes, "accuracy": [0.9, 0.7, 0.3, 0.15], **ends}, figure="accuracy")
    :Overlay...
    """
    if figure not in (*_FIGURES, "both"):
        raise BnnvizError(f"There is no figure {figure!r}; choose accuracy, entropy or both.", "figure")
    entries = parts.entries(source)
    part = dict(source) if entries is not None else {}
    if entries is None:
        entries = [_result(each) | {"name": name} for name, each in _named(source)]
        units = {str(sampler.get("unit", "")) for sampler in entries}
        part = {"label": _LABELS.get(units.pop(), _STEP)}
        part["unit"] = "bits" if all(sampler.get("base") == 2 for sampler in entries) else "nats"
    shown = list(_FIGURES) if figure == "both" else [figure]
    return Panels([_FIGURES[each]().draw({**part, "entries": entries}) for each in shown], 2)


def _named(source: Any) -> list[tuple[str, Any]]:
    if isinstance(source, Mapping) and "eps" not in source:
        return [(str(name), each) for name, each in source.items()]
    if isinstance(source, list | tuple):
        return [(f"attack {place + 1}", each) for place, each in enumerate(source)]
    return [("", source)]


def _result(source: Any) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return dict(source)
    from bnnviz.engine.evaluation.attack import attack as attacked

    given = parts.network_draws(source)
    shape = (given.chains, -1, given.theta.shape[-1])
    return attacked(given.target, given.theta.reshape(shape), given.log_weights, examples=0)
