"""The PMCnet paper's sets: its splits, its starting weights, the control set, validation rows, and missing classes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnnviz import BnnvizError, data, sample, targets
from bnnviz.models import mlp, parse_hidden

# Training, validation and test rows, inputs, and the test rows of each class (Table 5 of the paper).
SPLITS = {
    "pmcnet_ionosphere": ((210, 70, 71), 33, [22, 49]),
    "pmcnet_glass": ((128, 43, 43), 9, [13, 20, 2, 1, 1, 6]),
    "pmcnet_wine": ((106, 36, 36), 13, None),
    "pmcnet_naval": ((7160, 2387, 2387), 14, None),
    "pmcnet_protein": ((27438, 9146, 9146), 9, None),
}
LARGE = ("pmcnet_naval", "pmcnet_protein")  # which do not come with bnnviz
HERE = [pytest.param(name, marks=pytest.mark.data) if name in LARGE else name for name in SPLITS]
WEIGHTS = [each for each in HERE if each != "pmcnet_wine"]


@pytest.mark.parametrize("name", HERE)
def test_the_splits_have_the_papers_sizes(name):
    rows, inputs, counts = SPLITS[name]
    loaded = data.load(name)
    assert (len(loaded.x_train), len(loaded.x_val), len(loaded.x_test)) == rows
    assert loaded.inputs == data.describe(name)["inputs"] == inputs
    assert sum(rows) == data.describe(name)["rows"]
    if counts is not None:
        assert np.bincount(loaded.y_test.astype(int)).tolist() == counts
    assert loaded.remarks() == []


def test_the_parts_of_wine_are_the_whole_table_once():
    known = pytest.importorskip("sklearn.datasets").load_wine()
    for split in (0, 7):
        loaded = data.load("pmcnet_wine", split)
        x = np.vstack([loaded.x_train, loaded.x_val, loaded.x_test])
        y = np.concatenate([loaded.y_train, loaded.y_val, loaded.y_test])
        own, all_rows = np.lexsort(np.column_stack([y, x]).T), np.lexsort(np.column_stack([known.target, known.data]).T)
        np.testing.assert_array_equal(x[own], known.data[all_rows])
        np.testing.assert_array_equal(y[own], known.target[all_rows])
    assert not np.array_equal(data.load("pmcnet_wine", 0).x_test, data.load("pmcnet_wine", 1).x_test)


def published(name: str, **settings) -> targets.Network:
    """Return a network at whose starting points the published weights lie."""
    network, _ = data.published_weights(name)
    requested = {"hidden": network.hidden, "activation": network.activation, **settings}
    return targets.Network(data=name, initial_weights="published", **requested).to("cpu", torch.float64)


@pytest.mark.parametrize("name", WEIGHTS)
def test_published_weights_are_in_the_order_of_a_networks_parameters(name):
    network, theta = data.published_weights(name)
    outputs = max(data.describe(name)["classes"], 1)
    module = mlp(data.describe(name)["inputs"], parse_hidden(network.hidden), outputs if outputs > 2 else 1)
    assert theta.shape == (sum(p.numel() for p in module.parameters()),)
    start = published(name).initial(3, torch.Generator())
    np.testing.assert_array_equal(start.numpy(), np.tile(theta, (3, 1)))


# --- validation rows -------------------------------------------------------------------------------------------------


def tiny(**more) -> data.DataSet:
    """Return a classification with validation rows."""
    x = np.arange(12.0)[:, None]
    rows = {"x_train": x[:6], "x_val": x[6:9], "x_test": x[9:]}
    labels = {"y_train": [0, 1, 0, 1, 0, 1], "y_val": [0, 0, 1], "y_test": [1, 1, 0]}
    return data.DataSet(name="tiny", title="", doc="", task="classification", **(rows | labels | more))


def test_validation_rows_take_the_place_of_the_test_rows():
    one = tiny()
    found = one.for_validation()
    np.testing.assert_array_equal(found.x_test, one.x_val)
    assert found.x_val.shape == (0, 1)
    for value in vars(found).values():
        if isinstance(value, np.ndarray):
            assert not np.isin(one.x_test, value).any()
    with pytest.raises(BnnvizError, match="tiny has no validation rows"):
        found.for_validation()
    with pytest.raises(BnnvizError, match="has no validation rows"):
        targets.Network(data="moons", evaluate="validation")
    with pytest.raises(BnnvizError, match="1 input columns for training and 2 for the validation"):
        tiny(x_val=np.ones((3, 2)))


def test_a_network_is_evaluated_on_the_rows_that_are_asked_for():
    known = data.load("pmcnet_glass")
    target = targets.Network(data="pmcnet_glass", hidden="4", evaluate="validation")
    np.testing.assert_array_equal(target.data_set.x_test, known.x_val)
    assert len(target.held_out()[0]) == 43


# --- missing classes -------------------------------------------------------------------------------------------------


def test_a_class_without_training_rows_is_reported_and_does_no_harm():
    three = tiny(class_names=("a", "b", "c"))
    (remark,) = three.remarks()
    assert "class c" in str(remark)
    run = sample(
        targets.BNN(mlp(1, (2,), 3), three, "categorical"),
        "hmc",
        draws=5,
        warmup=2,
        chains=2,
        settings={"mode_steps": 50},
    )
    assert np.isfinite(run.draws).all()
    assert remark in map(str, run.summary()["notes"])
    one = tiny(y_train=[1] * 6)
    run = sample(
        targets.BNN(mlp(1, (2,), 1), one, "bernoulli"), "hmc", draws=5, warmup=2, chains=2, settings={"mode_steps": 50}
    )
    assert 0 <= run.summary()["accuracy"] <= 1


# --- the control set -------------------------------------------------------------------------------------------------


def test_the_control_sets_labels_follow_their_truth():
    """Standard errors of a share of 400 rows: the sum of standardised squares over 20 splits is chi-squared."""
    z = []
    for split in range(20):
        loaded = data.load("control_1600", split)
        probability = loaded.truth(loaded.x_train)
        z.append((loaded.y_train - probability).sum() / np.sqrt((probability * (1 - probability)).sum()))
    assert np.sum(np.square(z)) < 40.0  # the 99.5% quantile of chi-squared with 20
    inputs = data.load("control_1600", 3).x_train
    assert abs(inputs.mean()) < 4 / np.sqrt(inputs.size)
    best = [np.mean((s.truth(s.x_test) > 0.5) == s.y_test) for s in (data.load("control_50", k) for k in range(20))]
    assert 0.83 < np.median(best) < 0.92
