"""Find where chains start: random points, modes or given points."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.engine.monitor.words import named_chains
from bnnviz.errors import BnnvizError
from bnnviz.samplers import Sampler
from bnnviz.samplers.baselines.adam import adam
from bnnviz.targets import BNN, Target
from bnnviz.targets.minibatch import Batch

# Steps of Adam from the old mode to that of changed data: a person waits meanwhile.
_REFIT_STEPS = 150
_REFIT_WORK = 3e9
#: How the sentence on modes begins that no chain sets out from.
OTHER_MODES = "Descents ended at other modes too"
_RIDGE, _NEAR = 3.0, 10.0  # by which U is higher between two modes, and the most by which a mode that counts is
#: Random points that a chain may try to set out from, as many as in Stan.
TRIES = 100


class Start(NamedTuple):
    """Where chains set out, x (chains, dim), and a mode (dim,) for samplers that need one; None where none does."""

    x: Tensor
    mode: Tensor | None


def random_points(target: Target, chains: int, rng: torch.Generator) -> Tensor:
    """Return random points (chains, dim) to set out from; where U or its gradient is not finite, others in their place.

    Of a network it is not asked, since both are finite wherever its weights are.

    Raises
    ------
    BnnvizError
        If a chain has tried a hundred points in vain.
    """
    x = target.initial(chains, rng)
    if isinstance(target, BNN):
        return x
    undefined = _undefined(target, x)
    for _ in range(TRIES - 1):
        if not len(undefined):
            return x
        x[undefined] = target.initial(chains, rng)[undefined]
        undefined = undefined[_undefined(target, x[undefined])]
    if not len(undefined):
        return x
    said = f" (first {target.rejected.first})" if target.rejected.count else ""
    raise BnnvizError(
        f"{named_chains(undefined.tolist())} found no point to set out from in {TRIES} tries: U or its gradient is not"
        f" finite at random points{said}; give other points, or write U in parameters without bounds, such as the"
        " logarithm of a scale.",
        "target",
    )


def _undefined(target: Target, x: Tensor) -> Tensor:
    """Return the numbers of the points (n, dim) at which U or its gradient is not finite."""
    potential, gradient = target.gradient(x)
    return (~(torch.isfinite(potential) & torch.isfinite(gradient).all(-1))).nonzero()[:, 0]


def of_given_points(target: Target, x: Tensor) -> list[str]:
    """Say which chains begin where U or its gradient is not finite, of given points (chains, dim); they are kept."""
    undefined = [] if isinstance(target, BNN) else _undefined(target, x).tolist()
    if not undefined:
        return []
    return [f"{named_chains(undefined)} begin where U or its gradient is not finite, so give other points."]


class Descent:
    """Adam on U for all chains at once, the step falling linearly to zero; advanced in slices.

    A target of many rows has it read a few of them at each step, drawn for each chain by a generator of its own.

    Parameters
    ----------
    target : Target
    x : Tensor, shape (chains, dim)
        Starting points.
    steps : int

    Attributes
    ----------
    examples : int
        Data rows that a step of one chain reads.
    seconds : float
        That the steps took which were taken.
    """

    def __init__(self, target: Target, x: Tensor, steps: int) -> None:
        self.target, self.steps, self.taken, self.seconds = target, steps, 0, 0.0
        self.x = self._last = x.detach().clone()
        # Not torch.optim, which imports torch's compiler: a second and more, for which a worker's first run would wait.
        self._mean, self._square = torch.zeros_like(self.x), torch.zeros_like(self.x)
        few = target.descent_rows
        self._batched = few is not None and few < (target.data_rows or 0)
        self.examples = few if self._batched else target.examples
        self._rng = torch.Generator(x.device).manual_seed(0)
        self.potential = torch.full(x.shape[:1], torch.inf)

    @property
    def done(self) -> bool:
        """Whether all steps are taken."""
        return self.taken >= self.steps

    def advance(self, steps: int) -> None:
        """Take some steps."""
        begun = time.perf_counter()
        for _ in range(min(steps, self.steps - self.taken)):
            self._step()
        self.seconds += time.perf_counter() - begun

    def _step(self) -> None:
        self.potential, slope = self._seen().gradient(self.x)
        lost = ~(torch.isfinite(self.potential) & torch.isfinite(slope).all(-1))
        if bool(lost.any()):
            slope = self._turned_back(slope, lost[:, None])
        else:
            self._last = self.x
        rate = self.target.descent_rate * (1 - self.taken / self.steps)
        self.taken += 1
        number, rates = torch.tensor([[self.taken], [rate]], dtype=torch.float64, device=self.x.device)
        move, self._mean, self._square = adam(slope, self._mean, self._square, number, rates)
        self.x = self.x - move

    def _turned_back(self, slope: Tensor, lost: Tensor) -> Tensor:
        """Take chains that are lost (chains, 1) half of the way back to where U was finite; they rest there."""
        self._last = torch.where(lost, self._last, self.x)
        self.x = torch.where(lost, 0.5 * (self.x + self._last), self.x)
        self._mean, self._square = (torch.where(lost, 0.0, part) for part in (self._mean, self._square))
        return torch.where(lost, 0.0, slope)

    @property
    def seconds_left(self) -> float:
        """About the seconds that the other steps will take; nan before the first."""
        return self.seconds / self.taken * (self.steps - self.taken) if self.taken else float("nan")

    def _seen(self) -> Target | Batch:
        """Return what the next step sees of the target: all its rows, or a batch of them for each chain."""
        if not self._batched:
            return self.target
        shape, rng = (len(self.x), self.examples), self._rng
        return self.target.batch(torch.randint(self.target.data_rows, shape, generator=rng, device=rng.device))

    def ends(self) -> Tensor:
        """Return where each chain came to, (chains, dim)."""
        return self.x.clone()

    def best(self) -> Tensor:
        """Return the end with the smallest U, (dim,)."""
        ends = self.ends()
        potential = self.target.gradient(ends)[0]
        return ends[torch.where(torch.isfinite(potential), potential, torch.inf).argmin()]


def refit(target: Target, mode: Tensor) -> tuple[Tensor, int]:
    """Return the mode of a target that has changed, by a descent from the old one (dim,), and the gradients it took."""
    work = 6 * max(target.examples, 1) * target.row_work
    steps = int(min(_REFIT_STEPS, max(10, _REFIT_WORK / work)))
    descent = Descent(target, mode[None], steps)
    descent.advance(steps)
    return descent.best(), steps * descent.examples


def other_modes(target: Target, descent: Descent) -> str:
    """Say of how many chains the descent ended at another mode than the best one; "" where none did.

    An end counts where U is not much above the best one, a ridge lies between, and its slope does not lead there.
    """
    ends, best = descent.ends(), descent.best()
    middle = (ends + best) / 2
    (potential, slope), least = target.gradient(ends), target.gradient(best[None])[0]
    away = (slope * (middle - ends)).sum(-1) > -1
    ridge = target.gradient(middle)[0] - torch.maximum(potential, least)
    count = int((away & (ridge > _RIDGE) & (potential - least < _NEAR)).sum())
    if not count:
        return ""
    return (
        f"{OTHER_MODES} ({count} of {len(ends)}), and every chain sets out from the best one, so the density near the"
        " others may be missed: compare with a sampler that starts at random points."
    )


def starts_at_mode(target: Target, sampler: Sampler) -> bool:
    """Return whether chains set out from modes, each from the end of its own descent."""
    return sampler.start == "mode" or (sampler.start == "auto" and target.start_at_mode)


def first_points(x0: Tensor, descent: Descent | None, at_mode: bool, one_centre: bool) -> Start:
    """Return where chains set out: at random points x0 (chains, dim), or at modes.

    Parameters
    ----------
    descent : Descent or None
        The way down from x0 to modes, at its end; None where nobody needs one.
    at_mode : bool
        Whether chains set out from modes, each from the end of its own descent.
    one_centre : bool
        Whether a sampler has one centre for all chains, which then set out from it.
    """
    mode = None if descent is None else descent.best()
    if not at_mode:
        return Start(x0, mode)
    return Start(mode.expand_as(x0).clone() if one_centre else descent.ends(), mode)


class StartSearch:
    """The search for where chains set out: at random points, at modes, or at points that are given.

    Parameters
    ----------
    target : Target
    sampler : Sampler
    x0 : Tensor, shape (chains, dim)
        Random points.
    points : Tensor or None, shape (chains, dim)
        Points that are given; a sampler may need a mode besides.
    given : bool
        Whether the whole start is given, so that nothing has to be searched.

    Attributes
    ----------
    descent : Descent or None
        The way down to modes; None where nobody needs one.
    """

    def __init__(self, target: Target, sampler: Sampler, x0: Tensor, points: Tensor | None, given: bool) -> None:
        self._target, self._x0, self._points = target, x0, points
        self._at_mode, self._one_centre = starts_at_mode(target, sampler), sampler.needs_mode
        needed = not given and ((points is None and self._at_mode) or self._one_centre)
        self.descent = Descent(target, x0, sampler.mode_steps) if needed else None

    def begin_anew(self, sampler: Sampler) -> None:
        """Descend from the beginning: on data that have changed a descent ends elsewhere."""
        if self.descent is not None:
            self.descent = Descent(self._target, self._x0, sampler.mode_steps)

    def advance(self, steps: int) -> int:
        """Take some steps; return the gradients of single rows that they took."""
        if self.descent is None:
            return 0
        self.descent.advance(steps)
        return steps * self.descent.examples * len(self._x0)

    def remarks(self) -> list[str]:
        """Say that there are modes from which no chain sets out; of a network there always are."""
        if self.descent is None or self._points is not None or not self._one_centre or isinstance(self._target, BNN):
            return []
        said = other_modes(self._target, self.descent)
        return [said] if said else []

    @property
    def done(self) -> bool:
        """Whether the start is found."""
        return self.descent is None or self.descent.done

    def start(self) -> Start:
        """Return what was found."""
        if self._points is not None:
            return Start(self._points, None if self.descent is None else self.descent.best())
        return first_points(self._x0, self.descent, self._at_mode, self._one_centre)
