"""Check a module, and find out how to call it.

A module is refused if its weights have no posterior, or if a draw of them would not determine its outputs:

1. as it is (`copy_of`): not a module, wrapped, without real weights in memory to sample;
2. with its own weights, in its own precision (`check_outputs`, `check_loaded`): it does not return numbers (rows,
   outputs), or reads trainable tensors that are not sampled;
3. with the weights of two chains, in double precision (`rules_of`): outputs that are not finite, random, dependent
   between rows or not differentiable, and weights that the forward changes.
"""

from __future__ import annotations

import itertools
import logging
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bnnviz.errors import BnnvizError
from bnnviz.targets.base import differentiate
from bnnviz.targets.lines import Fit, fits
from bnnviz.targets.modules import calls
from bnnviz.targets.modules.calls import PROTECTED, CallRules
from bnnviz.targets.user_code import blaming, check_deterministic, check_rows, close, recorded

log = logging.getLogger(__name__)

_ROWS = 4
_MOVE, _STEP = 1e-5, 1e-7  # of weights, for differences of outputs and of gradients
_SLOPES_AGREE = 1e-3  # relative
_FACTORS = (1.0, -1.0, 10.0)  # of weights, to detect clipping
_ROUGH = 2e-3  # of the largest output, for single precision
_MOST_FOLLOWED = 10_000  # weights: larger networks would take seconds

#: From weights (chains, weights), inputs and rules to outputs (chains, rows, outputs). Inputs are (rows, ...) for all
#: chains, or (chains, rows, ...).
Outputs = Callable[[Tensor, Tensor, CallRules], Tensor]
#: The same for given inputs and rules.
Function = Callable[[Tensor], Tensor]


def copy_of(given: Any) -> nn.Module:
    """Return a copy of a module in evaluation mode."""
    if not isinstance(given, nn.Module):
        what = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        raise BnnvizError(f"module must be a torch.nn.Module, not {what}; give an instance of one.", "module")
    for name, child in given.named_modules():
        compiled = isinstance(child, torch.jit.ScriptModule) or hasattr(child.forward, "_torchdynamo_orig_callable")
        if compiled or type(child).__name__ in ("DataParallel", "DistributedDataParallel", "OptimizedModule"):
            raise BnnvizError(
                f"{f'The part {name} of the module' if name else 'The module'} is compiled or wrapped, as by"
                " torch.compile, torch.jit or DataParallel, and takes no weights as arguments; give the original"
                " module.",
                "module",
            )
    for name, held in itertools.chain(given.named_parameters(), given.named_buffers()):
        if isinstance(held, nn.parameter.UninitializedTensorMixin) or held.is_meta:
            raise BnnvizError(
                f"{name} has no values; call a module with lazy layers once on your inputs, and one on the device meta"
                " must be created on the CPU.",
                "module",
            )
        if held.is_complex() or held.layout != torch.strided:
            raise BnnvizError(
                f"{name} is complex or sparse, but samplers need dense real numbers; use to_dense, or two real tensors"
                " that the forward combines with torch.complex.",
                "module",
            )
    if not any(parameter.requires_grad for parameter in given.parameters()):
        raise BnnvizError(
            "The module has no parameters to sample; set requires_grad to True for the unknown weights.", "module"
        )
    _check_memory(given)
    with blaming("The module cannot be copied in evaluation mode ({}); remove attributes that copy.deepcopy rejects."):
        made = calls.copied(given).eval()
    for child in made.modules():
        if isinstance(child, nn.Embedding | nn.EmbeddingBag):
            child.sparse = False  # the flat vector needs dense gradients
    return made


def _check_memory(given: nn.Module) -> None:
    """Raise if a parameter shares memory with another parameter or a buffer, since draws change only the parameter."""
    spans = []
    for name, held in itertools.chain(given.named_parameters(), given.named_buffers()):
        if held.numel():
            last = sum((size - 1) * stride for size, stride in zip(held.shape, held.stride(), strict=True))
            start = held.data_ptr()
            spans.append((start, start + (last + 1) * held.element_size(), name, held.requires_grad))
    for (_, end, one, is_sampled), (start, _, other, other_is) in itertools.pairwise(sorted(spans)):
        if start < end and (is_sampled or other_is):
            raise BnnvizError(
                f"{one} and {other} share memory, but a draw gives each its own values; tie weights by using one"
                " Parameter twice, or give each separate memory (clone()).",
                "module",
            )


def some_rows(x: Tensor) -> Tensor:
    """Return a few evenly spread rows, at least two, which may be equal."""
    if not len(x):
        return x.new_zeros(2, *x.shape[1:])
    return x[torch.linspace(0, len(x) - 1, min(_ROWS, max(len(x), 2))).long()]


def check_outputs(module: nn.Module, x: Tensor, count: int, outputs: int | None, needs: str) -> Tensor:
    """Return the outputs on rows x, some of ``count``; raise unless they are real numbers of the required shape."""
    with blaming(f"The module cannot read inputs of shape {(count, *x.shape[1:])}: {{}}."), torch.no_grad():
        found = calls.call(module, {}, x, PROTECTED)
    if not isinstance(found, Tensor) or not found.is_floating_point():
        what = f"{found.dtype} numbers" if isinstance(found, Tensor) else f"a {type(found).__name__}"
        raise BnnvizError(
            f"The module returns {what}; return only the outputs, a tensor (rows, outputs) of real numbers.", "module"
        )
    if found.ndim != 2 or len(found) != len(x) or outputs not in (None, found.shape[1]):
        raise BnnvizError(
            f"The module returns shape {tuple(found.shape)} for {len(x)} rows; the likelihood needs {needs}.", "module"
        )
    return found


def check_loaded(
    module: nn.Module, weights: dict[str, Tensor], state: dict[str, Any], x: Tensor, rules: CallRules
) -> None:
    """Raise unless weights as arguments determine the outputs as they do when a state dict with them is loaded."""
    weights = {name: held.detach().clone().requires_grad_() for name, held in weights.items()}
    with torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with blaming("The module cannot be called with other weights than its own: {}."):
            found, again = (calls.call(module, weights, x, rules) for _ in range(2))
        check_deterministic("The module", found, again, "module")
        fresh = calls.copied(module)
        fresh.load_state_dict(state)
        loaded = fresh(x.clone())
    # A forward may create trainable tensors itself, for derivatives by its inputs; these differ between calls.
    own = set(map(id, weights.values()))
    first, second = ({id(each.variable) for each in recorded(f) if hasattr(each, "variable")} for f in (found, again))
    if (first & second) - own or not close(found.detach(), loaded.detach()):
        raise BnnvizError(
            "The module's forward reads tensors that draws do not change, such as trainable tensors in a list, a"
            " closure or a global, or tensors computed from parameters in advance; make each a parameter of the layer"
            " that reads it, or compute it in the forward.",
            "module",
        )


def double_outputs(module: nn.Module, x: Tensor) -> Tensor:
    """Return the outputs of a module with its own weights on a few rows x (rows, ...), in double precision."""
    blame = (
        "The module cannot compute in float64 ({}), in which its posterior is checked; remove casts such as x.float()"
        " in its forward, or cast to the precision of a weight, as in x.to(self.weight.dtype)."
    )
    with blaming(blame), torch.no_grad():
        return calls.call(module, {}, x, PROTECTED).detach()


def check_precision(module: nn.Module, x: Tensor, exact: Tensor, dtype: torch.dtype, rules: CallRules) -> None:
    """Raise unless a module computes in its current precision, from rows x and outputs in double precision."""
    device = next(module.parameters()).device
    other = torch.float32 if dtype == torch.float64 else torch.float64
    name, other = (str(kind).removeprefix("torch.") for kind in (dtype, other))
    x = x.to(device, dtype if x.is_floating_point() else None)
    blame = (
        f"The module cannot compute in {name} ({{}}): its forward has tensors or casts of another precision; sample"
        f" with dtype={other!r}, or register these tensors as buffers (register_buffer) and cast to x.dtype."
    )
    with blaming(blame, "dtype"), torch.no_grad():
        found = calls.call(module, {}, x, rules._replace(protects=True)).detach()
    exact = exact.to(device)
    off = float((found.to(exact) - exact).abs().max() / exact.abs().max().clamp_min(1e-12))
    if dtype != torch.float64 and off > _ROUGH:
        raise BnnvizError(
            f"The module's outputs in {name} differ by {100 * off:.2g}% from those in {other}, as under"
            " torch.autocast, with casts to half precision or differences of large numbers; sample with"
            f" dtype={other!r}.",
            "dtype",
        )


def rules_of(
    module: nn.Module, outputs: Outputs, theta: Tensor, own: Tensor, x: Tensor, names: tuple[tuple[str, str], ...]
) -> CallRules:
    """Return how to call a module, by trials with theta (2, weights) and x (rows, ...)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theta, rules = _accepted(outputs, theta, own, x, PROTECTED._replace(one_by_one=True, names=names))
        with torch.no_grad():
            rules = rules._replace(**_effects(module, outputs, theta, x, rules))
            _check_values(outputs, theta, own, x, rules)

        def function(weights: Tensor) -> Tensor:
            return outputs(weights, x, rules)

        each = _derivatives(function, theta)
        _check_gradient(function, theta, each)
        rules = rules._replace(twice=_is_right(function, theta, each), jumps=_jumps(function, theta))
        at_once = rules._replace(one_by_one=False)
        return at_once if _agrees(outputs, theta, x, at_once, each) else rules


def _accepted(outputs: Outputs, theta: Tensor, own: Tensor, x: Tensor, rules: CallRules) -> tuple[Tensor, CallRules]:
    """Return weights that the module accepts: those to try, as views or copied, or else its own."""
    for aligned in (False, True):
        try:
            with torch.no_grad():
                outputs(theta, x, rules._replace(aligned=aligned))
        except Exception:  # the module may reject such weights
            log.debug("The module rejects such weights.", exc_info=True)
        else:
            return theta, rules._replace(aligned=aligned)
    return own.expand(len(theta), -1), rules


def _effects(module: nn.Module, outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> dict[str, bool]:
    """Return whether the forward uses fused kernels, and whether it changes attributes or its inputs."""
    given = x.clone()
    blame = "The module cannot be called with a draw's weights instead of its parameters: {}."
    with blaming(blame), calls.protected(module), calls.MathPaths() as paths:
        before = calls.identities(module)
        outputs(theta, given, rules._replace(protects=False))
        changes = calls.identities(module) != before or not torch.equal(given, x)
    return {"math": paths.used, "protects": changes}


def _check_values(outputs: Outputs, theta: Tensor, own: Tensor, x: Tensor, rules: CallRules) -> None:
    """Raise unless outputs are finite, deterministic and independent between rows, and weights do not change."""
    found = (outputs(weights, x, rules) for weights in (theta, own))
    if not any(bool(torch.isfinite(each).flatten(1).all(1).any()) for each in found):
        raise BnnvizError(
            "The module's outputs on the first rows are not finite, neither with its own weights nor with random ones;"
            " check logarithms, roots and divisions in its forward, and the scale of the inputs.",
            "module",
        )
    for factor in _FACTORS:
        given = factor * theta
        try:
            outputs(given, x, rules)
        except Exception:  # the module may reject such weights
            log.debug("The module rejects weights %g times as large.", factor, exc_info=True)
        if not torch.equal(given, factor * theta):
            raise BnnvizError(
                "The module's forward changes its weights in place, as max_norm of an embedding or weight.data.clamp_"
                " do; derive new tensors from them, as in functional.linear(x, self.weight.clamp(min=0)).",
                "module",
            )
    check_rows("The module", lambda rows: outputs(theta, x[rows], rules).transpose(0, 1), len(x), "module")


class Derivatives(NamedTuple):
    """Outputs of a few rows, and derivatives of a function of them by the weights: first, and second along a vector."""

    outputs: Tensor
    first: Tensor
    second: Tensor | None


def _derivatives(function: Function, theta: Tensor) -> Derivatives:
    """Return outputs and derivatives, with None for a missing second derivative."""
    theta = theta.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        with blaming("The module cannot be called when derivatives are taken: {}."):
            f = function(theta)
        if not f.requires_grad:
            raise BnnvizError(
                "The module's outputs do not depend on its weights in a differentiable way; compute them in the forward"
                " from its parameters in torch, without detach, torch.no_grad, .data or NumPy.",
                "module",
            )
        with blaming("The module's outputs cannot be differentiated by its weights: {}."):
            first = torch.autograd.grad(_value(f).sum(), theta, create_graph=True)[0]
        slope = (first * _along(theta)).sum()
        second: Tensor | None = torch.zeros_like(theta)
        if slope.requires_grad:
            try:
                second = torch.autograd.grad(slope, theta, materialize_grads=True)[0]
            except Exception:  # an operation that can be differentiated only once
                log.debug("The module has no second derivatives.", exc_info=True)
                second = None
    return Derivatives(f.detach(), first.detach(), second)


def _value(f: Tensor) -> Tensor:
    """Return a scalar function (chains,) of outputs."""
    return (torch.linspace(1, 2, f[0].numel(), dtype=f.dtype).view_as(f[0]) * f.square()).sum((1, 2))


def _check_gradient(function: Function, theta: Tensor, each: Derivatives) -> None:
    """Raise unless the gradient predicts the change of the outputs for at least one chain; others may cross a kink."""
    # Some operations have another gradient if a second one is requested.
    slopes = each.first, differentiate(lambda weights: _value(function(weights)), theta)[1]
    along = _along(theta)
    for way, first in itertools.product((along, along.roll(1, -1)), slopes):
        with torch.no_grad():
            ahead, behind = (_value(function(theta + step * way)) for step in (_MOVE, -_MOVE))
        found, parts = (ahead - behind) / (2 * _MOVE), first * way
        scale = torch.maximum(found.abs(), parts.abs().sum(1))
        if ((found - parts.sum(1)).abs() > _SLOPES_AGREE * scale).all():
            raise BnnvizError(
                "The module's outputs do not change with its weights as their derivatives predict, as if part of its"
                " forward is detached, under torch.no_grad, rounded, a padding_idx, or recomputed by"
                " torch.utils.checkpoint; remove that, or set requires_grad to False for these weights.",
                "module",
            )


def _is_right(function: Function, theta: Tensor, each: Derivatives) -> bool:
    """Return whether the second derivative matches differences of first ones for a chain; others may cross a kink."""
    if each.second is None:
        return False
    along = _along(theta)
    ahead, behind = (_derivatives(function, theta + step * along).first for step in (_STEP, -_STEP))
    slopes = (ahead - behind) / (2 * _STEP)
    scale = torch.maximum(slopes.abs(), each.second.abs()).amax(1) + each.first.abs().amax(1)
    return not (torch.abs(slopes - each.second) > _SLOPES_AGREE * scale[:, None]).any(1).all()


def _jumps(function: Function, theta: Tensor) -> bool:
    """Return whether outputs jump along lines between weights."""
    if theta.shape[1] > _MOST_FOLLOWED:
        return False
    ends = torch.cat([theta, -theta[:1]])
    differentiated = partial(differentiate, lambda weights: _value(function(weights)))
    try:
        return Fit.JUMP in fits(differentiated, ends[:-1], ends[1:], least=0.0)
    except Exception:  # the module may reject such weights
        log.debug("The module cannot be evaluated along lines.", exc_info=True)
        return False


def _along(theta: Tensor) -> Tensor:
    """Return a direction without small coordinates."""
    place = torch.arange(theta.numel(), dtype=theta.dtype)
    sign = torch.where((0.618034 * place * place) % 1 < 0.5, -1.0, 1.0).to(theta.dtype)
    return (sign * torch.linspace(0.5, 1, theta.numel(), dtype=theta.dtype)).view_as(theta)


def _agrees(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules, each: Derivatives) -> bool:
    """Return whether chains can be computed together with the same results."""
    try:
        found = _derivatives(lambda weights: outputs(weights, x, rules), theta)
        own = outputs(theta.detach(), x.expand(len(theta), *x.shape), rules)
    except Exception:  # not supported by torch.func.vmap
        log.debug("Chains are computed one after another.", exc_info=True)
        return False
    if (found.second is None) != (each.second is None):
        return False
    pairs = [*zip(found, each, strict=True), (own, each.outputs)]
    return all(close(a, b) for a, b in pairs if a is not None)
