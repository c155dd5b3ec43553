"""Run benchmarks on the user's own machine: ``bnnviz bench SUITE``.

A suite is one module of `bnnviz.benchmarks.suites`; what it measures comes out as rows, each with its target
where there is one.
"""

from __future__ import annotations

from bnnviz.benchmarks.registry import find, names
from bnnviz.benchmarks.suite import Goal, Row, Suite

__all__ = ["Goal", "Row", "Suite", "find", "names"]
