"""Galleries: entries on images, what is asked of their draws, and that asking changes none of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnnviz import diagnostics
from bnnviz.engine.evaluation.attack import EPS
from bnnviz.engine.race.image_race import ImageRace
from bnnviz.errors import BnnvizError
from bnnviz.specs.race import ImageRaceSpec
from tests.driven import finished

TARGET = {"data": "mnist", "network": "mlp", "train_rows": 200, "test_rows": 60}
SGLD = {"sampler": "sgld", "warmup": 2, "settings": {"batch_size": 20, "step_size": 1e-4, "mode_steps": 60}}
MAP = {"sampler": "map", "warmup": 0, "settings": {"batch_size": 20, "steps": 60}}


def spec(budget: int = 6000, **changes: object) -> ImageRaceSpec:
    given = {"target": "images", "target_settings": TARGET, "chains": 1, "seed": 3, "budget": budget}
    return ImageRaceSpec.from_json(given | {"entries": [MAP, SGLD]} | changes)


def ended(gallery: ImageRace) -> ImageRace:
    finished(gallery)
    return gallery


@pytest.fixture(scope="module")
def gallery() -> ImageRace:
    return ended(ImageRace(spec()))


@pytest.mark.slow
def test_every_part_is_there(gallery: ImageRace) -> None:
    parts = gallery.scene()["emits"]
    frame = gallery.frame(parts)
    assert set(parts) <= set(frame)
    assert [entry["name"] for entry in frame["course"]["entries"]] == gallery.spec.names()
    for entry in frame["attack"]["entries"]:
        assert entry["eps"] == list(EPS)
    assert frame["table"]["rows"][0]["rank"] == 1
    assert "predicts best" in frame["caption"]["text"]
    # One point does not mix, however many draws it is.
    by_sampler = {row["sampler"]: row for row in frame["table"]["rows"]}
    assert np.isnan([by_sampler["map"][figure] for figure in ("ess", "rhat", "ess_per_s", "ess_per_million")]).all()
    assert by_sampler["sgld"]["ess"] > 0


def test_figures_are_those_of_the_draws(gallery: ImageRace) -> None:
    predictions, images = gallery.measure.predictions[1], gallery.measure.images
    target, rows = gallery.entries[1].target, images.scaled("test")
    table = predictions.tables["test"]
    theta = table.draws(table.keys)
    assert len(theta) == len(predictions["test"]) > 5
    with torch.no_grad():
        each = torch.softmax(target.outputs(theta, torch.as_tensor(rows[0])), -1).double().numpy()
    assert np.allclose(predictions["test"], each, atol=1e-5)
    mean, y = each.mean(0), images.y_test
    found = predictions.scores()
    assert found["accuracy"] == pytest.approx((mean.argmax(1) == y).mean())
    assert found["nll"] == pytest.approx(-np.log(mean[np.arange(len(y)), y]).mean(), rel=1e-4)
    assert found["ece"] == pytest.approx(diagnostics.calibration_error(mean, y, diagnostics.PAPER_BINS), abs=1e-4)


@pytest.mark.slow
def test_asking_changes_no_draw(gallery: ImageRace) -> None:
    again = ImageRace(spec())
    again.prepare()
    while not all(entry.over for entry in again.entries):
        again.advance(0.02)
        again.frame(["status", "wall", "digit", "entropy", "attack"])
    # How often a mode that is there is drawn again costs nothing, and is a matter of time.
    assert np.array_equal(gallery.entries[0].draws[0, -1], again.entries[0].draws[0, -1])
    assert np.array_equal(gallery.entries[1].draws, again.entries[1].draws)


@pytest.mark.slow
def test_it_continues_from_a_checkpoint(gallery: ImageRace) -> None:
    begun = ImageRace(spec())
    begun.prepare()
    while begun.progress < 0.5:
        begun.advance(0.02)
    resumed = ImageRace.restore(begun.checkpoint())
    assert resumed.progress == begun.progress
    ended(resumed)
    assert np.array_equal(gallery.entries[1].draws, resumed.entries[1].draws)
    nll = {row["name"]: row["nll"] for row in gallery.table()}
    assert {row["name"]: row["nll"] for row in resumed.table()} == pytest.approx(nll)


@pytest.mark.parametrize(
    "choice, field",
    [
        ({"image": {"index": 60}}, "image"),
        ({"image": {"pixels": [[1, 2], [3, 4]]}}, "image"),
        ({"image": {"pixels": "no"}}, "image"),
        ({"image": {"index": 0, "angle": 999}}, "angle"),
        ({"image": {"attacked": 10_000}}, "image"),
        ({"image": {"what": 1}}, "image"),
        ({"ood": "boston"}, "ood"),
        ({"wall": "paper"}, "wall"),
    ],
)
def test_what_does_not_fit_is_refused(gallery: ImageRace, choice: dict, field: str) -> None:
    with pytest.raises(BnnvizError) as caught:
        gallery.watch(**choice)
    assert caught.value.field == field
