"""Fork a run into several branches from one state.

Each branch is a separate run, restored from the same checkpoint with the same random numbers: branches agree until a
setting changes in one of them. Views show one followed branch, and the others in their colours over it.
"""

from __future__ import annotations

import string
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from bnnviz import diagnostics
from bnnviz.engine.drive import LONGEST, make_changes
from bnnviz.engine.history.timeline import MAGIC, LoggedChange, Timeline, asked
from bnnviz.engine.monitor.mixing import metric
from bnnviz.engine.run import checkpoint
from bnnviz.engine.run.draw_store import BlockStore
from bnnviz.engine.run.run import OF_TARGET
from bnnviz.engine.viewed_run import LONGEST_EVENT, ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue

MOST = 4  # branches
_VERSION = 1
_FIRST = "A"  # continues unchanged
_LONGEST_TEXT = 24
_TRACE_DRAWS = 400
_SEEN = 2  # columns of the table that fit on a page of common width
_OF_DRAWS = ("trace", "marginal")


@dataclass
class Branch:
    """A branch of a fork; ``script`` has the past changes that it still has to repeat."""

    letter: str
    run: ViewedRun
    timeline: Timeline
    since: int
    drawn: int
    generation: int
    script: deque[LoggedChange] = field(default_factory=deque)

    @property
    def name(self) -> str:
        """Label: the original, or the changed settings."""
        changed: dict[str, Any] = {}
        for _, settings in asked(self.run.changes[self.since :]):
            changed |= settings
        nothing = "as it was" if self.letter == _FIRST else "nothing changed yet"
        return ", ".join(_in_words(self.run, *each) for each in changed.items()) or nothing

    def take(self, steps: int, seconds: float) -> int:
        """Take at most ``steps`` steps with their scheduled changes; return the number of steps."""
        run = self.run
        make_changes(run, self.script)
        return run.take(min(steps, self.script[0][0] - run.steps) if self.script else steps, seconds)

    def draws(self) -> Tensor:
        """Return the draws (chains, draws, dim) of its living chains since the fork."""
        store = self.run.store
        first = 0 if self.run.generation != self.generation else -(-self.drawn // store.every)
        return store.view(self.run.alive)[:, first:]


def _of_lead(name: str, doc: str) -> property:
    return property(lambda fork: getattr(fork.lead, name), doc=doc)


class Fork:
    """Drive several branches like one run; attributes of a single run are those of the followed branch."""

    has_history: ClassVar[bool] = True
    is_fork: ClassVar[bool] = True
    spec = _of_lead("spec", "Spec of the followed branch after its changes.")
    changes = _of_lead("changes", "The change log of the followed branch.")
    device = _of_lead("device", "Where it computes.")
    steps = _of_lead("steps", "Steps of the followed branch.")
    progress = _of_lead("progress", "Share of the followed branch's work that is done.")
    error = _of_lead("error", "Why the followed branch failed.")

    def __init__(self, at: int, branches: list[Branch], followed: int = 0) -> None:
        self.at, self.branches, self.followed = at, branches, followed

    @classmethod
    def of(cls, run: ViewedRun, timeline: Timeline, script: Iterable[LoggedChange]) -> Fork:
        """Fork a run: one branch continues with the changes of a script, a second one starts from the same state."""
        fork = cls(run.steps, [_branch(_FIRST, run, timeline, deque(script))])
        run.show_here()
        fork.split()
        return fork

    @property
    def runs(self) -> list[ViewedRun]:
        """The runs of all branches."""
        return [branch.run for branch in self.branches]

    @property
    def lead(self) -> ViewedRun:
        """The run of the followed branch."""
        return self.branches[self.followed].run

    def split(self) -> None:
        """Add a branch from the state of the followed one, and follow it."""
        if len(self.branches) >= MOST:
            raise BnnvizError(f"There are {MOST} futures already; keep one of them first.", "fork")
        lead = self.branches[self.followed]
        run = ViewedRun.restore(lead.run.checkpoint())
        run.wait_for_compile = False
        run.look_like(lead.run)
        run.show_here()
        timeline = Timeline(lead.timeline.steps, lead.timeline.kinds)
        timeline.follow(run)
        taken = {branch.letter for branch in self.branches}
        letter = next(letter for letter in string.ascii_uppercase if letter not in taken)
        self.branches.append(_branch(letter, run, timeline, deque()))
        self.followed = len(self.branches) - 1

    def follow(self, letter: str) -> None:
        """Follow the branch with a letter."""
        letters = [branch.letter for branch in self.branches]
        if letter not in letters:
            raise BnnvizError(f"There is no future {letter!r}; choose one of {', '.join(letters)}.", "branch")
        before, self.followed = self.lead, letters.index(letter)
        self.lead.look_like(before)

    # --- like a run

    @property
    def finished(self) -> bool:
        """Whether no branch has anything left to do."""
        return all(branch.run.finished for branch in self.branches)

    @property
    def phase(self) -> str:
        """Phase of the followed branch; a failed branch is done while others continue."""
        return "done" if self.lead.phase == "failed" and not self.finished else self.lead.phase

    def prepare(self) -> None:
        """Do nothing: a run is forked after its start only."""

    def change(self, settings: dict[str, Any]) -> None:
        """Change settings of the followed branch."""
        self.lead.change(settings)

    def take(self, most: int, seconds: float = 0.02) -> int:
        """Take one block of at most ``most`` steps in each branch; return their number."""
        moving = [branch for branch in self.branches if not branch.run.finished]
        first = min(moving, key=lambda branch: branch.run.steps, default=None)
        taken = 0 if first is None else first.take(most, seconds / len(moving))
        for branch in moving:
            while branch.run.steps < first.run.steps and not branch.run.finished:
                branch.take(first.run.steps - branch.run.steps, 1.0)
        return taken

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about the given seconds; return the steps per branch."""
        return self.take(LONGEST, seconds)

    def step_proposal(self) -> None:
        """Take exactly one step in each branch."""
        self.take(1)

    def step_event(self) -> None:
        """Step until the watched chain of the followed branch has had an event."""
        before = self.lead.chain_trace.count
        for _ in range(LONGEST_EVENT):
            if self.finished or self.lead.chain_trace.count != before:
                return
            self.take(1)

    def watch(self, chain: int | None = None, **what: Any) -> None:
        """Choose what frames show (`FrameBuilder.watch`); the chain is that of all branches."""
        self.lead.watch(chain=chain, **what)
        for run in self.runs:
            run.watch(chain=chain)

    def select(self, choice: dict[str, Any] | None) -> None:
        """Select draws or an event of the followed branch (`ViewedRun.select`)."""
        self.lead.select(choice)

    def scene(self) -> dict[str, Any]:
        """Return the scene of the followed branch."""
        return self.lead.scene()

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the requested parts of the followed branch, overlaid with the other branches."""
        frame = self.lead.frame(want)
        together = {
            "status": self._status,
            "path": self._path,
            "trace": self._trace,
            "marginal": self._marginal,
            "prediction": self._prediction,
            "table": self._table,
        }
        # Other branches may have draws before the followed one.
        drawn = self.lead.store.common(self.lead.alive)
        early = {} if drawn else {name: {} for name in _OF_DRAWS if name in want}
        shown = {name: together.get(name, lambda part: part)(part) for name, part in (early | frame).items()}
        return {name: part for name, part in shown.items() if part or name == "seq"}

    def _status(self, part: dict[str, Any]) -> dict[str, Any]:
        futures = [
            {
                "letter": branch.letter,
                "name": branch.name,
                "failed": branch.run.phase == "failed",
                "draws": branch.run.store.common(branch.run.alive),
            }
            for branch in self.branches
        ]
        return part | {"phase": self.phase, "fork": self.at, "futures": futures, "followed": self.followed}

    def _path(self, part: dict[str, Any]) -> dict[str, Any]:
        """Add the watched chain's path since the fork for each branch."""
        plane = self.lead.frames.plane()
        if plane.basis != part["basis"]:  # the axes were fitted again for another part of this frame
            part = part | self.lead.chain_trace.part("path", plane, False)
        parts = [part if run is self.lead else run.chain_trace.part("path", plane, False) for run in self.runs]
        return part | {"futures": [self._future(i, each, ("x", "y")) for i, each in enumerate(parts) if each]}

    def _trace(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return the followed quantity of the watched chain since the fork, per branch and draw."""
        every = max(run.store.every for run in self.runs)
        followed, chain, values = self.lead.frames.components, self.lead.watched, []
        for branch in self.branches:
            draws = branch.draws()[:, :: every // branch.run.store.every]
            values.append(followed.of(draws[min(chain, len(draws) - 1)][None])[0])
        longest = max(len(each) for each in values)
        if not longest:
            return {}
        table = np.full((len(values), longest), np.nan)
        for row, each in zip(table, values, strict=True):
            row[: len(each)] = each
        return part | {
            "label": followed.label,
            "basis": followed.basis,
            "index": (np.arange(longest) * every)[-_TRACE_DRAWS:],
            "values": table[:, -_TRACE_DRAWS:],
            "chains": len(values),
            "futures": [branch.letter for branch in self.branches],
        }

    def _marginal(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return the density of the draws of each branch since the fork."""
        followed, draws = self.lead.frames.components, [branch.draws() for branch in self.branches]
        curves = [diagnostics.density(followed.of(each)) for each in draws]
        (x, y), count = curves[self.followed], draws[self.followed].shape[:2].numel()
        futures = [self._future(i, {"x": x, "y": y}, ("x", "y")) for i, (x, y) in enumerate(curves)]
        if not any(len(x) for x, _ in curves):
            return {}
        label = {"label": followed.label, "basis": followed.basis}
        return label | {"x": x, "y": y, "draws": count, "futures": futures}

    def _prediction(self, part: dict[str, Any]) -> dict[str, Any]:
        """Overlay the prediction bands of all branches; other kinds of prediction are not overlaid."""
        if "lo95" not in part:
            return part
        parts = [part if run is self.lead else run.frame(["prediction"]).get("prediction") for run in self.runs]
        names = ("x", "mean", "lo95", "hi95")
        return part | {"futures": [self._future(i, each, names) for i, each in enumerate(parts) if each]}

    def _table(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return each value of all branches, in their order; for many branches the followed one comes first."""
        branches = self.branches
        if len(branches) > _SEEN:
            branches = [branches[self.followed], *(b for i, b in enumerate(branches) if i != self.followed)]
        parts = [part if b.run is self.lead else b.run.frame(["table"]).get("table") for b in branches]
        # Branches are at different steps.
        of = [{metric(row[0]): row[1:] for row in each["rows"]} if each else {} for each in parts]
        labels = [metric(row[0]) for row in part["rows"]]
        rows = [[label, *zip(*(found.get(label, ("–", "")) for found in of), strict=True)] for label in labels]
        return {"rows": rows, "futures": [branch.letter for branch in branches]}

    def _future(self, number: int, part: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        return {"letter": self.branches[number].letter, **{name: part[name] for name in names}}

    # --- checkpoints

    def checkpoint(self, draws: bool = True, block_store: BlockStore | None = None) -> bytes:
        """Return the state to continue all branches with the same draws (see `Run.checkpoint`)."""
        branches = [
            {
                "letter": branch.letter,
                "run": branch.run.checkpoint(draws, block_store),
                "steps": list(branch.timeline.steps),
                "kinds": list(branch.timeline.kinds),
                "since": branch.since,
                "drawn": branch.drawn,
                "generation": branch.generation,
                "script": list(branch.script),
            }
            for branch in self.branches
        ]
        saved = {"version": _VERSION, "at": self.at, "followed": self.followed, "branches": branches}
        return MAGIC + checkpoint.pack(saved)

    @classmethod
    def restore(cls, data: bytes, block_store: BlockStore | None = None) -> Fork:
        """Restore a fork from a checkpoint."""
        saved = checkpoint.unpack(data.removeprefix(MAGIC), _VERSION, "start the run again")
        branches = []
        for each in saved["branches"]:
            run = ViewedRun.restore(each["run"], block_store=block_store)
            timeline = Timeline(each["steps"], each["kinds"])
            timeline.follow(run)
            script = deque(tuple(change) for change in each["script"])
            numbers = each["since"], each["drawn"], each["generation"]
            branches.append(Branch(each["letter"], run, timeline, *numbers, script))
        return cls(saved["at"], branches, saved["followed"])


def restored(data: bytes, block_store: BlockStore | None = None) -> ViewedRun | Fork:
    """Return the run or the fork of a live checkpoint."""
    run = (
        Fork.restore(data, block_store) if data.startswith(MAGIC) else ViewedRun.restore(data, block_store=block_store)
    )
    for each in run.runs:
        each.wait_for_compile = False
    return run


def _branch(letter: str, run: ViewedRun, timeline: Timeline, script: deque[LoggedChange]) -> Branch:
    drawn = int(run.store.made.min()) - run.store.skip
    return Branch(letter, run, timeline, len(run.changes), max(drawn, 0), run.generation, script)


def _in_words(run: ViewedRun, name: str, value: Any) -> str:
    """Return a label for a changed setting."""
    of_target = name.startswith(OF_TARGET)
    kind, owner = ("targets", run.spec.target) if of_target else ("samplers", run.spec.sampler)
    settings = catalogue.find(kind, owner)["settings"]
    found = next((each for each in settings if each["name"] == name.removeprefix(OF_TARGET)), None)
    label = name if found is None else found["label"]
    if value is None and found is not None:
        value = found["empty"]
    text = f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    if isinstance(value, list) or len(text) > _LONGEST_TEXT:
        return f"other {label.lower()}"
    return f"{label} {text}"
