"""bnnviz: see how samplers of Bayesian neural networks work, live, and use them on your own networks.

Importing this package loads nothing heavy; torch comes with the first name that needs it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from bnnviz.version import VERSION as __version__

if TYPE_CHECKING:
    from bnnviz.api import (
        BNN,
        Race,
        Run,
        attack,
        measure,
        race,
        recording,
        replay,
        resume,
        sample,
        search_prior,
        start,
        uncertainty,
        wells,
    )
    from bnnviz.errors import BnnvizError
    from bnnviz.specs.race import RaceSpec
    from bnnviz.specs.run import Spec

# Threads of a gradient that wait for each other would spin, and take the cores from whatever else runs: with the
# machine busy a gradient then takes six times as long. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_HOMES = {
    "BNN": "bnnviz.targets",
    "Race": "bnnviz.api",
    "Run": "bnnviz.api",
    "attack": "bnnviz.api",
    "measure": "bnnviz.api",
    "race": "bnnviz.api",
    "recording": "bnnviz.api",
    "replay": "bnnviz.api",
    "resume": "bnnviz.api",
    "sample": "bnnviz.api",
    "search_prior": "bnnviz.api",
    "start": "bnnviz.api",
    "uncertainty": "bnnviz.api",
    "wells": "bnnviz.api",
    "RaceSpec": "bnnviz.specs.race",
    "Spec": "bnnviz.specs.run",
    "BnnvizError": "bnnviz.errors",
}

__all__ = [
    "BNN",
    "BnnvizError",
    "Race",
    "RaceSpec",
    "Run",
    "Spec",
    "__version__",
    "attack",
    "measure",
    "race",
    "recording",
    "replay",
    "resume",
    "sample",
    "search_prior",
    "start",
    "uncertainty",
    "wells",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bnnviz' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
