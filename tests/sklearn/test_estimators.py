"""The estimators are at home in scikit-learn: pipelines, clones, its own checks."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from bnnviz.errors import BnnvizError
from bnnviz.sklearn import BNNClassifier, BNNRegressor

QUICK = {"sampler": "hmc", "settings": {"num_leapfrog_steps": 5, "start": "random"}, "draws": 30, "warmup": 60}
QUICK |= {"hidden": 4, "chains": 2, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def line() -> tuple[np.ndarray, np.ndarray, BNNRegressor]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, (120, 1))
    y = 50 + 20 * x[:, 0] + rng.normal(0, 4, 120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return x, y, BNNRegressor(**QUICK | {"hidden": (), "draws": 200}).fit(x, y)


def test_a_line_is_found_with_its_noise(line: tuple) -> None:
    x, y, model = line
    design = np.column_stack([x, np.ones(len(x))])
    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    mean, sd = model.predict(x, return_std=True)
    assert np.abs(mean - fitted).max() < 2  # of 4, the noise
    assert np.allclose(sd, 4, rtol=0.25)
    low, high = model.predict_interval(x, 0.9).T
    assert 0.8 < ((y > low) & (y < high)).mean() < 0.98 and (low < mean).all() and (mean < high).all()


def test_it_can_be_pickled_and_cloned(line: tuple) -> None:
    x, _, model = line
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x))
    assert not hasattr(clone(model), "posterior_") and clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_keep_their_names(classes: int) -> None:
    rng = np.random.default_rng(0)
    centres = 3 * np.array([[0, 1], [1, -1], [-1, -1]])[:classes]
    labels = rng.integers(0, classes, 90)
    x = centres[labels] + rng.normal(size=(90, 2))
    names = np.array(["red", "green", "blue"])[labels]
    model = BNNClassifier(**QUICK).fit(x, names)
    assert list(model.classes_) == sorted(set(names))
    assert model.score(x, names) > 0.8
    assert np.allclose(model.predict_proba(x).sum(1), 1)
    assert (model.predict(x) == model.classes_[model.predict_proba(x).argmax(1)]).all()


def test_a_frame_with_texts_and_gaps_is_encoded_and_matched_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"size": rng.normal(10, 3, 80), "kind": rng.choice(["a", "b"], 80)})
    price = 3 * frame["size"] + 10 * (frame["kind"] == "a") + rng.normal(0, 1, 80)
    frame.loc[::9, "size"] = np.nan
    model = BNNRegressor(**QUICK).fit(frame, price)
    assert model.score(frame, price) > 0.4
    other = frame.assign(more=1)[["more", "kind", "size"]]
    np.testing.assert_array_equal(model.predict(other), model.predict(frame))
    assert np.isfinite(model.predict(pandas.DataFrame({"size": [np.nan], "kind": ["new"]}))).all()
    with pytest.raises(BnnvizError, match="kind"):
        model.predict(frame[["size"]])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_counts_have_a_likelihood_of_counts() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (150, 1))
    y = rng.poisson(np.exp(1 + x[:, 0]))
    model = BNNRegressor(**QUICK, likelihood="poisson").fit(x, y)
    counts = np.arange(60)
    one = np.zeros((60, 1))
    assert np.exp(model.log_prob(one, counts)).sum() == pytest.approx(1, abs=1e-4)
    assert (np.exp(model.log_prob(one, counts)) * counts).sum() == pytest.approx(model.predict([[0.0]])[0], rel=1e-3)


def test_the_probability_of_a_class_is_that_which_is_predicted() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = np.where(x[:, 0] > 0.5, "c", np.where(x[:, 1] > 0, "a", "b"))
    model = BNNClassifier(**QUICK).fit(x, y)
    own = model.predict_proba(x)[np.arange(60), np.searchsorted(model.classes_, y)]
    np.testing.assert_allclose(np.exp(model.log_prob(x, y)), own, rtol=1e-4)


def test_chains_that_disagree_are_reported() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    statement = r"have not converged .*draws=32, warmup=4"
    with pytest.warns(ConvergenceWarning, match=statement):
        model = BNNRegressor(**QUICK | {"warmup": 1, "draws": 8}).fit(x, x[:, 0] ** 2)
    assert model.rhat_ > 1.05


@pytest.mark.parametrize(
    ("given", "statement"),
    [({"sampler": "nut"}, "nuts"), ({"activation": "sine"}, "activation"), ({"hidden": 0}, "hidden")],
)
def test_what_does_not_fit_is_a_sentence(given: dict[str, Any], statement: str) -> None:
    with pytest.raises(BnnvizError, match=statement):
        BNNRegressor(**QUICK | given).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [BNNRegressor, BNNClassifier])
def test_it_passes_the_checks_of_scikit_learn(estimator: type) -> None:
    rounding = "Sums of other order change trajectories; the potentials are compared elsewhere."
    kinds = ("dense", "sparse")
    check_estimator(
        estimator(**QUICK),
        expected_failed_checks={f"check_sample_weight_equivalence_on_{kind}_data": rounding for kind in kinds},
    )


def test_weights_give_the_weighted_regression_line(line: tuple) -> None:
    x, y, _ = line
    weights = np.where(x[:, 0] > 0, 4.0, 0.25)
    model = BNNRegressor(**QUICK | {"hidden": (), "draws": 300, "prior": "equal", "prior_sd": 30.0}).fit(x, y, weights)
    design, root = np.column_stack([x, np.ones(len(x))]), np.sqrt(weights)[:, None]
    found = design @ np.linalg.lstsq(design * root, y * root[:, 0], rcond=None)[0]
    assert np.abs(model.predict(x) - found).max() < 0.5  # of 4, the noise


def test_classes_are_balanced_by_their_weights() -> None:
    """Without informative inputs the probabilities are the weighted shares of the classes."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 1)), np.where(np.arange(400) < 40, "rare", "usual")
    options = QUICK | {"hidden": (), "draws": 200}
    shares = [
        BNNClassifier(**options, class_weight=weight).fit(x, y).predict_proba(x)[:, 0].mean()
        for weight in (None, "balanced", {"rare": 3.0, "usual": 1.0})
    ]
    assert shares == pytest.approx([0.1, 0.5, 120 / 480], abs=0.03)


def test_several_outputs_have_a_noise_each() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (200, 1))
    noise = np.array([0.2, 30.0])
    truth = np.column_stack([3 + x[:, 0], -500 + 100 * x[:, 0]])
    y = truth + noise * rng.normal(size=truth.shape)
    model = BNNRegressor(**QUICK | {"hidden": (), "draws": 400}, validation_fraction=0.2).fit(x, y)
    mean, sd = model.predict(x, return_std=True)
    assert (np.abs(mean - truth).max(0) < noise).all()
    np.testing.assert_allclose(sd.mean(0), noise, rtol=0.2)
    intervals = model.predict_interval(x, 0.9)
    assert intervals.shape == (200, 2, 2)
    inside = ((y > intervals[..., 0]) & (y < intervals[..., 1])).mean(0)
    assert (np.abs(inside - 0.9) < 0.07).all()
    density = model.log_prob(x, y)
    normal = (-0.5 * ((y - mean) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi))).sum(1)
    np.testing.assert_allclose(density, normal, atol=0.2)
    assert model.verdict_.values["rows"] == 40
    with pytest.raises(BnnvizError, match="gaussian"):
        BNNRegressor(**QUICK, likelihood="student_t").fit(x, y)


def test_held_out_rows_are_judged_next_to_simple_models() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (300, 1))
    y = 20 * x[:, 0] + rng.normal(0, 5, size=300)
    useless = BNNRegressor(**QUICK | {"draws": 5, "warmup": 0}, validation_fraction=0.3).fit(x, y)
    good = BNNRegressor(**QUICK | {"hidden": (), "draws": 200}, validation_fraction=0.3)
    good.fit(x, y)
    assert good.verdict_.code == "usable" and good.verdict_.values["rows"] == 90
    assert useless.verdict_.values["ratio"] > 1.3 > good.verdict_.values["ratio"]
    assert BNNRegressor(**QUICK).fit(x, y).verdict_ is None


@pytest.mark.parametrize(("of_x", "of_y"), [(1e200, 1), (1e-200, 1), (1, 1e200), (1, 1e-200)])
def test_numbers_whose_squares_are_lost_are_refused(of_x: float, of_y: float) -> None:
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(BnnvizError, match="give them in another unit"):
        BNNRegressor(**QUICK).fit(of_x * x, of_y * x[:, 0])


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_predictions_scale_with_the_unit(scale: float) -> None:
    x = np.random.default_rng(0).normal(size=(30, 2))
    one, other = (BNNRegressor(**QUICK).fit(x * by, x[:, 0] * by).predict(x * by) / by for by in (1.0, scale))
    assert np.allclose(one, other, atol=1e-3)


def test_a_pilot_chooses_by_default() -> None:
    x = np.linspace(-2, 2, 30)[:, None]
    model = BNNRegressor(minutes=0.03, hidden=3, chains=2, draws=10, random_state=0).fit(x, x[:, 0])
    assert model.plan_.chains == 2 and "was chosen" in model.plan_.sentence
    assert model.n_draws_ == 20
    with pytest.raises(BnnvizError, match="Specify it by sampler="):
        BNNRegressor(settings={"step_size": 0.1}).fit(x, x[:, 0])
