"""The functional paper's figures and table on images: entropies elsewhere, attacks, traffic signs."""

from __future__ import annotations

from typing import Any

from bnnviz.papers.experiment import Case
from bnnviz.papers.judged import Judged
from bnnviz.spec import Spec

SEEDS = range(5)
_MNIST = {"data": "mnist", "network": "mlp", "train_rows": 1000, "test_rows": 500}
_SIGNS = {"data": "gtsrb", "network": "gtsrb", "train_rows": None, "test_rows": 12_630}
_EVERY, _DRAWS = 50, 40
_LANES: dict[str, tuple[str, dict[str, Any]]] = {
    "SGFuncRLD": ("sgfuncrld", {}),
    "SGFuncRLD, as printed": ("sgfuncrld", {"variant": "paper", "step_size": 1e-3}),
    "pSGLD": ("psgld", {}),
    "SGLD": ("sgld", {}),
    "SGHMC": ("sghmc", {"step_size": 5e-6}),
    "Adam": ("map", {}),
}
_NOTES = {
    "SGFuncRLD, as printed": "Its noise is sqrt(2 eps) over the root mean square of the gradient: where pixels are"
    " always blank the gradient is next to nothing, and the first move is no number.",
    "SGHMC": "With a tenth of the step that is found from the curvature: the noise of batches throws it out otherwise.",
    "Adam": "One network, at the mode.",
}
_DOC = (
    "A 100-100 perceptron with a N(0, 1) prior on 1,000 images of MNIST, five seeds, batches of 128; the paper's"
    " network and prior are not told. Every sampler begins at a mode and makes 2,000 moves (the paper: 5,000)."
)


def _specs(target: dict[str, Any], sampler: str, settings: dict[str, Any]) -> tuple[Spec, ...]:
    if sampler == "map":
        made, draws, warmup = {"batch_size": 128, "steps": 1000}, 2, 0
    else:
        made, draws, warmup = {"batch_size": 128, "every": _EVERY, "mode_steps": 500}, _DRAWS, 5
    return tuple(
        Spec("images", target, sampler, made | settings, chains=1, draws=draws, warmup=warmup, seed=seed)
        for seed in SEEDS
    )


def _cases(target: dict[str, Any], published: dict[str, float] | None = None) -> tuple[Case, ...]:
    known = published or {}
    return tuple(
        Case(
            name,
            _specs(target, sampler, settings),
            {"accuracy": known[name]} if name in known else {},
            _NOTES.get(name, ""),
        )
        for name, (sampler, settings) in _LANES.items()
    )


FIG2 = Judged(
    name="func-fig2",
    title="Entropy on MNIST and on letters (functional paper, Fig. 2)",
    doc=_DOC + " auroc: how well entropy tells letters of notMNIST from digits.",
    measures=("accuracy", "nll", "ece", "entropy_test", "entropy_foreign", "auroc", "fpr95"),
    cases=_cases(_MNIST),
    pictures=("entropy", "reliability"),
    minutes=6,
)
FIG3 = Judged(
    name="func-fig3",
    title="Digits that are changed so that one draw errs (functional paper, Fig. 3)",
    doc=_DOC + " The attack (FGSM) is made on one draw and judged by the others; Adam's network judges itself."
    " accuracy_attacked: with each pixel changed by 0.1; entropy_attacked: by 0.3.",
    measures=("accuracy", "accuracy_attacked", "entropy_test", "entropy_attacked"),
    cases=_cases(_MNIST),
    pictures=("attack", "attack_entropy"),
    minutes=6,
)
TABLE1 = Judged(
    name="func-table1",
    title="Traffic signs (functional paper, Table 1)",
    doc="The network of the paper, conv6-conv16-128-43, on all images there are, batches of 128, five seeds: 39,209, or"
    " the 860 of the subset where the whole set is not. Two thousand moves from a mode, where the paper makes 30 epochs"
    " of 34,799 images.",
    measures=("accuracy", "nll", "ece"),
    cases=_cases(_SIGNS, {"SGFuncRLD": 0.9167, "pSGLD": 0.9017, "SGHMC": 0.8835, "SGLD": 0.9110}),
    pictures=("reliability",),
)
FUNCTIONAL = (FIG2, FIG3, TABLE1)
