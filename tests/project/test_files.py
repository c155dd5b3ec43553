"""Files that are written whole or not at all, JSON that carries its checksum, and where the user's files lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from bnnviz import files


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_written_over_as_a_whole(tmp_path: Path, sync: bool) -> None:
    path = tmp_path / "one"
    files.write_whole(path, b"before", sync=sync)
    files.write_whole(path, b"after", sync=sync)
    assert path.read_bytes() == b"after"
    assert [found.name for found in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize("folder", [True, False])
def test_what_fails_half_way_changes_nothing_and_leaves_nothing(tmp_path: Path, folder: bool) -> None:
    path = tmp_path / "one"
    path.write_bytes(b"before")
    with pytest.raises(OSError, match="full"), files.replacing(path) as new:
        if folder:
            new.mkdir()
            (new / "part").write_bytes(b"half")
        else:
            new.write_bytes(b"half")
        assert new in set(tmp_path.glob(files.HALF_WRITTEN))
        raise OSError("the disk is full")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_changed_object_is_reported_by_its_checksum(tmp_path: Path) -> None:
    files.write_json(tmp_path / "one.json", {"steps": 12})
    content = (tmp_path / "one.json").read_bytes()
    assert files.unsealed(content) == {"steps": 12}
    with pytest.raises(ValueError, match="checksum"):
        files.unsealed(content.replace(b"12", b"13"))
