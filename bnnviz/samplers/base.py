r"""Define a sampler: a pure kernel with settings, and the state that it advances.

A sampler targets the density $\pi(x) \propto \exp(-U(x) / T)$ with the target's potential U and temperature T. An
instance holds its settings and the constants that `Sampler.prepare` computes from the target and its mode. Everything
that changes during a run is in the state, a ``NamedTuple``:

- ``x`` (chains, dim), the positions, and further variables of the method: momenta, gradients, the path;
- ``count`` (chains,), the moves of each chain so far, and ``alive`` (chains,), false after a non-finite value;
- ``adaptation``, the quantities that the warm-up learns. No kernel changes it.

`bnnviz.samplers.warmup` drives the warm-up, `bnnviz.samplers.tree` converts states for checkpoints.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, get_args, get_type_hints

import numpy as np
import param
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.messages import Message
from bnnviz.registry import Registry
from bnnviz.samplers.budget import Budget, BudgetProposal
from bnnviz.samplers.moves import MoveDrawCollector, MoveStats, MoveTrace
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.observers import ChainTrace, DrawCollector, SamplerStats, StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.text import MoveText
from bnnviz.samplers.tree import choose
from bnnviz.targets import Target

if TYPE_CHECKING:
    from bnnviz.samplers.baselines.newton import DistanceToMode

REGISTRY = Registry("sampler")

ENERGY = "energy"
#: Fields of an `Info` that are stored for each draw, with ArviZ's names of sample statistics. A sampler reports a
#: statistic by a field of that name in its `Info`; recordings store it and the trace view shows it.
SAMPLE_STATS = ("acceptance_rate", "diverging", ENERGY, "n_steps", "reached_max_treedepth")
#: Fields of an `Info` that contain U, U without the prior's term, or a difference or minimum of U.
OF_U = ("potential", "loss", "energy_error", "least")

#: Steps of Adam that bring chains to good predictions before the network fits the noise.
SHORT_DESCENT = 100


class SamplerState(Protocol):
    """What the states of all samplers have; each sampler's own is a ``NamedTuple``."""

    @property
    def alive(self) -> Tensor:
        """Which chains have met no non-finite value, bool (chains,)."""


@dataclass(frozen=True)
class Traits:
    """Constant properties of a sampler.

    Attributes
    ----------
    exact : bool
        Whether draws follow the target up to Monte Carlo error.
    converges : bool
        Whether the distribution of the draws converges to the target.
    weighted : bool
        Whether draws have weights (`Draws.log_weight`).
    weighed_by : str
        Formula of the weights.
    one_point : bool
        Whether all draws of a chain are identical.
    has_density : bool
        Whether the density of the draws is known (`Sampler.approximation`).
    functional : bool
        Whether states are distributions (`FunctionalTrace.curves`).
    descends : bool
        Whether the sampler finds modes itself, so that chains start at random points.
    tunes : bool
        Whether the kernel has a warm-up.
    warms_up_by_moves : bool
        Whether the warm-up has a fixed number of `Sampler.warmup_moves` transitions, after which no draws are
        discarded.
    ends : str or None
        Boolean field of `Info`. If it is false for all chains, `Sampler.adapt` and `Sampler.pre_draw` have no effect.
        None if unknown.
    emits : frozenset of str
        Parts of a frame that the chain trace provides. They determine the views.
    reference_rank : int
        Priority as reference sampler. The sampler with the highest priority is used. 0 excludes a sampler.

    Examples
    --------
    >>> from bnnviz import samplers
    >>> samplers.HMC.traits.exact, samplers.SGLD.traits.exact
    (True, False)
    """

    exact: bool = True
    converges: bool = True
    weighted: bool = False
    weighed_by: str = "1 / rate"
    one_point: bool = False
    has_density: bool = False
    functional: bool = False
    descends: bool = False
    tunes: bool = True
    warms_up_by_moves: bool = False
    ends: str | None = None
    emits: frozenset[str] = frozenset({"path"})
    reference_rank: int = 0


def preset(name: str, title: str, doc: str, **chosen: Any) -> dict[str, Any]:
    """Return a preset: settings with a name, a title and a description."""
    return {"name": name, "title": title, "doc": doc, "settings": chosen}


class Sampler(param.Parameterized):
    """Base class of samplers, which advance all chains in lock-step.

    Subclasses must define ``State``, ``Info``, settings as class attributes, ``registered`` (a unique name), ``title``,
    `gradients_per_step`, `init` and `kernel`.

    Examples
    --------
    >>> from bnnviz import samplers
    >>> bps = samplers.BPS(refresh_rate=0.5)
    >>> isinstance(bps, samplers.Sampler), bps.refresh_rate
    (True, 0.5)
    """

    registered: ClassVar[str] = ""
    title: ClassVar[str] = ""
    traits: ClassVar[Traits] = Traits()
    presets: ClassVar[list[dict[str, Any]]] = []
    #: Fields of `Info` that are averaged over moves (zero in steps that end no move), with their labels.
    info_means: ClassVar[dict[str, str]] = {}
    #: Texts about its moves.
    text: ClassVar[type[MoveText]] = MoveText
    #: Whether a run must find a mode of the target first (`Start.mode`); may depend on settings.
    needs_mode: ClassVar[bool] = False
    #: Whether steps execute the same operations for every state, so that they can be compiled.
    compiles: ClassVar[bool] = True
    #: Whether draws have weights that correct for biased sampling times (`event_weights`).
    weighs: ClassVar[bool] = False
    #: Maximum number of tuning steps.
    tuning_limit: ClassVar[int] = 5000
    #: Maximum number of single-row gradients per step and chain.
    gradients_per_step: int
    #: Approximate number of values that a state stores per chain and coordinate.
    width: ClassVar[int] = 2

    start: str = "auto"
    mode_steps: int = 3000
    temperature: float = 1.0
    thin: int = 1
    #: Average number of tuning moves per chain, if the sampler warms up by moves (`Traits`).
    warmup_moves: int = 200
    #: Whether a step may read tensor values on the host to save work (CPU only).
    host_sync: bool = True

    def __init__(self, **params):  # without types, as param requires to derive the signature from the settings
        settings.refuse(params, [*settings.declared(type(self)), "name"], self.title)
        super().__init__(**params)

    @classmethod
    def proposal(cls, budget: Budget) -> BudgetProposal | None:
        """Return settings for a network and a budget, or None if the sampler cannot be selected automatically."""
        return None

    # ---- the contract: constants, state, kernel

    def check(self, target: Target) -> None:
        """Raise a `BnnvizError` if the settings are invalid for a target."""

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target and compute constants from its mode (dim,), before `init`."""
        self.check(target)
        self.target = target
        # Reading a value is free on a CPU; on a GPU it synchronises, and compiled steps cannot do it.
        self.host_sync = target.device.type == "cpu"
        self.set_mode(mode)

    def refined_mode(self, target: Target, mode: Tensor) -> Tensor:
        """Return the mode (dim,) for `prepare`, refined from the result of the optimisation."""
        return mode

    def starts_at_mode(self, target: Target) -> bool:
        """Return whether each chain starts at the mode found by its optimisation."""
        return self.start in ("mode", "one_mode") or (self.start == "auto" and target.start_at_mode)

    def descent_steps(self, target: Target) -> int:
        """Return the number of Adam steps before sampling."""
        if self.start == "auto" and target.mode_overfits and not self.needs_mode:
            return min(self.mode_steps, SHORT_DESCENT)
        return self.mode_steps

    def starts_together(self, target: Target) -> bool:
        """Return whether all chains start at the best mode."""
        return self.start == "one_mode" or self.needs_mode

    def set_mode(self, mode: Tensor | None) -> None:
        """Compute constants that depend on the mode (dim,)."""

    def init(self, x0: Tensor, rng: RandomNumbers) -> SamplerState:
        """Return the state of all chains from initial positions (chains, dim)."""
        raise NotImplementedError

    def pre_draw(self, rng: RandomNumbers, state: Any) -> tuple[Any, ...]:
        """Return additional arguments of `kernel` that only some chains need, or None if unused."""
        return ()

    def kernel(self, rng: RandomNumbers, state: Any, *drawn: Any) -> tuple[SamplerState, tuple[Any, ...]]:
        """Return the next state and the info of a step."""
        raise NotImplementedError

    def step(self, rng: RandomNumbers, state: Any) -> tuple[SamplerState, tuple[Any, ...]]:
        """Return the next state and the info of a step."""
        return self.kernel(rng, state, *self.pre_draw(rng, state))

    def outline(self, state: Any) -> SamplerState:
        """Return a state without the parts that only the end of a block of compiled steps needs."""
        return state

    # ---- the warm-up

    def adapt(self, rng: RandomNumbers, before: Any, state: Any, info: Any) -> SamplerState:
        """Return the state with the adaptation updated by a warm-up step from ``before`` to ``state``."""
        return state

    def adaptation_inputs(self, adaptation: Any) -> tuple[Any, ...] | None:
        """Return the adaptation as tuples of tensors, inputs of a kernel compiled at once; None: compile it later."""
        return None

    def native_step(self) -> NativeStep | None:
        """Return the C++ implementation of the kernel (CPU, uniform random numbers only), or None."""
        return None

    def end_window(self, rng: RandomNumbers, state: Any, last: bool) -> SamplerState:
        """Return the state after a window of the warm-up. ``last`` ends the warm-up unconditionally."""
        return state

    def is_tuned(self, state: Any) -> bool:
        """Return whether the warm-up has converged."""
        return True

    def awaited(self, state: Any) -> str:
        """Return the condition that ends the warm-up."""
        return "the sampler had seen enough events"

    def ends_warmup(self, state: Any) -> bool:
        """Return whether the warm-up ends immediately after the last step."""
        return self.traits.warms_up_by_moves and self.is_tuned(state)

    def warmup_share(self, state: Any) -> float | None:
        """Return the completed fraction of the warm-up, or None if unknown."""
        return None

    def freeze(self, rng: RandomNumbers, state: Any) -> SamplerState:
        """Return the state at the end of the warm-up, after which adaptation stops."""
        return state

    # ---- changes

    def resume(self, rng: RandomNumbers, state: Any, moved: bool = False) -> SamplerState:
        """Return a valid state after a change of settings, or with ``moved`` after a change of the target."""
        return state

    def positions(self, state: Any) -> Tensor | None:
        """Return the positions of the chains (chains, dim), or None if states are not points."""
        return getattr(state, "x", None)

    def reach(self, state: Any) -> Tensor | None:
        """Return points (chains, dim) at the distance of typical draws, or None if states are not points."""
        return self.positions(state)

    def moved_to(self, rng: RandomNumbers, state: Any, x: Tensor) -> SamplerState:
        """Return the state of chains restarted at x (chains, dim) with the same adaptation."""
        return state._replace(x=x)

    def __repr__(self) -> str:
        changed = (name for name, each in settings.declared(type(self)).items() if getattr(self, name) != each.default)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in changed)})"

    def clone(self) -> Sampler:
        """Return an unbound copy with the same settings."""
        if "target" not in vars(self):
            return copy.deepcopy(self)
        return type(self)(**{name: getattr(self, name) for name in settings.declared(type(self))})

    def remarks(self) -> list[Message]:
        """Return notes on the preparation of the sampler."""
        return []

    # ---- shared by kernels

    def tempered_target(self, x: Tensor, state: Any = None) -> tuple[Tensor, Tensor]:
        """Return U / T (n,) and its gradient (n, dim) of the density that the draws of a state follow."""
        potential, g = self.target.gradient(x)
        return potential / self.temperature, g / self.temperature

    def moved(self, state: Any, finite: Tensor, **parts: Tensor) -> tuple[Any, Tensor]:
        """Return the state with updated parts for finite chains, and the failed chains."""
        alive = state.alive & finite
        failed = state.alive & ~finite
        if not (self.host_sync and bool(alive.all())):
            parts = {name: choose(alive, part, getattr(state, name)) for name, part in parts.items()}
        return state._replace(**parts, count=state.count + alive, alive=alive), failed

    # ---- costs and observers

    def gradient_cost(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the number of per-example gradients of the steps, summed over the counted chains (chains,)."""
        return self.gradients_per_step * int(counted.sum()) * len(step_batch.infos)

    @classmethod
    def sample_stats(cls) -> tuple[str, ...]:
        """Return the names of the sample statistics stored for each draw (`Draws.stats`)."""
        returned = get_args(get_type_hints(cls.kernel).get("return"))
        fields = getattr(returned[1], "_fields", ()) if len(returned) == 2 else ()
        return tuple(name for name in SAMPLE_STATS if name in fields)

    def is_free(self, state: Any) -> bool:
        """Return whether steps from this state require no gradient."""
        return not self.gradients_per_step

    def draw_collector(self, rng: RandomNumbers, state: Any) -> DrawCollector:
        """Return a collector of draws that starts at this state."""
        return MoveDrawCollector(self, state)

    def sampler_stats(self) -> SamplerStats:
        """Return counters at zero."""
        return MoveStats(self)

    def chain_trace(self) -> ChainTrace:
        """Return an empty trace."""
        return MoveTrace(self)

    def arrived(self, step_batch: StepBatch) -> Tensor | None:
        """Return which chains produce valid draws after each of these steps, (steps, chains), or None for all."""
        return None

    def visited(self, before: list[Tensor], step_batch: StepBatch, chain: int) -> list[Tensor]:
        """Return the points (dim,) of a chain's current transition, for plots, from those of the steps ``before``."""
        return []

    def trajectory(self, before: Any, state: Any, info: Any, chain: int) -> list[Tensor]:
        """Recompute the points (dim,) of the last step of a chain for plots."""
        return []

    def place(self, target: Target, x: Tensor) -> DistanceToMode | None:
        """Return the distance of a draw x (dim,) from its mode, or None if draws are not meant to be modes."""
        return None

    def infinite_density(self, step_batch: StepBatch) -> Tensor | None:
        """Return at which steps U is minus infinity, (steps, chains), or None if steps do not report U."""
        found = [step_batch.column(name) == -torch.inf for name in OF_U if hasattr(step_batch.infos[0], name)]
        return torch.stack(found).any(0) if found else None

    def tried(self, step_batch: StepBatch, step: int, chain: int) -> Tensor | None:
        """Return points (n, dim) at which a step of a chain may have evaluated U, or None if unknown."""
        states = step_batch.before[step], step_batch.state_after(step)
        found = [x[chain] for x in map(self.positions, states) if x is not None]
        return torch.stack(found) if found else None

    def events_in(self, step_batch: StepBatch) -> Tensor | None:
        """Return the number of events of each chain in these steps (chains,), or None if the sampler has no events."""
        return None

    def integrates(self, chains: int, dim: int) -> bool:
        """Return whether draws include integrals along the path (`Draws.path`)."""
        return False

    def approximation(self, rng: RandomNumbers, state: Any, count: int) -> tuple[Tensor, Tensor]:
        """Return about ``count`` draws (n, dim) from the approximation and their log density."""
        raise NotImplementedError

    def event_weights(self, x: Tensor, draw_collector: DrawCollector | None = None) -> Tensor:
        """Return normalised weights (n,) of draws x (n, dim)."""
        raise NotImplementedError


def counters(x0: Tensor) -> tuple[Tensor, Tensor]:
    """Return initial ``count`` and ``alive`` (chains,) of chains that start at x0 (chains, dim)."""
    count = torch.zeros(len(x0), dtype=torch.float64, device=x0.device)
    return count, torch.ones_like(count, dtype=torch.bool)


def length(vectors: Tensor) -> Tensor:
    """Return the lengths (n,) of vectors (n, dim)."""
    return torch.linalg.vector_norm(vectors, dim=-1)
