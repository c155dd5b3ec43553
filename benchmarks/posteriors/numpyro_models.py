"""Define the same posteriors as numpyro models, as a reference for our densities and NUTS."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import lax, random
from numpyro.infer.util import initialize_model

from benchmarks.posteriors.catalogue import Posterior

Data = dict[str, Any]


def flat_potential(posterior: Posterior) -> Callable[[Any], Any]:
    """Return U of one state (dim,) of our coordinates, made by numpyro from its own model of the posterior."""
    model = getattr(sys.modules[__name__], posterior.model)
    start = initialize_model(random.key(0), model, model_args=(posterior.data(),))
    shapes = {name: value.shape for name, value in start.param_info.z.items()}

    def potential(x: Any) -> Any:
        sites, at = {}, 0
        for name, size in posterior.sites:
            sites[name] = x[at : at + size].reshape(shapes[name])
            at += size
        return start.potential_fn(sites)

    return potential


def regression(data: Data) -> None:
    """Model a linear regression."""
    flat, flat_scale = (_flat(where) for where in (dist.constraints.real, dist.constraints.positive))
    with numpyro.plate("coefficients", data["design"].shape[1]):
        beta = numpyro.sample("beta", dist.Normal(0, data["precision"] ** -0.5) if data["precision"] > 0 else flat)
    sigma = numpyro.sample("sigma", dist.HalfCauchy(data["cauchy"]) if np.isfinite(data["cauchy"]) else flat_scale)
    numpyro.sample("y", dist.Normal(data["design"] @ beta, sigma), obs=data["y"])


def logistic_regression(data: Data) -> None:
    """Model a logistic regression."""
    beta = numpyro.sample("beta", dist.Normal(0, 1).expand([data["design"].shape[1]]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=data["design"] @ beta), obs=data["y"])


def eight_schools_centred(data: Data) -> None:
    """Model eight schools, centred."""
    mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("y", dist.Normal(theta, data["sd"]), obs=data["y"])


def eight_schools_noncentred(data: Data) -> None:
    """Model eight schools, not centred."""
    mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        standardised = numpyro.sample("theta", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(mu + tau * standardised, data["sd"]), obs=data["y"])


def arma(data: Data) -> None:
    """Model an ARMA(1, 1) series."""
    mu, phi = numpyro.sample("mu", dist.Normal(0, 10)), numpyro.sample("phi", dist.Normal(0, 2))
    theta, sigma = numpyro.sample("theta", dist.Normal(0, 2)), numpyro.sample("sigma", dist.HalfCauchy(2.5))

    def error(before: Any, y: Any) -> Any:
        last_y, last_error = before
        now = y - (mu + phi * last_y + theta * last_error)
        return (y, now), now

    _, errors = lax.scan(error, (mu, jnp.zeros_like(mu)), data["y"])
    numpyro.sample("e", dist.Normal(0, sigma), obs=errors)


def garch(data: Data) -> None:
    """Model a GARCH(1, 1) series."""
    mu = numpyro.sample("mu", _flat(dist.constraints.real))
    alpha0 = numpyro.sample("alpha0", _flat(dist.constraints.positive))
    alpha1 = numpyro.sample("alpha1", dist.Uniform(0, 1))
    share = numpyro.sample("share", dist.Uniform(0, 1))
    beta1 = (1 - alpha1) * share
    # A flat beta1 on (0, 1 - alpha1), as in the model: the Jacobian from the share is 1 - alpha1.
    numpyro.factor("flat_beta1", jnp.log1p(-alpha1))

    def variance(before: Any, y: Any) -> Any:
        now = alpha0 + alpha1 * (y - mu) ** 2 + beta1 * before
        return now, now

    first = data["sigma1"] ** 2
    _, others = lax.scan(variance, first, data["y"][:-1])
    scale = jnp.sqrt(jnp.concatenate([jnp.array([first]), others]))
    numpyro.sample("y", dist.Normal(mu, scale), obs=data["y"])


def gauss_mix(data: Data) -> None:
    """Model a mixture of two normals."""
    mu = numpyro.sample("mu", dist.ImproperUniform(dist.constraints.ordered_vector, (), (2,)))
    numpyro.factor("prior_mu", dist.Normal(0, 2).log_prob(mu).sum())
    sigma = numpyro.sample("sigma", dist.HalfNormal(2).expand([2]).to_event(1))
    theta = numpyro.sample("theta", dist.Beta(5, 5))
    parts = dist.Normal(mu, sigma).log_prob(data["y"][:, None]) + jnp.log(jnp.array([theta, 1 - theta]))
    numpyro.factor("y", jnp.logaddexp(parts[:, 0], parts[:, 1]).sum())


def gp_regression(data: Data) -> None:
    """Model a Gaussian process with noise."""
    rho, alpha = numpyro.sample("rho", dist.Gamma(25, 4)), numpyro.sample("alpha", dist.HalfNormal(2))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    kernel = alpha**2 * jnp.exp(-0.5 * ((data["x"][:, None] - data["x"]) / rho) ** 2)
    numpyro.sample("y", dist.MultivariateNormal(0, kernel + sigma * jnp.eye(len(data["x"]))), obs=data["y"])


def _flat(where: Any) -> Any:
    return dist.ImproperUniform(where, (), ())
