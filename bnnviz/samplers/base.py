r"""Define a sampler: a pure kernel with settings, and the state that it moves.

The law that it samples has the density $\pi(x) \propto \exp(-U(x) / T)$, where U is the target's potential and T the
temperature. An instance holds its settings and what `Sampler.prepare` derives from target and mode. All that changes
while a run samples is in the state, a ``NamedTuple``:

- ``x`` (chains, dim), the positions, and what else a method remembers: momenta, gradients, the path;
- ``count`` (chains,), the moves of each chain so far, and ``alive`` (chains,), false where one met a value that is not
  finite;
- ``adaptation``, what the warm-up learns and what is used after it. No kernel changes it.

`bnnviz.samplers.warmup` drives the warm-up, `bnnviz.samplers.tree` writes states into checkpoints.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, get_args, get_type_hints

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
from bnnviz.targets import Target

if TYPE_CHECKING:
    from bnnviz.samplers.baselines.newton import DistanceToMode

REGISTRY = Registry("sampler")

ENERGY = "energy"
#: Fields of an `Info` that are kept of each draw, by the names that ArviZ has for sample statistics: recordings hold
#: them, the trace can show them, and a field of such a name in a sampler's `Info` is all that it takes.
SAMPLE_STATS = ("acceptance_rate", "diverging", ENERGY, "n_steps", "reached_max_treedepth")
#: Fields of an `Info` that have U, or U less the prior's term.
OF_U = ("potential", "loss")

#: Steps of Adam that lead chains to where a network predicts, and not to where it fits the noise.
SHORT_DESCENT = 100


@dataclass(frozen=True)
class Traits:
    """Constant properties of a sampler, which decide how a run drives, judges and shows it.

    Attributes
    ----------
    exact : bool
        Draws follow the target but for Monte Carlo error, without a bias from a step size.
    converges : bool
        Draws approach the target's law as their number grows; those of an approximation do not.
    weighted : bool
        Draws come with weights (`Draws.log_weight`), which every sum over them needs.
    weighed_by : str
        What draws are weighted by, where they are.
    one_point : bool
        All draws of a chain are one point.
    has_density : bool
        Draws follow a law whose density is known (`Sampler.approximation`).
    functional : bool
        States are densities, which the chain trace draws on a line (`FunctionalTrace.curves`).
    descends : bool
        It finds modes itself, so chains begin at random points.
    tunes : bool
        A run begins with a warm-up of the kernel.
    warms_up_by_moves : bool
        The warm-up takes `Sampler.warmup_moves` moves, and no draw after it is dropped.
    ends : str or None
        Field of `Info`: where it is true of no chain, `Sampler.adapt` learns nothing from the step and
        `Sampler.pre_draw` draws nothing for the next one. None where this is unknown.
    emits : frozenset of str
        Parts of a frame that the chain trace fills (``ratios``: the statistics, by ``box``); they decide the views.
    reference_rank : int
        Rank as a reference for long runs: the highest is used, 0 never.

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


class Sampler(param.Parameterized):
    """A Markov kernel over all chains at once.

    A family defines its ``State`` and ``Info``, its settings as parameters, ``registered`` (a unique name), ``title``,
    `gradients_per_step`, `init` and `kernel`. All else has a default.

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
    #: Fields of `Info` that are averaged over moves, zero where a step ends none, with what each is called.
    info_means: ClassVar[dict[str, str]] = {}
    #: What it says of its moves.
    text: ClassVar[type[MoveText]] = MoveText
    #: Whether a run must find a mode of the target before it begins (`Start.mode`); it may depend on settings.
    needs_mode: ClassVar[bool] = False
    #: Whether its steps are the same operations whatever the state is, so that they can be compiled.
    compiles: ClassVar[bool] = True
    #: Whether its draws have weights that undo a bias in where they are taken (`event_weights`).
    weighs: ClassVar[bool] = False
    #: Steps after which the tuning ends in any case.
    tuning_limit: ClassVar[int] = 5000
    #: Gradients of single rows that a step of one chain costs, at most.
    gradients_per_step: int
    #: Numbers that a state holds of each chain and coordinate, about.
    width: ClassVar[int] = 2

    start: str = "auto"
    mode_steps: int = 3000
    temperature: float = 1.0
    every: int = 1
    #: Moves of each chain that its tuning takes, on average; where it warms up by moves (`Traits`).
    warmup_moves: int = 200
    #: Whether a step may read tensor values on the host to spare work (CPU only).
    host_sync: bool = True

    @classmethod
    def proposal(cls, budget: Budget) -> BudgetProposal | None:
        """Return how it would spend a budget on a network, where it may be chosen automatically; None where not."""
        return None

    # ---- the contract: constants, state, kernel

    def check(self, target: Target) -> None:
        """Raise a `BnnvizError` where these settings do not fit a target, before anything is touched."""

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target, and compute what depends on its mode (dim,), before `init`."""
        self.check(target)
        self.target = target
        # On a CPU it is free to look at a number; on a GPU one would wait for it, and what is compiled cannot.
        self.host_sync = target.device.type == "cpu"
        self.set_mode(mode)

    def refined_mode(self, target: Target, mode: Tensor) -> Tensor:
        """Return the mode (dim,) that it is prepared with, from where a run's descent has come to."""
        return mode

    def starts_at_mode(self, target: Target) -> bool:
        """Return whether chains set out from modes, each from the end of its own descent."""
        return self.start in ("mode", "one_mode") or (self.start == "auto" and target.start_at_mode)

    def descent_steps(self, target: Target) -> int:
        """Return how many steps of Adam chains descend before they set out."""
        if self.start == "auto" and target.mode_overfits and not self.needs_mode:
            return min(self.mode_steps, SHORT_DESCENT)
        return self.mode_steps

    def starts_together(self, target: Target) -> bool:
        """Return whether chains that set out from modes set out from the best of them, all from one point."""
        return self.start == "one_mode" or self.needs_mode

    def set_mode(self, mode: Tensor | None) -> None:
        """Compute what depends on the mode (dim,)."""

    def init(self, x0: Tensor, rng: RandomNumbers) -> Any:
        """Return the state of all chains from starting points (chains, dim)."""
        raise NotImplementedError

    def pre_draw(self, rng: RandomNumbers, state: Any) -> tuple:
        """Draw, outside of `kernel`, what only some chains need: its further arguments, None for what none needs."""
        return ()

    def kernel(self, rng: RandomNumbers, state: Any, *drawn: Any) -> tuple[Any, Any]:
        """Take the step: the same operations whatever the state is, unless `host_sync`, so that it can be compiled."""
        raise NotImplementedError

    def step(self, rng: RandomNumbers, state: Any) -> tuple[Any, Any]:
        """Return the next state and what happened."""
        return self.kernel(rng, state, *self.pre_draw(rng, state))

    def outline(self, state: Any) -> Any:
        """Return a state, None in the place of what is only asked of it at the end of a block of compiled steps.

        Draw collectors, chain traces and `pre_draw` see such states between the steps of a block.
        """
        return state

    # ---- the warm-up

    def adapt(self, rng: RandomNumbers, before: Any, state: Any, info: Any) -> Any:
        """Return the state with what a step of the warm-up has taught, from ``before`` to ``state``."""
        return state

    def adaptation_inputs(self, adaptation: Any) -> Any:
        """Return the adaptation as nested tuples of tensors that its kernel takes too, so that one program serves all.

        None where the kernel needs the adaptation itself: then its steps are compiled after the warm-up.
        """
        return None

    def native_step(self) -> NativeStep | None:
        """Return how its kernel is written in C++, for a CPU and uniform random numbers alone; None where it is not."""
        return None

    def end_window(self, rng: RandomNumbers, state: Any, last: bool) -> Any:
        """Return the state to go on from after a window of the warm-up; with ``last`` what was seen has to do."""
        return state

    def is_tuned(self, state: Any) -> bool:
        """Return whether the warm-up has seen enough."""
        return True

    def awaited(self, state: Any) -> str:
        """Say what a warm-up has waited for that had to end before it was tuned."""
        return "the sampler had seen enough events"

    def ends_warmup(self, state: Any) -> bool:
        """Return whether the warm-up is over with the step that led to a state, and not with its window."""
        return self.traits.warms_up_by_moves and self.is_tuned(state)

    def warmup_share(self, state: Any) -> float | None:
        """Return the share of the warm-up that is done, 0 to 1; None where that is not known."""
        return None

    def freeze(self, rng: RandomNumbers, state: Any) -> Any:
        """Return the state at the end of the warm-up, from which on nothing is learned."""
        return state

    # ---- changes

    def resume(self, rng: RandomNumbers, state: Any, moved: bool = False) -> Any:
        """Return a state that is fit to go on from after the settings changed, or with ``moved`` the target."""
        return state

    def positions(self, state: Any) -> Tensor | None:
        """Return where chains are (chains, dim); None where they have no one place."""
        return getattr(state, "x", None)

    def reach(self, state: Any) -> Tensor | None:
        """Return points (chains, dim) about as far out as draws lie; None where chains have no place."""
        return self.positions(state)

    def moved_to(self, rng: RandomNumbers, state: Any, x: Tensor) -> Any:
        """Return the state of chains that set out anew from x (chains, dim), with what was learned."""
        return state._replace(x=x)

    def clone(self) -> Sampler:
        """Return another instance with the same settings for one run, bound to no target."""
        if "target" not in vars(self):
            return copy.deepcopy(self)
        return type(self)(**{name: getattr(self, name) for name in settings.declared(type(self))})

    def remarks(self) -> list[Message]:
        """Return what its user should know of how it was prepared."""
        return []

    # ---- what kernels have in common

    def tempered_target(self, x: Tensor, state: Any = None) -> tuple[Tensor, Tensor]:
        """Return U / T (n,) and its gradient (n, dim) of the density that the draws are meant to follow.

        ``state`` is one of those that they come from, where the warm-up has a part in what that is.
        """
        potential, g = self.target.gradient(x)
        return potential / self.temperature, g / self.temperature

    def moved(self, state: Any, finite: Tensor, **parts: Tensor) -> tuple[Any, Tensor]:
        """Return the state with other parts where these are finite (chains,), and which chains have failed just now."""
        alive = state.alive & finite
        failed = state.alive & ~finite
        if not (self.host_sync and bool(alive.all())):
            parts = {name: _chosen(alive, part, getattr(state, name)) for name, part in parts.items()}
        return state._replace(**parts, count=state.count + alive, alive=alive), failed

    # ---- what it costs, and who observes it

    def gradient_cost(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the gradients of single rows that the steps took, for the chains (chains,) that are counted."""
        return self.gradients_per_step * int(counted.sum()) * len(step_batch.infos)

    @classmethod
    def sample_stats(cls) -> tuple[str, ...]:
        """Return the names of what is kept of the move that led to each draw (`Draws.stats`)."""
        returned = get_args(get_type_hints(cls.kernel).get("return"))
        fields = getattr(returned[1], "_fields", ()) if len(returned) == 2 else ()
        return tuple(name for name in SAMPLE_STATS if name in fields)

    def is_free(self, state: Any) -> bool:
        """Return whether steps from this state on cost no gradient."""
        return not self.gradients_per_step

    def draw_collector(self, rng: RandomNumbers, state: Any) -> DrawCollector:
        """Return what turns the steps from this state on into draws."""
        return MoveDrawCollector(self, state)

    def sampler_stats(self) -> SamplerStats:
        """Return counters at zero."""
        return MoveStats(self)

    def chain_trace(self) -> ChainTrace:
        """Return a trace that has seen nothing."""
        return MoveTrace(self)

    def arrived(self, step_batch: StepBatch) -> Tensor | None:
        """Return which chains may be drawn from after each of these steps, (steps, chains); None for all."""
        return None

    def visited(self, before: list[Tensor], step_batch: StepBatch, chain: int) -> list[Tensor]:
        """Return the points (dim,) that a chain's move is passing through, for its picture; none where it is one jump.

        ``before`` is what this returned for the steps before.
        """
        return []

    def trajectory(self, before: Any, state: Any, info: Any, chain: int) -> list[Tensor]:
        """Return the points (dim,) that a chain's last step has passed through, computed anew for its picture."""
        return []

    def place(self, target: Target, x: Tensor) -> DistanceToMode | None:
        """Return how far a draw x (dim,) is from the mode that it is meant to be; None where it is meant to be none."""
        return None

    def infinite_density(self, step_batch: StepBatch) -> Tensor | None:
        """Return where steps met U = minus infinity, (steps, chains); None where they tell nothing of U."""
        told = next((name for name in OF_U if hasattr(step_batch.infos[0], name)), None)
        return None if told is None else step_batch.column(told) == -torch.inf

    def tried(self, step_batch: StepBatch, step: int, chain: int) -> Tensor | None:
        """Return points (n, dim) at which a step may have evaluated U for a chain; None where they are not known."""
        states = step_batch.before[step], step_batch.state_after(step)
        found = [x[chain] for x in map(self.positions, states) if x is not None]
        return torch.stack(found) if found else None

    def events_in(self, step_batch: StepBatch) -> Tensor | None:
        """Return how many events each chain had in these steps (chains,); None where a sampler has none to number."""
        return None

    def integrates(self, chains: int, dim: int) -> bool:
        """Return whether its draws come with the integrals along the path (`Draws.path`)."""
        return False

    def approximation(self, rng: RandomNumbers, state: Any, count: int) -> tuple[Tensor, Tensor]:
        """Return about so many draws (n, dim) of its law, and the logarithm of that one's density; if `has_density`."""
        raise NotImplementedError

    def event_weights(self, x: Tensor, draw_collector: DrawCollector | None = None) -> Tensor:
        """Return weights (n,), of sum 1, of draws x (n, dim); where `weighs`."""
        raise NotImplementedError


def counters(x0: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``count`` and ``alive`` (chains,) of chains that set out from x0 (chains, dim)."""
    count = torch.zeros(len(x0), dtype=torch.float64, device=x0.device)
    return count, torch.ones_like(count, dtype=torch.bool)


def length(vectors: Tensor) -> Tensor:
    """Return the lengths (n,) of vectors (n, dim)."""
    return torch.linalg.vector_norm(vectors, dim=-1)


def _chosen(mask: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    return torch.where(mask.view(-1, *[1] * (yes.ndim - 1)), yes, no)
