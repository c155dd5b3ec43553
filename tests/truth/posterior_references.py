"""Make the benchmarks' ``references.json``: ``PYTHONPATH=tests python -m truth.posterior_references [NAME ...]``.

Moments come from quadrature, over one scale if the rest is Gaussian given it and over a grid in up to four dimensions,
else from importance sampling from a Student t that is fitted to the posterior. The standard errors of importance
sampling are those of ratios of sums (Owen 2013, *Monte Carlo theory, methods and examples*, section 9.2).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.posteriors.catalogue import FOLDER, POSTERIORS, Posterior
from bnnviz import diagnostics

#: A mean (dim,) and a standard deviation (dim,).
MeanAndSd = tuple[np.ndarray, np.ndarray]

_POINTS = 4001
_REACH = 8.0  # of a grid, in standard deviations
AXIS = {1: 401, 2: 201, 3: 65, 4: 25}  # points along an axis, by dimension
_ROWS = 20_000
_PASSES = 3
_STEPS = 500  # of the search for the mode
_FREEDOM = 8.0  # of the Student t
FITTED, _ROUNDS, _DRAWS = 40_000, 4, 400_000
_SEED = 2026
_DIGITS = 10


def make(posterior: Posterior) -> dict[str, Any]:
    """Return the moments of a posterior's coordinates, and of its parameters if they were integrated too."""
    if posterior.model in OVER_SCALE:
        return _exact(*OVER_SCALE[posterior.model](posterior)) | {"how": "quadrature"}
    if posterior.dim in AXIS:
        points, weight = grid(posterior)
        parameters = _exact(*weighted(posterior.parameters(points), weight))
        return _exact(*weighted(points, weight)) | {"how": "quadrature", "parameters": parameters}
    found = importance(posterior)
    figures = f"{len(found.draws):,} draws, weight ESS {found.ess:,.0f}, Pareto k-hat {found.pareto_k:.2f}"
    parameters = importance_moments(posterior.parameters(found.draws), found.weight)
    return _plain(importance_moments(found.draws, found.weight)) | {
        "how": f"importance sampling, {figures}",
        "parameters": _plain(parameters),
    }


def _exact(mean: np.ndarray, sd: np.ndarray) -> dict[str, Any]:
    none = np.zeros(len(mean))
    return _plain({"mean": mean, "mean_se": none, "sd": sd, "sd_se": none})


def _plain(parts: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: [float(f"{number:.{_DIGITS}g}") for number in part] for name, part in parts.items()}


# --- quadrature


def _regression(posterior: Posterior) -> MeanAndSd:
    """Integrate over log sigma: given sigma the coefficients are Gaussian."""
    data = posterior.data()
    design, y, precision = data["design"], data["y"], float(data["precision"])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    centre = 0.5 * np.log(residual @ residual / len(y))
    log_scales = np.linspace(centre - 3, centre + 4, _POINTS)
    means, variances, logs = [], [], []
    for t in log_scales:
        scale = np.exp(2 * t)
        inner = design.T @ design / scale + precision * np.eye(design.shape[1])
        mean = np.linalg.solve(inner, design.T @ y / scale)
        error = y - design @ mean
        log_cauchy = -np.log1p(scale / data["cauchy"] ** 2)
        quadratic = error @ error / scale + precision * mean @ mean
        logs.append(log_cauchy + t - len(y) * t - 0.5 * quadratic - 0.5 * np.linalg.slogdet(inner)[1])
        means.append(mean)
        variances.append(np.diag(np.linalg.inv(inner)))
    return _mixed(log_scales, np.array(logs), np.array(means), np.array(variances))


def _schools(posterior: Posterior) -> MeanAndSd:
    """Integrate over log tau: given tau, mu and the effects are Gaussian."""
    data = posterior.data()
    y, noise = data["y"], data["sd"] ** 2
    log_scales = np.linspace(-30.0, 12.0, 10 * _POINTS)
    tau = np.exp(log_scales)[:, None]
    spread = noise + tau**2
    variance_mu = 1 / ((1 / spread).sum(1) + 1 / 25)
    mean_mu = variance_mu * (y / spread).sum(1)
    # The product of the likelihoods of y given mu, and of mu's prior, at mu = 0 over its posterior there.
    logs = -0.5 * (np.log(spread) + y**2 / spread).sum(1) + 0.5 * np.log(variance_mu) + 0.5 * mean_mu**2 / variance_mu
    logs += log_scales - np.log1p((tau[:, 0] / 5) ** 2)
    pull = tau**2 / spread  # of an effect's mean to its datum, from mu
    if posterior.model == "eight_schools_centred":
        means = pull * y + (1 - pull) * mean_mu[:, None]
        variances = pull * noise + (1 - pull) ** 2 * variance_mu[:, None]
    else:
        slope = tau / spread
        means = slope * (y - mean_mu[:, None])
        variances = noise / spread + slope**2 * variance_mu[:, None]
    with_mu = np.column_stack([means, mean_mu]), np.column_stack([variances, variance_mu])
    return _mixed(log_scales, logs, *with_mu)


def _mixed(log_scales: np.ndarray, logs: np.ndarray, means: np.ndarray, variances: np.ndarray) -> MeanAndSd:
    """Return moments of a mixture over an even grid of log scales, and then of these."""
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    centres = np.column_stack([means, log_scales])
    within = np.column_stack([variances, np.zeros(len(log_scales))])
    mean = weight @ centres
    return mean, np.sqrt(weight @ (within + (centres - mean) ** 2))


def weighted(values: np.ndarray, weight: np.ndarray) -> MeanAndSd:
    """Return mean and standard deviation of values (rows, columns) with weights (rows,) of sum 1."""
    mean = weight @ values
    return mean, np.sqrt(weight @ (values - mean) ** 2)


def grid(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Return points (rows, dim) around the mode, centred and scaled anew a few times, and weights of sum 1."""
    mean, factor = laplace(posterior)
    axis = np.linspace(-_REACH, _REACH, AXIS[posterior.dim])
    whitened = np.stack(np.meshgrid(*[axis] * posterior.dim, indexing="ij"), -1).reshape(-1, posterior.dim)
    for _ in range(_PASSES):
        points = mean + whitened @ factor.T
        logs = -potentials(posterior.potential, points)
        weight = np.exp(logs - logs.max())
        weight /= weight.sum()
        mean = weight @ points
        factor = np.linalg.cholesky(((points - mean) * weight[:, None]).T @ (points - mean))
    return points, weight


def laplace(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Return the mode (dim,), and a Cholesky factor (dim, dim) of the inverse curvature there."""
    x = torch.zeros(1, posterior.dim, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([x], max_iter=_STEPS, tolerance_grad=1e-8, line_search_fn="strong_wolfe")

    def potential() -> torch.Tensor:
        search.zero_grad()
        value = posterior.potential(x).sum()
        value.backward()
        return value

    search.step(potential)
    mode = x.detach()[0]
    curvature = torch.autograd.functional.hessian(lambda point: posterior.potential(point[None])[0], mode)
    return mode.numpy(), np.linalg.cholesky(np.linalg.inv(curvature.numpy()))


def potentials(potential: Callable[[torch.Tensor], torch.Tensor], points: np.ndarray) -> np.ndarray:
    """Return U (rows,) at points (rows, dim)."""
    parts = torch.split(torch.as_tensor(points, dtype=torch.float64), _ROWS)
    return torch.cat([potential(part) for part in parts]).numpy()


#: How posteriors are integrated that are Gaussian given one scale, by their models.
OVER_SCALE: dict[str, Callable[[Posterior], MeanAndSd]] = {
    "regression": _regression,
    "eight_schools_centred": _schools,
    "eight_schools_noncentred": _schools,
}


# --- importance sampling


class WeightedDraws(NamedTuple):
    """Draws (rows, dim) with weights (rows,) of sum 1, their effective sample size, and Pareto's k-hat."""

    draws: np.ndarray
    weight: np.ndarray
    ess: float
    pareto_k: float


def importance(posterior: Posterior, draws: int = _DRAWS) -> WeightedDraws:
    """Return weighted draws; the proposal takes mean and covariance of its own draws a few times."""
    rng = np.random.default_rng(_SEED)
    mean, factor = laplace(posterior)
    for count in (*[FITTED] * _ROUNDS, draws):
        scale = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, count))[:, None]
        whitened = scale * rng.standard_normal((count, posterior.dim))
        points = mean + whitened @ factor.T
        proposal = -0.5 * (_FREEDOM + posterior.dim) * np.log1p((whitened**2).sum(1) / _FREEDOM)
        logs = -potentials(posterior.potential, points) - proposal
        weight = np.exp(logs - logs.max())
        weight /= weight.sum()
        mean = weight @ points
        factor = np.linalg.cholesky(((points - mean) * weight[:, None]).T @ (points - mean))
    return WeightedDraws(points, weight, float(1 / (weight**2).sum()), diagnostics.pareto_k(logs))


def importance_moments(values: np.ndarray, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Return mean and standard deviation of values (rows, columns) with their standard errors."""
    mean = weight @ values
    off = values - mean
    variance = weight @ off**2
    sd = np.sqrt(variance)
    variance_se = np.sqrt(weight**2 @ (off**2 - variance) ** 2)
    return {"mean": mean, "mean_se": np.sqrt(weight**2 @ off**2), "sd": sd, "sd_se": variance_se / (2 * sd)}


def main(names: list[str]) -> None:
    """Make the references of these posteriors, or of all, and keep the others."""
    place = FOLDER / "references.json"
    kept = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    kept |= {name: make(POSTERIORS[name]) for name in names or POSTERIORS}
    ordered = {name: kept[name] for name in POSTERIORS if name in kept}
    place.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
