r"""Map weights to one representative of the networks that differ by the order or signs of hidden units.

A layer of n units with an odd activation has :math:`n! \, 2^n` equivalent weights: for a permutation P and signs S,

.. math:: W_2 \, \phi(W_1 x + b_1) = (W_2 P^\top S) \, \phi(S P W_1 x + S P b_1)

(Chen, Lu and Hecht-Nielsen 1993, https://doi.org/10.1162/neco.1993.5.6.910). Units are matched to those of a reference
by the linear assignment problem (Crouse 2016, https://doi.org/10.1109/TAES.2016.140952).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import scipy

ODD = frozenset({"tanh", "identity"})  # activations with f(-z) = -f(z), for which a unit's sign is arbitrary


class Layer(Protocol):
    """A linear layer in a flat vector of weights: row k of its weight matrix (outputs, inputs) belongs to unit k."""

    inputs: int
    outputs: int
    weight: int
    bias: int | None
    activation: str


def canonical(
    draws: np.ndarray,
    layers: Sequence[Layer],
    reference: np.ndarray | None = None,
    vectors: np.ndarray | None = None,
) -> np.ndarray:
    """Transform draws of a multilayer perceptron to a canonical order and canonical signs of the hidden units.

    With a reference, the units of each layer are permuted (and, for odd activations, their signs changed) to minimise
    the distance of their weights to the reference. Layers are processed from the input to the output. Without a
    reference, units are sorted by their first incoming weight, which is made positive for odd activations. The function
    of the network does not change, and neither does the density if the prior is symmetric.

    Use the result only for plots. The transformation is discontinuous where two units swap, so averages and mixing of
    transformed draws do not describe the chain. It does not merge modes that are not equivalent. The scaling symmetry
    of relu units is not used, because the prior is not invariant under scaling.

    Parameters
    ----------
    draws : ndarray, shape (..., dim)
    layers : sequence of Layer
        All linear layers from input to output. Other coordinates do not change.
    reference : ndarray, shape (dim,), optional
        Weights of the reference. Matching solves one assignment problem per draw and layer, which takes about 0.1 ms
        for 50 units.
    vectors : ndarray, shape (..., dim), optional
        Vectors at the draws, such as velocities. If given, they are transformed and returned instead of the draws.

    Returns
    -------
    ndarray, shape (..., dim)

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics, targets
    >>> network = targets.Network(data="toy_c", hidden="2")
    >>> draw = np.arange(1.0, 8.0)  # incoming weights and biases of two units, their outgoing weights, a bias
    >>> exchanged = draw[[1, 0, 3, 2, 5, 4, 6]]
    >>> both = diagnostics.canonical(np.stack([draw, exchanged]), network.layers)
    >>> bool((both[0] == both[1]).all())
    True
    """
    flat = [np.array(each, copy=True).reshape(-1, each.shape[-1]) for each in (draws, vectors) if each is not None]
    for layer, after in zip(layers[:-1], layers[1:], strict=True):
        if reference is None:
            order, sign = _sorted(flat[0], layer)
        else:
            order, sign = _matched(flat[0], reference[None], layer, after, after is layers[-1])
        for each in flat:
            _arrange(each, layer, after, sign, order)
    return flat[-1].reshape(draws.shape)


def _sorted(rows: np.ndarray, layer: Layer) -> tuple[np.ndarray, np.ndarray]:
    """Return the units (rows, units) sorted by their first weight, and their signs in that order."""
    key = np.stack([_biases(rows, layer), _matrix(rows, layer)[:, :, 0]])
    sign = np.ones_like(key[0])
    if layer.activation in ODD:
        sign[np.where(key[1] != 0, key[1], key[0]) < 0] = -1
    order = np.lexsort(key * sign, axis=-1)
    return order, np.take_along_axis(sign, order, 1)


def _matched(
    rows: np.ndarray, reference: np.ndarray, layer: Layer, after: Layer, last: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the units (rows, units) closest to those of a reference (1, dim), and their signs."""
    goal, given = (_features(each, layer, after, last) for each in (reference, rows))
    # Norms are fixed, so the closest have the largest products.
    products = np.einsum("jf,nkf->njk", goal[0], given)
    odd = layer.activation in ODD
    scores = np.abs(products) if odd else products
    order = np.array([scipy.optimize.linear_sum_assignment(score, maximize=True)[1] for score in scores], dtype=int)
    order = order.reshape(len(rows), layer.outputs)
    picked = np.take_along_axis(products, order[:, :, None], 2)[:, :, 0]
    return order, np.where(picked < 0, -1, 1).astype(rows.dtype) if odd else np.ones_like(picked)


def _features(rows: np.ndarray, layer: Layer, after: Layer, last: bool) -> np.ndarray:
    """Return the weights of each unit (rows, units, weights) that do not depend on other layers' order."""
    incoming = [_matrix(rows, layer), _biases(rows, layer)[:, :, None]]
    return np.concatenate([*incoming, *([_matrix(rows, after).swapaxes(1, 2)] if last else [])], axis=2)


def _arrange(rows: np.ndarray, layer: Layer, after: Layer, sign: np.ndarray, order: np.ndarray) -> None:
    """Apply an order (rows, units) and signs to a layer's units, in place."""
    incoming, outgoing = _matrix(rows, layer), _matrix(rows, after)
    incoming[:] = np.take_along_axis(incoming, order[:, :, None], 1) * sign[:, :, None]
    outgoing[:] = np.take_along_axis(outgoing, order[:, None, :], 2) * sign[:, None, :]
    if layer.bias is not None:
        biases = rows[:, layer.bias : layer.bias + layer.outputs]
        biases[:] = np.take_along_axis(biases, order, 1) * sign


def _matrix(rows: np.ndarray, layer: Layer) -> np.ndarray:
    """Return a view of a layer's weights, (rows, outputs, inputs)."""
    size = layer.inputs * layer.outputs
    return rows[:, layer.weight : layer.weight + size].reshape(-1, layer.outputs, layer.inputs)


def _biases(rows: np.ndarray, layer: Layer) -> np.ndarray:
    if layer.bias is None:
        return np.zeros((len(rows), layer.outputs), dtype=rows.dtype)
    return rows[:, layer.bias : layer.bias + layer.outputs]
