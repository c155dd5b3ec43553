"""Run Figures 5 to 7 of the PDMP paper: traces, hard images and entropies, of runs of its Table 2."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from bnnviz.experiments.pdmp.table2 import TABLE2
from bnnviz.experiments.uncertainty import UncertaintyExperiment


class _TableFigure(NamedTuple):
    """Content of a figure on the table's runs, and the paper's data set."""

    number: int
    what: str
    papers: str
    doc: str
    measures: tuple[str, ...]
    cases: tuple[str, ...]
    pictures: tuple[str, ...]
    why: str = ""


_BOTH = ("Boomerang", "SGLD")
_FIGURES = (
    _TableFigure(
        5,
        "Trace and autocorrelation of the first component",
        "svhn",
        "An ESS near 1.6 of 40 draws is that of a straight line.",
        ("ess_pc1", "ess_function_median", "ess_per_million"),
        ("BPS", "sigma-BPS", *_BOTH, "SGHMC"),
        ("trace", "acf"),
    ),
    _TableFigure(
        6,
        "Probabilities of the most uncertain images",
        "svhn",
        "The three test images that the samplers are least sure of, with intervals that hold 95% of the draws.",
        ("accuracy", "nll", "ece", "entropy_test"),
        _BOTH,
        ("digit",),
        "In the paper SGLD's intervals shrink to points, and the Boomerang's do not.",
    ),
    _TableFigure(
        7,
        "Entropies under SGLD and the Boomerang",
        "cifar10",
        "In bits, as in the paper, of test images and of images out of distribution.",
        ("entropy_test", "entropy_foreign", "auroc", "fpr95"),
        _BOTH,
        ("entropy_bars",),
        "In the paper the Boomerang's entropies out of distribution are the higher ones.",
    ),
)


def _part(figure: _TableFigure, data: str, scale: str) -> UncertaintyExperiment:
    table = TABLE2.at(data, scale)
    other_data = "" if data == figure.papers else f" The paper's data are those of --data {figure.papers}."
    shown = [case for case in table.cases if "Algorithm 2" not in case.name]
    cases = [replace(case, published={}) for case in shown if case.name.partition(",")[0] in figure.cases]
    return replace(
        table,
        name=f"pdmp-fig{figure.number}",
        title=f"{figure.what} (PDMP paper, Fig. {figure.number})",
        doc=f"The runs of pdmp-table2 on {data}. {figure.doc}{other_data} {table.doc}",
        measures=figure.measures,
        cases=tuple(cases),
        why=figure.why,
        pictures=figure.pictures,
        minutes=None if table.minutes is None else table.minutes * len(figure.cases) / len(table.cases),
        build=partial(_part, figure),
    )


FIGURES_5_TO_7 = tuple(_part(figure, TABLE2.data, TABLE2.scale) for figure in _FIGURES)
