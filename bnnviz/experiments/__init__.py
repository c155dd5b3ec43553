"""List the papers' experiments: what to run, and the printed values to compare with."""

from __future__ import annotations

import re
from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.experiments.experiment import SCALES, Case, Experiment
from bnnviz.experiments.functional.figure1 import DOUBLE_WELL
from bnnviz.experiments.functional.figure4 import FIG4
from bnnviz.experiments.functional.figures2_3_table1 import FIGURES_2_3_TABLE_1
from bnnviz.experiments.pdmp.boston import BOSTON
from bnnviz.experiments.pdmp.figure3 import FIG3
from bnnviz.experiments.pdmp.figures1_2_4 import FIGURES_1_2_4
from bnnviz.experiments.pdmp.figures5to7 import FIGURES_5_TO_7
from bnnviz.experiments.pdmp.mixing import MIXING
from bnnviz.experiments.pdmp.sweeps import SWEEPS
from bnnviz.experiments.pdmp.table1 import TABLE1
from bnnviz.experiments.pdmp.table2 import TABLE2
from bnnviz.experiments.pdmp.uci import UCI
from bnnviz.experiments.pmcnet.image_tables import PMCNET_IMAGES
from bnnviz.experiments.pmcnet.tables import PMCNET
from bnnviz.experiments.table import LABELS


def _place(experiment: Experiment) -> tuple[bool, int]:
    """Return a key that sorts tables before figures, each by its number."""
    kind, number = experiment.name.rpartition("-")[2], re.search(r"\d+$", experiment.name)
    return kind.startswith("fig"), int(number.group()) if number else 0


_PDMP_FIGURES = sorted((FIG3, *FIGURES_1_2_4, *FIGURES_5_TO_7), key=_place)
_PMCNET = sorted((*PMCNET, *PMCNET_IMAGES), key=_place)
_FUNCTIONAL = (DOUBLE_WELL, *FIGURES_2_3_TABLE_1, FIG4)
_ALL = (BOSTON, TABLE1, UCI, TABLE2, MIXING, *_PDMP_FIGURES, SWEEPS, *_FUNCTIONAL, *_PMCNET)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def find(name: str) -> Experiment:
    """Return an experiment by name; raise a `BnnvizError` that lists the names if it is unknown."""
    if name not in EXPERIMENTS:
        raise BnnvizError(f"There is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}.", "experiment")
    return EXPERIMENTS[name]


def describe() -> list[dict[str, Any]]:
    """Return name, title and doc of every experiment."""
    return [
        {"name": e.name, "title": e.title, "doc": e.doc, "cases": [case.name for case in e.cases]}
        for e in EXPERIMENTS.values()
    ]


__all__ = ["EXPERIMENTS", "LABELS", "SCALES", "Case", "Experiment", "describe", "find"]
