"""Races that tests of several files run."""

from __future__ import annotations

from typing import Any

from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec


def race_of(*entries: Any, budget: int = 4_000, **shared: Any) -> RaceSpec:
    """Return a race of samplers, each a name or a name with its settings."""
    shared = {"target": "banana", "chains": 2, "seed": 4, "warmup": 5, **shared}
    named = [(entry, {}) if isinstance(entry, str) else entry for entry in entries]
    return RaceSpec(tuple(Spec(sampler=name, settings=own, **shared) for name, own in named), budget).checked()
