"""Figures 5 to 7 of the PDMP paper: traces, hard images and entropies, of runs of its Table 2."""

from __future__ import annotations

from bnnviz.papers.experiment import Case
from bnnviz.papers.images import TABLE2
from bnnviz.papers.judged import Judged

_RUNS = {case.name: case for case in TABLE2.cases}
_STAND_IN = " The paper's {data} is taken with --data {name} where it is here."
_DOC = "The runs of pdmp-table2 at its small scale: a LeNet-5 of 61,706 weights on 400 digits."


def _cases(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, _RUNS[name].specs, {}, _RUNS[name].note) for name in names)


FIG5 = Judged(
    name="pdmp-fig5",
    title="Trace and autocorrelation of the first component (PDMP paper, Fig. 5)",
    doc=_DOC + _STAND_IN.format(data="SVHN", name="svhn") + " An ESS near 1.6 of 40 draws says that nothing has mixed.",
    measures=("ess_pc1", "ess_function_median", "ess_per_million"),
    cases=_cases("BPS", "sigma-BPS", "Boomerang", "SGLD", "SGHMC"),
    pictures=("trace", "acf"),
    base=2,
    minutes=7,
)
FIG6 = Judged(
    name="pdmp-fig6",
    title="Chances of the images that are hardest to tell (PDMP paper, Fig. 6)",
    doc=_DOC + _STAND_IN.format(data="SVHN", name="svhn") + " The three test images that the samplers are least sure"
    " of, with intervals that hold 95 % of the draws.",
    measures=("accuracy", "nll", "ece", "entropy_test"),
    cases=_cases("Boomerang", "SGLD"),
    pictures=("digit",),
    base=2,
    minutes=3,
)
FIG7 = Judged(
    name="pdmp-fig7",
    title="Entropies under SGLD and the Boomerang (PDMP paper, Fig. 7)",
    doc=_DOC + _STAND_IN.format(data="CIFAR-10", name="cifar10") + " Entropies in bits, as there, of test digits and of"
    " letters.",
    measures=("entropy_test", "entropy_foreign", "auroc", "fpr95"),
    cases=_cases("Boomerang", "SGLD"),
    pictures=("entropy_bars",),
    base=2,
    minutes=3,
)
PICTURED = (FIG5, FIG6, FIG7)
