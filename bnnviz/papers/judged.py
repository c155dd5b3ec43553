"""Figures of what a posterior is good for: entropies elsewhere, reliability, attacks, hardest images, traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bnnviz import data as datasets
from bnnviz.errors import BnnvizError
from bnnviz.papers import store
from bnnviz.papers.scored import Scored
from bnnviz.spec import Spec

#: Views whose part is made of the lanes of all cases.
_TOGETHER = {
    "entropy": "Predictive entropy",
    "entropy_bars": "Predictive entropy",
    "reliability": "Reliability",
    "attack": "Accuracy under attack",
    "attack_entropy": "Entropy under attack",
}
_HARDEST = 3  # images whose chances are drawn


@dataclass(frozen=True)
class Judged(Scored):
    """A figure of samplers on images, its numbers those of the averaged prediction, over runs with different seeds.

    Parameters
    ----------
    foreign : str
        The data set whose test images come from elsewhere; where it is not to be had, entropies elsewhere are missing.
    base : float or None
        Of the entropies' logarithm; None: e.
    """

    foreign: str = "notmnist"
    base: float | None = None

    def at(self, data: str | None, scale: str | None) -> Judged:
        """Return it on other images; there is one scale."""
        if scale is not None:
            raise BnnvizError(f"{self.name} has one scale only; leave out --scale.", "scale")
        if data is None:
            return self
        if data not in datasets.names("images"):
            known = ", ".join(name for name in datasets.names("images") if datasets.describe(name)["trainable"])
            raise BnnvizError(f"There are no images called {data!r}; choose one of {known}.", "data")
        cases = tuple(replace(case, specs=tuple(_on(spec, data) for spec in case.specs)) for case in self.cases)
        return replace(self, cases=cases)

    def check(self) -> None:
        """Raise a `BnnvizError` if the images, or those from elsewhere, are not to be had."""
        datasets.load(self.foreign)
        name = self.cases[0].specs[0].target_settings["data"]
        if not len(datasets.load(name).y_train):
            raise BnnvizError(
                f"There are no training images of {name} here: fetch the whole set, or take other images with --data.",
                "data",
            )

    def _place(self, spec: Spec) -> Any:
        # All figures of a run are taken at once: another experiment with the same runs finds them.
        return store.place(spec.checked().to_json(), [f"judged {self.foreign} {self.base}"])

    def _run(self, spec: Spec) -> dict[str, Any]:
        from bnnviz.papers.judged_run import result  # with torch

        return result(spec, self.foreign, self.base)

    def _panels_of(self, picture: str, firsts: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str, dict]]:
        if picture not in (*_TOGETHER, "digit"):
            return super()._panels_of(picture, firsts)
        parts = [(name, pictures[picture]) for name, pictures in firsts if pictures.get(picture) is not None]
        if not parts:
            return []
        if picture == "digit":
            return _hardest(parts)
        lanes = [part["lane"] | {"name": name} for name, part in parts]
        view = picture.removesuffix("_bars")
        return [(_TOGETHER[picture], view, parts[0][1]["scene"] | {"lanes": lanes})]


def _hardest(parts: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what all cases say of the images that they are least sure of on average."""
    entropy = np.mean([part["entropy"] for _, part in parts], axis=0)
    first = parts[0][1]
    found = []
    for row in np.argsort(-entropy)[:_HARDEST].tolist():
        own = int(first["observed"][row])
        lanes = [{"name": name} | {key: part[key][row] for key in ("mean", "low", "high")} for name, part in parts]
        heading = f"Test image {row}, a {first['classes'][own]}"
        found.append((heading, "digit", {"classes": first["classes"], "observed": own, "lanes": lanes}))
    return found


def _on(spec: Spec, data: str) -> Spec:
    return spec.replace(target_settings={**spec.target_settings, "data": data})
