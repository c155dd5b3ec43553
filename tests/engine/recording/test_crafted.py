"""Recordings that somebody has made up: nothing of theirs runs, and what is ours lies where only we read it."""

from __future__ import annotations

import json
import os
import pickle
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bnnviz.engine.recording.archive import pack, unpack
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from tests.made_up import record_half

pytest.importorskip("zarr")

X = Path("draws.zarr") / "posterior" / "x"


class Trap:
    """Writes a file where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A packed recording."""
    folder = tmp_path_factory.mktemp("sound")
    return pack(Recording(record_half(folder / "sound")), folder / "half.zip")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def second_format(shape: list[int]) -> dict[str, Any]:
    """Describe an array in zarr's second format, whose chunks are pickles."""
    return {
        "zarr_format": 2,
        "shape": shape,
        "chunks": shape,
        "dtype": "<f4",
        "compressor": {"id": "pickle", "protocol": 4},
        "fill_value": 0.0,
        "order": "C",
        "filters": None,
    }


def consolidated(folder: Path, payload: bytes) -> None:
    """As it was tried: the root holds a description of the draws in the second format."""
    root = folder / "draws.zarr" / "zarr.json"
    found = json.loads(root.read_text())
    shape = json.loads((folder / X / "zarr.json").read_text())["shape"]
    inside = {"posterior": {"zarr_format": 2, "attributes": {}}, "posterior/x": second_format(shape)}
    found["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": inside}
    root.write_text(json.dumps(found))
    (folder / X / "0.0.0").write_bytes(payload)


def in_second_format(folder: Path, payload: bytes) -> None:
    shape = json.loads((folder / X / "zarr.json").read_text())["shape"]
    (folder / X / "zarr.json").unlink()
    (folder / X / ".zarray").write_text(json.dumps(second_format(shape)))
    (folder / X / "0.0.0").write_bytes(payload)


def with_codec(name: str) -> Callable[[Path, bytes], None]:
    def craft(folder: Path, payload: bytes) -> None:
        path = folder / X / "zarr.json"
        found = json.loads(path.read_text())
        found["codecs"] = [{"name": name, "configuration": {"protocol": 4}}]
        path.write_text(json.dumps(found))
        for chunk in (folder / X / "c").rglob("*"):
            if chunk.is_file():
                chunk.write_bytes(payload)

    return craft


@pytest.mark.parametrize(
    "craft",
    [
        consolidated,
        in_second_format,
        with_codec("numcodecs.pickle"),
        with_codec("pickle"),
        with_codec("numcodecs.zlib"),
    ],
)
def test_no_code_of_an_archive_runs(
    craft: Callable[[Path, bytes], None], packed: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with a numcodecs that would unpickle."""
    pickles = pytest.importorskip("numcodecs.pickles")
    monkeypatch.setattr(pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    mark = tmp_path / "it ran"
    made = unpack(packed, "made")
    craft(made, pickle.dumps(Trap(mark)))
    with pytest.raises(BnnvizError, match="damaged"):
        Recording(made).check()
    if craft is in_second_format:
        assert Recording(made).read_draws() is None, "there is no such array"
    else:
        with pytest.raises(BnnvizError, match="damaged"):
            Recording(made).read_draws()
    with zipfile.ZipFile(tmp_path / "crafted.zip", "w") as crafted:
        for path in made.rglob("*"):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(made).parts):
                crafted.write(path, path.relative_to(made).as_posix())
    with pytest.raises(BnnvizError):
        unpack(tmp_path / "crafted.zip", "crafted")
    assert not (home / "recordings" / "crafted").exists()
    assert not mark.exists()


def test_recordings_are_this_users_alone(packed: Path, home: Path) -> None:
    before = os.umask(0o022)
    try:
        folder = unpack(packed, "made").parent
    finally:
        os.umask(before)
    for each in (folder, home):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700
