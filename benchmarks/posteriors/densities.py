r"""Write published posteriors as potentials on unconstrained coordinates.

Each function takes data and states (chains, dim) and returns U (chains,), minus the log density up to a constant, with
the log Jacobian of its transformations: a scale is :math:`e^x`, a share :math:`1 / (1 + e^{-x})`, and of two ordered
means the second is the first plus :math:`e^x`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

#: The data of a posterior, by name.
Data = dict[str, Tensor]


def regression(data: Data, x: Tensor) -> Tensor:
    r"""Return U of a linear regression: coefficients, then the log of the residual scale.

    ``cauchy`` is the scale of the half-Cauchy prior of sigma, infinite for a flat one; ``precision`` is that of the
    normal prior of the coefficients.
    """
    beta, log_sigma = x[:, :-1], x[:, -1]
    residual = data["y"] - beta @ data["design"].T
    fit = normal(residual, log_sigma[:, None]).sum(-1)
    prior = half_cauchy(log_sigma, data["cauchy"]) + 0.5 * data["precision"] * beta.square().sum(-1)
    return fit + prior - log_sigma


def logistic_regression(data: Data, x: Tensor) -> Tensor:
    """Return U of a logistic regression whose coefficients have standard normal priors."""
    logits = x @ data["design"].T
    return (softplus(logits) - data["y"] * logits).sum(-1) + 0.5 * x.square().sum(-1)


def eight_schools_centred(data: Data, x: Tensor) -> Tensor:
    """Return U of eight effects theta, their mean mu and the log of their spread tau."""
    theta, mu, log_tau = x[:, :8], x[:, 8], x[:, 9]
    effects = normal(theta - mu[:, None], log_tau[:, None]).sum(-1)
    return effects + _schools(data, theta, mu, log_tau)


def eight_schools_noncentred(data: Data, x: Tensor) -> Tensor:
    """Return U of eight standardised effects (theta - mu) / tau, of mu and of log tau."""
    standardised, mu, log_tau = x[:, :8], x[:, 8], x[:, 9]
    theta = mu[:, None] + log_tau.exp()[:, None] * standardised
    return 0.5 * standardised.square().sum(-1) + _schools(data, theta, mu, log_tau)


def _schools(data: Data, theta: Tensor, mu: Tensor, log_tau: Tensor) -> Tensor:
    fit = 0.5 * ((data["y"] - theta) / data["sd"]).square().sum(-1)
    return fit + 0.5 * (mu / 5).square() + half_cauchy(log_tau, 5.0) - log_tau


def arma(data: Data, x: Tensor) -> Tensor:
    r"""Return U of an ARMA(1, 1) process: mu, phi, theta and log sigma.

    .. math:: e_t = y_t - \mu - \phi y_{t-1} - \theta e_{t-1}, \qquad e_1 = y_1 - \mu - \phi \mu
    """
    mu, phi, theta, log_sigma = (part[:, None] for part in x.unbind(-1))
    before = torch.cat([mu, data["y"][:-1].expand(len(x), -1)], -1)
    error = filtered(data["y"] - mu - phi * before, -theta)
    prior = 0.5 * ((mu / 10).square() + (phi / 2).square() + (theta / 2).square()) + half_cauchy(log_sigma, 2.5)
    return normal(error, log_sigma).sum(-1) + (prior - log_sigma)[:, 0]


def garch(data: Data, x: Tensor) -> Tensor:
    r"""Return U of a GARCH(1, 1) process: mu, log alpha0, and the shares alpha1 and beta1 / (1 - alpha1).

    .. math:: \sigma_t^2 = \alpha_0 + \alpha_1 (y_{t-1} - \mu)^2 + \beta_1 \sigma_{t-1}^2

    Their priors are flat.
    """
    mu, log_alpha0, share, rest = (part[:, None] for part in x.unbind(-1))
    alpha0, alpha1 = log_alpha0.exp(), share.sigmoid()
    beta1 = (1 - alpha1) * rest.sigmoid()
    residual = data["y"] - mu
    first = data["sigma1"].square().expand(len(x), 1)
    variance = filtered(torch.cat([first, alpha0 + alpha1 * residual[:, :-1].square()], -1), beta1)
    fit = (0.5 * variance.log() + 0.5 * residual.square() / variance).sum(-1)
    jacobian = log_alpha0 + log_share(share) + logsigmoid(-share) + log_share(rest)
    return fit - jacobian[:, 0]


def gauss_mix(data: Data, x: Tensor) -> Tensor:
    """Return U of a mixture of two ordered normals: mu1, log(mu2 - mu1), two log scales, the logit of a share."""
    first, log_gap, log_scales, share = x[:, 0], x[:, 1], x[:, 2:4], x[:, 4]
    means = torch.stack([first, first + log_gap.exp()], -1)
    weights = torch.stack([logsigmoid(share), logsigmoid(-share)], -1)
    parts = weights[:, None] - normal(data["y"][:, None] - means[:, None], log_scales[:, None])
    prior = 0.125 * (means.square() + (2 * log_scales).exp()).sum(-1) - 4 * log_share(share)
    return prior - torch.logsumexp(parts, -1).sum(-1) - log_gap - log_scales.sum(-1) - log_share(share)


def gp_regression(data: Data, x: Tensor) -> Tensor:
    """Return U of a Gaussian process with noise of variance sigma: log rho, log alpha, log sigma."""
    noise = x[:, 2].exp()
    distance = (data["x"][:, None] - data["x"]) / x[:, 0].exp()[:, None, None]
    covariance = (2 * x[:, 1]).exp()[:, None, None] * torch.exp(-0.5 * distance.square())
    eye = torch.eye(len(data["x"]), dtype=x.dtype, device=x.device)
    factor = torch.linalg.cholesky(covariance + noise[:, None, None] * eye)
    whitened = torch.linalg.solve_triangular(factor, data["y"].expand(len(x), -1)[..., None], upper=False)[..., 0]
    fit = 0.5 * whitened.square().sum(-1) + factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    # rho is of Gamma(25, 4), alpha of a half-normal of scale 2, sigma of one of scale 1.
    prior = 4 * x[:, 0].exp() - 25 * x[:, 0] + 0.125 * (2 * x[:, 1]).exp() - x[:, 1] + 0.5 * noise.square() - x[:, 2]
    return fit + prior


# --- parts


def normal(residual: Tensor, log_scale: Tensor) -> Tensor:
    """Return minus the log density of a normal of mean zero at residuals."""
    return 0.5 * math.log(2 * math.pi) + log_scale + 0.5 * (residual * torch.exp(-log_scale)).square()


def half_cauchy(log_scale: Tensor, width: Tensor | float) -> Tensor:
    """Return minus the log density of a half-Cauchy of a width at exp(log_scale), up to a constant."""
    return torch.log1p((torch.exp(log_scale) / width).square())


def log_share(x: Tensor) -> Tensor:
    """Return log p(1 - p) of the share p = 1 / (1 + exp(-x)): the log of dp/dx."""
    return logsigmoid(x) + logsigmoid(-x)


def filtered(values: Tensor, factor: Tensor) -> Tensor:
    r"""Return :math:`e_t = u_t + a e_{t-1}` of values u (chains, time) and factors a (chains, 1).

    It takes a pass for each doubling of time, :math:`(1 - aL)^{-1} = \prod_k \bigl(1 + (aL)^{2^k}\bigr)`, with the
    shift L.
    """
    shift = 1
    while shift < values.shape[1]:
        values = torch.cat([values[:, :shift], values[:, shift:] + factor * values[:, :-shift]], -1)
        factor, shift = factor.square(), 2 * shift
    return values
