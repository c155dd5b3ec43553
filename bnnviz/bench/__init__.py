"""Benchmarks that a user can run on their own machine: ``bnnviz bench SUITE``.

A suite is one module of `bnnviz.bench.suites`; what it measures comes out as rows, each with its target
where there is one.
"""

from __future__ import annotations

from bnnviz.bench.registry import find, names
from bnnviz.bench.suite import Goal, Row, Suite

__all__ = ["Goal", "Row", "Suite", "find", "names"]
