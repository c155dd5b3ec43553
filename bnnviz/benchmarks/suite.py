"""Define what a benchmark is made of: a suite has cases, and a case gives rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bnnviz.errors import BnnvizError

_SIGNS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True)
class Goal:
    """What a figure has to reach.

    Parameters
    ----------
    sign : {">=", "<=", "<"}
        On which side of the limit it has to be.
    limit : float
        The limit.
    """

    sign: str
    limit: float

    def met(self, value: float) -> bool:
        """Whether a value reaches it; one that could not be measured does not."""
        return bool(_SIGNS[self.sign](value, self.limit))

    def __str__(self) -> str:
        return f"{self.sign} {self.limit:g}"


@dataclass(frozen=True)
class Row:
    """One figure.

    Parameters
    ----------
    metric : str
        What was measured, a name of its own within the case.
    value : float
        The figure; NaN when it could not be measured.
    unit : str
        Its unit, "" when it has none.
    goal : Goal or None, default None
        What it has to reach; None: it stands for itself.
    more : dict, optional
        Further keys, such as ``ratio`` and ``peer``.
    """

    metric: str
    value: float
    unit: str
    goal: Goal | None = None
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the goal is met; True without one."""
        return self.goal is None or self.goal.met(self.value)

    def to_json(self, suite: str, case: str) -> dict[str, Any]:
        """Return the row as ``bnnviz bench --json`` prints it."""
        row = {"suite": suite, "case": case, "metric": self.metric, "value": self.value, "unit": self.unit}
        return row | {"target": "" if self.goal is None else str(self.goal), "ok": self.ok} | self.more


Tell = Callable[[str], None]
Case = Callable[[float, Tell], Iterator[Row]]


@dataclass(frozen=True)
class Suite:
    """Benchmarks that belong together.

    Parameters
    ----------
    name : str
        Its name on the command line.
    title : str
        What it measures, in a line.
    cases : dict
        Its cases by name, in the order in which they run: functions of the seconds to measure for and of
        a function that takes sentences on what is being done.
    """

    name: str
    title: str
    cases: dict[str, Case]

    def run(self, case: str | None, seconds: float, tell: Tell) -> Iterator[dict[str, Any]]:
        """Measure one case, or all of them, and give each row as soon as it is known.

        Parameters
        ----------
        case : str or None
            The case's name; None: all.
        seconds : float
            How long to measure each.
        tell : callable
            Told what is being done.

        Raises
        ------
        BnnvizError
            If there is no such case, or something is missing that it needs.
        """
        if case is not None and case not in self.cases:
            raise BnnvizError(
                f"The benchmark {self.name} has no case {case!r}; choose one of {', '.join(self.cases)}.", "case"
            )
        for name in self.cases if case is None else [case]:
            for row in self.cases[name](seconds, tell):
                yield row.to_json(self.name, name)
