"""Make ``references.json``: ``python -m bnnviz.benchmarks.posteriors.references``, with numpyro installed.

Where no quadrature is known a run of numpyro's NUTS of 80,000 draws stands in for it. Tests compare both with the
published figures.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.benchmarks.posteriors import quadrature
from bnnviz.benchmarks.posteriors.catalogue import FOLDER, POSTERIORS, Posterior

DRAWS, SEED = 20_000, 2026
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
    draws = long_run(posterior)
    rhat = max(diagnostics.rhat(draws[..., i]) for i in range(draws.shape[2]))
    least = diagnostics.ess_each(draws).min()
    how = f"numpyro NUTS, {draws.shape[0]} x {draws.shape[1]:,} draws, R-hat {rhat:.4f}, least ESS {least:,.0f}"
    parameters = posterior.parameters(draws.reshape(-1, posterior.dim)).reshape(*draws.shape[:2], -1)
    return of_draws(draws) | {"how": how, "parameters": of_draws(parameters)}


def _exact(mean: np.ndarray, sd: np.ndarray) -> dict[str, Any]:
    none = np.zeros(len(mean))
    return _plain({"mean": mean, "mean_se": none, "sd": sd, "sd_se": none})


def long_run(posterior: Posterior) -> np.ndarray:
    """Return 80,000 draws (chains, draws, dim) of numpyro's NUTS."""
    from bnnviz.benchmarks.posteriors import numpyro_nuts

    potential = numpyro_nuts.flat_potential(posterior)
    return numpyro_nuts.sample(potential, posterior.dim, float("inf"), seed=SEED, most=DRAWS).draws


def of_draws(draws: np.ndarray) -> dict[str, Any]:
    """Return the moments of draws (chains, draws, columns), with errors by batch means, as plain JSON."""
    found = diagnostics.moments_with_errors(draws)
    sd = np.sqrt(np.diag(found.cov))
    return _plain({"mean": found.mean, "mean_se": found.mean_se, "sd": sd, "sd_se": np.diag(found.cov_se) / (2 * sd)})


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
