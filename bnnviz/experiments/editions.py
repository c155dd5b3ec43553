"""Tell what a paper's first edition printed for a table, and which sections of the corrigendum are on it."""

from __future__ import annotations

import re

from bnnviz.experiments import published
from bnnviz.experiments.experiment import LABELS, Experiment
from bnnviz.experiments.published import Figures

CORRECTED, FIRST, BOTH = "corrected", "first", "both"
#: What can be shown of a table that two editions have, and what a button calls it.
EDITIONS = {CORRECTED: "Corrected", FIRST: "First edition", BOTH: "Both"}

#: What the first edition has in the place of a measure; others are the same in both.
_BEFORE = {"rmse": "mse", "ece": "ece_printed"}
#: What a table calls the measures of both editions.
PRINTED_LABELS = LABELS | {"ece_printed": "ECE"}

_OF_ALL = "What the corrections did to the paper's tables"
_CORRIGENDUM = "https://bnnviz.github.io/bnnviz/corrigendum.html"
#: The headings in docs/corrigendum.md of the sections that have figures of an experiment, in their order there.
SECTIONS: dict[str, tuple[str, ...]] = {
    "pdmp-table1": (_OF_ALL, "The reference in the place of the prior", "Algorithm 2: a line that is no bound"),
    "pdmp-table2": (_OF_ALL,),
    "pdmp-fig2": ("Algorithm 2: a line that is no bound",),
    "pdmp-sweeps": ("Algorithm 2: a line that is no bound", "Velocities of a thousandth"),
    "pmcnet-table6": (
        "What the code does instead of Algorithm 1",
        "The metrics of Algorithm 2",
        "Standardised by whose statistics",
    ),
    "func-fig2": ("Algorithm 1: noise that does not belong to its drift",),
    "func-wells": ("Which double well",),
}


def first_edition(experiment: Experiment) -> dict[str, Figures]:
    """Return what the first edition printed, by our cases and measures; nothing where there is no such edition.

    A measure that the corrected edition replaced has the figure that stood in its place: see `first_label`.
    """
    if not published.is_there(_place(experiment)):
        return {}
    printed = published.read(_place(experiment), getattr(experiment, "data", ""))
    by_case = {case.name: printed.get(case.name.partition(",")[0], {}) for case in experiment.cases}
    return {name: _by_measure(experiment, found) for name, found in by_case.items() if found}


def _place(experiment: Experiment) -> str:
    return f"first/{experiment.name}"


def _by_measure(experiment: Experiment, found: Figures) -> Figures:
    named = {measure: _BEFORE.get(measure, measure) for measure in experiment.measures}
    return {measure: found[before] for measure, before in named.items() if before in found}


def first_label(measure: str) -> str:
    """Return what a measure was in the first edition."""
    before = _BEFORE.get(measure, measure)
    return PRINTED_LABELS.get(before, before)


def section_url(heading: str) -> str:
    """Return where a section of the corrigendum is in the documentation."""
    return f"{_CORRIGENDUM}#{re.sub(r'[^a-z0-9_ -]', '', heading.lower()).replace(' ', '-')}"
