"""The page of a film without a browser: what is in it, how exact and large it is, and what it makes of bad names."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bnnviz
from bnnviz.engine.recording.replay_frames import ReplayFrames, take_frames
from bnnviz.errors import BnnvizError
from bnnviz.figures.live.view import View
from bnnviz.replays.player import page
from bnnviz.replays.timeline import ReplayTimeline
from bnnviz.specs.run import Spec
from tests.driven import run_here

BANANA = Spec(target="banana", sampler="bps", chains=2, draws=20, warmup=4, device="cpu").checked()
NETWORK = Spec(
    target="network",
    target_settings={"data": "toy_a", "hidden": "20"},
    sampler="boomerang",
    chains=2,
    draws=16,
    warmup=4,
    device="cpu",
).checked()
HOSTILE = "</script><img src=x onerror=alert(1)><!-- ${x} $title \u2028"


@pytest.fixture(scope="module")
def shot() -> ReplayFrames:
    return take_frames(BANANA, 45)


def hostile(shot: ReplayFrames) -> ReplayFrames:
    """Return the film with names that would break out of a page."""
    plane = {**shot.scene["plane"], "x_label": HOSTILE}
    scene = {**shot.scene, "title": HOSTILE, "names": [HOSTILE, HOSTILE], "plane": plane, "target": HOSTILE}
    frames = [
        {
            **frame,
            "caption": {"text": HOSTILE, "kind": HOSTILE, "warning": HOSTILE, "remedies": []},
            "status": {**frame["status"], "device": HOSTILE, "phase": HOSTILE},
            "table": {"rows": [[HOSTILE, HOSTILE, HOSTILE]]},
        }
        for frame in shot.frames
    ]
    spec = {**shot.header["spec"], "target": HOSTILE, "settings": {HOSTILE: HOSTILE}}
    header = {**shot.header, "spec": spec, "notes": [HOSTILE], "changes": [(3, {HOSTILE: HOSTILE})]}
    return ReplayFrames(scene, frames, header)


def content(text: str) -> dict:
    packed = re.search(r'id="content-0">([^<]*)<', text).group(1)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def scripts(text: str) -> list[str]:
    return re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)


# --- one file


def test_the_page_loads_nothing_and_may_load_nothing(shot: ReplayFrames) -> None:
    text = page(shot)
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert "http:" not in outside and "https:" not in outside and "//" not in re.sub(r'id="[\w-]+">[^<]*<', "", outside)
    assert not re.search(r"<(link|img|iframe|object|embed)\b|\bsrc=|@import|url\(", outside)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert (
        "default-src 'none'" in policy and "connect-src" not in policy and "'unsafe-inline'" not in policy.split(";")[1]
    )
    found = scripts(text)
    assert len(found) == 2
    for script in found:
        mark = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{mark}'" in policy


def test_names_that_would_break_out_of_the_page_are_words(shot: ReplayFrames) -> None:
    text = page(hostile(shot))
    assert "<img" not in text and len(scripts(text)) == 2
    assert text.count("<!--") == text.count("<img") == 0
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in text
    statement = content(text)
    assert statement["title"] == HOSTILE and statement["command"] == ""


# --- what is shown is what the views show


def decoded(sheet: dict, numbers: bytes, frame: int) -> list[np.ndarray]:
    """Read the columns of a sheet at a frame, as the page does."""
    which = max(i for i, at in enumerate(sheet["at"]) if at <= frame)
    lengths = [[points for points, columns in shape for _ in range(columns)] for shape in sheet["shapes"]]
    out = []
    for i, count in enumerate(lengths[which]):
        kind, scale, offset, place = sheet["columns"][i]
        skipped = sum(own[i] if i < len(own) else 0 for own in lengths[:which])
        if kind == "f":
            out.append(np.frombuffer(numbers, "<f4", count, place + 4 * skipped).astype(float))
            continue
        codes = np.frombuffer(numbers, "<i2", count, place + 2 * skipped)
        out.append(np.where(codes == -32768, np.nan, offset + scale * codes.astype(float)))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("spec", [BANANA, NETWORK], ids=["banana", "network"])
def test_every_column_is_exact_to_a_fraction_of_a_pixel(spec: Spec) -> None:
    reported = take_frames(spec, 30)
    timeline = ReplayTimeline(reported)
    index, numbers = timeline.columns()
    direct = [View(type(view.figure)(), reported.scene) for view in timeline.views]
    pairs = {
        mine.model.id: (theirs, view)
        for reeled, view in zip(timeline.views, direct, strict=True)
        for mine, theirs in zip(reeled.canvas.sheets, view.canvas.sheets, strict=True)
    }
    assert pairs
    for number, frame in enumerate(reported.frames):
        for view in direct:
            view.update(frame)
        for sheet in index:
            theirs, view = pairs[sheet["model"]]
            found = np.concatenate(decoded(sheet, numbers, number) or [np.empty(0)])
            requested = theirs.packed[len(theirs.names) :]
            assert found.shape == requested.shape
            assert np.array_equal(np.isnan(found), np.isnan(requested))
            ranges = view.root.x_range, view.root.y_range
            span = max(abs(each.end - each.start) for each in ranges)
            assert np.nanmax(np.abs(found - requested), initial=0.0) <= span / 4000, (view.name, number)


# --- from Python and by the command


def test_a_run_of_this_process_becomes_a_page(tmp_path: Path) -> None:
    run = bnnviz.sample("gaussian", "hmc", draws=10, warmup=2, chains=2, device="cpu")
    made = bnnviz.replay(run, tmp_path / "run", frames=8)
    assert made == tmp_path / "run.html" and content(made.read_text(encoding="utf-8"))["steps"][0] == 0
    with pytest.raises(BnnvizError, match="not int"):
        bnnviz.replay(3, tmp_path / "x.html")
    with pytest.raises(BnnvizError, match="cannot be written"):
        (tmp_path / "file").touch()
        bnnviz.replay(run.spec, tmp_path / "file" / "x.html", frames=3)


def command(*words: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "bnnviz", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=170)


@pytest.mark.slow
def test_the_command_writes_a_page_and_the_film(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(BANANA.to_json()))
    out = command("replay", spec, "--html", tmp_path / "a", "--film", tmp_path / "c", "--frames", 12)
    assert out.returncode == 0, out.stderr
    assert out.stdout.split() == [str(tmp_path / name) for name in ("c.npz", "a.html")]
    again = command("replay", tmp_path / "c.npz", "--html", tmp_path / "d.html")
    assert again.returncode == 0, again.stderr
    strip = re.compile(rb'id="content-0">[^<]*<')  # models have other names
    first, second = ((tmp_path / name).read_bytes() for name in ("a.html", "d.html"))
    assert strip.sub(b"", first) == strip.sub(b"", second)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("spec.json", "--html"),
        ("none.json --html x", "none.json"),
        ("spec.json --html spec.json", "spec.json"),
        ("spec.json --html no/where.html", "no"),
        ("spec.json --html x --frames 1", "frames"),
        ("bad.npz --html x", "bad.npz"),
    ],
)
def test_what_cannot_be_replayed_is_one_sentence(
    words: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(BANANA.to_json()))
    (tmp_path / "bad.npz").write_bytes(b"PK no film")
    monkeypatch.chdir(tmp_path)
    assert run_here(f"replay {words}") == 2
    assert key in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.npz", "spec.json"]
