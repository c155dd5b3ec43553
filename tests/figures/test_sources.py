"""What draws are read from: every kind of source gives the same numbers under the same names."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bnnviz
from bnnviz import plots
from bnnviz.engine.recording import reader
from bnnviz.errors import BnnvizError
from bnnviz.figures import sources
from tests.figures.plot_examples import draws, made_tree
from tests.made_up import record_half

pytest.importorskip("arviz_base")


class Stub:
    """A run as far as figures see one."""

    spec = types.SimpleNamespace(sampler="bps")
    draws = draws()

    def to_arviz(self) -> Any:
        return made_tree()


@pytest.mark.parametrize("source", [made_tree, Stub, lambda: made_tree()["posterior"].to_dataset()])
def test_trees_runs_and_data_sets_give_the_same_draws(source: Any) -> None:
    (found,) = sources.read(source())
    assert list(found.values) == ["a", "b", "c"]
    assert np.array_equal(found.of("b"), draws()[..., 1])
    assert found.shape == (4, 200)
    if found.diverging is not None:
        assert np.argwhere(found.diverging).tolist() == [[1, 50], [2, 7]]


def test_arrays_have_the_shapes_of_the_field() -> None:
    chains = draws()
    for given, names in ((chains, ["x[0]", "x[1]", "x[2]"]), (chains[..., 0], ["x"]), (chains[0, :, 0], ["x"])):
        (found,) = sources.read(given)
        assert list(found.values) == names
        assert np.array_equal(found.of(names[0]), np.atleast_2d(chains[0, :, 0]) if given.ndim == 1 else chains[..., 0])
    (found,) = sources.read({"mu": chains[..., 0], "theta": chains[..., 1:]})
    assert list(found.values) == ["mu", "theta[0]", "theta[1]"]
    assert found.chosen("theta") == ["theta[0]", "theta[1]"]
    assert sources.read([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]])[0].shape == (2, 3)


def test_variables_with_axes_are_named_as_arviz_names_them() -> None:
    import arviz_base

    made = arviz_base.from_dict(
        {"posterior": {"theta": np.zeros((2, 5, 2, 2))}},
        coords={"city": ["Oslo", "Rome"]},
        dims={"theta": ["city", "row"]},
    )
    assert list(sources.one(made).values) == ["theta[Oslo, 0]", "theta[Oslo, 1]", "theta[Rome, 0]", "theta[Rome, 1]"]


def test_several_sources_have_names_of_their_own() -> None:
    assert [each.name for each in sources.read([made_tree(), made_tree()])] == ["bps", "bps 2"]
    assert [each.name for each in sources.read({"one": made_tree(), "two": {"x": draws()}})] == ["one", "two"]


def test_a_principal_component_is_the_widest_direction() -> None:
    (found,) = sources.read(draws() * [1.0, 10.0, 1.0])
    assert found.of("PC 1").std() == pytest.approx(10 * draws()[..., 1].std(), rel=0.02)
    assert abs(np.corrcoef(found.of("PC 1").ravel(), draws()[..., 1].ravel())[0, 1]) > 0.99


def test_weights_choose_draws_in_proportion() -> None:
    (found,) = sources.read(made_tree(weighted=True))
    shares = np.exp(found.log_weights) / np.exp(found.log_weights).sum()
    exact = float((shares * found.of("a")).sum())
    assert found.representative("a").mean() == pytest.approx(exact, abs=0.01)


def test_a_recording_has_parts_that_need_no_single_steps(tmp_path: Path) -> None:
    folder = str(tmp_path / "kept")
    bnnviz.sample("banana", "bps", draws=5, warmup=2, chains=2, record=folder)
    assert plots.ratios(folder) is not None
    for source in (folder, bnnviz.recording(folder)):
        with pytest.raises(BnnvizError):
            plots.trajectory(source)


def test_a_recording_is_read_by_name_by_folder_and_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zarr")
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    record_half(reader.place("mine"))
    opened = reader.Recording(reader.find("mine"))
    known = opened.read_draws()[:, : opened.whole]
    for source in ("mine", opened.folder, str(opened.folder), opened):
        (found,) = sources.read(source)
        assert found.name == "mine"
        assert list(found.values) == opened.names()
        assert np.array_equal(np.stack(list(found.values.values()), -1), known)


def test_a_file_of_arviz_is_read(tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    made_tree().to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    (found,) = sources.read(tmp_path / "run.nc")
    assert found.name == "run"
    assert np.array_equal(found.of("c"), draws()[..., 2])
    (tmp_path / "bad.nc").write_text("no file of ArviZ")
    with pytest.raises(BnnvizError, match=r"bad\.nc cannot be read as a file of ArviZ"):
        sources.read(tmp_path / "bad.nc")


@pytest.mark.parametrize(
    "source",
    [
        *(3.5, None, [], {}, np.zeros((2, 0)), np.array(["a", "b"]), "nobody's"),
        {"mu": np.zeros((2, 5)), "tau": np.zeros((2, 6))},
    ],
)
def test_what_has_no_draws_is_refused(source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    with pytest.raises(BnnvizError):
        sources.read(source)


@pytest.mark.parametrize(
    ("ask", "key"),
    [
        (lambda: sources.one(made_tree()).chosen("d"), "a, b, c"),
        (lambda: sources.shared([made_tree(), draws()], None), ""),
        (lambda: sources.one(np.where(draws() == draws()[0, 3, 1], np.nan, draws())).finite("x[1]"), r"x\[1\]"),
    ],
)
def test_variables_that_cannot_be_drawn_are_refused(ask: Callable[[], Any], key: str) -> None:
    with pytest.raises(BnnvizError, match=key):
        ask()
