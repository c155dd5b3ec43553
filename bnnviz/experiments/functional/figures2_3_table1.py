"""Run the functional paper's figures and table on images: OOD entropies, attacks, traffic signs."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from bnnviz.experiments import published
from bnnviz.experiments.experiment import Case, repeated
from bnnviz.experiments.uncertainty import UncertaintyExperiment
from bnnviz.specs.run import Spec

SEEDS = range(5)
_BATCH = 128


class _ImageSize(NamedTuple):
    """Numbers of training and test images, moves and draws, discarded draws, and moves to the mode."""

    rows: int | None
    test_rows: int
    moves: int
    draws: int
    warmup: int
    mode_steps: int


_EACH = 5  # draws per functional: the paper's M, and the sampler's default
_SMALL, _PAPER = _ImageSize(1000, 500, 2000, 40, 5, 500), _ImageSize(None, 10_000, 5000, 5, 0, 3000)
# All available traffic signs: 39,209, or the 860 of the subset. The paper has 30 epochs of 34,799 images.
_SIGNS, _ALL_SIGNS = _ImageSize(None, 12_630, 2000, 40, 5, 500), _ImageSize(None, 12_630, 8160, 5, 0, 3000)
_ENTRIES: dict[str, tuple[str, dict[str, Any]]] = {
    "SGFuncRLD": ("sgfuncrld", {}),
    "SGFuncRLD, as printed": ("sgfuncrld", {"variant": "paper", "step_size": 1e-3}),
    "pSGLD": ("psgld", {}),
    "SGLD": ("sgld", {}),
    "SGHMC": ("sghmc", {"step_size": 5e-6}),
    "Adam": ("map", {}),
}
_DOC = (
    "Five seeds, batches of 128, a N(0, 1) prior, which is ours. Step sizes follow from the curvature, where the"
    " paper's learning rates are .001 for SGFuncRLD, pSGLD and Adam and .1 for SGLD and SGHMC. Every sampler begins at"
    " a mode, and makes as many moves as any other. A functional of SGFuncRLD gives five draws, as in the paper"
    " (M = 5)."
)
_SCALED = {
    "small": "Reduced: a 100-100 perceptron in place of the paper's network, conv6-pool-conv16-pool-conv120-84-10;"
    " {rows:,} images to train on, {test_rows} to test, {moves:,} moves, where the paper makes 5,000, and {draws} draws"
    " of each, where the paper has five draws or functionals (T = 5).",
    "paper": "The paper's network, conv6-pool-conv16-pool-conv120-84-10, all images, {moves:,} moves, and five draws or"
    " functionals of each (T = 5), as in the paper.",
}
_NETWORKS = {"small": "mlp", "paper": "lenet5"}


def _specs(target: dict[str, Any], size: _ImageSize, sampler: str, settings: dict[str, Any]) -> tuple[Spec, ...]:
    if sampler == "map":
        made, draws, warmup = {"batch_size": _BATCH, "steps": 2 * size.mode_steps}, 2, 0
    else:
        draws, warmup, every = size.draws, size.warmup, size.moves // size.draws
        if sampler == "sgfuncrld" and size.draws == _EACH:
            draws *= _EACH  # as many functionals as the other samplers have draws
        elif sampler == "sgfuncrld":
            every *= _EACH  # as many draws and moves as the other samplers
        made = {"batch_size": _BATCH, "thin": every, "mode_steps": size.mode_steps}
    return repeated("images", target, sampler, made | settings, seeds=SEEDS, draws=draws, warmup=warmup)


def _cases(data: str, network: str, size: _ImageSize, known: dict[str, published.Values]) -> tuple[Case, ...]:
    target = {"data": data, "network": network, "train_rows": size.rows, "test_rows": size.test_rows}
    return tuple(Case(name, _specs(target, size, *entry), known.get(name, {})) for name, entry in _ENTRIES.items())


class _DigitFigure(NamedTuple):
    """A figure of the paper on digits."""

    number: int
    what: str
    doc: str
    measures: tuple[str, ...]
    pictures: tuple[str, ...]


_FIGURES = (
    _DigitFigure(
        2,
        "Entropy on MNIST and on letters",
        "auroc: how well entropy distinguishes letters of notMNIST from digits.",
        ("accuracy", "nll", "ece", "entropy_test", "entropy_foreign", "auroc", "fpr95"),
        ("entropy", "reliability"),
    ),
    _DigitFigure(
        3,
        "Digits that are changed so that one draw errs",
        "The attack (FGSM) is made on one draw and judged by the others; Adam's network judges itself."
        " accuracy_attacked: with each pixel changed by 0.1; entropy_attacked: by 0.3.",
        ("accuracy", "accuracy_attacked", "entropy_test", "entropy_attacked"),
        ("attack", "attack_entropy"),
    ),
)


def _figure(figure: _DigitFigure, data: str, scale: str) -> UncertaintyExperiment:
    size = _SMALL if scale == "small" else _PAPER
    return UncertaintyExperiment(
        name=f"func-fig{figure.number}",
        title=f"{figure.what} (functional paper, Fig. {figure.number})",
        doc=f"{_DOC} {_SCALED[scale].format(**size._asdict())} {figure.doc}",
        measures=figure.measures,
        cases=_cases(data, _NETWORKS[scale], size, {}),
        why="As printed, the noise of SGFuncRLD is sqrt(2 eps) over the root mean square of the gradient. It is"
        " unbounded where pixels are always blank, and the first move is not finite. SGHMC takes a tenth of the step"
        " found from the curvature; with the whole step the noise of batches makes it diverge. Adam is one network, at"
        " the mode.",
        pictures=figure.pictures,
        minutes=6 if scale == "small" else None,
        data=data,
        scale=scale,
        parts=("mnist", "fashion_mnist", "rotated_mnist"),
        build=partial(_figure, figure),
    )


def _table(data: str, scale: str) -> UncertaintyExperiment:
    size = _SIGNS if scale == "small" else _ALL_SIGNS
    return UncertaintyExperiment(
        name="func-table1",
        title="Traffic signs (functional paper, Table 1)",
        doc="The network of the paper, conv6-conv16-128-43, on all images there are, batches of 128, five seeds:"
        f" 39,209, or the 860 of the subset where the whole set is not. {size.moves:,} moves from a mode; the paper"
        " makes 30 epochs of 34,799 images, which are 8,160. Images have colours and are standardised, where the"
        " paper's are grey with local normalisation; step sizes follow from the curvature, where the paper's learning"
        " rates are .001 (SGFuncRLD), .0001 (pSGLD) and .1.",
        measures=("accuracy", "nll", "ece"),
        cases=_cases(data, "gtsrb", size, published.read("func-table1", data)),
        pictures=("reliability",),
        ood="cifar100" if data == "cifar10" else "cifar10",
        data=data,
        scale=scale,
        parts=("gtsrb", "svhn", "cifar10"),
        build=_table,
    )


FIGURES_2_3_TABLE_1 = (*(_figure(figure, "mnist", "small") for figure in _FIGURES), _table("gtsrb", "small"))
