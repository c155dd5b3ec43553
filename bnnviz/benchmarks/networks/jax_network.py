"""Write the posterior of a small tanh network in JAX, for samplers of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bnnviz.targets import BNN


def network_potential(target: BNN, dtype: str = "float32") -> Callable[[Any], Any]:
    """Return U of one vector of weights (dim,): that of a tanh network with one output, up to a constant.

    Parameters
    ----------
    target : BNN
        A multilayer perceptron with tanh units, and a normal or a Bernoulli likelihood.
    dtype : {"float32", "float64"}
    """
    import jax.numpy as jnp
    from jax.nn import softplus

    x, y = (np.asarray(rows.cpu().numpy(), dtype=dtype) for rows in (target.x, target.y))
    regression = target.likelihood.name == "gaussian"

    def potential(theta: Any) -> Any:
        units = x
        for layer in target.layers:
            size = layer.inputs * layer.outputs
            weight = theta[layer.weight : layer.weight + size].reshape(layer.outputs, layer.inputs)
            units = units @ weight.T + theta[layer.bias : layer.bias + layer.outputs]
            units = jnp.tanh(units) if layer.activation == "tanh" else units
        f = units[:, 0]
        fit = ((f - y) ** 2).sum() / (2 * target.likelihood.sd**2) if regression else (softplus(f) - y * f).sum()
        return fit + 0.5 * target.prior_precision * (theta**2).sum()

    return potential
