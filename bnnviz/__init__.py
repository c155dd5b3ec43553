"""bnnviz: see how samplers of Bayesian neural networks work, live, and use them on your own networks.

Importing this package loads nothing heavy; torch comes with the first name that needs it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from bnnviz.version import VERSION as __version__

if TYPE_CHECKING:  # for editors; what is imported, and when, the table below says
    from bnnviz.api.analysis import attack, measure, replay, search_iterations, search_prior, uncertainty, wells
    from bnnviz.api.race import BackgroundRace as Race
    from bnnviz.api.race import race
    from bnnviz.api.recorded import recording
    from bnnviz.api.run import BackgroundRun as Run
    from bnnviz.api.run import resume, sample, start
    from bnnviz.errors import BnnvizError
    from bnnviz.lessons.embed import lesson
    from bnnviz.specs.race import RaceSpec
    from bnnviz.specs.run import Spec
    from bnnviz.targets import BNN, Parameter, ParameterDensity, above, below, interval, positive, simplex

# Threads of a gradient that wait for each other would spin, and take the cores from whatever else runs: with the
# machine busy a gradient then takes six times as long. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

#: The public names by the modules that have them.
_NAMES = {
    "bnnviz.api.analysis": (
        *("attack", "measure", "replay", "search_iterations", "search_prior", "uncertainty", "wells"),
    ),
    "bnnviz.api.race": ("BackgroundRace", "race"),
    "bnnviz.api.recorded": ("recording",),
    "bnnviz.api.run": ("BackgroundRun", "resume", "sample", "start"),
    "bnnviz.errors": ("BnnvizError",),
    "bnnviz.lessons.embed": ("lesson",),
    "bnnviz.specs.race": ("RaceSpec",),
    "bnnviz.specs.run": ("Spec",),
    "bnnviz.targets": (
        *("BNN", "Parameter", "ParameterDensity"),
        *("above", "below", "interval", "positive", "simplex"),
    ),
}
#: The packages with public names of their own.
_PACKAGES = ("data", "diagnostics", "models", "plots", "samplers", "sklearn", "targets")
_HOMES = {name.removeprefix("Background"): (module, name) for module, names in _NAMES.items() for name in names}

__all__ = ["__version__"] + list(_HOMES)


def __getattr__(name: str) -> Any:
    import importlib

    if name in _PACKAGES:
        return importlib.import_module(f"bnnviz.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'bnnviz' has no attribute {name!r}")
    module, own = _HOMES[name]
    return getattr(importlib.import_module(module), own)
