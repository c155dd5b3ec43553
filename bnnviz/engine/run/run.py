"""Execute a spec: initialize, tune, warm up, sample, change settings and create checkpoints.

Observers are listeners; `bnnviz.engine.viewed_run` defines those that make frames.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch

from bnnviz import samplers, targets
from bnnviz.engine.compilation.compiled_step import KernelSwitch, remarks
from bnnviz.engine.run import failures
from bnnviz.engine.run.checkpoint import Restorable, TargetFingerprint
from bnnviz.engine.run.device import check_state, choose_device, clocked, threads_for, using_threads
from bnnviz.engine.run.draw_store import STORES
from bnnviz.engine.run.failures import Waiting
from bnnviz.engine.run.initialization import (
    Descent,
    Start,
    StartSearch,
    make_target,
    of_given_points,
    random_points,
    refit,
)
from bnnviz.engine.run.start_points import unpacked
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message
from bnnviz.samplers import warmup
from bnnviz.samplers.observers import Draws, StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN
from bnnviz.targets.base import RejectedPoints

log = logging.getLogger(__name__)

OF_TARGET = "target."  # before the names of a target's settings
_LONGEST_BLOCK = 256
# Maximum fraction of the caller's time per block, so that observers get answers in time.
BLOCK_SHARE = 0.6
_STEP_SECONDS = 0.008  # initial guess
# Maximum numbers of a block's states: 80 MB.
_BLOCK_NUMBERS = 20_000_000


class Run(Restorable):
    """The execution of a spec, driven by its caller; the initial spec and the change log reproduce the draws."""

    has_history: ClassVar[bool] = True
    is_fork: ClassVar[bool] = False

    def __init__(
        self, spec: Spec, *, target: targets.Target | None = None, sampler: samplers.Sampler | None = None
    ) -> None:
        self.own_target = target is not None
        self.spec = self.begun = spec = spec.checked(self.own_target)
        self.device = choose_device(spec.device)
        self.dtype = getattr(torch, spec.dtype)
        # Other runs may use the same network or instance at the same time.
        self.target = make_target(spec) if target is None else target.clone()
        self.target.to(self.device, self.dtype).use_native(waits=spec.draws is not None)
        chosen = samplers.REGISTRY.get(spec.sampler)
        self.sampler = chosen(**self.spec.settings) if sampler is None else sampler.clone()
        self.sampler.warmup_moves = self.warmup_moves
        self.rng = torch.Generator(self.device).manual_seed(spec.seed)
        self.numbers = RandomNumbers(self.rng)
        self.phase, self.steps, self.gradients = "start", 0, 0
        self.changes: list[tuple[int, dict[str, Any]]] = []
        self.notes: list[Message] = []
        self._points = None if spec.start_points is None else self._given_points(spec.start_points)
        self.error: Message | None = None
        self.generation, self.seconds, self.cpu_seconds, self.device_seconds = 0, 0.0, 0.0, 0.0
        self.alive = np.ones(spec.chains, dtype=bool)
        self.state, self.draw_collector = None, None
        self.sampler_stats = self.sampler.sampler_stats()
        self.events: torch.Tensor | None = None
        self._target_fingerprint = TargetFingerprint(self.target, self.own_target or isinstance(self.target, BNN))
        check_state(self.sampler, self.target, spec.chains, self.dtype, self.device)
        self.begin_draws()
        self.mode: torch.Tensor | None = None
        self.origin: torch.Tensor | None = None
        self._search: StartSearch | None = None
        self._runaways: failures.RunawayWatch | None = None
        self._start: Start | None = None
        self._step_seconds = _STEP_SECONDS
        self.threads = threads_for(6 * spec.chains * self.target.examples * self.target.row_work)
        self.runs = [self]  # a race and a fork have several
        self.chosen = False  # whether a pilot chose the sampler
        self.minutes = self.ends_at = None  # time limit with the pilot's, and the `device_seconds` at which it ends
        self.wait_for_compile = spec.draws is not None
        self._switch = KernelSwitch()
        self.waiting = Waiting(self)
        self.listeners: list[Callable[[StepBatch], None]] = []
        self.on_work: list[Callable[[], None]] = []  # called after each piece of work, including the start search
        self.on_move: list[Callable[[], None]] = []
        self.spent_before = (0.0, 0)  # seconds and gradients before the draws began anew

    @property
    def warmup_moves(self) -> int:
        """Moves of the warm-up for samplers that count them: as in the spec, at least 200 for endless runs."""
        least = 0 if self.spec.draws is not None else samplers.Sampler.warmup_moves
        return max(self.spec.warmup, least)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.phase in ("done", "failed")

    @property
    def kernel(self) -> str:
        """The kernel in use: "eager", "compiling" (still eager) or "compiled"."""
        return self._switch.state

    @property
    def compiled_since(self) -> int | None:
        """The step of the switch to the compiled kernel."""
        return self._switch.compiled_since

    @property
    def progress(self) -> float:
        """Fraction of the work done, 0 to 1; nan for a run without an end."""
        if self.phase == "done":
            return 1.0
        if self.spec.draws is None:
            return float("nan")
        done, total = float(self.store.made.min()), self.spec.draws + self.store.skip
        if self.sampler.traits.warms_up_by_moves and self.state is not None:
            done, total = done + self.warmup_moves * self.sampler.warmup_share(self.state), total + self.warmup_moves
        return min(done / total, 1.0)

    @property
    def descent(self) -> Descent | None:
        """The current descent to a mode, or None."""
        return self._search.descent if self.phase == "start" and self._search is not None else None

    def prepare(self) -> None:
        """Find the starting points, so that the next step is the kernel's first."""
        while self.phase == "start":
            self._prepare_some(50)

    def set_out(self, start: Start) -> None:
        """Start here without a start search, so that the next step is the kernel's first."""
        self._start = start
        self.prepare()

    def take(self, most: int, seconds: float = 0.02) -> int:
        """Take one block of at most ``most`` steps within the time; return the number of steps."""
        first = self.steps
        if self._awaits_kernel():
            self._switch.wait(seconds)
        elif not self.finished:
            self._block(min(most, self._block_length(seconds)))
        return self.steps - first

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about the given seconds; return the number of kernel steps."""
        begun, first = time.perf_counter(), self.steps
        # For all blocks at once: setting the number of threads takes as long as a few steps of a small network.
        with using_threads(self.threads):
            while not self.finished and time.perf_counter() - begun < seconds:
                if self._awaits_kernel():
                    self._switch.wait(seconds)
                    break
                if self.phase != "start":
                    self._block(self._block_length(seconds))
                    continue
                self._prepare_some(10)
                if self.phase != "start":
                    # A run paused during its start search must not take a step of the kernel.
                    break
        return self.steps - first

    def step_proposal(self) -> None:
        """Take exactly one step: one evaluation for every chain."""
        self.prepare()
        if not self.finished:
            self._block(1)

    def _prepare_some(self, steps: int) -> None:
        with clocked(self):
            if self._search is None:
                # Drawn for a given start too: the draws do not depend on the origin of a start.
                given = self._start is not None or (self._points is not None and not self.sampler.needs_mode)
                draw = self.target.initial if given else partial(random_points, self.target)
                x0 = draw(self.spec.chains, self.rng)
                self._search = StartSearch(self.target, [self.sampler], x0, self._points, self._start is not None)
            self.gradients += self._search.advance(steps)
            if self._search.done:
                # Discard intermediate attempts.
                self.target.rejected = RejectedPoints()
                self._set_out(self._start or self._search.start())
        for listener in self.on_work:
            listener()

    def _given_points(self, content: bytes) -> torch.Tensor:
        """Return one given point per chain (chains, dim), in turn: with more chains some share a point."""
        points = unpacked(content)
        if points.shape[1] != self.target.dim:
            raise BnnvizError(
                f"The given start has {points.shape[1]} dimensions, but this target has {self.target.dim}: give points"
                " with the same number of dimensions.",
                "start",
            )
        self.notes.append(Message("given_start"))
        chosen = points[np.arange(self.spec.chains) % len(points)]
        return torch.as_tensor(chosen).to(self.device, self.dtype)

    def _set_out(self, start: Start) -> None:
        self.sampler.check(self.target)
        mode = start.mode
        self.mode = mode if mode is None else self.sampler.refined_mode(self.target, mode)
        self.origin = start.x[0].clone()
        self.sampler.prepare(self.target, self.mode)
        self.notes += [*self.target.remarks(), *self.sampler.remarks(), *self._search.remarks()]
        self.state = self.sampler.init(start.x.clone(), self.numbers)
        if self._points is not None:
            self.notes += of_given_points(self.target, self._points)
        if self._points is not None and not torch.allclose(self.state.x, self._points):
            self.notes.append(Message("other_start", sampler=self.sampler.title))
        self._search = None
        self.phase = "tuning"
        self.waiting.tuning_since = self.seconds
        if self.spec.kernel == "compiled":
            self.notes += remarks(self.sampler, self.target)
        if not self.sampler.traits.tunes or self.sampler.ends_warmup(self.state):
            self._end_warmup()

    def _block_length(self, seconds: float) -> int:
        by_time = int(BLOCK_SHARE * seconds / max(self._step_seconds, 1e-6))
        by_memory = _BLOCK_NUMBERS // (self.sampler.width * self.spec.chains * self.target.dim)
        length = max(1, min(_LONGEST_BLOCK, by_time, by_memory))
        if self.phase == "tuning":
            length = min(length, warmup.steps_to_window(self.sampler, self.steps))
        return length

    def _block(self, length: int) -> None:
        """Take some steps, then pass them to storage, counters and listeners."""
        if self._awaits_kernel():
            self._switch.wait()
        self._take_over_kernel()
        before = self._worked
        with clocked(self):
            step_batch, rows = self._taken(length)
            self.state, taken = step_batch.after, len(step_batch.infos)
            self.steps += taken
            # Now, as a failed target cannot be evaluated later.
            self._target_fingerprint.take(self.state, self.generation)
            for part, counted in self.counted(step_batch, rows):
                self.gradients += self.sampler.gradient_cost(part, counted)
                self.sampler_stats.add(part, counted)
            events = self.sampler.events_in(step_batch)
            if events is not None:
                self.events = events if self.events is None else self.events + events
            for listener in self.listeners:
                listener(step_batch)
            self.waiting.note()
            failures.keep(self.notes, self.target.rejected.message())
            self._look_for_failures(step_batch)
            if self.phase == "tuning":
                self._end_window()
            elif not self.finished:
                self.collect(rows)
                self._next_phase()
        self._step_seconds += 0.2 * ((self._worked - before) / taken - self._step_seconds)
        for listener in self.on_work:
            listener()

    @property
    def _worked(self) -> float:
        """Seconds of work: of this thread, or also of a GPU."""
        return self.cpu_seconds if self.device.type == "cpu" else self.seconds

    def _taken(self, length: int) -> tuple[StepBatch, Draws | None]:
        """Take steps and collect their draws, none after the end of the run or a chain, for any slicing of time."""
        take, before = self._switch.taker(self.sampler, self.state), self.state
        numbers, rejected = self.rng.get_state(), vars(self.target.rejected).copy()
        learns = self.phase == "tuning"
        step_batch = take(self.numbers, before, length, self.steps, learns=learns)
        failed = (step_batch.column("failed") & torch.as_tensor(self.alive, device=self.device)).any(1).nonzero()
        ends = [int(failed[0]) if len(failed) else None]  # the first step in which a living chain failed
        if not learns:
            collected = self.draw_collector.save()
            rows = self.draw_collector.collect(step_batch)
            ends.append(self.last_draw(rows))
        last = min((end + 1 for end in ends if end is not None), default=length)
        if last < len(step_batch.infos):
            self.rng.set_state(numbers)
            self.target.rejected = RejectedPoints(**rejected)
            step_batch = take(self.numbers, before, last, self.steps, learns=learns)
            if not learns:
                self.draw_collector.load(collected)
                rows = self.draw_collector.collect(step_batch)
        return step_batch, None if learns else rows

    @property
    def _compiles(self) -> bool:
        """Whether the next steps are to be compiled, and can be: in the warm-up, adapted values must be inputs."""
        if self.spec.kernel != "compiled" or not self.sampler.compiles or self.target.not_compiled:
            return False
        if self.phase == "tuning":
            return self.sampler.adaptation_inputs(getattr(self.state, "adaptation", None)) is not None
        return self.phase in ("warm-up", "sampling")

    def _awaits_kernel(self) -> bool:
        """Start a compilation if it is due; return whether the run must wait for it."""
        if not self._compiles:
            return False
        self._switch.begin(self.sampler, self.state, self.numbers, self.threads)
        # A run resumed from a checkpoint had its kernel before.
        return (self.wait_for_compile or self.compiled_since is not None) and self.kernel == "compiling"

    def _take_over_kernel(self) -> None:
        """Switch to the compiled kernel between two blocks, if there is one."""
        if not self._switch.due:
            return
        before, error = self.compiled_since, self._switch.take_over(self.steps)
        if error is not None:
            failures.keep(self.notes, Message("not_compiled", reason=error))
        elif before is None:
            self.changes.append((self.steps, {"kernel": "compiled"}))

    def _end_window(self) -> None:
        if not (warmup.is_window(self.sampler, self.steps) or self.sampler.ends_warmup(self.state)):
            return
        self.state, over = warmup.end_window(self.sampler, self.numbers, self.state, self.steps)
        if not over:
            return
        if not self.sampler.is_tuned(self.state):
            awaited = self.sampler.awaited(self.state)
            self.notes.append(Message("tuning_ended", steps=self.steps, awaited=awaited))
        if self._points is not None and self.sampler.traits.converges:
            # Chains after equally many steps are not distributed like the target, for any start.
            self.state = self.sampler.moved_to(self.numbers, self.state, self._points.clone())
            self.spent_before = self.seconds, self.gradients
            for listener in self.on_move:  # no path connects the old and the new positions
                listener()
        self._end_warmup()

    def _end_warmup(self) -> None:
        self.state = self.sampler.freeze(self.numbers, self.state)
        self.draw_collector = self.sampler.draw_collector(self.numbers, self.state)
        self.sampler_stats = self.sampler.sampler_stats()
        self.phase = "warm-up"

    def _next_phase(self) -> None:
        living = self.alive if self.alive.any() else ~self.alive
        if self.phase == "warm-up" and (self.store.made[living] >= self.store.skip).all():
            self.phase = "sampling"
        if self.store.full()[living].all():
            self.phase = "done"

    def _look_for_failures(self, step_batch: StepBatch) -> None:
        """Note chains that stopped, and end the run if none is left or the target has no finite mass."""
        fatal = failures.infinite_density(self.sampler, self.target, step_batch, self.notes)
        failed = step_batch.column("failed")
        if bool(failed.any()):
            for step, chain in failed.nonzero().tolist():
                self.alive[chain] = False
                at = {"chain": chain, "step": step_batch.first_step + step}
                self.notes.append(Message("chain_stopped", **at, sampler=self.sampler.registered))
                log.warning("%s", self.notes[-1])
            fatal = fatal or failures.at_an_edge(self.sampler, self.target, step_batch, self.notes)
            if not self.alive.any():
                fatal = fatal or failures.all_stopped(self.sampler, self.spec.chains, self.steps)
        # From the start of the first block: its first step may be the longest.
        begun = None if isinstance(self.target, BNN) or fatal else self.sampler.reach(step_batch.before[0])
        if begun is not None:
            self._runaways = self._runaways or failures.RunawayWatch(begun, self.sampler.traits.descends)
            for number, state in enumerate(step_batch.before, step_batch.first_step):
                # The selected steps do not depend on the slicing of time.
                if not fatal and not (number & (number - 1) and number % _LONGEST_BLOCK):
                    fatal = self._runaways.message(self.target, self.sampler.reach(state))
        if fatal:
            self.phase, self.error = "failed", fatal

    def end_search(self) -> None:
        """Start the chains at the current state of the start search."""
        if self.phase == "start" and self._search is not None:
            self._set_out(self._start or self._search.start())

    def end_warmup(self) -> None:
        """End tuning and warm-up, so that the next draws are kept; the change log records it."""
        if self.phase == "tuning":
            self.state = self.sampler.end_window(self.numbers, self.state, last=True)
            self._end_warmup()
        if self.phase == "warm-up":
            made = int(self.store.made.max())
            for name in STORES:
                getattr(self, name).pass_over(made)
            self.changes.append((self.steps, {"warmup": "ended"}))
            self._next_phase()

    def extend(self, draws: int) -> None:
        """Continue a finished run with more draws of each chain, without time limit; the change log records it."""
        if self.phase != "done":
            raise BnnvizError(f"The run has the phase {self.phase}; only a finished run can be extended.", "draws")
        kept = self.store.common(self.alive)
        self.spec = self.spec.replace(draws=kept + draws).checked(self.own_target)
        self.changes.append((self.steps, {"draws": draws}))
        for name in STORES:
            getattr(self, name).prolong(kept, kept + draws)
        path = getattr(self.draw_collector, "path", None)
        self.draw_collector = self.sampler.draw_collector(self.numbers, self.state)
        if path is not None:
            self.draw_collector.path = path
        self.phase, self.minutes, self.ends_at = "sampling", None, None

    def keep_states(self) -> None:
        """Keep the current states as draws, for a run that ends before its first draw."""
        self.end_search()
        self.end_warmup()
        chain = torch.arange(self.spec.chains, device=self.device)
        rows = Draws(chain, torch.full_like(chain, self.store.skip), self.state.x)
        self.store.add(rows)
        for store in (self.logs, self.draw_stats):
            store.add(rows._replace(x=store.buffer.new_zeros(len(chain), store.buffer.shape[2])))

    def change(self, settings: dict[str, Any]) -> None:
        """Change settings between two steps; estimates restart and earlier draws are dropped."""
        if set(settings) == {"kernel"}:
            self.spec = self.spec.replace(**settings).checked(self.own_target)
            if self.spec.kernel == "eager":
                self._switch.drop()
                self.changes.append((self.steps, dict(settings)))
            elif self._compiles:
                self._awaits_kernel()
                self._switch.wait()
                self._take_over_kernel()
            return
        if settings == {"warmup": "ended"}:
            self.end_warmup()
            return
        if set(settings) == {"draws"}:
            self.extend(settings["draws"])
            return
        of_target = {name.removeprefix(OF_TARGET): v for name, v in settings.items() if name.startswith(OF_TARGET)}
        of_sampler = {name: value for name, value in settings.items() if not name.startswith(OF_TARGET)}
        for owner, values in ((self.sampler, of_sampler), (self.target, of_target)):
            for name in values:
                if name in owner.param and not getattr(owner.param[name], "live", False):
                    raise BnnvizError(f"{name} cannot change during a run; start a new run with it.", name)
        spec = self.spec.replace(
            settings=self.spec.settings | of_sampler, target_settings=self.spec.target_settings | of_target
        ).checked(self.own_target)
        sampler = type(self.sampler)(**spec.settings)
        sampler.warmup_moves = self.warmup_moves
        sampler.check(self.target)
        if of_target:
            self.target.change({name: spec.target_settings[name] for name in of_target})
        self.changes.append((self.steps, dict(settings)))
        self.spec = spec
        self._switch.drop()
        self._renew_sampler(sampler, moved=bool(of_target))
        self.generation += 1
        self.begin_draws()
        self.sampler_stats = self.sampler.sampler_stats()
        if self.phase in ("warm-up", "sampling", "done"):
            self.draw_collector = self.sampler.draw_collector(self.numbers, self.state)
            self.phase = "warm-up"
        self.spent_before = self.seconds, self.gradients
        for listener in self.on_move:
            listener()

    def _renew_sampler(self, new: samplers.Sampler, moved: bool) -> None:
        """Continue with another sampler instance; ``moved`` means that the target changed too."""
        old, self.sampler = self.sampler, new
        if self.state is None:
            if moved and self.descent is not None:  # it ends elsewhere on changed data
                self._search.begin(new)
            return
        state = old.resume(self.numbers, self.state)
        try:
            if moved and new.needs_mode:
                mode, gradients = refit(self.target, self.mode)
                self.gradients += gradients
                self.mode = new.refined_mode(self.target, mode)
            new.prepare(self.target, self.mode)
        except BnnvizError as error:  # no mode nearby on these data
            self.sampler = old
            self.phase, self.error = "failed", error.message
            return
        self.state = new.resume(self.numbers, state, moved=moved)

    @property
    def stats(self) -> dict[str, Any]:
        """Counts and ratios of the kernel, over all chains since the tuning."""
        return self.sampler_stats.summary() | {"steps": self.steps, "gradients": self.gradients}
