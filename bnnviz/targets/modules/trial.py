"""Try a module on a few rows: how to call it, and whether its rows have independent likelihoods."""

from __future__ import annotations

import itertools
import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bnnviz.errors import BnnvizError
from bnnviz.targets.lines import Fit, fits
from bnnviz.targets.modules import calls
from bnnviz.targets.modules.calls import CallRules

log = logging.getLogger(__name__)

_ROWS, _CHAINS = 4, 2
_AGREE = 1e-5  # relative; dependent rows differ by more, casts to float32 by less
_MOVE, _STEP = 1e-5, 1e-7  # of weights, for differences of outputs and of gradients
_SLOPES_AGREE = 1e-3  # relative
_FACTORS = (1.0, -1.0, 10.0)  # of weights, to detect clipping
_ROUGH = 2e-3  # of the largest output, for single precision
_OF_DTYPES = re.compile(r"\b(dtype|Double|Float|Half|BFloat16)\b")
_MOST_FOLLOWED = 10_000  # weights: larger networks would take seconds
_LONGEST = 200  # characters of a user's error

#: From weights (chains, weights) and inputs to outputs (chains, rows, outputs), chain by chain or together. Inputs are
#: (rows, ...) for all chains, or (chains, rows, ...).
Outputs = Callable[[Tensor, Tensor, CallRules], Tensor]


class Derivatives(NamedTuple):
    """Outputs of a few rows, and derivatives of a function of them by the weights: first, and second along a vector."""

    outputs: Tensor
    first: Tensor
    second: Tensor | None


def first_line(error: Exception) -> str:
    """Return the first line of an error of the user's code, without its full stop."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:_LONGEST].rstrip(".")


@contextmanager
def blaming(sentence: str, field: str = "module") -> Iterator[None]:
    """Raise a `BnnvizError` for any error of the user's code in a block; ``{}`` of the sentence is its first line."""
    try:
        yield
    except Exception as error:
        raise BnnvizError(sentence.format(first_line(error)), field) from error


def is_of_precision(error: Exception) -> bool:
    """Return whether an error is due to mixed precisions."""
    return _OF_DTYPES.search(first_line(error)) is not None


def rules_of(
    module: nn.Module,
    outputs: Outputs,
    theta: Tensor,
    own: Tensor,
    x: Tensor,
    names: tuple[tuple[str, str], ...] = (),
) -> CallRules:
    """Return how to call a module, by trials with theta (2, weights) and x (rows, ...)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rules = CallRules(one_by_one=True, names=names, copies=True)
        theta, rules = _bearable(outputs, theta, own, x, rules)
        rules = _first_rules(module, outputs, theta, x, rules)
        _check_finite(outputs, theta, own, x, rules)
        _check_weights_stay(outputs, theta, x, rules)
        _check_repeats(outputs, theta, x, rules)
        _check_rows_alone(outputs, theta, x, rules)
        _check_leaves(outputs, theta, x, rules)
        each = _derivatives(outputs, theta, x, rules)
        _check_gradient(outputs, theta, x, rules, each)
        rules = rules._replace(jumps=_jumps(outputs, theta, x, rules))
        rules = rules._replace(twice=_is_right(outputs, theta, x, rules, each))
        at_once = rules._replace(one_by_one=False)
        return at_once if _agrees(outputs, theta, x, at_once, each) else rules


class Trial(NamedTuple):
    """The outputs of a module with its own weights on a few rows, in double precision."""

    x: Tensor
    outputs: Tensor


def tried(module: nn.Module, x: Tensor, rules: CallRules) -> Trial:
    """Return the outputs of a module on a few rows x (rows, ...)."""
    with torch.no_grad():
        return Trial(x, calls.call(module, {}, x, rules))


def check_precision(module: nn.Module, trial: Trial, dtype: torch.dtype, rules: CallRules) -> None:
    """Raise unless a module computes in its current precision."""
    device = next(module.parameters()).device
    other = torch.float32 if dtype == torch.float64 else torch.float64
    name, other = (str(kind).removeprefix("torch.") for kind in (dtype, other))
    x = trial.x.to(device, dtype if trial.x.is_floating_point() else None)
    blame = (
        f"The module cannot compute in {name} ({{}}): its forward has tensors or casts of another precision; sample"
        f" with dtype={other!r}, or register these tensors as buffers (register_buffer) and cast to x.dtype."
    )
    with blaming(blame, "dtype"), torch.no_grad():
        found = calls.call(module, {}, x, rules._replace(restores=True))
    exact = trial.outputs.to(device)
    off = float((found.to(exact) - exact).abs().max() / exact.abs().max().clamp_min(1e-12))
    if dtype != torch.float64 and off > _ROUGH:
        raise BnnvizError(
            f"The module's outputs in {name} differ by {100 * off:.2g} % from those in {other}, as under"
            " torch.autocast, with casts to half precision or differences of large numbers; sample with"
            f" dtype={other!r}.",
            "dtype",
        )


def check_computed(module: nn.Module, attributes: Sequence[tuple[str, str]], x: Tensor, rules: CallRules) -> None:
    """Raise if outputs at x (rows, ...) depend on tensors computed in advance, which draws do not update."""
    before = tried(module, x, rules).outputs
    for owner, name in attributes:
        held = vars(module.get_submodule(owner))
        kept = held[name]
        held[name] = kept + 1
        try:
            changed = not torch.equal(tried(module, x, rules._replace(restores=True)).outputs, before)
        finally:
            held[name] = kept
        if changed:
            raise BnnvizError(
                f"The attribute {f'{owner}.{name}' if owner else name} was computed from parameters in advance, so"
                " draws do not change it; compute it in the forward, or register a parametrization.",
                "module",
            )


def unreadable(module: nn.Module, x: Tensor, shape: tuple[int, ...], error: Exception) -> BnnvizError:
    """Return the error for a module that fails on inputs x, some of those of a shape, in double precision."""
    if not _reads(calls.move(calls.copied(module), x.device, torch.float32), x.to(torch.float32)):
        mixed = "; remove casts, so that it uses one precision" if is_of_precision(error) else ""
        return BnnvizError(f"The module cannot read inputs of shape {shape}: {first_line(error)}{mixed}.", "module")
    return BnnvizError(
        f"The module computes only in float32 ({first_line(error)}), but its posterior is checked in float64; remove"
        " casts such as x.float() in its forward, or cast to the precision of a weight, as in"
        " x.to(self.weight.dtype).",
        "module",
    )


def reads_whole(module: nn.Module, x: Tensor) -> bool:
    """Return whether a module accepts the first rows of integer inputs x as integers."""
    return bool((x == x.round()).all()) and _reads(calls.copied(module), x[:2].long())


def _reads(module: nn.Module, x: Tensor) -> bool:
    """Return whether a module can be called on inputs."""
    try:
        with torch.no_grad():
            module(x)
    except Exception:  # any error of the user's code
        log.debug("The module cannot be called on %s numbers.", x.dtype, exc_info=True)
        return False
    return True


def some_rows(x: Tensor) -> Tensor:
    """Return a few evenly spread rows, at least two, which may be equal."""
    if not len(x):
        return x.new_zeros(2, *x.shape[1:])
    return x[torch.linspace(0, len(x) - 1, min(_ROWS, max(len(x), 2))).long()]


def _bearable(outputs: Outputs, theta: Tensor, own: Tensor, x: Tensor, rules: CallRules) -> tuple[Tensor, CallRules]:
    """Return weights that the module accepts: those to try, as views or copied, or else its own."""
    for aligned in (False, True):
        try:
            with torch.no_grad():
                outputs(theta, x, rules._replace(restores=True, aligned=aligned))
        except Exception:  # the module may reject such weights
            log.debug("The module rejects such weights.", exc_info=True)
        else:
            return theta, rules._replace(aligned=aligned)
    return own.expand(_CHAINS, -1), rules


def _first_rules(module: nn.Module, outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> CallRules:
    """Return the rules that do not depend on derivatives."""
    before, given = calls.attributes(module), x.clone()
    blame = (
        "The module cannot be called with a draw's weights instead of its parameters: {}; let its forward read them as"
        " attributes of the module."
    )
    with blaming(blame), torch.no_grad(), calls.SeenFunctions() as seen:
        outputs(theta, given, rules._replace(copies=False))
    restores = calls.leaves_something(before)
    for child, values in before:
        calls.restore(child, values)
    copies = not torch.equal(given, x)
    return rules._replace(math=not calls.FUSED.isdisjoint(seen.found), restores=restores, copies=copies)


def _check_weights_stay(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> None:
    """Raise if the forward modifies its weights, which are a chain's position."""
    for factor in _FACTORS:
        given = factor * theta
        try:
            with torch.no_grad():
                outputs(given, x, rules)
        except Exception:  # the module may reject such weights
            log.debug("The module rejects weights %g times as large.", factor, exc_info=True)
        if not torch.equal(given, factor * theta):
            raise BnnvizError(
                "The module's forward changes its weights in place, as max_norm of an embedding or weight.data.clamp_"
                " do; derive new tensors from them, as in functional.linear(x, self.weight.clamp(min=0)).",
                "module",
            )


def _check_repeats(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> None:
    with torch.no_grad():
        first, second = (outputs(theta, x, rules) for _ in range(2))
    if not torch.equal(torch.nan_to_num(first), torch.nan_to_num(second)):
        raise BnnvizError(
            "The module's outputs differ between calls in evaluation mode, so there is no likelihood; remove random"
            " numbers, as in functional.dropout(x, training=self.training), and state that is kept between calls.",
            "module",
        )


def _check_rows_alone(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> None:
    with torch.no_grad():
        together = outputs(theta, x, rules)
        blame = (
            "The module cannot process one row alone ({}), so rows have no likelihood; avoid batch statistics, as in"
            " batch normalisation in training mode."
        )
        with blaming(blame):
            alone = torch.cat([outputs(theta, row[None], rules) for row in x], 1)
    if alone.shape != together.shape or not close(alone, together):
        raise BnnvizError(
            "The module's output for one row depends on the others, so rows have no likelihood; use layer or group"
            " normalisation instead of batch statistics, and keep rows as the first axis.",
            "module",
        )


def _check_leaves(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> None:
    """Raise if outputs depend on trainable tensors other than the weights, since draws do not update them.

    Tensors that a call creates itself, as for derivatives by the inputs, are allowed.
    """
    theta = theta.detach().clone().requires_grad_(True)
    first, second = (_leaves(outputs, theta, x, rules) for _ in range(2))
    if any(one is other for one in first for other in second):
        raise BnnvizError(
            "The module's forward reads trainable tensors that are not its parameters, such as in a closure, a global"
            " or a list, which draws do not change; make each an attribute of the layer that reads it.",
            "module",
        )


def _leaves(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> list[Tensor]:
    """Return the tensors other than the weights on which the outputs depend."""
    with torch.enable_grad():
        try:
            nodes = recorded(outputs(theta, x, rules))
        except Exception:  # reported where derivatives are needed
            log.debug("The module is not called with derivatives.", exc_info=True)
            return []
    return [node.variable for node in nodes if getattr(node, "variable", theta) is not theta]


def recorded(value: Tensor, most: float = math.inf) -> set[Any]:
    """Return the operations from which a value was computed, as autograd records them, at most about ``most``."""
    todo = [value.grad_fn]
    found = set(todo)
    while todo and len(found) < most:
        later = {each for each, _ in getattr(todo.pop(), "next_functions", ()) if each is not None} - found
        found |= later
        todo += later
    return found


def _derivatives(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> Derivatives:
    """Return outputs and derivatives, with None for a missing second derivative."""
    theta = theta.detach().clone().requires_grad_(True)
    along = _along(theta)
    with torch.enable_grad():
        with blaming("The module cannot be called when derivatives are taken: {}."):
            f = outputs(theta, x, rules)
        if not f.requires_grad:
            raise BnnvizError(
                "The module's outputs do not depend on its weights in a differentiable way; compute them in the forward"
                " from its parameters in torch, without detach, torch.no_grad, .data or NumPy.",
                "module",
            )
        with blaming("The module's outputs cannot be differentiated by its weights: {}."):
            first = torch.autograd.grad(_value(f).sum(), theta, create_graph=True)[0]
        return Derivatives(f.detach(), first.detach(), _second(first, along, theta))


def _value(f: Tensor) -> Tensor:
    """Return a scalar function (chains,) of outputs."""
    return (torch.linspace(1, 2, f[0].numel(), dtype=f.dtype).view_as(f[0]) * f.square()).sum((1, 2))


def _value_and_slope(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> tuple[Tensor, Tensor]:
    theta = theta.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        value = _value(outputs(theta, x, rules))
        return value.detach(), torch.autograd.grad(value.sum(), theta)[0]


def _check_gradient(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules, each: Derivatives) -> None:
    """Raise unless the gradient predicts the change of the outputs for at least one chain; others may cross a kink."""
    # Some operations have another gradient if a second one is requested.
    slopes = each.first, _value_and_slope(outputs, theta, x, rules)[1]
    along = _along(theta)
    for way, first in itertools.product((along, along.roll(1, -1)), slopes):
        with torch.no_grad():
            ahead, behind = (_value(outputs(theta + step * way, x, rules)) for step in (_MOVE, -_MOVE))
        found, parts = (ahead - behind) / (2 * _MOVE), first * way
        scale = torch.maximum(found.abs(), parts.abs().sum(1))
        if not ((found - parts.sum(1)).abs() > _SLOPES_AGREE * scale).all():
            continue
        raise BnnvizError(
            "The module's outputs do not change with its weights as their derivatives predict, as if part of its"
            " forward is detached, under torch.no_grad, rounded, a padding_idx, or recomputed by"
            " torch.utils.checkpoint; remove that, or set requires_grad to False for these weights.",
            "module",
        )


def _jumps(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> bool:
    """Return whether outputs jump along lines between weights."""
    if theta.shape[1] > _MOST_FOLLOWED:
        return False
    ends = torch.cat([theta, -theta[:1]])
    try:
        return Fit.JUMP in fits(partial(_value_and_slope, outputs, x=x, rules=rules), ends[:-1], ends[1:], least=0.0)
    except Exception:  # the module may reject such weights
        log.debug("The module cannot be evaluated along lines.", exc_info=True)
        return False


def _check_finite(outputs: Outputs, theta: Tensor, own: Tensor, x: Tensor, rules: CallRules) -> None:
    with torch.no_grad():
        found = (outputs(weights, x, rules) for weights in (theta, own))
        if any(bool(torch.isfinite(each).flatten(1).all(1).any()) for each in found):
            return
    raise BnnvizError(
        "The module's outputs on the first rows are not finite, neither with its own weights nor with random ones;"
        " check logarithms, roots and divisions in its forward, and the scale of the inputs.",
        "module",
    )


def check_loaded(module: nn.Module, state: dict[str, Any], found: Tensor, x: Tensor) -> None:
    """Raise unless a copy of the module gives these outputs (rows, outputs) after loading these weights."""
    fresh = calls.copied(module)
    fresh.load_state_dict(state)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = fresh(x.clone())
    if not close(found, expected):
        raise BnnvizError(
            "The module's forward reads some weights from a list or an attribute with the same tensors instead of its"
            " parameters; read them as attributes of their layers.",
            "module",
        )


def _second(first: Tensor, along: Tensor, theta: Tensor) -> Tensor | None:
    slope = (first * along).sum()
    if not slope.requires_grad:
        return torch.zeros_like(theta)
    try:
        return torch.autograd.grad(slope, theta, materialize_grads=True)[0].detach()
    except Exception:  # an operation that can be differentiated only once
        log.debug("The module has no second derivatives.", exc_info=True)
        return None


def _is_right(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules, each: Derivatives) -> bool:
    """Return whether the second derivative exists and matches differences of first ones for at least one chain.

    Other chains may cross a kink.
    """
    if each.second is None:
        return False
    along = _along(theta)
    ahead, behind = (_derivatives(outputs, theta + step * along, x, rules).first for step in (_STEP, -_STEP))
    slopes = (ahead - behind) / (2 * _STEP)
    scale = torch.maximum(slopes.abs(), each.second.abs()).amax(1, keepdim=True) + each.first.abs().amax(
        1, keepdim=True
    )
    return not (torch.abs(slopes - each.second) > _SLOPES_AGREE * scale).any(1).all()


def _along(theta: Tensor) -> Tensor:
    """Return a direction without small coordinates."""
    place = torch.arange(theta.numel(), dtype=theta.dtype)
    sign = torch.where((0.618034 * place * place) % 1 < 0.5, -1.0, 1.0).to(theta.dtype)
    return (sign * torch.linspace(0.5, 1, theta.numel(), dtype=theta.dtype)).view_as(theta)


def _agrees(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules, each: Derivatives) -> bool:
    """Return whether chains can be computed together with the same results."""
    try:
        found = _derivatives(outputs, theta, x, rules)
        own = outputs(theta.detach(), x.expand(len(theta), *x.shape), rules)
    except Exception:  # not supported by torch.func.vmap
        log.debug("Chains are computed one after another.", exc_info=True)
        return False
    if (found.second is None) != (each.second is None):
        return False
    pairs = [*zip(found, each, strict=True), (own, each.outputs)]
    return all(close(a, b) for a, b in pairs if a is not None)


def close(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors differ only by rounding."""
    known = torch.isfinite(b)
    scale = float(b[known].abs().max()) if known.any() else 1.0
    return torch.allclose(a, b, rtol=_AGREE, atol=_AGREE * scale, equal_nan=True)
