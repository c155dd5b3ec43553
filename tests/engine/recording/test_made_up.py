"""Recordings with right checksums that hold what no run writes: a sentence for each, and the others go on."""

from __future__ import annotations

import io
import os
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bnnviz.cli.main import main
from bnnviz.engine.recording import reader
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.resume import resume
from bnnviz.errors import BnnvizError
from bnnviz.files import sealed, unsealed
from tests.made_up import TEXTS, VALUES, craft, craft_checkpoint, name_of, record_half, replace_checkpoint

pytest.importorskip("zarr")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_half(tmp_path_factory.mktemp("sound") / "sound")


@pytest.fixture
def home(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a sound recording and a copy of it, to be changed."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    for name in ("sound", "crafted"):
        shutil.copytree(sound, tmp_path / "recordings" / name)
    return tmp_path / "recordings"


def statement_of(home: Path) -> str:
    """Return what the list says of the crafted recording; the sound one is listed as such."""
    listed = {recording.name: wrong for recording, wrong in reader.recordings()}
    assert listed["sound"] is None
    return listed["crafted"]


def refused(folder: Path, do: Callable[[], Any]) -> str:
    with pytest.raises(BnnvizError) as caught:
        do()
    sentence = caught.value.sentence
    assert "\n" not in sentence
    assert len(sentence) < 600
    return sentence


@pytest.mark.parametrize("case", VALUES, ids=name_of)
def test_a_made_up_value_is_one_sentence_and_the_list_goes_on(case: tuple[str, str, Any], home: Path) -> None:
    craft(home / "crafted", *case)
    sentence = statement_of(home)
    assert sentence is not None
    assert case[0] in sentence
    recording = Recording(home / "crafted")
    assert refused(home, recording.check)
    assert refused(home, lambda: (Recording(home / "crafted").header, Recording(home / "crafted").progress))


@pytest.mark.parametrize("file", [reader.HEADER, reader.PROGRESS, reader.SUMMARY])
@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_no_object_is_one_sentence(name: str, file: str, home: Path) -> None:
    (home / "crafted" / file).write_bytes(TEXTS[name])
    assert file in statement_of(home)


@pytest.mark.parametrize("entry", ["file", "link", "dangling", "pipe", "empty folder", "file as a header", "markup"])
def test_what_is_no_recording_is_listed_as_such(entry: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if entry != "markup":
        shutil.rmtree(home / "crafted")
    if entry == "file":
        (home / "crafted").write_text("x")
    elif entry in ("link", "dangling"):
        (home / "crafted").symlink_to(home / ("sound" if entry == "link" else "nowhere"))
    elif entry == "pipe":
        os.mkfifo(home / "crafted")
    elif entry != "markup":
        (home / "crafted").mkdir()
    if entry == "file as a header":
        os.mkfifo(home / "crafted" / reader.HEADER)
    if entry == "markup":
        (home / "[red]").mkdir()
        craft(home / "crafted", "header.json", "bnnviz", None)
    assert statement_of(home)
    for words in (["recordings", "list"], ["recordings", "list", "--json"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert not ended.value.code
        assert "sound" in capsys.readouterr().out


# --- checkpoints


def with_keys(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda saved: saved.update(values)


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda saved: saved.pop(name)


def with_spec(**values: Any) -> Callable[[dict[str, Any]], None]:
    def change(saved: dict[str, Any]) -> None:
        for name in ("spec", "begun"):
            saved[name] = saved[name] | values

    return change


def in_state(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(saved: dict[str, Any]) -> None:
        if saved["kernel"] is not None:
            saved["kernel"][name] = value

    return change


def in_store(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda saved: saved["store"].update({name: value})


REPEATED = torch.zeros(1).expand(200_000, 200_000)  # 149 GiB, of one number

CHECKPOINTS: dict[str, Callable[[dict[str, Any]], None]] = {
    **{f"without {name}": without(name) for name in ("version", "spec", "begun", "alive", "store", "rng", "tally")},
    **{f"without {name}": without(name) for name in ("kernel", "phase", "steps", "changes", "emitter", "logs")},
    "another version": with_keys(version=2),
    "spec is a text": with_keys(spec="banana"),
    "spec is a list": with_keys(begun=[1]),
    "an unknown key": with_spec(unknown=1),
    "an unknown sampler": with_spec(sampler="nope"),
    "settings of another sampler": with_spec(settings={"refresh_rate": 1.0}),
    "another target": with_spec(target="gaussian", target_settings={"size": 50}),
    "many chains": with_spec(chains=4096),
    "chains beyond all bounds": with_spec(chains=10**12),
    "many draws": with_spec(draws=10**18),
    "no chains": with_spec(chains=0),
    "alive is a list": with_keys(alive=[True, True]),
    "alive of others": with_keys(alive=torch.ones(7, dtype=torch.bool)),
    "alive is huge": with_keys(alive=torch.ones(1, dtype=torch.bool).expand(10**12)),
    "rng is a text": with_keys(rng="numbers"),
    "rng of floats": with_keys(rng=torch.zeros(5)),
    "rng too short": with_keys(rng=torch.zeros(3, dtype=torch.uint8), mode="x"),
    "phase": with_keys(phase="asleep"),
    "steps": with_keys(steps=-1),
    "notes": with_keys(notes="note"),
    "changes": with_keys(changes=[1]),
    "attachment": with_keys(attachment="text"),
    "start points": with_keys(start_points=7),
    "state is a list": with_keys(kernel=[torch.zeros(2, 2)]),
    "x of others": in_state("x", torch.zeros(9, 2)),
    "x in more dimensions": in_state("x", torch.zeros(2, 900)),
    "x repeated": in_state("x", REPEATED),
    "x is a text": in_state("x", "here"),
    "x of whole numbers": in_state("x", torch.zeros(2, 2, dtype=torch.int64)),
    "another field": in_state("y", torch.zeros(2)),
    "adaptation is a text": in_state("adaptation", "learned"),
    "adaptation without fields": in_state("adaptation", {}),
    "counts of others": in_store("counts", torch.zeros(9, dtype=torch.int64)),
    "counts below zero": in_store("counts", torch.full((2,), -5)),
    "counts beyond the draws": in_store("counts", torch.full((2,), 10**12)),
    "counts are a list": in_store("counts", [97, 97]),
    "every": in_store("every", 0),
    "buffer": in_store("buffer", torch.zeros(5)),
    "buffer repeated": in_store("buffer", torch.zeros(1).expand(2, 10**11, 2)),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_made_up_checkpoint_is_one_sentence_before_memory_is_taken(name: str, home: Path) -> None:
    craft_checkpoint(home / "crafted", CHECKPOINTS[name])
    begun = time.process_time()
    assert refused(home, lambda: resume(home / "crafted"))
    assert time.process_time() - begun < 3
    assert statement_of(home) is None  # its draws are still there


@pytest.mark.parametrize("kind", ["nothing", "text", "no dict", "a bomb"])
def test_a_file_that_is_no_checkpoint_is_one_sentence(kind: str, home: Path) -> None:
    packed = io.BytesIO()
    if kind == "no dict":
        torch.save([1, 2], packed)
    elif kind == "a bomb":
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("archive/data/0", bytes(100_000_000))
    content = {"nothing": b"", "text": b"a checkpoint"}.get(kind, packed.getvalue())
    progress = unsealed((home / "crafted" / reader.PROGRESS).read_bytes())
    replace_checkpoint(home / "crafted", progress["checkpoint"], content)
    (home / "crafted" / reader.PROGRESS).write_bytes(sealed(progress))
    assert "checkpoint" in refused(home, lambda: resume(home / "crafted"))


def test_a_sound_one_goes_on(home: Path) -> None:
    craft_checkpoint(home / "crafted", lambda saved: None)
    assert int(resume(home / "crafted").store.counts.min()) >= 30
