"""Try a module on a few rows: what it needs to be called, and whether its rows have likelihoods of their own."""

from __future__ import annotations

import itertools
import logging
import re
import warnings
from collections.abc import Callable, Sequence
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
_AGREE = 1e-5  # relative; rows that depend on each other differ by more, casts to float32 by less
_MOVE, _STEP = 1e-5, 1e-7  # of weights, for differences of outputs and of gradients
_SLOPES_AGREE = 1e-3  # relative
_FACTORS = (1.0, -1.0, 10.0)  # of weights, with which some that are clipped are found
_ROUGH = 2e-3  # of the largest output, for single precision
_OF_DTYPES = re.compile(r"\b(dtype|Double|Float|Half|BFloat16)\b")
_MOST_FOLLOWED = 10_000  # weights: a network with more takes seconds
_LONGEST = 200  # characters of somebody else's error

#: From weights (chains, weights) and inputs to outputs (chains, rows, outputs), one chain after another or at once. The
#: inputs are (rows, ...) for all chains, or each one's own: (chains, rows, ...).
Outputs = Callable[[Tensor, Tensor, CallRules], Tensor]


class Derivatives(NamedTuple):
    """Outputs of a few rows, and derivatives of a function of them by the weights: first, and second along a vector."""

    outputs: Tensor
    first: Tensor
    second: Tensor | None


def said(error: Exception) -> str:
    """Return the first line of an error of the caller's code, without its full stop."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:_LONGEST].rstrip(".")


def is_of_precision(error: Exception) -> bool:
    """Tell whether an error says that numbers of two precisions met."""
    return _OF_DTYPES.search(said(error)) is not None


def rules_of(
    module: nn.Module,
    outputs: Outputs,
    theta: Tensor,
    own: Tensor,
    x: Tensor,
    names: tuple[tuple[str, str], ...] = (),
) -> CallRules:
    """Return what a module needs when it is called.

    Parameters
    ----------
    outputs : callable
        The outputs (chains, rows, outputs) of weights on inputs under given rules.
    theta : Tensor, shape (2, weights)
        Weights to try.
    own : Tensor, shape (1, weights)
        The module's own, for a module that does not bear others.
    x : Tensor, shape (rows, ...)
        A few rows (`some_rows`).
    """
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
    """What a module of its own weights gave of a few rows, in double precision."""

    x: Tensor
    outputs: Tensor


def tried(module: nn.Module, x: Tensor, rules: CallRules) -> Trial:
    """Return what a module gives of a few rows x (rows, ...)."""
    with torch.no_grad():
        return Trial(x, calls.call(module, {}, x, rules))


def check_precision(module: nn.Module, trial: Trial, dtype: torch.dtype, rules: CallRules) -> None:
    """Raise unless a module computes in the precision that it was moved to."""
    device = next(module.parameters()).device
    name, other = (str(kind).removeprefix("torch.") for kind in (dtype, _other(dtype)))
    try:
        with torch.no_grad():
            found = calls.call(
                module,
                {},
                trial.x.to(device, dtype if trial.x.is_floating_point() else None),
                rules._replace(restores=True),
            )
    except Exception as error:  # whatever the user's own code raises
        raise BnnvizError(
            f"The module cannot compute in {name} ({said(error)}): its forward has tensors or casts of another"
            f" precision; sample with dtype={other!r}, or make these tensors buffers (register_buffer) and cast to"
            " x.dtype.",
            "dtype",
        ) from error
    exact = trial.outputs.to(device)
    off = float((found.to(exact) - exact).abs().max() / exact.abs().max().clamp_min(1e-12))
    if dtype != torch.float64 and off > _ROUGH:
        raise BnnvizError(
            f"The module's outputs in {name} are {100 * off:.2g} % off those in {other}, as under torch.autocast, casts"
            f" to half precision or differences of large numbers; sample with dtype={other!r}.",
            "dtype",
        )


def check_computed(module: nn.Module, attributes: Sequence[tuple[str, str]], x: Tensor, rules: CallRules) -> None:
    """Raise if outputs depend on tensors that were computed from parameters before: no draw changes these.

    Parameters
    ----------
    x : Tensor, shape (rows, ...)
    """
    before = tried(module, x, rules).outputs
    for owner, name in attributes:
        held = vars(module.get_submodule(owner))
        kept = held[name]
        held[name] = kept + 1
        try:
            says = not torch.equal(tried(module, x, rules._replace(restores=True)).outputs, before)
        finally:
            held[name] = kept
        if says:
            raise BnnvizError(
                f"The attribute {f'{owner}.{name}' if owner else name} was computed from parameters before, so that"
                " draws of these do not change it; let the forward compute it, or register a parametrization.",
                "module",
            )


def unreadable(module: nn.Module, x: Tensor, shape: tuple[int, ...], error: Exception) -> BnnvizError:
    """Return what is to be said of a module that fails on inputs x, some of those of a shape, in double precision."""
    if not _reads(calls.move(calls.copied(module), x.device, torch.float32), x.to(torch.float32)):
        mixed = "; leave out casts, so that all of it is of one precision" if is_of_precision(error) else ""
        return BnnvizError(f"The module cannot read inputs of shape {shape}: {said(error)}{mixed}.", "module")
    return BnnvizError(
        f"The module computes in float32 alone ({said(error)}), and its posterior is checked in float64; leave out"
        " casts such as x.float() in its forward, or cast to the precision of a weight, as in"
        " x.to(self.weight.dtype).",
        "module",
    )


def reads_whole(module: nn.Module, x: Tensor) -> bool:
    """Tell whether a module reads inputs x, all whole numbers, as such; of the first rows it is tried."""
    return bool((x == x.round()).all()) and _reads(calls.copied(module), x[:2].long())


def _reads(module: nn.Module, x: Tensor) -> bool:
    """Tell whether a module can be called on inputs."""
    try:
        with torch.no_grad():
            module(x)
    except Exception:  # whatever the user's own code raises
        log.debug("The module cannot be called on %s numbers.", x.dtype, exc_info=True)
        return False
    return True


def _other(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype == torch.float64 else torch.float64


def some_rows(x: Tensor) -> Tensor:
    """Return a few rows, evenly spread; two of them at least, which may be the same."""
    if not len(x):
        return x.new_zeros(2, *x.shape[1:])
    return x[torch.linspace(0, len(x) - 1, min(_ROWS, max(len(x), 2))).long()]


def _bearable(outputs: Outputs, theta: Tensor, own: Tensor, x: Tensor, rules: CallRules) -> tuple[Tensor, CallRules]:
    """Return weights that the module takes: those to try, as they lie or copied; its own where it takes no others."""
    for aligned in (False, True):
        try:
            with torch.no_grad():
                outputs(theta, x, rules._replace(restores=True, aligned=aligned))
        except Exception:  # of weights that are outside of what the module takes
            log.debug("The module takes no such weights.", exc_info=True)
        else:
            return theta, rules._replace(aligned=aligned)
    return own.expand(_CHAINS, -1), rules


def _first_rules(module: nn.Module, outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> CallRules:
    """Return the rules but for what derivatives tell."""
    before, given = calls.attributes(module), x.clone()
    try:
        with torch.no_grad(), calls.SeenFunctions() as seen:
            outputs(theta, given, rules._replace(copies=False))
    except Exception as error:  # whatever the user's own code raises
        raise BnnvizError(
            f"The module cannot be called with weights of a draw in the place of its parameters: {said(error)}; let its"
            " forward read them as attributes of the module.",
            "module",
        ) from error
    restores = calls.leaves_something(before)
    for child, values in before:
        calls.restore(child, values)
    copies = not torch.equal(given, x)
    return rules._replace(math=not calls.FUSED.isdisjoint(seen.found), restores=restores, copies=copies)


def _check_weights_stay(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> None:
    """Raise where the forward writes into its weights, which are a chain's position."""
    for factor in _FACTORS:
        given = factor * theta
        try:
            with torch.no_grad():
                outputs(given, x, rules)
        except Exception:  # of weights that are outside of what the module takes
            log.debug("The module takes no weights %g times as large.", factor, exc_info=True)
        if not torch.equal(given, factor * theta):
            raise BnnvizError(
                "The module's forward changes its weights in place, as max_norm of an embedding or weight.data.clamp_"
                " do; let it compute from them what it uses, as in functional.linear(x, self.weight.clamp(min=0)).",
                "module",
            )


def _check_repeats(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> None:
    with torch.no_grad():
        first, second = (outputs(theta, x, rules) for _ in range(2))
    if not torch.equal(torch.nan_to_num(first), torch.nan_to_num(second)):
        raise BnnvizError(
            "The module's outputs differ from one call to the next in evaluation mode, so there is no likelihood; leave"
            " out its random numbers, as in functional.dropout(x, training=self.training), and what it keeps from one"
            " call to the next.",
            "module",
        )


def _check_rows_alone(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> None:
    with torch.no_grad():
        together = outputs(theta, x, rules)
        try:
            alone = torch.cat([outputs(theta, row[None], rules) for row in x], 1)
        except Exception as error:  # whatever the user's own code raises
            raise BnnvizError(
                f"The module cannot read one row alone ({said(error)}), so there is no likelihood of a row; use no"
                " statistics of a batch, as batch normalisation in training mode does.",
                "module",
            ) from error
    if alone.shape != together.shape or not _close(alone, together):
        raise BnnvizError(
            "The module's output of one row depends on the others, so there is no likelihood of a row; use layer or"
            " group normalisation in the place of statistics of a batch, and let rows be the first axis throughout.",
            "module",
        )


def _check_leaves(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> None:
    """Raise where derivatives lead to trainable tensors besides the weights: no draw changes these.

    One that each call makes for itself, as for derivatives by the inputs, is no such.
    """
    theta = theta.detach().clone().requires_grad_(True)
    first, second = (_leaves(outputs, theta, x, rules) for _ in range(2))
    if any(one is other for one in first for other in second):
        raise BnnvizError(
            "The module's forward reads trainable tensors from elsewhere than its parameters, such as a closure, a"
            " global or a list, where no draw gets to; make each an attribute of the layer that reads it.",
            "module",
        )


def _leaves(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> list[Tensor]:
    """Return the tensors besides the weights to which derivatives of outputs lead."""
    with torch.enable_grad():
        try:
            todo = [outputs(theta, x, rules).grad_fn]
        except Exception:  # which is told where derivatives are needed
            log.debug("The module is not called with derivatives.", exc_info=True)
            return []
    seen, found = set(todo), []
    while todo:
        node = todo.pop()
        if getattr(node, "variable", theta) is not theta:
            found.append(node.variable)
        later = {each for each, _ in getattr(node, "next_functions", ()) if each is not None} - seen
        seen |= later
        todo += later
    return found


def _derivatives(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> Derivatives:
    """Return outputs and derivatives; of the second None where there is none."""
    theta = theta.detach().clone().requires_grad_(True)
    along = _along(theta)
    with torch.enable_grad():
        try:
            f = outputs(theta, x, rules)
        except Exception as error:  # whatever the user's own code raises
            raise BnnvizError(
                f"The module cannot be called where derivatives are taken: {said(error)}.", "module"
            ) from error
        if not f.requires_grad:
            raise BnnvizError(
                "The module's outputs do not depend on its weights as far as derivatives tell; let its forward compute"
                " them from its parameters in torch, without detach, torch.no_grad, .data or NumPy.",
                "module",
            )
        try:
            first = torch.autograd.grad(_value(f).sum(), theta, create_graph=True)[0]
        except Exception as error:  # whatever the user's own code raises
            raise BnnvizError(
                f"The module's outputs cannot be differentiated by its weights: {said(error)}.", "module"
            ) from error
        return Derivatives(f.detach(), first.detach(), _second(first, along, theta))


def _value(f: Tensor) -> Tensor:
    """Return some function (chains,) of outputs."""
    return (torch.linspace(1, 2, f[0].numel(), dtype=f.dtype).view_as(f[0]) * f.square()).sum((1, 2))


def _value_and_slope(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> tuple[Tensor, Tensor]:
    theta = theta.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        value = _value(outputs(theta, x, rules))
        return value.detach(), torch.autograd.grad(value.sum(), theta)[0]


def _check_gradient(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules, each: Derivatives) -> None:
    """Raise unless the gradient tells by how much the outputs change, for one chain or more; a kink may lie between."""
    # Some operations have another gradient where there is to be a second one.
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
            "The module's outputs change otherwise with its weights than their derivatives say, as where a part of its"
            " forward is detached, under torch.no_grad, rounded, a padding_idx, or computed again by"
            " torch.utils.checkpoint; leave that out, or set requires_grad to False for these weights.",
            "module",
        )


def _jumps(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules) -> bool:
    """Return whether outputs jump on the way from some weights to others."""
    if theta.shape[1] > _MOST_FOLLOWED:
        return False
    ends = torch.cat([theta, -theta[:1]])
    try:
        return Fit.JUMP in fits(partial(_value_and_slope, outputs, x=x, rules=rules), ends[:-1], ends[1:], least=0.0)
    except Exception:  # of weights that are outside of what the module takes
        log.debug("The module is not followed along lines.", exc_info=True)
        return False


def _check_finite(outputs: Outputs, theta: Tensor, own: Tensor, x: Tensor, rules: CallRules) -> None:
    with torch.no_grad():
        found = (outputs(weights, x, rules) for weights in (theta, own))
        if any(bool(torch.isfinite(each).flatten(1).all(1).any()) for each in found):
            return
    raise BnnvizError(
        "The module's outputs are not finite on the first rows, neither with its own weights nor with random ones; look"
        " for logarithms, roots and divisions in its forward, and for inputs on a raw scale.",
        "module",
    )


def check_loaded(module: nn.Module, state: dict[str, Any], found: Tensor, x: Tensor) -> None:
    """Raise unless a copy of the module gives these outputs (rows, outputs) when it has loaded these weights."""
    fresh = calls.copied(module)
    fresh.load_state_dict(state)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = fresh(x.clone())
    if not _close(found, expected):
        raise BnnvizError(
            "The module's forward does not read all weights from its parameters, but from a list or an attribute that"
            " holds the same tensors; let it read them as attributes of their layers.",
            "module",
        )


def _second(first: Tensor, along: Tensor, theta: Tensor) -> Tensor | None:
    slope = (first * along).sum()
    if not slope.requires_grad:
        return torch.zeros_like(theta)
    try:
        return torch.autograd.grad(slope, theta, materialize_grads=True)[0].detach()
    except Exception:  # of an operation that can be differentiated once only
        log.debug("The module has no second derivatives.", exc_info=True)
        return None


def _is_right(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules, each: Derivatives) -> bool:
    """Return whether there is a second derivative, and it is the difference of two first ones for one chain or more.

    For the others a kink may lie between.
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
    """Return a direction of which no coordinate is small."""
    place = torch.arange(theta.numel(), dtype=theta.dtype)
    sign = torch.where((0.618034 * place * place) % 1 < 0.5, -1.0, 1.0).to(theta.dtype)
    return (sign * torch.linspace(0.5, 1, theta.numel(), dtype=theta.dtype)).view_as(theta)


def _agrees(outputs: Outputs, theta: Tensor, x: Tensor, rules: CallRules, each: Derivatives) -> bool:
    """Return whether chains can be computed at once, and come out as one after another."""
    try:
        found = _derivatives(outputs, theta, x, rules)
        own = outputs(theta.detach(), x.expand(len(theta), *x.shape), rules)
    except Exception:  # of what torch.func.vmap cannot compute
        log.debug("Chains are computed one after another.", exc_info=True)
        return False
    if (found.second is None) != (each.second is None):
        return False
    pairs = [*zip(found, each, strict=True), (own, each.outputs)]
    return all(_close(a, b) for a, b in pairs if a is not None)


def _close(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors differ by rounding alone."""
    known = torch.isfinite(b)
    scale = float(b[known].abs().max()) if known.any() else 1.0
    return torch.allclose(a, b, rtol=_AGREE, atol=_AGREE * scale, equal_nan=True)
