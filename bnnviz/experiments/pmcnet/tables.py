"""Run tables and figures of the PMCnet paper (Huang, Chouzenoux, Elvira and Pesquet 2023) on tables of numbers.

Its tables are means and standard deviations over 100 draws, taken by their weights, of each draw's own figures. What it
does not say is ours: the prior and sigma0 of the control and wine sets, T of wine and glass, regression
noise, and the settings of the competitors.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bnnviz.experiments import published
from bnnviz.experiments.experiment import Case, repeated
from bnnviz.experiments.paper import named
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.specs.run import Spec

SEEDS = range(5)
CHAINS, EACH = 50, 100  # M and K
_FEW = 20  # both of large networks
_DRAWS = 100  # of the competitors
_ONE_SPLIT = (0,) * len(SEEDS)
#: Of the control set: the five of twenty networks whose two classes are most alike in number.
NETWORKS = (1, 3, 6, 8, 11)
_TWO = ("auc", "precision", "recall", "specificity", "accuracy", "f1")
_MANY = ("auc_weighted", "f1", "accuracy")


def prior_sd(penalty: float) -> float:
    """Return the prior's standard deviation of a penalty lambda |theta|^2."""
    return round(1 / math.sqrt(2 * penalty), 4)


CONTROL = {"hidden": "3", "prior_sd": 2.0}
IONOSPHERE = {"data": "pmcnet_ionosphere", "hidden": "5", "prior_sd": prior_sd(0.0774), "scaling": "own"}
WINE = {"data": "pmcnet_wine", "hidden": "3", "prior_sd": 1.0}
GLASS = {"data": "pmcnet_glass", "hidden": "10", "prior_sd": prior_sd(0.9787), "scaling": "own"}
NAVAL = {"data": "pmcnet_naval", "hidden": "100-100", "activation": "relu", "prior_sd": prior_sd(0.2361)}
PROTEIN = {"data": "pmcnet_protein", "hidden": "100-100", "activation": "relu", "prior_sd": 1.0}
_PUBLISHED = {"initial_weights": "published"}
#: Settings beside the defaults; the paper's are not public but for what SGLD, dropout and the others say themselves.
COMPETITORS: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "ADAM-MLE": ("mle", {}, 2, 0),
    "ADAM-MAP": ("map", {}, 2, 0),
    "BBP": ("bbb", {}, _DRAWS, 0),
    "SGLD": ("sgld", {"every": 50}, _DRAWS, _DRAWS),
    "MCDropout": ("mc_dropout", {}, _DRAWS, 0),
    "SAE": ("sae", {}, _DRAWS, 0),
}
#: Sampler and settings of the variants of Table 3.
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "PMCnet": ("pmcnet", {}),
    "PMCnet-gradfree": ("pmcnet", {"gradient": False}),
    "PMCnet-covfree": ("pmcnet", {"adapt_covariance": False}),
    "DM-PMC": ("pmcnet", {"gradient": False, "adapt_covariance": False}),
    "PMCnet-light": ("pmcnet_light", {}),
}
MEANS = (
    "Mean and standard deviation over 100 draws, taken by their weights, of each draw's own figures; with --json also"
    " those of the averaged predictive."
)
_NOTE_VARIANTS = {
    "PMCnet-gradfree": "In the paper gradients are worth .16 of accuracy. Here it has {accuracy|.3f}, PMCnet"
    " {accuracy@PMCnet|.3f}, which is no more than luck.",
    "PMCnet-covfree": "As in the paper covariances are worth little: it has {accuracy|.3f}, PMCnet"
    " {accuracy@PMCnet|.3f}.",
    "DM-PMC": "In the paper it comes last by far. Here it does not{accuracy > accuracy@PMCnet-gradfree}: it has"
    " {accuracy|.3f}, PMCnet {accuracy@PMCnet|.3f}.",
    "PMCnet-light": "It has {accuracy|.3f}, PMCnet {accuracy@PMCnet|.3f}: as in the paper they are about equal.",
}
_NOTE_CONTROL = (
    "The weight ESS of 5,000 draws is {weights_ess|.1f}. Each run has a network and rows of its own, where the paper"
    " has one, with 38 to 62 % of the rows in each class; labels are drawn with the network's probabilities; prior"
    " N(0, 2^2), sigma0 0.1 and random starting means are ours."
)
_NOTE_PMCNET = (
    "Starting means are the published weights, the paper's ADAM-MLE. The weight ESS of the 5,000 draws is"
    " {weights_ess|.1f}: figures are of a few points, and their spread is not the posterior's."
)
_NOTE_BELOW = (
    " It ends below its start{accuracy < accuracy@Published weights}: an accuracy of {accuracy|.4f}, where the"
    " published weights have {accuracy@Published weights|.4f}."
)
_NOTE_START = (
    "The start of PMCnet, as its authors have published it: the paper's ADAM-MLE to the digit, where each split is"
    " standardised with its own statistics."
)
_NOTE_WINE = (
    "The paper's division into parts is not public: another one of 6:2:2 for each run; T = 20 and prior N(0, 1)."
)
_NOTE_GLASS = f"{_NOTE_PMCNET} T = 50 is ours."


def _population(
    sampler: str,
    target: dict[str, Any],
    iterations: int,
    settings: dict[str, Any],
    *,
    each: int = EACH,
    chains: int = CHAINS,
    whole: bool = False,
    splits: tuple[int, ...] = _ONE_SPLIT,
) -> tuple[Spec, ...]:
    """Return runs whose draws are those of the last iteration, or with ``whole`` of all."""
    earlier = 0 if whole else each * (iterations - 1)
    settings, draws = {"draws_each": each, **settings}, each * iterations - earlier
    runs = {"seeds": SEEDS, "splits": splits, "chains": chains, "draws": draws, "warmup": earlier}
    return repeated("network", target, sampler, settings, **runs)


def _competitors(
    target: dict[str, Any],
    known: dict[str, published.Figures],
    label: str = "",
    splits: tuple[int, ...] = _ONE_SPLIT,
    **more: Any,
) -> tuple[Case, ...]:
    """Return the cases of the other methods, each with figures of its own."""
    cases = []
    for name, (sampler, settings, draws, warmup) in COMPETITORS.items():
        runs = {"seeds": SEEDS, "splits": splits, "draws": draws, "warmup": warmup}
        specs = repeated("network", target, sampler, settings | more, **runs)
        note = "Trained here, with settings of ours where the paper gives none."
        cases.append(Case(f"{label}{name}", specs, known[name], note))
    return tuple(cases)


# --- the control set: Tables 2 and 3, Figures 1 to 3


def _control(rows: int, settings: dict[str, Any], sampler: str = "pmcnet", whole: bool = False) -> tuple[Spec, ...]:
    target = {**CONTROL, "data": f"control_{rows}"}
    return _population(sampler, target, 20, {"start": "random", **settings}, whole=whole, splits=NETWORKS)


def _sizes() -> tuple[Case, ...]:
    known = published.read("pmcnet-table2")
    return tuple(Case(f"N = {n}", _control(n, {}), known[f"N = {n}"], _NOTE_CONTROL) for n in (50, 400, 1600))


def _variants(whole: bool = False) -> tuple[Case, ...]:
    known = published.read("pmcnet-table3")
    return tuple(
        Case(
            name,
            _control(1600, settings, sampler, whole),
            known[name],
            f"{_NOTE_VARIANTS.get(name, '')} {_NOTE_CONTROL}".strip(),
        )
        for name, (sampler, settings) in _VARIANTS.items()
    )


# --- ionosphere: Tables 6 and 11, Figures 4 and 5


def _iono(settings: dict[str, Any], sampler: str = "pmcnet") -> tuple[Spec, ...]:
    chosen = {"sigma0": 0.1, "start": "random", **settings}
    return _population(sampler, IONOSPHERE | _PUBLISHED, 50, chosen)


def _on_ionosphere() -> tuple[Case, ...]:
    known = published.read("pmcnet-table6")
    note = (
        "What the authors' code does where it differs from the paper. The weight ESS of the 5,000 draws is"
        f" {{weights_ess|.1f}}.{_NOTE_BELOW}"
    )
    start = repeated(
        "network",
        IONOSPHERE | _PUBLISHED,
        "mle",
        {"steps": 1, "learning_rate": 1e-6},
        seeds=SEEDS[:2],
        draws=2,
        warmup=0,
    )
    return (
        Case("Published weights", start, known["ADAM-MLE"], _NOTE_START),
        *_competitors(IONOSPHERE, known),
        Case("PMCnet", _iono({}), known["PMCnet"], _NOTE_PMCNET + _NOTE_BELOW),
        Case("PMCnet, reference code", _iono({"variant": "reference-code"}), known["PMCnet"], note),
    )


def _times() -> tuple[Case, ...]:
    light = Case("PMCnet-light", _iono({}, "pmcnet_light"), {})
    known, note = (
        published.read("pmcnet-table11"),
        ("Published: on a Tesla V100. The weight ESS of PMCnet's 5,000 draws is {weights_ess|.1f}."),
    )
    cases = (*(case for case in _on_ionosphere() if case.name in known), light)
    return tuple(replace(case, specs=case.specs[:1], published=known[case.name], note=note) for case in cases)


# --- wine and glass: Table 7, Figures 6 to 8


def _wine(whole: bool = False) -> tuple[Spec, ...]:
    return _population("pmcnet", WINE, 20, {"sigma0": 0.1, "start": "mode"}, whole=whole, splits=tuple(SEEDS))


def _glass(whole: bool = False) -> tuple[Spec, ...]:
    return _population("pmcnet", GLASS | _PUBLISHED, 50, {"sigma0": 0.05, "start": "random"}, whole=whole)


def _wine_and_glass() -> tuple[Case, ...]:
    wine, glass = (published.read("pmcnet-table7", data) for data in ("wine", "glass"))
    return (
        *_competitors(WINE, wine, "Wine, ", splits=tuple(SEEDS)),
        Case("Wine, PMCnet", _wine(), wine["PMCnet"], _NOTE_WINE),
        *_competitors(GLASS, glass, "Glass, "),
        Case("Glass, PMCnet", _glass(), glass["PMCnet"], _NOTE_GLASS),
    )


# --- protein and naval: Table 10, Figures 10 and 11


def _regression(target: dict[str, Any], data: str, noise_sd: str, label: str = "") -> tuple[Case, ...]:
    known, settings = published.read("pmcnet-table10", data), {"sigma0": 1e-4, "start": "random"}
    light = _population("pmcnet_light", target | _PUBLISHED, 5, settings, each=_FEW, chains=_FEW)
    note = f"Noise sd {noise_sd} is ours: the paper's is not public."
    return (
        *_competitors(target, known, label, batch_size=128),
        Case(f"{label}PMCnet-light", light, known["PMCnet-light"], note),
    )


_ON_PROTEIN, _ON_NAVAL = (PROTEIN, "protein", "4"), (NAVAL, "naval", "0.003")


# --- the tables and figures


def _made(
    place: str, what: str, measures: tuple[str, ...], cases: tuple[Case, ...], doc: str, **more: Any
) -> PredictiveExperiment:
    return PredictiveExperiment(**named("pmcnet", place, what), doc=doc, measures=measures, cases=cases, **more)


def _history(
    place: str, what: str, measures: tuple[str, str], cases: tuple[Case, ...], doc: str
) -> PredictiveExperiment:
    return _made(place, what, measures, cases, doc, pictures=("history",), followed=measures)


def _of_table(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """Return the cases of a table without its published figures, which a figure of the same runs would count again."""
    return tuple(replace(case, published={}) for case in cases)


_ON_RETURNS = ("roc", "chances")  # taken of each run on ionosphere, for its table and its figures
_ERRORS = "What five runs of each method come to on protein and naval"
_ENVELOPES = "envelopes hold 80, 95 and 99 % of the draws."
_BOX = "Box and violin over the test rows, of the mean over 100 draws."
PMCNET = (
    _made(
        "Table 2",
        "The control set with 50, 400 and 1,600 rows, a 3-3-1 tanh network",
        _TWO,
        _sizes(),
        f"PMCnet with M = 50, K = 100, T = 20. {MEANS}",
        taken=("roc",),
    ),
    _made(
        "Table 3",
        "PMCnet and its variants on the control set, 1,600 rows",
        _TWO,
        _variants(),
        f"Without gradients, without covariances, without both (DM-PMC), and the light version. {MEANS}",
        taken=("roc",),
    ),
    _made(
        "Table 6",
        "Ionosphere, a 33-5-1 tanh network",
        _TWO,
        _on_ionosphere(),
        f"All methods; precision, recall and specificity are of the bad returns, as in the paper. {MEANS}",
        taken=_ON_RETURNS,
    ),
    _made(
        "Table 7",
        "Wine, 13-3-3, and glass, 9-10-6, tanh networks",
        _MANY,
        _wine_and_glass(),
        f"AUC is the mean of the classes' by their rows, F1 the plain mean, as in the paper. {MEANS}",
        taken=("confusion",),
    ),
    _made(
        "Table 10",
        "Protein and naval, two hidden layers of 100 relu units",
        ("mse",),
        (*_regression(*_ON_PROTEIN, "Protein, "), *_regression(*_ON_NAVAL, "Naval, ")),
        f"Mean squared errors in the target's unit; PMCnet-light with M = K = 20, T = 5. {MEANS}",
        taken=("errors2",),
        too_large=_ERRORS,
    ),
    _made(
        "Table 11",
        "Times on ionosphere",
        ("seconds", "test_ms"),
        _times(),
        "Seconds of a run, and milliseconds to predict a test row by 100 draws; a later run reads its first times.",
        taken=_ON_RETURNS,
    ),
    _made(
        "Fig. 1",
        "ROC curves with envelopes, the control set",
        ("auc",),
        _of_table(_sizes()),
        f"50, 400 and 1,600 rows; {_ENVELOPES}",
        pictures=("roc",),
    ),
    _made(
        "Fig. 2",
        "ROC curves of PMCnet and its variants, the control set",
        ("auc",),
        _of_table(_variants()),
        f"1,600 rows; {_ENVELOPES}",
        pictures=("roc",),
    ),
    _history(
        "Fig. 3",
        "AUC and accuracy by iteration, the control set",
        ("auc", "accuracy"),
        _of_table(_variants(whole=True)),
        "PMCnet and its variants on 1,600 rows, over 20 iterations.",
    ),
    _made(
        "Fig. 4",
        "ROC curves of all methods on ionosphere",
        ("auc",),
        _of_table(_on_ionosphere()[:-1]),
        "With the envelope that holds 95 % of the draws, where draws differ.",
        pictures=("roc",),
        together=True,
        taken=_ON_RETURNS,
    ),
    _made(
        "Fig. 5",
        "What PMCnet's draws say of four returns",
        ("accuracy",),
        (Case("PMCnet", _iono({}), {}, _NOTE_PMCNET),),
        "Histograms of the probability of a good return with a beta density: the surest row, the most doubtful one, and"
        " two between; which rows the paper picked it does not say.",
        pictures=("chances",),
        taken=_ON_RETURNS,
    ),
    _made(
        "Fig. 6",
        "Confusion matrices on wine and glass",
        ("accuracy",),
        _of_table(_wine_and_glass()),
        "Means over 100 draws.",
        pictures=("confusion",),
    ),
    _history(
        "Fig. 7",
        "AUC and accuracy by iteration on wine",
        ("auc_weighted", "accuracy"),
        (Case("PMCnet", _wine(whole=True), {}, _NOTE_WINE),),
        "PMCnet over 20 iterations.",
    ),
    _history(
        "Fig. 8",
        "AUC and accuracy by iteration on glass",
        ("auc_weighted", "accuracy"),
        (Case("PMCnet", _glass(whole=True), {}, _NOTE_GLASS),),
        "PMCnet over 50 iterations.",
    ),
    _made(
        "Fig. 10",
        "Squared errors on protein",
        ("mse",),
        _of_table(_regression(*_ON_PROTEIN)),
        _BOX,
        pictures=("errors2",),
        too_large=_ERRORS,
    ),
    _made(
        "Fig. 11",
        "Squared errors on naval",
        ("mse",),
        _of_table(_regression(*_ON_NAVAL)),
        _BOX,
        pictures=("errors2",),
        too_large=_ERRORS,
    ),
)
