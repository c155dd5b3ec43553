"""What a sampler is: a kernel with settings, `init` and `step`, and what it reports."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import param
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.registry import Registry
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

REGISTRY = Registry("sampler")


@dataclass(slots=True)
class StepBatch:
    """A few consecutive steps: the states they began on, what they did, and the number of the first."""

    before: list[Any]
    infos: list[Any]
    after: Any
    first_step: int
    # Whoever draws, counts, looks on or keeps a log asks for the same ones.
    _columns: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def column(self, name: str) -> Tensor:
        """Return what the steps' infos say by this name, (steps, chains)."""
        if name not in self._columns:
            self._columns[name] = torch.stack([getattr(info, name) for info in self.infos])
        return self._columns[name]


class Draws(NamedTuple):
    """Draws made in a batch of steps: chain (n,), the draw's number in its chain (n,), position (n, dim).

    A sampler with exact paths gives also what came before each draw: the time, and the integrals of the position and
    of its square along the path, (n, 1 + 2 dim) in float64. One whose draws are weighed gives the logarithms of their
    weights, (n,) in float64.
    """

    chain: Tensor
    index: Tensor
    x: Tensor
    path: Tensor | None = None
    log_weight: Tensor | None = None


class DrawCollector(Protocol):
    """Turns steps into draws, outside of `step`."""

    def collect(self, step_batch: StepBatch) -> Draws:
        """Return the draws that the steps made."""

    def save(self) -> dict[str, Any]:
        """Return its state for a checkpoint."""

    def load(self, saved: dict[str, Any]) -> None:
        """Take a saved state over."""


class SamplerStats(Protocol):
    """Counts over all chains."""

    events: int

    def add(self, step_batch: StepBatch, counted: np.ndarray) -> None:
        """Count the steps, for the chains (chains,) of which ``counted`` is true."""

    def summary(self) -> dict[str, float]:
        """Return named figures."""

    def rows(self) -> list[list[str]]:
        """Return the figures as rows (label, text, tone) of the table view."""

    def sentence(self) -> str:
        """Return the counts in one sentence."""

    def save(self) -> dict[str, Any]:
        """Return its state for a checkpoint."""

    def load(self, saved: dict[str, Any]) -> None:
        """Take a saved state over."""


class Projection(NamedTuple):
    """The plane that paths are drawn in: coordinate = (canonicalise(x) - centre) @ axes.

    ``axes`` of shape (dim, 2), or None for the phase plane of a one-dimensional target. ``canonicalise`` takes points
    (n, dim) to others that stand for them, and with vectors (n, dim) beside them returns where these go; None leaves
    them.
    """

    kind: str
    labels: tuple[str, str]
    centre: np.ndarray
    axes: np.ndarray | None
    basis: int
    canonicalise: Callable[..., np.ndarray] | None = None


#: Events that a chain trace holds for whoever collects them, and the kind of one that is a move of a discrete sampler.
LATELY, MOVE = 4096, 6


class ChainTrace(Protocol):
    """Follows one chain closely enough to draw it.

    Attributes
    ----------
    lately : deque of (int, int)
        Step and kind of its last events, oldest first; whoever collects them takes them out.
    """

    lately: deque[tuple[int, int]]

    def begin(self, state: Any, chain: int) -> None:
        """Stand where the watched chain is, before its first step."""

    def record(self, step_batch: StepBatch, chain: int) -> None:
        """Note what the watched chain did in these steps."""

    def part(self, name: str, plane: Projection, playing: bool) -> dict[str, Any]:
        """Return one part of a frame."""

    def event(self, step: int) -> tuple[int, str, Tensor]:
        """Return step, a few words and the position (dim,) of an event that is still remembered."""


class Sampler(param.Parameterized):
    """A Markov kernel over all chains at once.

    A subclass declares its settings as parameters, ``registered`` (a unique name), ``title``, and
    ``emits``: the parts of a frame that its chain trace can fill (``ratios``: its statistics, by ``box``), which
    decide the views that appear.
    """

    registered: ClassVar[str] = ""
    title: ClassVar[str] = ""
    emits: ClassVar[frozenset[str]] = frozenset()
    presets: ClassVar[list[dict[str, Any]]] = []
    needs_mode: ClassVar[bool] = False
    #: Whether its draws follow the target but for chance, as those of a method without a step size do.
    exact: ClassVar[bool] = True
    #: Whether its draws come with weights (`Draws.log_weight`): no sum over them is right without.
    weighted: ClassVar[bool] = False
    #: Whether a run of it begins with a tuning.
    tunes: ClassVar[bool] = True
    #: Whether its steps are the same operations whatever the state, so that they can be compiled.
    compiles: ClassVar[bool] = True
    #: Whether its draws come nearer to the target's law the more there are of them; of an approximation they do not.
    converges: ClassVar[bool] = True
    #: Whether it looks for modes itself: then it sets out from random points, wherever others do.
    descends: ClassVar[bool] = False
    #: What draws are weighed by, where they are.
    weighed_by: ClassVar[str] = "1 / rate"
    #: Steps after which the tuning ends, whatever it has seen.
    tuning_limit: ClassVar[int] = 5000
    #: Gradients of single rows that a step of one chain is charged for, at most.
    examples_per_step: int
    #: Whether its states are densities, which its chain trace draws on a line (`FunctionalTrace.curves`).
    functional: ClassVar[bool] = False
    #: Place among the samplers for long runs that others are measured against; the highest is taken, 0 never is.
    reference_rank: ClassVar[int] = 0

    start: str = "auto"
    mode_steps: int = 3000
    #: All random numbers come from it.
    rng: RandomNumbers
    #: Whether a step may read tensor values on the host to spare work (CPU only).
    host_sync: bool = True

    @property
    def width(self) -> int:
        """Numbers that a state holds of each chain and coordinate, about."""
        return 2

    def charge(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the gradients of single rows that the steps took, for the chains (chains,) that are counted."""
        return self.examples_per_step * int(counted.sum()) * len(step_batch.infos)

    def check(self, target: Target) -> None:
        """Raise a `BnnvizError` where these settings do not fit a target, before anything is touched."""

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target, and compute what depends on its mode (dim,), before `init`."""
        self.target = target

    def init(self, x0: Tensor, rng: torch.Generator) -> Any:
        """Return the state of all chains from starting points (chains, dim)."""
        raise NotImplementedError

    def step(self, state: Any) -> tuple[Any, Any]:
        """Return the next state and what happened."""
        return self.kernel(state, self.pre_draw(state))

    def pre_draw(self, state: Any) -> Any:
        """Draw, outside of `kernel`, what only some chains need: nested tuples of tensors, None for what none needs."""
        return ()

    def kernel(self, state: Any, pre_drawn: Any) -> tuple[Any, Any]:
        """Take the step: the same operations whatever the state is, unless `host_sync`, so that it can be compiled."""
        raise NotImplementedError

    def own(self) -> Sampler:
        """Return another instance with the same settings for one run, bound to no target."""
        if "target" not in vars(self):
            return copy.deepcopy(self)
        names = [setting["name"] for setting in settings.describe(type(self))]
        return type(self)(**{name: getattr(self, name) for name in names})

    def twin(self) -> Sampler:
        """Return another instance with the same settings, bound to the same target, that has learnt the same."""
        names = [setting["name"] for setting in settings.describe(type(self))]
        twin = type(self)(**{name: getattr(self, name) for name in names})
        twin.adopt(self)
        return twin

    def settled(self, state: Any) -> bool:
        """Return whether the tuning at the start of a run has seen enough."""
        raise NotImplementedError

    def tune(self, state: Any, last: bool) -> tuple[Any, bool]:
        """Return the state to go on from in the tuning, and whether the tuning has seen enough.

        With ``last`` it ends here: what was seen so far has to do.
        """
        return state, self.settled(state)

    def draw_collector(self, state: Any) -> DrawCollector:
        """End the tuning and return what turns the steps from this state on into draws."""
        raise NotImplementedError

    def sampler_stats(self) -> SamplerStats:
        """Return counters at zero."""
        raise NotImplementedError

    def events_in(self, step_batch: StepBatch) -> Tensor | None:
        """Return how many events each chain had in these steps (chains,); None where a sampler has none to number."""
        return None

    def chain_trace(self) -> ChainTrace:
        """Return a trace that has seen nothing."""
        raise NotImplementedError

    def warning(self, figures: dict[str, float]) -> tuple[str, list[dict[str, Any]]]:
        """Return a sentence on what is known to be wrong with the settings ("" if nothing), and remedies."""
        return "", []

    @property
    def weighs(self) -> bool:
        """Whether its draws have weights, which undo a bias in where they are taken (`event_weights`)."""
        return False

    def integrates(self, chains: int, dim: int) -> bool:
        """Return whether its draws come with the integrals along the path (`Draws.path`)."""
        return False

    def aim(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U (n,) and its gradient (n, dim) of the density that the draws are meant to follow."""
        return self.target.gradient(x)

    def rows(self, state: Any) -> list[list[str]]:
        """Return figures of its own on the chains where they are now, as rows (label, text, tone) of the table view."""
        return []

    def resume(self, state: Any, moved: bool = False) -> Any:
        """Return a state that is fit to go on from after the settings changed, or with ``moved`` the target."""
        raise NotImplementedError

    def placed(self, state: Any, x: Tensor) -> Any:
        """Return the state of chains that set out anew from x (chains, dim), with what the sampler has learnt."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """Return sentences on how it was prepared that its user should know."""
        return []

    def recentre(self, mode: Tensor) -> None:
        """Compute anew what depends on the mode (dim,): the target has changed."""

    def adopt(self, other: Sampler) -> None:
        """Take over what another instance of the class has bound and learnt; the settings stay one's own."""
        raise NotImplementedError

    def save(self, state: Any) -> dict[str, Any]:
        """Return the state and what was learnt, as tensors and plain values, for a checkpoint."""
        raise NotImplementedError

    def load(self, saved: dict[str, Any], rng: torch.Generator) -> Any:
        """Take over what was learnt and return the saved state; ``prepare`` was called before."""
        raise NotImplementedError
