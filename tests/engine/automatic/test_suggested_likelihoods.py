"""The likelihood of a table is the law that its rows come from."""

from __future__ import annotations

import numpy as np
import pytest
from families import some_quick

import bnnviz
from bnnviz import data, targets
from bnnviz.data import read_table
from bnnviz.engine.automatic.tables import suggest

ROWS = 1500
X = np.random.default_rng(0).uniform(-1, 1, (ROWS, 2))


def table(law: str, seed: int = 2, rows: int = ROWS) -> bnnviz.data.UserTable:
    rng, f = np.random.default_rng(seed), 1 + X[:rows, 0]
    drawn = {
        "gaussian": lambda: 20 + f + rng.normal(0, 0.5, rows),
        "student_t": lambda: f + 0.3 * rng.standard_t(2.5, rows),
        "log_normal": lambda: np.exp(f + rng.normal(0, 0.8, rows)),
        "negative_binomial": lambda: rng.negative_binomial(2, 2 / (2 + np.exp(f))),
        "poisson": lambda: rng.poisson(np.exp(f - 1)),
    }[law]()
    lines = "\n".join(f"{a},{b},{y}" for (a, b), y in zip(X[:rows], drawn, strict=True))
    return read_table(f"a,b,y\n{lines}".encode(), "y", "regression")


@pytest.mark.parametrize(
    ("law", "name"),
    [
        ("gaussian", "auto"),
        ("student_t", "student_t"),
        ("log_normal", "log_normal"),
        ("negative_binomial", "negative_binomial"),
        ("poisson", "negative_binomial"),
    ],
)
def test_the_law_of_the_rows_is_found(law: str, name: str) -> None:
    assert suggest(table(law).load()) == name


@pytest.mark.parametrize("name", ["yacht", "energy", "concrete"])
def test_errors_of_a_poor_fit_are_not_taken_for_noise(name: str) -> None:
    """The errors of boosting have heavy tails on these tables, for which the normal likelihood predicts best."""
    assert suggest(data.load(name)) == "auto"


@pytest.mark.parametrize(
    "name", some_quick(["log_normal", "poisson", "negative_binomial", "student_t", "heteroscedastic"], 1)
)
def test_a_network_on_a_table_takes_every_likelihood(name: str) -> None:
    """Predictions are in the unit of the table."""
    law = {"poisson": "negative_binomial", "heteroscedastic": "gaussian"}.get(name, name)
    found = table(law, rows=150)
    settings = {"family": name, "hidden": "4", "linear_path": True, "noise": "learned"}
    run = bnnviz.sample(found, "hmc", target_settings=settings, draws=100, warmup=150, chains=2, seed=0)
    predicted = run.predict(found.frame)
    assert run.summary()["metrics"]["averaged"]["coverage_90"] > 0.5
    assert abs(predicted.mean.mean() - found.y.mean()) < 4 * found.y.std() / np.sqrt(len(found.y)) + 0.1 * found.y.std()


def test_a_likelihood_of_the_other_task_is_refused() -> None:
    packed = table("gaussian", rows=50).pack()
    with pytest.raises(bnnviz.BnnvizError, match="does not fit"):
        targets.Network(packed, data="own", family="categorical")
