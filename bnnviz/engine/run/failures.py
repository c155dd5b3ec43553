"""Say why chains have stopped, or have nowhere to go: values that are not finite, an edge, a density without an end."""

from __future__ import annotations

import torch
from torch import Tensor

from bnnviz.samplers import Sampler
from bnnviz.samplers.base import OF_U
from bnnviz.samplers.observers import StepBatch
from bnnviz.targets import BNN, Target

#: Settings that may be too large where every chain meets values that are not finite.
_STEP_SIZES = ("step_size", "learning_rate")
_OVERFLOWS = 1e6  # coordinates from which on U may be infinite since its terms overflow
#: How the sentence begins on points where U is minus infinity, which a sampler leaves out.
INFINITE = "U is minus infinity at points that were tried"
_PLACES, _SHOWN = 8, 4  # steps that are looked at for such a point, and its coordinates that are told
_FAR = 10.0  # times the distance from zero at which chains began, from which on it is asked whether U has an end
_FAR_SLOWLY = 2.0  # of what descends by steps of one length
_DECADES = 6  # that U is followed outwards
_FLAT = 1e-3  # of U in a decade: even where U is a logarithm it rises by more
_FALL = 10.0  # of U over these: less may be rounding, or a tail that is nearly flat


def keep(notes: list[str], beginning: str, sentence: str) -> None:
    """Keep a sentence among notes, in the place of one that begins alike; nothing where it is empty."""
    if sentence and sentence not in notes:
        notes[:] = [note for note in notes if not note.startswith(beginning)] + [sentence]


def rejects(sampler: Sampler) -> bool:
    """Return whether a sampler leaves out what it proposes where U is not finite, and goes on."""
    return sampler.traits.weighted or "acceptance_rate" in sampler.sample_stats()


def infinite_density(sampler: Sampler, target: Target, step_batch: StepBatch, notes: list[str]) -> str:
    """Say where U was minus infinity; "" where it was not, or where its terms overflow far out.

    A sampler that leaves such points out goes on, with draws of the density without them: the sentence is kept among
    the notes, once. For another sampler it is the end.
    """
    found = sampler.infinite_density(step_batch)
    if found is None or any(note.startswith(INFINITE) for note in notes) or not bool(found.any()):
        return ""
    for step, chain in found.nonzero()[:_PLACES].tolist():
        points = sampler.tried(step_batch, step, chain)
        points = points if points is None else points[torch.isfinite(points).all(-1)]
        if points is not None and not bool((points.abs() < _OVERFLOWS).all()):
            continue
        at = f"at step {step_batch.first_step + step}"
        where = "" if points is None else _where_infinite(target, points)
        cause = "outside of a support U is inf, not -inf; else look for divisions by zero and logarithms of zero"
        if not rejects(sampler):
            return (
                f"Chain {chain} came {at} where U is minus infinity{where}, so that the density is infinite; {cause}."
            )
        left_out = "have no weight" if sampler.traits.weighted else "are rejected"
        notes.append(
            f"{INFINITE}, first{where} ({at}, chain {chain}): the density is infinite there, and they {left_out}, so"
            f" that draws are of what is left; {cause}."
        )
        return ""
    return ""


def _where_infinite(target: Target, points: Tensor) -> str:
    """Return the first of the points (n, dim) at which U is minus infinity, after a blank; "" where it is at none."""
    found = points[target.clone().defined_potential(points) == -torch.inf]
    if not len(found):
        return ""
    numbers = [f"{value:.4g}" for value in found[0, :_SHOWN].tolist()]
    return f" at x = ({', '.join([*numbers, '...'] if found.shape[1] > _SHOWN else numbers)})"


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
    told = next((name for name in OF_U if hasattr(step_batch.infos[0], name)), None)
    # A functional whose tail is outside has an infinite mean of U wherever it is proposed.
    if isinstance(target, BNN) or told is None or (rejects(sampler) and not sampler.traits.functional):
        return ""
    potential = step_batch.column(told)
    at = step_batch.column("failed") & ~torch.isfinite(potential)
    for step, chain in at.nonzero().tolist():
        x = sampler.reach(step_batch.before[step])
        if x is not None and not bool((x[chain].abs() < _OVERFLOWS).all()):
            continue
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

    def __init__(self, x: Tensor, slow: bool = False) -> None:
        self._start = x.detach()
        self._far = (_FAR_SLOWLY if slow else _FAR) * (1 + float(torch.nan_to_num(self._start).abs().max()))

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
