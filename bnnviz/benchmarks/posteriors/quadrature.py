"""Compute moments of posteriors by quadrature: over one scale where the rest is Gaussian, or over a grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from bnnviz.benchmarks.posteriors.catalogue import Posterior

#: A mean (dim,) and a standard deviation (dim,).
MeanAndSd = tuple[np.ndarray, np.ndarray]

_POINTS = 4001
_REACH = 8.0  # of a grid, in standard deviations
AXIS = {1: 401, 2: 201, 3: 65, 4: 25}  # points along an axis, by dimension
_ROWS = 20_000
_PASSES = 3
_STEPS = 500  # of the search for the mode


def moments(posterior: Posterior) -> MeanAndSd | None:
    """Return mean and standard deviation of the coordinates, or None where no quadrature is known."""
    if posterior.model in OVER_SCALE:
        return OVER_SCALE[posterior.model](posterior)
    return over_grid(posterior) if posterior.dim in AXIS else None


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


def over_grid(posterior: Posterior) -> MeanAndSd:
    """Return mean and standard deviation of the coordinates over a `grid`."""
    points, weight = grid(posterior)
    return weighted(points, weight)


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
