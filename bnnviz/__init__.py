"""bnnviz: see live how samplers of Bayesian neural networks work, and use them on your own networks.

Importing this package is cheap; torch is imported with the first name that needs it.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from bnnviz.version import VERSION as __version__

if TYPE_CHECKING:  # for type checkers and editors; at run time `_NAMES` imports the same names
    from bnnviz import (
        data as data,
        diagnostics as diagnostics,
        models as models,
        plots as plots,
        samplers as samplers,
        sklearn as sklearn,
        targets as targets,
    )
    from bnnviz.api.analysis import (
        attack as attack,
        measure as measure,
        replay as replay,
        uncertainty as uncertainty,
        wells as wells,
    )
    from bnnviz.api.posterior import BNN as BNN
    from bnnviz.api.race import BackgroundRace as Race, race as race
    from bnnviz.api.recorded import PublicRecording as Recording, recording as recording
    from bnnviz.api.run import BackgroundRun as Run, resume as resume, sample as sample, start as start
    from bnnviz.engine.evaluation.predictive_distribution import PredictiveDistribution as PredictiveDistribution
    from bnnviz.errors import BnnvizError as BnnvizError, SamplingWarning as SamplingWarning
    from bnnviz.lessons.embed import lesson as lesson
    from bnnviz.specs.race import RaceSpec as RaceSpec
    from bnnviz.specs.run import Spec as Spec
    from bnnviz.targets import (
        Parameter as Parameter,
        ParameterDensity as ParameterDensity,
        above as above,
        below as below,
        interval as interval,
        positive as positive,
        simplex as simplex,
    )

# Threads of a gradient that wait for each other would spin and block the cores: on a busy machine a gradient then takes
# six times as long. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

#: The public names by the modules that have them.
_NAMES = {
    "bnnviz.api.analysis": (*("attack", "measure", "replay", "uncertainty", "wells"),),
    "bnnviz.api.posterior": ("BNN",),
    "bnnviz.api.race": ("BackgroundRace", "race"),
    "bnnviz.api.recorded": ("PublicRecording", "recording"),
    "bnnviz.api.run": ("BackgroundRun", "resume", "sample", "start"),
    "bnnviz.engine.evaluation.predictive_distribution": ("PredictiveDistribution",),
    "bnnviz.errors": ("BnnvizError", "SamplingWarning"),
    "bnnviz.lessons.embed": ("lesson",),
    "bnnviz.specs.race": ("RaceSpec",),
    "bnnviz.specs.run": ("Spec",),
    "bnnviz.targets": (
        *("Parameter", "ParameterDensity"),
        *("above", "below", "interval", "positive", "simplex"),
    ),
}
#: Classes whose public names are shorter.
RENAMED = {"BackgroundRun": "Run", "BackgroundRace": "Race", "PublicRecording": "Recording"}
#: The packages with further public names.
_PACKAGES = ("data", "diagnostics", "models", "plots", "samplers", "sklearn", "targets")
_HOMES = {RENAMED.get(name, name): (module, name) for module, names in _NAMES.items() for name in names}

__all__ = ["__version__"] + list(_HOMES)


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"bnnviz.{name}")
    if name not in _HOMES:
        raise importlib.import_module("bnnviz.errors").no_attribute("module 'bnnviz'", name, __dir__())
    module, own = _HOMES[name]
    return getattr(importlib.import_module(module), own)
