"""Each figure of `bnnviz.plots`: it composes, both backends draw it, and it shows the numbers of its source."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holoviews as hv
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from bokeh.models import Plot

import bnnviz
from bnnviz import diagnostics, plots
from bnnviz.errors import BnnvizError
from bnnviz.experiments.table import Result
from bnnviz.figures.listing import BY_NAME as FIGURES_OF_PARTS
from bnnviz.figures.palette import DARK
from bnnviz.figures.still.render import overlay
from tests import example_parts
from tests.figures.plot_examples import draws, made_tree, part, probabilities

Make = Callable[..., Any]

#: Each figure on what it takes.
FIGURES: dict[str, Make] = {
    "trace of a tree": lambda **o: plots.trace(made_tree(), **o),
    "trace of points": lambda **o: plots.trace(draws(), "x[0]", points=True, **o),
    "trace of a part": lambda **o: plots.trace(part("banana", "trace"), **o),
    "acf": lambda **o: plots.acf(made_tree(), ["a", "PC 1"], **o),
    "density": lambda **o: plots.density(made_tree(), "a", **o),
    "density of a part": lambda **o: plots.density(part("banana", "marginal"), **o),
    "pair": lambda **o: plots.pair(made_tree(), ["a", "b"], **o),
    "trajectory": lambda **o: plots.trajectory(part("banana", "path"), **o),
    "thinning": lambda **o: plots.thinning(part("banana", "envelope"), **o),
    "ratios": lambda **o: plots.ratios(part("banana", "ratios"), **o),
    "weights": lambda **o: plots.weights(made_tree(), **o),
    "prediction, a band": lambda **o: plots.prediction(part("network1d", "prediction"), **o),
    "prediction, a map": lambda **o: plots.prediction(part("network2d", "prediction"), **o),
    "prediction, numbers": lambda **o: plots.prediction(part("network_many", "prediction"), **o),
    "prediction, classes": lambda **o: plots.prediction(part("network_classes", "prediction"), **o),
    "prior predictive": lambda **o: plots.prior_predictive(linear_model(), **o),
    "spread": lambda **o: plots.spread(part("network2d", "spread"), **o),
    "functions": lambda **o: plots.functions(FUNCTIONS, **o),
    "calibration": lambda **o: plots.calibration(*probabilities(), **o),
    "pit": lambda **o: plots.pit(UNIFORM, **o),
    "roc": lambda **o: plots.roc(*probabilities(2), **o),
    "confusion": lambda **o: plots.confusion(*probabilities(), **o),
    "entropy": lambda **o: plots.entropy(np.linspace(0, 0.5, 50), np.linspace(0.2, 0.6, 40), top=0.7, **o),
    "attack": lambda **o: plots.attack(ATTACK, **o),
    "probability": lambda **o: plots.probability(np.random.default_rng(0).beta(3, 2, 100), **o),
    "class probabilities": lambda **o: plots.class_probabilities(ROW, **o),
    "squared errors": lambda **o: plots.squared_errors({"a": np.linspace(0.01, 4, 90)}, **o),
    "weight ESS": lambda **o: plots.weight_ess(np.random.default_rng(0).normal(size=(8, 50)), **o),
    "history": lambda **o: plots.history(HISTORY, **o),
    "population": lambda **o: plots.population(POPULATION, **o),
    "functionals": lambda **o: plots.functionals(WELLS, **o),
    "density ratio": lambda **o: plots.density_ratio(RATIO, **o),
    "race": lambda **o: plots.race(CURVES, **o),
    "sweep": lambda **o: plots.sweep(SWEEP, {"ess": "ESS", "nll": "NLL"}, **o),
    "published": lambda **o: plots.published(DOTS, **o),
    "panels": lambda **o: plots.panels([("one", "confusion", MATRIX), ("two", "roc", CURVE)], **o),
}


def linear_model() -> bnnviz.BNN:
    """Return the posterior of a line through five points, with a wide prior of its slope."""
    x = np.linspace(-1, 1, 5)[:, None]
    return bnnviz.BNN(torch.nn.Linear(1, 1), (x, x[:, 0]), noise_sd=0.1, prior={"weight": 5.0, "bias": 0.1})


UNIFORM = np.random.default_rng(5).uniform(size=400)
FUNCTIONS = {
    "kind": "band",
    "chain": np.array([0, 0, 1]),
    "draw": np.array([3, 9, 3]),
    "x": np.linspace(0, 1, 5),
    "values": np.arange(15.0).reshape(3, 5),
    "labels": ["x", "y"],
    "data_x": [0.5],
    "data_y": [4.0],
}
ATTACK = example_parts.attack_entry("BPS", 0.2, 100)
ROW = {"classes": list("abc"), "observed": 1, "entries": [example_parts.probability_entry("BPS", 1, 3)]}
HISTORY = {"label": "AUC", "lines": [example_parts.history_line("PMCnet", 0.9, 3, 1)]}
MATRIX = example_parts.matrix(["cat", "dog"], [20, 30], 0.8)
CURVE = {"curves": [example_parts.roc_curve("BPS", 1.0, 0.3)]}
POPULATION = example_parts.opening("population")[1]["population"]

RATIO = example_parts.opening("wells")[1]["ratio"]
WELLS = example_parts.opening("wells")[1]["wells"] | {"scene": example_parts.opening("wells")[0]}
CURVES = {
    "entries": [
        {"name": "BPS", "gradients": [1e3, 1e4], "error": [0.5, 0.1], "diverged": float("nan")},
        {"name": "SGLD", "gradients": [1e3, 2e3], "error": [0.7, 5.0], "diverged": 2e3},
    ]
}
AT = {"sampler": "a", "setting": "s", "value": 1.0}
SWEEP = [
    AT | {"ess": 1.0, "ess_se": 0.5, "nll": None},
    AT | {"value": 2.0, "ess": 3.0, "ess_se": None, "nll": 1.0},
    AT | {"setting": "t", "sampler": "b", "ess": 10.0, "nll": 1.0},
]
DOTS = [
    Result("BPS", "accuracy", 0.968, 0.001, paper=0.969),
    Result("HMC", "accuracy", 0.90, 0.002, paper=0.95),
    Result("HMC", "ess_pc1", 900.0),
]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_composes_and_both_backends_draw_it(name: str, caplog: pytest.LogCaptureFixture) -> None:
    figure = FIGURES[name]()
    assert isinstance(figure, hv.Element | hv.Overlay | hv.Layout)
    assert isinstance(figure + figure.clone(), hv.Layout)
    if not isinstance(figure, hv.Layout):
        assert isinstance(figure * hv.VLine(0.0), hv.Overlay)
    plt.close(hv.render(figure, backend="matplotlib"))
    drawn = hv.render(FIGURES[name](dark=True), backend="bokeh")
    assert {each.background_fill_color for each in drawn.select({"type": Plot})} == {DARK.surface}
    assert not caplog.records, caplog.text  # HoloViews tells of a hook that failed, and of options nobody has, there


@pytest.mark.parametrize("backend", ["bokeh", "matplotlib"])
def test_a_figure_without_marks_has_axes(backend: str) -> None:
    for figure in FIGURES_OF_PARTS.values():
        hv.render(overlay(figure().blank()), backend=backend)


def curve(figure: Any, label: str) -> Any:
    """Return the curve of a label."""
    return next(each for each in figure.traverse(lambda each: each, [hv.Curve]) if each.label == label)


# --- the numbers


def test_the_autocorrelations_are_those_of_arviz() -> None:
    from arviz_stats.base import array_stats

    figure = plots.acf(draws(), "x[0]", lags=30)
    known = array_stats.autocorr(draws()[..., 0], axis=1)
    for chain in range(4):
        shown = curve(figure, f"chain {chain + 1}")
        assert np.allclose(shown.dimension_values(1), known[chain, :31], rtol=1e-12)
    together = next(each for each in figure if isinstance(each, hv.Rectangles)).dimension_values(3)
    assert np.allclose(together, diagnostics.autocorrelation(draws()[..., 0], 30))


def test_traces_are_the_draws_and_divergent_ones_are_marked() -> None:
    figure = plots.trace(made_tree(), "b")
    for chain in range(4):
        assert np.array_equal(curve(figure, f"chain {chain + 1}").dimension_values("b"), draws()[chain, :, 1])
    marked = next(each for each in figure if each.label == "divergent")
    assert sorted(zip(*marked.columns(["draw", "b"]).values(), strict=True)) == sorted(
        [(50, draws()[1, 50, 1]), (7, draws()[2, 7, 1])]
    )


def test_pairs_hold_every_draw_with_its_chain_and_number() -> None:
    (points,) = plots.pair(made_tree(), ["c", "a"], divergences=False)
    found = points.columns(["chain", "draw", "c", "a"])
    assert np.array_equal(found["c"], draws()[found["chain"], found["draw"], 2])
    assert np.array_equal(found["a"], draws()[found["chain"], found["draw"], 0])
    assert len(points) == 800


@pytest.mark.parametrize("weighted", [False, True])
def test_the_map_of_correlations_is_that_of_the_draws(weighted: bool) -> None:
    (shown,) = plots.weights(made_tree(weighted))
    weights = np.exp(-0.5 * draws()[..., 0].ravel() ** 2) if weighted else None
    known = np.cov(draws().reshape(-1, 3).T, aweights=weights, bias=True)
    known /= np.sqrt(np.outer(np.diag(known), np.diag(known)))
    np.testing.assert_allclose(shown.dimension_values(2, flat=False), known, atol=1e-9)


def test_predictive_figures_show_what_the_diagnostics_say() -> None:
    chances, observed = probabilities()
    known = diagnostics.reliability(chances.mean(0), observed)
    shown = curve(plots.calibration(chances, observed), f"predictions, ECE {known.ece:.3f}")
    assert np.allclose(shown.dimension_values(1), known.accuracy[known.count > 0])
    cells = plots.confusion(chances, observed).get(0)
    counts = diagnostics.confusion(chances.mean(0).argmax(1), observed, 3)
    shares = counts / counts.sum(1, keepdims=True)
    assert all(cells[k, k] == pytest.approx(shares[k, k]) for k in range(3))
    two, labels = probabilities(2)
    known = diagnostics.roc_envelopes(two[..., 1], labels == 1)
    found = next(each for each in plots.roc(two, labels) if isinstance(each, hv.Curve) and "AUC" in each.label)
    assert np.array_equal(found.dimension_values(1), known.mean)
    assert f"{known.auc_mean:.3f}" in found.label
    low = next(each for each in plots.roc(two, labels) if each.label == "99% of the draws")
    assert np.array_equal(low.dimension_values(1), known.low[2])


def test_the_prior_predictive_figure_shows_the_whole_band_of_the_known_normal_law() -> None:
    figure = plots.prior_predictive(linear_model())
    band = next(each for each in figure if isinstance(each, hv.Area))
    x, low, high = (band.dimension_values(i) for i in range(3))
    known = 1.96 * np.hypot(5.0 * x, 0.1)
    np.testing.assert_allclose(high[[0, -1]], known[[0, -1]], rtol=0.15)
    np.testing.assert_allclose(low[[0, -1]], -known[[0, -1]], rtol=0.15)
    bottom, top = hv.render(figure, backend="matplotlib").axes[0].get_ylim()
    plt.close("all")
    assert bottom <= low.min() and top >= high.max()
    with pytest.raises(BnnvizError):
        plots.prior_predictive("posterior")


@pytest.mark.parametrize("name", [name for name in example_parts.example_parts() if name in FIGURES_OF_PARTS])
def test_every_recorded_part_is_drawn(name: str) -> None:
    parts = example_parts.example_parts()[name]
    assert hv.render(plots.panels([(name, name, each) for each in parts[:2]]), backend="bokeh")


def test_many_panels_of_several_runs_make_a_page() -> None:
    x = np.linspace(0, 1, 9)
    data = {"x": x, "y": x, "x_range": (0, 1), "y_range": (0, 1), "x_label": "x", "y_label": "y"}
    part = {"x": x, "mean": x} | dict.fromkeys(("lo50", "hi50", "lo95", "hi95"), x + 0.1)
    one = {"data": data, "parts": [part] * 5}
    places = [one | {"row": str(row), "column": str(column)} for row in range(3) for column in range(5)]
    assert plots.page(plots.bands(places), "all").startswith("<!DOCTYPE html>")


# --- what cannot be drawn


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: plots.trace(draws(), chains=0), "chains = 0"),
        (lambda: plots.acf(made_tree(weighted=True)), "weight_ess"),
        (lambda: plots.thinning(draws()), "ndarray"),
        (lambda: plots.weight_ess(made_tree()), "weights"),
        (lambda: plots.calibration(probabilities()[0]), "observed"),
        (lambda: plots.roc(*probabilities()), "positive"),
        (lambda: plots.confusion(*probabilities(), classes=["a"]), "3 classes"),
        (lambda: plots.entropy([0.1, 0.2], kind="bars"), "histogram"),
        (lambda: plots.attack({"eps": [0.1]}), "accuracy"),
        (lambda: plots.probability([1.5]), "0 to 1"),
        (lambda: plots.sweep([AT], {"ess": "ESS"}), "ess"),
        (lambda: plots.panels([("one", "nothing", {})]), "nothing"),
        (lambda: plots.use("plotly"), "plotly"),
        (lambda: plots.save(plots.trace(draws()), "figure.doc"), "figure.doc"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(BnnvizError, match=says):
        make()


# --- many points, files, imports


def test_an_image_counts_every_draw_of_many() -> None:
    warnings.simplefilter("default")
    many = np.random.default_rng(0).normal(size=(4, 26_000, 2))
    (picture,) = plots.pair(many)
    assert isinstance(picture, hv.Image)
    assert np.nansum(picture.dimension_values("count")) == 4 * 26_000
    assert np.nansum(picture.dimension_values(2)) == 104_000


def test_a_page_needs_no_network(tmp_path: Path) -> None:
    text = plots.save(plots.trace(draws(), "x[0]"), tmp_path / "trace.html", title="Traces").read_text()
    assert "<title>Traces</title>" in text
    # Outside of the scripts, which are in the page, no element is loaded from anywhere.
    rest = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"<(script|link|img)\b[^>]*(src|href)=", rest)
    assert '<script src="' not in text
    assert [path.name for path in tmp_path.iterdir()] == ["trace.html"]


def test_chains_that_do_not_overlap_have_densities_of_their_own() -> None:
    rng = np.random.default_rng(0)
    apart = plots.density({"mu": rng.normal(size=(3, 200)) + [[0.0], [0.0], [30.0]]})
    assert [each.label for each in apart] == [f"draws, chain {i}" for i in (1, 2, 3)]


@pytest.mark.parametrize("moving", [0, 1, 2])
def test_a_density_of_chains_that_stand_still_is_drawn(moving: int) -> None:
    values = np.ones((3, 40))
    values[:moving] = np.random.default_rng(0).normal(size=(moving, 40))
    assert plots.density({"mu": values}) is not None


def test_the_types_of_figures_are_true():
    types = Path(plots.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert plots.stub() == types, "run python -m bnnviz.plots"
