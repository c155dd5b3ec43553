"""The data that come with bnnviz: what they are, that they are rows of the published sets, and what is said of them."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from bnnviz import data, experiments
from bnnviz.data import files, forms
from bnnviz.data.sets import images_28
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from tests.data import embedding

WHOLE = ("boston", "yacht", "concrete", "energy", "ionosphere", "glass", "wine")
DIVIDED = ("pmcnet_ionosphere", "pmcnet_glass", "pmcnet_wine")
PARTS = {"mnist": (1500, 500), "rotated_mnist": (1500, 500), "notmnist": (0, 500)}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Leave nothing but what comes with bnnviz: no folder, an empty cache, and no name is resolved."""
    monkeypatch.delenv(files.VARIABLE, raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(forms, "_failures", {})


@pytest.mark.parametrize("name", [*WHOLE, *DIVIDED])
def test_small_tables_are_here_and_whole(name: str) -> None:
    assert data.is_here(name)
    assert data.remark(name) == ""
    loaded = data.load(name)
    assert sum(len(getattr(loaded, f"x_{part}")) for part in ("train", "val", "test")) == data.describe(name)["rows"]
    assert all(place.is_relative_to(files.EMBEDDED) for place in data.fetch(name))


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_the_images_stands_in_and_says_so(name: str) -> None:
    assert data.is_here(name)
    loaded = data.load(name)
    assert (len(loaded.y_train), len(loaded.y_test)) == PARTS[name]
    # Equally many of each class.
    assert set(np.bincount(loaded.y_test)) == {50}
    assert set(np.bincount(loaded.y_train)) <= {150}
    (note,) = loaded.remarks()
    assert note.startswith(data.remark(name).removesuffix("."))
    assert f"'bnnviz data fetch {name}' tries again" in note
    assert loaded.chosen(1000, 300).remarks() == [note]


def test_a_file_that_was_changed_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(files, "EMBEDDED", tmp_path)
    place = tmp_path / images_28.MNIST_PART.path
    place.parent.mkdir(parents=True)
    place.write_bytes(b"something else")
    with pytest.raises(BnnvizError, match="not the expected one .*: install bnnviz again"):
        data.load("mnist")


@pytest.mark.parametrize(
    "experiment", [name for name, each in experiments.EXPERIMENTS.items() if hasattr(each, "parts")]
)
def test_a_published_experiment_says_that_it_needs_the_whole_set(experiment: str) -> None:
    for part in set(PARTS) & set(experiments.find(experiment).parts):
        experiments.find(experiment).at(part, "small").check()
        with pytest.raises(
            BnnvizError, match=rf"needs the whole of .*'bnnviz data fetch {part}', or choose --scale small"
        ):
            experiments.find(experiment).at(part, "paper").check()


# --- beside the published files


@pytest.mark.data
class TestBesideThePublished:
    @pytest.fixture(autouse=True)
    def published(self, alone: None, published_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(files.VARIABLE, published_folder)

    def test_tables_are_the_same_bytes(self) -> None:
        for file in embedding.tables():
            kept = files.EMBEDDED / file.path
            packed = kept.with_name(f"{kept.name}.gz")
            content = kept.read_bytes() if kept.exists() else gzip.decompress(packed.read_bytes())
            assert content == files.locate(file).read_bytes(), file.path

    def test_images_are_those_rows(self) -> None:
        for part, made in ((images_28.MNIST_PART, embedding.digits()), (images_28.NOT_MNIST_PART, embedding.letters())):
            with np.load(files.EMBEDDED / part.path) as kept:
                for name, array in made.items():
                    np.testing.assert_array_equal(kept[name], array)

    def test_a_turned_image_is_turned_as_in_the_whole_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = data.load("rotated_mnist")
        assert not whole.stands_in
        monkeypatch.delenv(files.VARIABLE)
        part = data.load("rotated_mnist")
        rows = forms.read_part(files.EMBEDDED / images_28.MNIST_PART.path).test_rows
        np.testing.assert_array_equal(part.x_test, whole.x_test[rows])
        np.testing.assert_array_equal(part.y_test, whole.y_test[rows])
        assert part.scaled("test")[0].shape == (500, 1, 28, 28)


# --- a run that goes on elsewhere


def test_a_run_does_not_go_on_with_other_rows_than_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"data": "mnist", "network": "mlp", "train_rows": 20, "test_rows": 10}
    spec = Spec("images", settings, "hmc", {"start": "random"}, chains=1, draws=3, warmup=1).checked()
    run = Run(spec)
    while run.draws.shape[1] < 1:
        run.advance(0.02)
    saved = run.checkpoint()
    Run.restore(saved)
    load = data.load
    monkeypatch.setattr(data, "load", lambda name: load(name).chosen(train=900, seed=1))
    with pytest.raises(BnnvizError, match="not the one that this run began with: where a chain was, U is"):
        Run.restore(saved)
