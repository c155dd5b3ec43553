r"""Compute a posterior's potential, gradient and curvature, along a direction or by Gauss-Newton.

For rows :math:`(x_i, y_i)`, outputs :math:`f_i = f_\theta(x_i)` with Jacobians :math:`J_i = \partial f_i / \partial
\theta`, and losses :math:`\ell_i = -\log p(y_i \mid f_i)`,

.. math::
    \nabla U = \sum_i J_i^\top \frac{\partial \ell_i}{\partial f_i} + \frac{\theta}{\sigma^2}, \qquad
    v^\top \nabla^2 U v = \sum_i \Big[ (J_i v)^\top \frac{\partial^2 \ell_i}{\partial f_i^2} (J_i v)
    + \frac{\partial \ell_i}{\partial f_i} \cdot \frac{\mathrm{d}^2 f_i}{\mathrm{d} s^2} \Big]
    + \frac{|v|^2}{\sigma^2},

with the last derivative along :math:`\theta + s v`. The Gauss-Newton matrix :math:`\sum_i J_i^\top (\partial^2 \ell_i /
\partial f_i^2) J_i` omits this term and is positive semidefinite (Schraudolph 2002,
https://doi.org/10.1162/08997660260028683).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from bnnviz.targets import likelihoods, mlp_gradients, mlp_native
from bnnviz.targets.base import differentiate, differentiate_twice, gradients_apart
from bnnviz.targets.bnn_outputs import NetworkOutputs
from bnnviz.targets.minibatch import Rows
from bnnviz.targets.modules.calls import call
from bnnviz.targets.native import NativeGradient

_JACOBIAN_NUMBERS = 10_000_000  # maximum size of the stored derivatives of outputs by weights
# Maximum size of the derivatives over all rows, above which the Gauss-Newton diagonal is estimated.
_MOST_JACOBIAN = 400_000_000
# An estimate sums over blocks of at most this many rows, repeated until there are 200 terms: its relative standard
# error is a tenth if rows are similar.
_SIGNED_ROWS, _SIGNED_TERMS = 50, 200
_CACHE_BYTES = 500_000  # of one layer's activations, for the chains that are computed together


class NetworkCurvature(NetworkOutputs):
    """The negative log posterior of a network's weights, with gradient and curvature."""

    likelihood: likelihoods.Likelihood
    widest: int  # units of the widest layer of a perceptron
    x: Tensor
    y: Tensor
    _native: mlp_native.NativeDerivatives | None = None

    def use_native(self, waits: bool) -> None:
        """Compute derivatives in C++ from now on, if available; for small networks this is many times faster."""
        self._native = None
        self._native = mlp_native.derivatives(self, waits)

    def native_gradient(self, x: Tensor) -> NativeGradient | None:
        """Return U and its gradient at states shaped like x (chains, dim) as a C function; None if unavailable."""
        rows = self.all_rows()
        return self._native.function(rows) if self._native is not None and self._native.suit(x, rows) else None

    def likelihood_at(self, theta: Tensor) -> likelihoods.Likelihood:
        """Return the likelihood for states (chains, dim), with each chain's noise if that is learned."""
        return self.likelihood.at(self._raw(theta))

    def _raw(self, theta: Tensor) -> Tensor:
        """Return the likelihood's parameters (chains, parameters), which are N(0, 1) a priori."""
        coordinates = theta[:, theta.shape[1] - self.likelihood_dim :]
        return self.prior_precision**0.5 * coordinates if self.likelihood_dim else coordinates

    def named_values(self, x: Tensor) -> dict[str, Tensor]:
        """Return the parameters of module and likelihood, ``(n, *shape)`` by name, at states x (n, dim)."""
        return self.unflatten(x) | self.own_values(x)

    def own_values(self, x: Tensor) -> dict[str, Tensor]:
        """Return the likelihood's parameters, such as ``noise_sd``, at states x (n, dim)."""
        return self.likelihood.natural(self._raw(x))

    def all_rows(self) -> Rows:
        """Return the training rows."""
        return Rows(self.x, self.y)

    def potential_on(self, theta: Tensor, rows: Rows) -> Tensor:
        """Return weighted negative log likelihood plus ``|theta|^2 / (2 prior_sd^2)``, up to a constant."""
        if self._native is not None and self._native.suit(theta, rows):
            return self._native.gradient(theta, rows)[0]  # faster than PyTorch without derivatives
        loss = sum(self._loss(theta, piece) for piece in self._pieces(rows, len(theta)))
        return rows.weight * loss + 0.5 * self.prior_precision * theta.square().sum(-1)

    def _loss(self, theta: Tensor, rows: Rows) -> Tensor:
        """Return the negative log likelihood (chains,) of rows in the network's form, up to a constant."""
        return self.likelihood_at(theta).loss(self._outputs_of(theta, rows.x, self._chainwise(rows)), rows.y)

    def fit_under_masks(self, theta: Tensor, rows: Rows, masks: Sequence[Tensor]) -> Tensor:
        """Return the weighted negative log likelihood (chains,) under masks as in `mlp_gradients.outputs`."""
        f = mlp_gradients.outputs(self.layers, self.weights_of(theta), self.seen(rows.x), masks)
        return rows.weight * self.likelihood_at(theta).loss(f, rows.y)

    def fit_under_noise(self, mean: Tensor, sd: Tensor, rows: Rows, noise: Sequence[Tensor]) -> Tensor:
        """Return the weighted negative log likelihood (chains,) under ``noise`` as in `mlp_gradients.noisy_outputs`.

        If the likelihood has parameters, the last element (chains, parameters) draws them.
        """
        own = self.likelihood_dim
        *layers, last = noise if own else [*noise, noise[-1].new_zeros(len(mean), 0)]
        weights, spread = mean, sd
        if self.weight_prior is not None:
            weights, spread = self.weights_of(mean), sd[:, : self.weights] * self.weight_prior.factor(mean)
        f = mlp_gradients.noisy_outputs(self.layers, weights, spread, self.seen(rows.x), layers)
        end = mean.shape[1] - own
        return rows.weight * self.likelihood_at(mean[:, end:] + sd[:, end:] * last).loss(f, rows.y)

    def gradient_on(self, theta: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return U and its gradient; by hand for multilayer perceptrons, by autograd for other modules."""
        if self._native is not None and self._native.suit(theta, rows):
            return self._native.gradient(theta, rows)
        if self.layers is None:
            return self._value_and_gradient(rows, theta)
        return self._in_parts(self._value_and_gradient, rows, theta)

    def _in_parts(self, compute: Callable[..., tuple[Tensor, ...]], rows: Rows, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Compute for a few chains at a time, so that intermediate results fit in the CPU's cache."""
        each = self.widest * max(self.count(rows), 1) * self.dtype.itemsize
        chains = max(1, _CACHE_BYTES // each)
        if tensors[0].device.type != "cpu" or len(tensors[0]) <= chains:
            return compute(rows, *tensors)
        parts = zip(*(torch.split(tensor, chains) for tensor in tensors), strict=True)
        chainwise = self._chainwise(rows)
        done = [
            compute(rows._replace(x=rows.x[k : k + chains], y=rows.y[k : k + chains]) if chainwise else rows, *part)
            for k, part in zip(range(0, len(tensors[0]), chains), parts, strict=True)
        ]
        return tuple(torch.cat(column) for column in zip(*done, strict=True))

    def _value_and_gradient(self, rows: Rows, theta: Tensor) -> tuple[Tensor, Tensor]:
        loss, gradient = self._summed(self._derived, rows, theta)
        return self._with_prior(theta, rows.weight, loss, gradient)

    def _with_prior(self, theta: Tensor, weight: float, loss: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and its gradient from those of the negative log likelihood, which are overwritten."""
        if weight != 1:
            gradient, loss = gradient.mul_(weight), loss.mul_(weight)
        gradient.add_(theta, alpha=self.prior_precision)
        return loss + 0.5 * self.prior_precision * theta.square().sum(-1), gradient

    def _derived(self, rows: Rows, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return the negative log likelihood of rows in the network's form, and its gradient."""
        if self.layers is not None:
            run = mlp_gradients.forward(self.layers, self.weights_of(theta), rows.x)
            return self._derived_by_hand(theta, rows, run)[:2]
        if not self._loops(len(theta)) or self.likelihood_dim or self.weight_prior is not None:
            return differentiate(lambda x: self._loss(x, rows), theta)
        loss, gradient, chainwise = theta.new_empty(len(theta)), torch.empty_like(theta), self._chainwise(rows)
        for k, flat in enumerate(theta):
            loss[k], parts = self._derived_of_one(flat, *((rows.x[k], rows.y[k]) if chainwise else (rows.x, rows.y)))
            torch.cat([part.flatten() for part in parts], out=gradient[k])
        return loss, gradient

    def _derived_of_one(self, flat: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """Return one chain's negative log likelihood, and its derivatives by each of the module's parameters."""
        # A flat vector would be copied, which takes a tenth of a small network's gradient.
        leaves = {name: part.detach().requires_grad_(True) for name, part in self.unflatten(flat).items()}
        with torch.enable_grad():
            f = call(self.module, leaves, x, self.rules)
            loss = self.likelihood.loss(f[None], y)[0]
            return loss.detach(), torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)

    def _derived_by_hand(self, theta: Tensor, rows: Rows, run: mlp_gradients.Pass) -> tuple[Tensor, Tensor, Tensor]:
        """Return a perceptron's negative log likelihood, its gradient, and its derivative by the outputs."""
        loss, residual, slope = self.likelihood.derivatives(run.outputs, rows.y, self._raw(theta))
        gradient = mlp_gradients.backward(self.layers, self.weights_of(theta), run, residual)
        if self.weight_prior is not None:
            gradient = self.weight_prior.pulled_back(theta, gradient)
            gradient = torch.nn.functional.pad(gradient, (0, self.likelihood_dim))
        if self.likelihood_dim:
            gradient[:, -self.likelihood_dim :] = self.prior_precision**0.5 * slope
        return loss, gradient, residual

    def curvature_on(self, theta: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and v' H v; by hand for multilayer perceptrons without learned scales."""
        if self._native is not None and self._native.curves and self._native.suit(theta, rows):
            return self._native.curvature(theta, v, rows)
        if self.layers is None or self.scale_names:
            return super().curvature_on(theta, v, rows)
        return self._in_parts(self._all_derivatives, rows, theta, v)

    def _all_derivatives(self, rows: Rows, theta: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        loss, gradient, fit = self._summed(self._derived_twice, rows, theta, v)
        derived = self._with_prior(theta, rows.weight, loss, gradient)
        return *derived, rows.weight * fit + self.prior_precision * v.square().sum(-1)

    def _derived_twice(self, rows: Rows, theta: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return a multilayer perceptron's negative log likelihood, its gradient and its curvature along v."""
        weights = self.weights_of(theta)
        run = mlp_gradients.forward(self.layers, weights, rows.x)
        first, second = mlp_gradients.directional(self.layers, weights, self.weights_of(v), run)
        loss, gradient, residual = self._derived_by_hand(theta, rows, run)
        bend = self.likelihood.curvature(run.outputs, rows.y, self._raw(theta), first, self._raw(v))
        return loss, gradient, (residual * second).sum((1, 2)) + bend

    def product_on(self, theta: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and H v, by automatic differentiation."""
        loss, gradient, product = self._summed(self._differentiated_twice, rows, theta, v)
        product = product.mul_(rows.weight).add_(v, alpha=self.prior_precision)
        return *self._with_prior(theta, rows.weight, loss, gradient), product

    def _differentiated_twice(self, rows: Rows, theta: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the negative log likelihood of rows in the network's form, its gradient and H v."""

        def loss(at: Tensor) -> Tensor:
            return self._loss(at, rows)

        if self.rules.twice:
            return differentiate_twice(loss, theta, v)
        return *differentiate(loss, theta), gradients_apart(loss, theta, v)

    def curvature_diagonal(self, x: Tensor, part: slice = slice(None)) -> Tensor:
        """Return part of the Gauss-Newton diagonal of the negative log likelihood at one point (dim,).

        Without a prior of the weights and with more than 4e8 derivatives of outputs, it is estimated by random signs.
        """
        large = self.weight_prior is None and len(x[part]) * len(self.x) * self.outputs_per_row > _MOST_JACOBIAN
        total = self._signed_diagonal(x)[part] if large else self._exact_diagonal(x, part)
        if self._holds_own(part):
            total[-self.likelihood_dim :] = self._own_curvature(x)
        return total

    def _own_curvature(self, x: Tensor) -> Tensor:
        """Return the curvature by the likelihood's parameters at one point (dim,)."""
        total = x.new_zeros(self.likelihood_dim)
        for piece in self._pieces(self.all_rows(), 1):
            f = self._outputs_of(x[None], piece.x).detach()
            total += self.likelihood.information(f, piece.y, self._raw(x[None])).sum(0)
        return self.prior_precision * total

    def _exact_diagonal(self, x: Tensor, part: slice) -> Tensor:
        total = torch.zeros_like(x[part])
        for jacobian, f, y in self._jacobians(x, part):
            total += (jacobian * (self.likelihood_at(x[None]).hessian(f[None], y)[0] @ jacobian)).sum((0, 1))
        return total

    def _signed_diagonal(self, x: Tensor) -> Tensor:
        """Return an estimate (dim,) of the Gauss-Newton diagonal.

        With H = L L' the Hessian of a row's loss by its outputs, J their derivatives by the weights and z random signs,
        (sum of J' L z over some rows)^2 has the expectation sum of diag(J' H J): cross terms of two rows cancel.
        """
        rng = torch.Generator(device=x.device).manual_seed(0)
        each = min(_SIGNED_ROWS, self._rows_at_once(1))
        rows = list(zip(torch.split(self.x, each), torch.split(self.y, each), strict=True))
        times, total = -(-_SIGNED_TERMS // len(rows)), torch.zeros_like(x)
        for part, y in rows:
            leaves = {name: view.detach().requires_grad_(True) for name, view in self.unflatten(x).items()}
            with torch.enable_grad():
                f = call(self.module, leaves, self.seen(part), self.rules)
            root = self.likelihood_at(x[None]).root(f.detach()[None], y)[0]
            for _ in range(times):
                signs = torch.randint(2, f.shape, generator=rng, device=x.device).to(x.dtype) * 2 - 1
                pull = torch.einsum("rok,rk->ro", root, signs)
                found = torch.autograd.grad(f, list(leaves.values()), pull, retain_graph=True, materialize_grads=True)
                total[: self.dim - self.likelihood_dim] += torch.cat([one.flatten() for one in found]).square()
        return total / times

    def curvature_matrix(self, x: Tensor, part: slice = slice(None)) -> Tensor:
        """Return a block of the Gauss-Newton matrix at one point (dim,), diagonal for the likelihood's parameters."""
        total = x.new_zeros(len(x[part]), len(x[part]))
        for jacobian, f, y in self._jacobians(x, part):
            inner = self.likelihood_at(x[None]).hessian(f[None], y)[0] @ jacobian
            total += torch.einsum("rod,roe->de", jacobian, inner)
        if self._holds_own(part):
            own = slice(-self.likelihood_dim, None)
            total[own, own] = torch.diag(self._own_curvature(x))
        return total

    def _holds_own(self, part: slice) -> bool:
        return bool(self.likelihood_dim) and part.indices(self.dim)[1] == self.dim

    def _jacobians(self, theta: Tensor, part: slice) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield derivatives of outputs by a part of the weights (rows, outputs, weights), outputs and observations."""
        first, last, _ = part.indices(self.dim)

        def one(flat: Tensor, row: Tensor) -> Tensor:
            return self._one(torch.cat([theta[:first], flat, theta[last:]]), row[None])[0]

        at_once = max(1, _JACOBIAN_NUMBERS // (max(last - first, self._units) * self.outputs_per_row))
        parts = zip(torch.split(self.x, at_once), torch.split(self.y, at_once), strict=True) if len(self.x) else ()
        for x, y in parts:
            rows = self.seen(x)
            # A copy of the weights for each row separates its derivatives. torch.func.jacrev would import torch's
            # compiler, which delays a worker's first run by more than a second.
            with torch.enable_grad():
                copies = theta[part].detach().expand(len(rows), -1).clone().requires_grad_(True)
                each = (one(flat, row) for flat, row in zip(copies, rows, strict=True))
                f = torch.stack(list(each)) if self.rules.one_by_one else torch.func.vmap(one)(copies, rows)
                slopes = [torch.autograd.grad(of_one.sum(), copies, retain_graph=True)[0] for of_one in f.unbind(1)]
            yield torch.stack(slopes, 1), f.detach(), y
