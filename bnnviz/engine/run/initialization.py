"""Find starting points: random points, modes or given points."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz import targets
from bnnviz.engine.run.descent import Descent, QuasiNewton
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message, Remedy
from bnnviz.numerals import named_chains
from bnnviz.samplers import Sampler
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN, Target

# Steps of Adam from the old mode to that of changed data, while the user waits.
_REFIT_STEPS = 150
_REFIT_WORK = 3e9
_FEW = 100  # maximum dimensions with an inverse Hessian
_RIDGE, _NEAR = 3.0, 10.0  # minimum rise of U between two modes, and the maximum excess of a counted mode
_SLOPE_POINTS = 16  # tested points, some of them starting points
_SLOPE_WORK = 3e8  # maximum multiply-adds of the check
#: Maximum number of random starting points per chain, as in Stan.
TRIES = 100


class Start(NamedTuple):
    """Starting points x (chains, dim), and a mode (dim,) for samplers that need one, or None."""

    x: Tensor
    mode: Tensor | None


def random_points(target: Target, chains: int, rng: torch.Generator) -> Tensor:
    """Return random starting points (chains, dim) with finite U and gradient; those of a perceptron always are."""
    x = target.initial(chains, rng)
    if isinstance(target, BNN) and target.trial is None:
        return x
    undefined = _undefined(target, x)
    for _ in range(TRIES - 1):
        if not len(undefined):
            return x
        x[undefined] = target.initial(chains, rng)[undefined]
        undefined = undefined[_undefined(target, x[undefined])]
    if not len(undefined):
        return x
    first = f" (first: {target.rejected.first})" if target.rejected.count else ""
    unbounded = Remedy("write U in unbounded parameters, such as the logarithm of a scale")
    chains = named_chains(undefined.tolist())
    raise BnnvizError(
        Message("no_start", Remedy("give other points"), unbounded, chains=chains, tries=TRIES, first=first), "target"
    )


def _undefined(target: Target, x: Tensor) -> Tensor:
    """Return the indices of the points (n, dim) with a non-finite U or gradient."""
    potential, gradient = target.gradient(x)
    return (~(torch.isfinite(potential) & torch.isfinite(gradient).all(-1))).nonzero()[:, 0]


def of_given_points(target: Target, x: Tensor) -> list[Message]:
    """Return a message on given points (chains, dim) with a non-finite U or gradient, which are kept."""
    undefined = [] if isinstance(target, BNN) else _undefined(target, x).tolist()
    if not undefined:
        return []
    return [Message("undefined_start", Remedy("give other points"), chains=named_chains(undefined), numbers=undefined)]


def refit(target: Target, mode: Tensor) -> tuple[Tensor, int]:
    """Return the mode of a changed target, by a descent from the old one (dim,), and its cost in gradients."""
    work = 6 * max(target.examples, 1) * target.row_work
    steps = int(min(_REFIT_STEPS, max(10, _REFIT_WORK / work)))
    descent = Descent(target, mode[None], steps)
    descent.advance(steps)
    return descent.best(), steps * descent.examples


def other_modes(target: Target, descent: Descent) -> list[Message]:
    """Return messages on chains whose descent ended at another mode, beyond a ridge and not much above the best one."""
    ends, best = descent.ends(), descent.best()
    middle = (ends + best) / 2
    (potential, slope), least = target.gradient(ends), target.gradient(best[None])[0]
    away = (slope * (middle - ends)).sum(-1) > -1
    ridge = target.gradient(middle)[0] - torch.maximum(potential, least)
    count = int((away & (ridge > _RIDGE) & (potential - least < _NEAR)).sum())
    if not count:
        return []
    random = Remedy("compare with a sampler that starts at random points", {"settings": {"start": "random"}})
    return [Message("other_modes", random, count=count, total=len(ends))]


def check_slopes(target: Target, sampler: Sampler, x: Tensor) -> None:
    """Raise for a function of x (chains, dim) that changes although its gradient is zero at all tried points."""
    stats = sampler.sample_stats()
    is_walk = "acceptance_rate" in stats and "reached_max_treedepth" not in stats
    if target.located or is_walk or 2 * _SLOPE_POINTS * target.examples * target.row_work > _SLOPE_WORK:
        return
    target = target.clone()
    rng = torch.Generator(device=x.device).manual_seed(0)
    points = torch.cat([x[: _SLOPE_POINTS // 2], target.initial(_SLOPE_POINTS, rng)])[:_SLOPE_POINTS]
    potential, gradient = target.gradient(points)
    finite = torch.isfinite(potential) & torch.isfinite(gradient).all(-1)
    points, still = points[finite], (gradient[finite] == 0).all(0)
    if len(points) < _SLOPE_POINTS // 2 or not bool(still.any()):
        return
    moved = torch.where(still, points.roll(1, 0), points)
    before, after = (target.defined_potential(at).detach().double() for at in (points, moved))
    rounding = 1e3 * torch.finfo(points.dtype).eps * (1 + before.abs())
    if bool(((after - before).abs() > rounding)[torch.isfinite(after)].any()):
        names = [name for name, is_still in zip(target.names(), still.tolist(), strict=True) if is_still]
        which = "x" if len(names) == target.dim else ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise BnnvizError(
            f"U changes with {which}, but its gradient there is zero at all {len(points)} points that were tried, and"
            f" {sampler.registered} relies on the gradient: rounding, comparisons and detach() have zero slope; write U"
            " as a function with a slope, or use HMC, which is a random walk there.",
            "target",
        )


class StartSearch:
    """Search starting points for samplers, of which the first determines the kind: random or given points, or modes."""

    def __init__(
        self, target: Target, samplers: list[Sampler], x0: Tensor, points: Tensor | None = None, given: bool = False
    ) -> None:
        self._target, self.x0, self._points = target, x0, points
        if not given and points is None:
            check_slopes(target, samplers[0], x0)
        self._at_mode = samplers[0].starts_at_mode(target)
        self._one_centre = any(sampler.starts_together(target) for sampler in samplers)
        needs_mode = any(sampler.needs_mode for sampler in samplers)
        needed = not given and ((points is None and self._at_mode) or needs_mode)
        self.descent: Descent | None = None
        if needed:
            self.begin(samplers[0])

    def begin(self, sampler: Sampler) -> None:
        """Begin the descent, by curvature for a function in few dimensions, whose scales may differ."""
        if not self._target.located and self._target.dim <= _FEW:
            self.descent = QuasiNewton(self._target, self.x0)
        else:
            self.descent = Descent(self._target, self.x0, sampler.descent_steps(self._target))

    def advance(self, steps: int) -> int:
        """Take some steps; return their cost in gradients of single rows."""
        if self.descent is None:
            return 0
        before = self.descent.taken
        self.descent.advance(steps)
        return (self.descent.taken - before) * self.descent.examples * len(self.x0)

    def remarks(self) -> list[Message]:
        """Report modes at which no chain starts, except for networks, which always have some."""
        if self.descent is None or self._points is not None or not self._one_centre or isinstance(self._target, BNN):
            return []
        return other_modes(self._target, self.descent)

    @property
    def done(self) -> bool:
        """Whether the start is found."""
        return self.descent is None or self.descent.done

    def start(self) -> Start:
        """Return the result."""
        mode = None if self.descent is None else self.descent.best()
        if self._points is not None:
            return Start(self._points, mode)
        if not self._at_mode:
            return Start(self.x0, mode)
        return Start(mode.expand_as(self.x0).clone() if self._one_centre else self.descent.starts(), mode)


def make_target(spec: Spec) -> Target:
    """Return the target of a spec, with its settings and file."""
    attachment = spec.target_attachment
    extra = {} if attachment is None else {"attachment": attachment}
    return targets.REGISTRY.get(spec.target)(**spec.target_settings, **extra)
