"""Make ``references.json``: ``python -m bnnviz.benchmarks.posteriors.references``.

Where no quadrature is known importance sampling stands in for it. Tests compare both with the published figures.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from bnnviz.benchmarks.posteriors import importance, quadrature
from bnnviz.benchmarks.posteriors.catalogue import FOLDER, POSTERIORS, Posterior

_DIGITS = 10


def make(posterior: Posterior) -> dict[str, Any]:
    """Return the moments of a posterior's coordinates, and of its parameters where they were integrated too."""
    if posterior.model not in quadrature.OVER_SCALE and posterior.dim in quadrature.AXIS:
        points, weight = quadrature.grid(posterior)
        parameters = _exact(*quadrature.weighted(posterior.parameters(points), weight))
        return _exact(*quadrature.weighted(points, weight)) | {"how": "quadrature", "parameters": parameters}
    known = quadrature.moments(posterior)
    if known is not None:
        return _exact(*known) | {"how": "quadrature"}
    found = importance.sample(posterior)
    figures = f"{len(found.draws):,} draws, weight ESS {found.ess:,.0f}, Pareto k-hat {found.pareto_k:.2f}"
    parameters = importance.moments(posterior.parameters(found.draws), found.weight)
    return _plain(importance.moments(found.draws, found.weight)) | {
        "how": f"importance sampling, {figures}",
        "parameters": _plain(parameters),
    }


def _exact(mean: np.ndarray, sd: np.ndarray) -> dict[str, Any]:
    none = np.zeros(len(mean))
    return _plain({"mean": mean, "mean_se": none, "sd": sd, "sd_se": none})


def _plain(parts: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: [float(f"{number:.{_DIGITS}g}") for number in part] for name, part in parts.items()}


def main(names: list[str]) -> None:
    """Make the references of these posteriors, or of all, and keep the others."""
    place = FOLDER / "references.json"
    kept = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    for name in names or POSTERIORS:
        kept[name] = make(POSTERIORS[name])
        ordered = {name: kept[name] for name in POSTERIORS if name in kept}
        place.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
