"""The search for the prior: it finds a known best value, never sees test rows, and is kept with the run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import BnnvizError, data
from bnnviz.data import registry
from bnnviz.data.entry import DataEntry
from bnnviz.engine.evaluation import prior_search as searching

pytest.importorskip("sklearn")


class Guarded(data.DataSet):
    """A set whose test rows nobody may read once it has been made."""

    def __getattribute__(self, name: str) -> object:
        if name in ("x_test", "y_test") and "armed" in vars(self):
            raise AssertionError(f"{name} was read")
        return super().__getattribute__(name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Noise(DataEntry):
    """Labels that have nothing to do with the inputs: the smaller the weights, the better."""

    validation: bool = True
    poison: float = 0.0
    guarded: bool = True

    def load(self, split: int) -> data.DataSet:
        rng = np.random.default_rng(1)
        x, y = rng.normal(size=(460, 4)), rng.integers(0, 2, 460)
        parts = {"train": slice(0, 40), "val": slice(40, 440), "test": slice(440, 460)}
        rows = {f"x_{part}": x[at] for part, at in parts.items()} | {f"y_{part}": y[at] for part, at in parts.items()}
        rows["x_test"] = rows["x_test"] + self.poison
        words = {"name": self.name, "title": "", "doc": "", "task": "classification", "standardise": False}
        made = (Guarded if self.guarded else data.DataSet)(**words, **rows)
        if self.guarded:
            object.__setattr__(made, "armed", True)
        return made


@pytest.fixture
def spec(monkeypatch):
    """Return what makes a spec on a set of noise in the place of a registered one."""

    def make(**more) -> bnnviz.Spec:
        noise = Noise(name="pmcnet_wine", title="", doc="", inputs=4, rows=60, task="classification", classes=2, **more)
        monkeypatch.setitem(registry._entries, "pmcnet_wine", noise)
        network = {"data": "pmcnet_wine", "hidden": "2"}
        settings = {"start": "random"}
        return bnnviz.Spec("network", network, "sgld", settings, chains=2, draws=100, warmup=20).checked()

    return make


@pytest.mark.slow
def test_it_finds_the_end_that_is_best_without_reading_test_rows(spec):
    seen = []
    found = searching.search_prior(spec(), low=0.05, high=5.0, tries=5, progress=lambda *at: seen.append(at))
    assert found.prior_sd == min(found.tries, key=lambda one: one["value"])["prior_sd"]
    assert found.prior_sd < 0.2
    assert 2 <= len(found.tries) <= 5
    assert {done for done, _ in seen} == set(range(len(found.tries)))
    assert found.spec.target_settings["evaluate"] == "test"
    # It is of no consequence what the test rows are.
    other = searching.search_prior(spec(poison=1e6), low=0.05, high=5.0, tries=5)
    assert [(one["prior_sd"], one["value"]) for one in other.tries] == [
        (one["prior_sd"], one["value"]) for one in found.tries
    ]


def test_the_guard_of_this_test_works(spec):
    made = spec()
    with pytest.raises(AssertionError, match="_test was read"):
        bnnviz.sample(made).summary()


def test_a_known_minimum_is_found(spec, monkeypatch):
    """With a parabola of log sd in the place of the runs, the minimum is met to the stated distance."""

    def parabola(spec, prior_sd, by, told):
        return {"prior_sd": prior_sd, "value": (np.log(prior_sd) - np.log(2.5)) ** 2, "seconds": 0.0}

    monkeypatch.setattr(searching, "_try", parabola)
    assert searching.search_prior(spec()).prior_sd == pytest.approx(2.5, rel=0.05)
    by_accuracy = searching.search_prior(spec(), by="accuracy")
    assert abs(np.log(by_accuracy.prior_sd / 2.5)) > 2.5  # a figure of which more is better

    def failing(spec, prior_sd, by, told):
        return {"prior_sd": prior_sd, "value": None, "seconds": 0.0}

    monkeypatch.setattr(searching, "_try", failing)
    with pytest.raises(BnnvizError, match="runs of the search failed"):
        searching.search_prior(spec(), tries=3)


def test_what_cannot_be_searched_is_refused(spec):
    given = spec()
    for call, words in (
        (lambda: bnnviz.search_prior("banana"), "banana has no setting prior_sd"),
        (lambda: bnnviz.search_prior("network", target_settings={"data": "moons"}), "moons has no validation rows"),
        (lambda: bnnviz.search_prior(torch.nn.Linear(1, 1)), "a registered target or a Spec"),
        (lambda: searching.search_prior(given, by="rmse"), "cannot be by 'rmse'"),
        (lambda: searching.search_prior(given, by="mse"), "A classification has no mse"),
        (lambda: searching.search_prior(given, low=3.0, high=1.0), "range from 3 to 1 is empty"),
        (lambda: searching.search_prior(given, tries=0), "no number of runs"),
        (lambda: searching.search_prior(given.replace(draws=None)), "runs that end"),
    ):
        with pytest.raises(BnnvizError, match=words):
            call()
