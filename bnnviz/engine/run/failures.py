"""Say why chains have stopped, or have nowhere to go: values that are not finite, an edge, a density without an end."""

from __future__ import annotations

import torch
from torch import Tensor

from bnnviz.samplers import Sampler
from bnnviz.samplers.observers import StepBatch
from bnnviz.targets import BNN, Target

#: Settings that may be too large where every chain meets values that are not finite.
_STEP_SIZES = ("step_size", "learning_rate")
_OVERFLOWS = 1e6  # coordinates from which on U may be infinite since its terms overflow
_FAR = 10.0  # times the distance from zero at which chains began, from which on it is asked whether U has an end
_DECADES = 6  # that U is followed outwards
_FLAT = 1e-3  # of U in a decade: even where U is a logarithm it rises by more
_FALL = 10.0  # of U over these: less may be rounding, or a tail that is nearly flat


def stopped(sampler: Sampler, chain: int, step: int) -> str:
    """Say that a chain has stopped at a step."""
    return (
        f"Chain {chain} met a value that is not finite at step {step} ({sampler.registered}) and stopped; the others"
        " go on."
    )


def all_stopped(sampler: Sampler, chains: int, steps: int) -> str:
    """Say that all chains have stopped, the last within so many steps, and what to try."""
    size = next((name for name in _STEP_SIZES if name in sampler.param), None)
    remedy = "check the target's gradient" if size is None else f"try a smaller {size}"
    return (
        f"All {chains} chains of {sampler.registered} met values that are not finite (the last at step {steps});"
        f" {remedy}, or use float64. The draws are kept."
    )


def at_an_edge(sampler: Sampler, target: Target, step_batch: StepBatch) -> str:
    """Say that a chain came where U is not finite, and that its sampler cannot go on there; "" where none did.

    The chains that have not come there yet are no draws of the density: they have kept away from its edge.
    """
    rejects = "acceptance_rate" in sampler.sample_stats()
    if isinstance(target, BNN) or rejects or not hasattr(step_batch.infos[0], "potential"):
        return ""
    potential = step_batch.column("potential")
    at = step_batch.column("failed") & ~torch.isfinite(potential)
    for step, chain in at.nonzero().tolist():
        x = sampler.positions(step_batch.before[step])
        if x is not None and not bool((x[chain].abs() < _OVERFLOWS).all()):
            continue
        if bool(potential[step, chain] == -torch.inf):
            return (
                f"Chain {chain} came where U is minus infinity at step {step_batch.first_step + step}, so that the"
                " density is infinite there; look for divisions by zero, and logarithms of zero of the wrong sign."
            )
        what = "not a number" if bool(potential[step, chain].isnan()) else "infinite"
        return (
            f"Chain {chain} came to an edge of the density, where U is {what}, at step {step_batch.first_step + step},"
            f" and {sampler.registered} cannot turn round there: name what is positive or bounded, as in"
            ' parameters={"sigma": bnnviz.positive()}, write U in parameters without bounds (with the log-Jacobian), or'
            " use HMC or NUTS, which reject what lies outside."
        )
    return ""


class RunawayWatch:
    """Find chains that run away, since the integral of exp(-U) is infinite.

    A chain that is ten times as far from zero as chains began has U followed outwards from its start through
    where it is: of a density U rises in the end, however far its mass lies.

    Parameters
    ----------
    x : Tensor, shape (chains, dim)
        Where chains begin.
    """

    def __init__(self, x: Tensor) -> None:
        self._start = x.detach()
        self._far = _FAR * (1 + float(torch.nan_to_num(self._start).abs().max()))

    def sentence(self, target: Target, x: Tensor) -> str:
        """Say which chains at x (chains, dim) run away, and what the reason may be; "" where none does."""
        reached = torch.nan_to_num(x.detach(), nan=0.0, posinf=0.0, neginf=0.0).abs().amax(-1)
        farthest = float(reached.max())
        if farthest < self._far or x.shape != self._start.shape:
            return ""
        self._far = 10 * farthest
        chain = int(reached.argmax())
        way = (x[chain] - self._start[chain]).detach()
        if not bool(way.isfinite().all() and way.any()):
            return ""
        rises = self._rises(target, chain, way)
        # Squares overflow, and what is not finite says nothing.
        if len(rises) >= 2 and bool((rises < 0).all()) and float(rises.sum()) < -_FALL:
            return (
                f"Chain {chain} runs away: from where it began to {farthest:.1g} and for ever beyond, U falls, so that"
                " exp(-U) has no integral; is this a log density? U must be minus it."
            )
        largest = torch.arange(len(way), device=way.device) == way.abs().argmax()
        if _is_flat(rises) or _is_flat(self._rises(target, chain, torch.where(largest, way, 0))):
            return (
                f"Chain {chain} wanders off: from where it began to {farthest:.1g} and beyond U does not rise, so that"
                " exp(-U) has no integral; give every coordinate a prior."
            )
        return ""

    def _rises(self, target: Target, chain: int, way: Tensor) -> Tensor:
        """Return by how much U rises from each power of ten of the way to the next, where that is finite."""
        ahead = (
            self._start[chain] + way * 10.0 ** torch.arange(_DECADES + 1, device=way.device, dtype=way.dtype)[:, None]
        )
        found = target.clone().defined_potential(ahead).detach().double().diff()
        return found[torch.isfinite(found)]


def _is_flat(rises: Tensor) -> bool:
    return len(rises) == _DECADES and bool((rises.abs() < _FLAT).all())
