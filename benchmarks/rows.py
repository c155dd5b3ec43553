"""Define the rows that benchmarks return."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

_SIGNS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}

#: Reports progress.
Report = Callable[[str], None]


@dataclass(frozen=True)
class Goal:
    """A limit for a value: ``sign`` is one of ``>=``, ``<=`` and ``<``."""

    sign: str
    limit: float

    def met(self, value: float) -> bool:
        """Return whether a value meets it; NaN does not."""
        return bool(_SIGNS[self.sign](value, self.limit))

    def __str__(self) -> str:
        return f"{self.sign} {self.limit:g}"


@dataclass(frozen=True)
class Row:
    """One measured value."""

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
        """Return the row as printed by ``--json``."""
        row = {"suite": suite, "case": case, "metric": self.metric, "value": self.value, "unit": self.unit}
        return row | {"target": "" if self.goal is None else str(self.goal), "ok": self.ok} | self.more


#: Measures a case for some seconds.
Case = Callable[[float, Report], Iterator[Row]]
