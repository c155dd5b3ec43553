"""A run: the execution of a spec. It finds its start, tunes, warms up, samples, changes, and gives checkpoints.

Whoever looks on is a listener; `bnnviz.engine.viewed_run` has those that make frames.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
import torch

from bnnviz import diagnostics, samplers, targets
from bnnviz.engine.evaluation.output_cache import Answers
from bnnviz.engine.monitor.importance import resampled
from bnnviz.engine.run import checkpoint, old_checkpoints
from bnnviz.engine.run.block_store import Vault
from bnnviz.engine.run.compiled_step import Compilation, CompiledKernel
from bnnviz.engine.run.device import Clock, choose_device
from bnnviz.engine.run.draw_store import LIVE_CAPACITY, DrawStore
from bnnviz.engine.run.initialization import Descent, Start, first_points
from bnnviz.engine.run.memory import keep_freed
from bnnviz.engine.run.start_points import Points, attached, held
from bnnviz.errors import BnnvizError
from bnnviz.samplers import warmup
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN

log = logging.getLogger(__name__)

_CHECKPOINT_VERSION = 8
_PATH_MARKS = 64  # integrals along the path are kept at so many draws of each chain, at most
_OF_TARGET = "target."
#: Settings that may be too large where every chain meets values that are not finite.
_STEP_SIZES = ("step_size", "learning_rate")
_LONGEST_BLOCK = 32
_SAME_POTENTIAL = 1e-3  # of U, that machines may differ by
# Of the time that a caller gives: somebody who looks on gets an answer after so long.
_BLOCK_SHARE = 0.6
_STEP_SECONDS = 0.008  # a first guess
# Steps of Adam from the old mode to that of changed data: a person waits meanwhile.
_REFIT_STEPS = 150
_REFIT_WORK = 3e9
# States that a block may keep, in numbers: 80 MB.
_BLOCK_NUMBERS = 20_000_000
# Multiply-adds of one gradient below which a second thread costs more than it brings.
_THREADED_WORK = 50_000_000


class Run:
    """The execution of a spec, driven by its caller: `prepare`, `advance`, `change`, `checkpoint`.

    Parameters
    ----------
    spec : Spec
        What to run. Where its chains set out from a recording, it carries the points already
        (`bnnviz.engine.recording.warm_start.resolved`).
    target : Target, optional
        A target of your own in the place of the spec's.
    sampler : Sampler, optional
        A sampler instance in the place of the spec's.

    Attributes
    ----------
    phase : {"start", "tuning", "warm-up", "sampling", "done", "failed"}
    steps : int
        Steps of the kernel so far.
    begun : Spec
        What it began with; ``spec`` is what the changes have made of it.
    changes : list of (step, settings)
        The change log; the spec that it began with and its change log give the same draws.
    listeners : list of callables
        That are given each block of steps.
    on_move : list of callables
        Called when the chains are where no step has led them: put back to their points, restored, or changed.
    on_renewal : list of callables
        Called when estimates begin anew.
    error : str or None
        Why it failed.
    events : Tensor or None
        Events of each chain since the beginning, (chains,); None of samplers that have none.
    origin : Tensor or None
        Where the first chain set out, (dim,).
    patient : bool
        Whether it waits for a compiled kernel that it is to have; one with a number of draws does, so that its spec
        alone says which draws these are. If not, it goes on without one until there is one, and logs the step.
    own_target : bool
        Whether its target is an object of the caller's, which no spec names.
    search : dict or None
        How its prior was chosen (`bnnviz.engine.evaluation.prior_search`), for its summary and its file.
    compiled_since : int or None
        The step from which on the kernel is the compiled one.

    Raises
    ------
    BnnvizError
        If the spec cannot be run: an unknown name, a value out of bounds, a device that is not there.
    """

    can_record: ClassVar[bool] = True
    has_history: ClassVar[bool] = True
    is_fork: ClassVar[bool] = False

    def __init__(
        self, spec: Spec, *, target: targets.Target | None = None, sampler: samplers.Sampler | None = None
    ) -> None:
        keep_freed()
        self.own_target = target is not None
        spec = spec.checked(self.own_target)
        self.spec = self.begun = spec = attached(spec, held(spec))
        self.device = choose_device(spec.device)
        self.dtype = getattr(torch, spec.dtype)
        # Others may have theirs on the same network, or by the same instance, at the same time.
        self.target = _make_target(spec) if target is None else target.own()
        self.target.to(self.device, self.dtype)
        chosen = samplers.REGISTRY.get(spec.sampler)
        self.sampler = chosen(**self.spec.settings) if sampler is None else sampler.clone()
        self.rng = torch.Generator(self.device).manual_seed(spec.seed)
        self.numbers = RandomNumbers(self.rng)
        self.phase, self.steps, self.gradients = "start", 0, 0
        self.changes: list[tuple[int, dict[str, Any]]] = []
        self.notes: list[str] = []
        self._points = None if spec.start_points is None else self._given_points()
        self.error: str | None = None
        self.era, self.seconds, self.cpu_seconds, self.device_seconds = 0, 0.0, 0.0, 0.0
        self.alive = np.ones(spec.chains, dtype=bool)
        self.state, self.draw_collector = None, None
        self.sampler_stats = self.sampler.sampler_stats()
        self.events: torch.Tensor | None = None
        self._mark: dict[str, Any] | None = None  # of the target that draws are of
        self._new_stores()
        self.mode: torch.Tensor | None = None
        self.origin: torch.Tensor | None = None
        self._descent: Descent | None = None
        self._start: Start | None = None
        self._step_seconds = _STEP_SECONDS
        work = 6 * spec.chains * self.target.examples * self.target.row_work
        self.threads = 1 if work < _THREADED_WORK else torch.get_num_threads()
        self.search: dict[str, Any] | None = None
        self.patient = spec.draws is not None
        self.compiled_since: int | None = None
        self._kernel: CompiledKernel | None = None
        self._compilation: Compilation | None = None
        self.listeners: list[Callable[[StepBatch], None]] = []
        self.on_move: list[Callable[[], None]] = []
        self.on_renewal: list[Callable[[], None]] = []

    def _given_points(self) -> torch.Tensor:
        """Return where chains set out that a recording gives their start, (chains, dim)."""
        points = Points.unpack(self.spec.start_points)
        points.check(self.target.dim)
        self.notes += points.remarks(self.spec)
        return torch.as_tensor(points.dealt(self.spec.chains)).to(self.device, self.dtype)

    def _new_stores(self) -> None:
        """Make empty stores: of draws, of their log weights, and of a few integrals along the path of each chain."""
        chains, dim, spec = self.spec.chains, self.target.dim, self.spec
        kept = (spec.draws, spec.warmup, self.device)
        self.store = DrawStore(chains, dim, *kept, self.dtype, self.capacity)
        columns = 1 if self.sampler.weighted else 0
        # As many as there are draws: the store of draws may keep fewer than its capacity.
        self.logs = DrawStore(chains, columns, *kept, torch.float64, self.store.buffer.shape[1])
        columns = 1 + 2 * dim if self.sampler.integrates(chains, dim) else 0
        self.path = DrawStore(chains, columns, None, spec.warmup, self.device, torch.float64, _PATH_MARKS)
        self._answers = Answers(self) if isinstance(self.target, BNN) else None

    @property
    def capacity(self) -> int:
        """Draws kept of each chain where their number has no limit."""
        return LIVE_CAPACITY

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.phase in ("done", "failed")

    @property
    def kernel(self) -> str:
        """What computes a step: "eager", "compiling" (eager still) or "compiled"."""
        if self._kernel is not None:
            return "compiled"
        return "compiling" if self._compilation is not None and not self._compilation.done else "eager"

    @property
    def progress(self) -> float:
        """Share of the work done, 0 to 1; nan for a run without an end."""
        if self.spec.draws is None:
            return float("nan")
        if self.phase == "done":
            return 1.0
        total = self.spec.draws + self.spec.warmup
        return float(min(self.store.made.min() / total, 1.0))

    @property
    def descent(self) -> Descent | None:
        """The way to a mode that the run is on; None off such a way."""
        return self._descent if self.phase == "start" else None

    def prepare(self) -> None:
        """Find the starting points, so that the next step is the kernel's first."""
        while self.phase == "start":
            self._prepare_some(50)

    def set_out(self, start: Start) -> None:
        """Begin here instead of looking for a start, so that the next step is the kernel's first."""
        self._start = start
        self.prepare()

    def take(self, most: int, seconds: float = 0.02) -> int:
        """Take one block of at most so many steps that fits in the time; return the steps that were done."""
        first = self.steps
        if self._awaits_kernel():
            self._compilation.wait(seconds)
        elif not self.finished:
            self._block(min(most, self._block_length(seconds)))
        return self.steps - first

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about so many seconds; return the steps of the kernel that were done."""
        begun, first = time.perf_counter(), self.steps
        while not self.finished and time.perf_counter() - begun < seconds:
            if self._awaits_kernel():
                self._compilation.wait(seconds)
                break
            if self.phase != "start":
                self._block(self._block_length(seconds))
                continue
            self._prepare_some(10)
            if self.phase != "start":
                # A run that is paused while it looks for its start must not take a step of the kernel.
                break
        return self.steps - first

    def step_proposal(self) -> None:
        """Take exactly one step: one evaluation for every chain."""
        self.prepare()
        if not self.finished:
            self._block(1)

    def _prepare_some(self, steps: int) -> None:
        clock = Clock(self)
        with clock:
            if self._descent is None:
                self._begin()
            if self._descent is not None:
                self._descent.advance(steps)
                self.gradients += steps * self._descent.examples * self.spec.chains
            if self._descent is None or self._descent.done:
                self._set_out()

    def _begin(self) -> None:
        # Drawn for a given start too: a run makes the same draws wherever the same start comes from.
        self._x0 = self.target.initial(self.spec.chains, self.rng)
        at_mode = self._points is None and self.starts_at_mode
        if self._start is None and (at_mode or self.sampler.needs_mode):
            self._descent = Descent(self.target, self._x0, self.sampler.mode_steps)

    @property
    def starts_at_mode(self) -> bool:
        """Whether its chains set out from modes, each from the end of its own descent."""
        return self.sampler.start == "mode" or (self.sampler.start == "auto" and self.target.start_at_mode)

    def _set_out(self) -> None:
        start = self._start or self._first_points()
        self.mode, self.origin = start.mode, start.x[0].clone()
        self.sampler.prepare(self.target, start.mode)
        self.notes += [*self.target.remarks(), *self.sampler.remarks()]
        self.state = self.sampler.init(start.x.clone(), self.numbers)
        if self._points is not None and not torch.allclose(self.state.x, self._points):
            self.notes.append(f"{self.sampler.title} begins elsewhere on this target, whatever the points are.")
        self._descent = None
        self.phase = "tuning"
        if self.spec.kernel == "compiled" and not self.sampler.compiles:
            self.notes.append(f"Steps of {self.sampler.title} are not compiled: each phase is another computation.")
        elif self.spec.kernel == "compiled" and not self.target.compiles:
            self.notes.append(
                f"Steps on {self.target.describe_value()} are not compiled: convolutions are the same routines either"
                " way."
            )
        if not self.sampler.tunes:
            self._end_warmup()

    def _first_points(self) -> Start:
        if self._points is not None:
            return Start(self._points, None if self._descent is None else self._descent.best())
        return first_points(self._x0, self._descent, self.starts_at_mode, self.sampler.needs_mode)

    def _block_length(self, seconds: float) -> int:
        by_time = int(_BLOCK_SHARE * seconds / max(self._step_seconds, 1e-6))
        by_memory = _BLOCK_NUMBERS // (self.sampler.width * self.spec.chains * self.target.dim)
        length = max(1, min(_LONGEST_BLOCK, by_time, by_memory))
        if self.phase == "tuning":
            length = min(length, warmup.WINDOW - self.steps % warmup.WINDOW)
        return length

    def _block(self, length: int) -> None:
        """Take some steps, then hand them to whoever draws, counts and looks on."""
        if self._awaits_kernel():
            self._compilation.wait()
        self._swap_kernel()
        clock = Clock(self)
        with clock:
            before, infos, state = [], [], self.state
            for _ in range(length):
                before.append(state)
                state, info = self._step(state)
                infos.append(info)
            step_batch = StepBatch(before, infos, state, self.steps)
            self.state = state
            self.steps += length
            self._account(step_batch)
        self._step_seconds += 0.2 * (clock.worked / length - self._step_seconds)

    def _step(self, state: Any) -> tuple[Any, Any]:
        if self.phase == "tuning":
            return warmup.step(self.sampler, self.numbers, state)
        return (self.sampler if self._kernel is None else self._kernel).step(self.numbers, state)

    @property
    def _wants_kernel(self) -> bool:
        return self.spec.kernel == "compiled" and self.sampler.compiles and self.target.compiles

    def _awaits_kernel(self) -> bool:
        """Begin to compile where that is due; return whether nothing can be done until it is done."""
        wanted = self._wants_kernel and self.phase in ("warm-up", "sampling")
        if wanted and self._compilation is None:
            self._compilation = Compilation(self.sampler, self.state, self.threads)
        # One that goes on from a checkpoint had its kernel before.
        due = self.patient or self.compiled_since is not None
        return wanted and due and self._kernel is None and not self._compilation.done

    def _swap_kernel(self) -> None:
        """Take the compiled kernel over once there is one, between two blocks."""
        if self._kernel is not None or self._compilation is None or not self._compilation.done:
            return
        self._kernel = self._compilation.kernel
        if self._kernel is None:
            self.compiled_since = None
            if self._compilation.error not in self.notes:
                self.notes.append(self._compilation.error)
            return
        if self.compiled_since is None:
            self.compiled_since = self.steps
            self.changes.append((self.steps, {"kernel": "compiled"}))

    def _drop_kernel(self) -> None:
        """Go on without the compiled kernel: it was made for other settings."""
        if self._compilation is not None:
            self._compilation.cancel()
        self._kernel = self._compilation = self.compiled_since = None

    def _account(self, step_batch: StepBatch) -> None:
        self._mark_of_target()  # now, as one that has failed could not be asked
        counted = self.alive & ~self.store.full()
        self.gradients += self.sampler.gradient_cost(step_batch, counted)
        self.sampler_stats.add(step_batch, counted)
        events = self.sampler.events_in(step_batch)
        if events is not None:
            self.events = events if self.events is None else self.events + events
        for hear in self.listeners:
            hear(step_batch)
        self._note_failures(step_batch)
        if self.phase == "tuning":
            self._end_window()
        elif not self.finished:
            rows = self.draw_collector.collect(step_batch)
            self.store.add(rows)
            if rows.log_weight is not None:
                self.logs.add(rows._replace(x=rows.log_weight[:, None]))
            if rows.path is not None:
                self.path.add(rows._replace(x=rows.path))
            self._next_phase()

    def _end_window(self) -> None:
        if self.steps % warmup.WINDOW:
            return
        self.state, over = warmup.end_window(self.sampler, self.numbers, self.state, self.steps)
        if not over:
            return
        if not self.sampler.is_tuned(self.state):
            self.notes.append(f"The tuning ended after {self.steps} steps, before the sampler had seen enough events.")
        if self._points is not None and self.sampler.converges:
            # Chains that took equally many steps are not spread as the target is, however they began.
            self.state = self.sampler.moved_to(self.numbers, self.state, self._points.clone())
            # No path leads from where they were to there.
            _call(self.on_move)
            _call(self.on_renewal)
        self._end_warmup()

    def _end_warmup(self) -> None:
        self.state = self.sampler.freeze(self.numbers, self.state)
        self.draw_collector = self.sampler.draw_collector(self.numbers, self.state)
        self.sampler_stats = self.sampler.sampler_stats()
        self.phase = "warm-up"

    def _next_phase(self) -> None:
        living = self.alive if self.alive.any() else ~self.alive
        if self.phase == "warm-up" and (self.store.made[living] >= self.spec.warmup).all():
            self.phase = "sampling"
        if self.store.full()[living].all():
            self.phase = "done"

    def _note_failures(self, step_batch: StepBatch) -> None:
        failed = step_batch.column("failed")
        if not bool(failed.any()):
            return
        for step, chain in failed.nonzero().tolist():
            self.alive[chain] = False
            self.notes.append(
                f"Chain {chain} met a value that is not finite at step {step_batch.first_step + step}"
                f" ({self.sampler.registered}) and stopped; the others go on."
            )
            log.warning("%s", self.notes[-1])
        if not self.alive.any():
            self.phase = "failed"
            self.error = (
                f"All {self.spec.chains} chains of {self.sampler.registered} met values that are not finite"
                f" (the last at step {self.steps}); {self._remedy()}, or use float64. The draws are kept."
            )

    def _remedy(self) -> str:
        """Say what to try when every chain has met values that are not finite."""
        size = next((name for name in _STEP_SIZES if name in self.spec.settings), None)
        return "check the target's gradient" if size is None else f"try a smaller {size}"

    def change(self, settings: dict[str, Any]) -> None:
        """Change settings between two steps; estimates begin anew, earlier draws are dropped.

        Parameters
        ----------
        settings : dict
            Settings of the sampler by name, and of the target by name with ``target.`` before it. Or ``kernel``
            alone, as a change log has it: ``compiled`` waits for the compiled step and takes it over here, ``eager``
            goes on without; estimates do not begin anew.

        Raises
        ------
        BnnvizError
            If a value does not fit, or the setting cannot change while running.
        """
        if set(settings) == {"kernel"}:
            self._choose_kernel(settings["kernel"])
            return
        of_target = {name.removeprefix(_OF_TARGET): v for name, v in settings.items() if name.startswith(_OF_TARGET)}
        of_sampler = {name: value for name, value in settings.items() if not name.startswith(_OF_TARGET)}
        spec = self.spec.replace(
            settings={**self.spec.settings, **of_sampler},
            target_settings={**self.spec.target_settings, **of_target},
        ).checked(self.own_target)
        _refuse_fixed(self.sampler, of_sampler)
        _refuse_fixed(self.target, of_target)
        sampler = type(self.sampler)(**spec.settings)
        sampler.check(self.target)
        if of_target:
            self.target.change({name: spec.target_settings[name] for name in of_target})
        self.changes.append((self.steps, dict(settings)))
        self.spec = spec
        self._drop_kernel()
        self._renew_sampler(sampler, moved=bool(of_target))
        self._new_era()

    def _choose_kernel(self, name: str) -> None:
        self.spec = self.spec.replace(kernel=name).checked(self.own_target)
        if name == "eager":
            self._drop_kernel()
            self.changes.append((self.steps, {"kernel": name}))
        elif self._wants_kernel and self.phase in ("warm-up", "sampling"):
            self._awaits_kernel()
            self._compilation.wait()
            self._swap_kernel()

    def _renew_sampler(self, new: samplers.Sampler, moved: bool) -> None:
        """Go on with another instance of the sampler; ``moved`` tells that the target is another one too."""
        old, self.sampler = self.sampler, new
        if self.state is None:
            if moved and self._descent is not None:
                # A descent on the old data would end elsewhere.
                self._descent = Descent(self.target, self._x0, new.mode_steps)
            return
        state = old.resume(self.numbers, self.state)
        if moved and new.needs_mode:
            self.mode = self._refit()
        checkpoint.bind(new, self.target, self.mode, old, moved)
        self.state = new.resume(self.numbers, state, moved=moved)

    def _refit(self) -> torch.Tensor:
        """Return the mode of the changed target, descending from the old one."""
        work = 6 * max(self.target.examples, 1) * self.target.row_work
        steps = int(min(_REFIT_STEPS, max(10, _REFIT_WORK / work)))
        descent = Descent(self.target, self.mode[None], steps)
        descent.advance(steps)
        self.gradients += steps * descent.examples
        return descent.best()

    def _new_era(self) -> None:
        self.era += 1
        self._new_stores()
        self.sampler_stats = self.sampler.sampler_stats()
        if self.phase in ("warm-up", "sampling", "done"):
            self.draw_collector = self.sampler.draw_collector(self.numbers, self.state)
            self.phase = "warm-up"
        _call(self.on_move)
        _call(self.on_renewal)

    @property
    def draws(self) -> np.ndarray:
        """Kept draws of the living chains, (chains, draws, dim)."""
        return self.store.view(self.alive).cpu().numpy()

    def answers(self) -> torch.Tensor | None:
        """Return what the draws put out at a network's test rows, computed once for each draw.

        Returns
        -------
        Tensor or None, shape (draws of all living chains, rows, outputs)
            None for what is no network, for draws with weights, and where the numbers are too many to keep.
        """
        return None if self._answers is None else self._answers.outputs()

    def event_weights(self, every: int = 1) -> np.ndarray | None:
        """Return the weights (chains, draws) that undo the bias of draws at events; None where draws have none.

        Parameters
        ----------
        every : int, default 1
            Weigh only each so manyth draw of a chain: a weight costs a gradient.
        """
        draws = self.store.view(self.alive)[:, ::every]
        if not self.sampler.weighs or not draws.shape[1]:
            return None
        weights = self.sampler.event_weights(draws.flatten(0, 1), self.draw_collector)
        return weights.view(draws.shape[:2]).cpu().numpy()

    @property
    def log_weights(self) -> np.ndarray | None:
        """Logarithms of the weights (chains, draws) that the draws came with; None where they have none."""
        if not self.sampler.weighted:
            return None
        return self.logs.view(self.alive)[..., 0].cpu().numpy()

    def resampled(self, count: int) -> torch.Tensor:
        """Return draws without weights (count, dim), taken from the weighted ones in proportion, evenly.

        None (0, dim) if there are no draws, or no draw has a weight.

        Parameters
        ----------
        count : int
        """
        return resampled(self.store.view(self.alive).flatten(0, 1), self.log_weights.ravel(), count)

    def path_moments(self) -> diagnostics.PathMoments | None:
        """Return mean and variance from the integrals along the path, all chains to the same path time.

        They use all of the path where draws use points of it. None where the sampler has no path, the path is not
        integrated (more than 4,096 chains x dimensions), or there is not enough of it yet.
        """
        return diagnostics.path_moments(self.path.view(self.alive).cpu().numpy())

    @property
    def stats(self) -> dict[str, Any]:
        """Counts and ratios of the kernel, over all chains since the tuning."""
        return self.sampler_stats.summary() | {"steps": self.steps, "gradients": self.gradients}

    def checkpoint(self, draws: bool = True, vault: Vault | None = None) -> bytes:
        """Return everything needed to go on with the same draws.

        Parameters
        ----------
        draws : bool, default True
            Whether the draws that were kept are in it; without, whoever restores it has to `refill` the run.
        vault : Vault, optional
            Where the draws are put, of which the bytes have the names then; the run is restored with it.
        """
        saved = {
            "version": _CHECKPOINT_VERSION,
            "spec": self.spec.to_json(),
            "begun": self.begun.to_json(),
            "attachment": self.spec.target_attachment,
            "start_points": self.spec.start_points,
            "search": self.search,
            "phase": self.phase,
            "steps": self.steps,
            "gradients": self.gradients,
            "changes": self.changes,
            "notes": self.notes,
            "era": self.era,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "device_seconds": self.device_seconds,
            "alive": torch.as_tensor(self.alive),
            "mode": self.mode,
            "origin": self.origin,
            "rng": self.rng.get_state(),
            "store": self.store.save(draws, vault),
            "logs": self.logs.save(draws, vault),
            "path": self.path.save(vault=vault),
            "tally": self.sampler_stats.save(),
            "events": self.events,
            "given": self._mark_of_target(),
            "emitter": self.draw_collector.save() if self.draw_collector is not None else None,
            "kernel": None if self.state is None else checkpoint.saved_state(self.sampler, self.state),
            "compiled_since": self.compiled_since,
        }
        return checkpoint.pack(saved)

    def _mark_of_target(self) -> dict[str, Any] | None:
        """Return what tells the target from others: its dimension, and U where the first chain was in this era.

        None of a density that the spec says completely. A caller's target may be another one when the run is restored,
        and so may the rows of a named data set, of which a part may be here.
        """
        x = getattr(self.state, "x", None)
        known = self._mark is not None and self._mark.get("era", self.era) == self.era
        may_differ = self.own_target or isinstance(self.target, targets.BNN)
        if not known and may_differ and x is not None and x.shape[-1] == self.target.dim:
            potential = float(self.target.potential(x[:1]))
            self._mark = {"dim": self.target.dim, "x": x[:1], "potential": potential, "era": self.era}
        return self._mark

    def _check_dimension(self, given: dict[str, Any] | None) -> None:
        if given is not None and given["dim"] != self.target.dim:
            raise BnnvizError(
                f"The target has {self.target.dim} dimensions, and the one that this run began with {given['dim']};"
                " give that one again.",
                "target",
            )

    def _check_target(self, given: dict[str, Any] | None) -> None:
        """Raise if U is another one than the run began with: its draws would be of two densities."""
        if given is None:
            return
        x = given["x"].to(self.device, self.dtype)
        known, now = given["potential"], float(self.target.potential(x))
        if abs(now - known) > _SAME_POTENTIAL * (1 + abs(known)):
            raise BnnvizError(
                f"The target is not the one that this run began with: where a chain was, U is {now:.6g} and was"
                f" {known:.6g}; give the same network, data, prior and noise again.",
                "target",
            )

    @classmethod
    def restore(
        cls,
        data: bytes,
        *,
        target: targets.Target | None = None,
        sampler: samplers.Sampler | None = None,
        vault: Vault | None = None,
    ) -> Self:
        """Return a run that goes on from a checkpoint.

        Parameters
        ----------
        data : bytes
        target, sampler : optional
            Objects of your own, where it began with such.
        vault : Vault, optional
            Where the draws are, if the checkpoint was made with one.

        Raises
        ------
        BnnvizError
            If the bytes are no checkpoint of this version.
        """
        saved = checkpoint.unpack(data, _CHECKPOINT_VERSION, "start the run anew", older=(old_checkpoints.VERSION,))
        said, begun = ({k: v for k, v in saved[name].items() if k != "version"} for name in ("spec", "begun"))
        held = {"attachment": saved["attachment"], "start_points": saved.get("start_points")}
        run = cls(Spec(**said, **held), target=target, sampler=sampler)
        run.begun = Spec(**begun, **held).checked(target is not None)
        run.search = saved["search"]
        run.changes = [tuple(change) for change in saved["changes"]]
        if saved["kernel"] is not None:
            run._load(saved, vault)
        return run

    def refill(self, draws: np.ndarray, log_weights: np.ndarray | None) -> None:
        """Take back the draws (chains, draws, dim), and their weights (chains, draws), that a checkpoint is without."""
        self.store.fill(torch.as_tensor(draws)[:, : int(self.store.counts.max())])
        if log_weights is not None:
            self.logs.fill(torch.as_tensor(log_weights)[:, : int(self.logs.counts.max()), None])

    def _load(self, saved: dict[str, Any], vault: Vault | None) -> None:
        self._check_dimension(saved.get("given"))
        times = ("seconds", "cpu_seconds", "device_seconds")
        for name in ("phase", "steps", "gradients", "notes", "era", *times, "compiled_since"):
            setattr(self, name, saved[name])
        self.alive = saved["alive"].numpy().copy()
        self.mode = None if saved["mode"] is None else saved["mode"].to(self.device)
        self.origin = None if saved["origin"] is None else saved["origin"].to(self.device)
        self.sampler.prepare(self.target, self.mode)
        self.state = checkpoint.restored_state(
            self.sampler, saved["kernel"], self.numbers, saved["emitter"] is not None
        )
        self._mark = saved.get("given")
        self._check_target(self._mark)
        self.rng.set_state(saved["rng"])
        if saved["emitter"] is not None:
            self.draw_collector = self.sampler.draw_collector(self.numbers, self.state)
            self.draw_collector.load(saved["emitter"])
        self.store.load(saved["store"], vault)
        self.logs.load(saved["logs"], vault)
        self.path.load(saved["path"], vault)
        self.sampler_stats.load(old_checkpoints.stats(saved["tally"]))
        events = saved.get("events")  # checkpoints of before events were numbered have none
        self.events = None if events is None else events.to(self.device)
        _call(self.on_move)


def _call(listeners: Iterable[Callable[[], None]]) -> None:
    for listener in listeners:
        listener()


def _refuse_fixed(owner: samplers.Sampler | targets.Target, names: Iterable[str]) -> None:
    """Raise for a setting that cannot change while a run goes on."""
    for name in names:
        if not owner.param[name].live:
            raise BnnvizError(f"{name} cannot change while a run goes on; start a new run with it.", name)


def _make_target(spec: Spec) -> targets.Target:
    attachment = spec.target_attachment
    extra = {} if attachment is None else {"attachment": attachment}
    return targets.REGISTRY.get(spec.target)(**spec.target_settings, **extra)
