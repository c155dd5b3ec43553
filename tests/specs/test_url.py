"""Links: what is written is read again, what does not fit gets a sentence, and the scripts repeat the run."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue, url
from bnnviz.specs.run import Spec

OPENING = Spec(target="network", target_settings={"hidden": "25-10"}, settings={"refresh_rate": 2.0}, draws=None)
LISTING = catalogue.load()
TINY = {"chains": 2, "draws": 20, "warmup": 5, "seed": 7}
# What a link does not hold as it is: it is cut down to the limits, which other tests look at.
_LIMITED = {"chains": 16, "draws": 500}


# --- round trip


def values(setting: dict[str, Any]) -> st.SearchStrategy:
    """Return every value that a setting may have."""
    kind = setting["type"]
    low, high = setting["bounds"] or (None, None)
    if setting["name"] in _LIMITED:
        high = _LIMITED[setting["name"]]
    number = st.floats(low, high, allow_nan=False, allow_infinity=False)
    plain = {
        "boolean": st.booleans(),
        # "own" stands for a file that is open, and no link says that one is: test_own_data.py and test_upload.py.
        "choice": st.sampled_from([choice for choice in setting["choices"] or [None] if choice != "own"]),
        "text": text_values(setting),
        "integer": st.integers(low, min(high, 300) if setting["name"] == "size" else high),
        "number": number,
        "points": st.lists(st.tuples(*[number_of_point] * 2).map(list), max_size=url.MOST_POINTS),
    }[kind]
    return st.none() | plain if setting["optional"] or setting["default"] is None else plain


number_of_point = st.floats(-1e3, 1e3).map(lambda number: float(f"{number:.4g}"))


def text_values(setting: dict[str, Any]) -> st.SearchStrategy[str]:
    if setting["name"] == "device":
        return st.sampled_from(["auto", "cpu", "cuda", "cuda:3"])
    if setting["name"] == "hidden":
        return st.lists(st.integers(1, 60), min_size=1, max_size=3).map(lambda widths: "-".join(map(str, widths)))
    return st.text(max_size=40).map(str.strip)


def some(settings: list[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={s["name"]: values(s) for s in settings})


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    target, sampler = draw(st.sampled_from(LISTING["targets"])), draw(st.sampled_from(LISTING["samplers"]))
    return Spec(
        target=target["name"],
        target_settings=draw(some(target["settings"])),
        sampler=sampler["name"],
        settings=draw(some(sampler["settings"])),
        **draw(some(LISTING["run"])),
    ).checked()


@given(specs())
def test_what_is_written_is_read_again(spec: Spec) -> None:
    text = url.query_text(spec.to_query())
    assert OPENING.read_query(text) == (spec, [])
    assert text.isascii()
    assert not set(text) & set(" \"'<>#\\")


@given(st.text(max_size=300))
def test_any_text_gives_a_spec(text: str) -> None:
    spec, _ = OPENING.read_query(text)
    assert spec == spec.checked()


PARAMETERS = [
    *("target", "sampler", *(setting["name"] for setting in LISTING["run"])),
    *(
        f"{p}.{s['name']}"
        for p, kind in (("t", "targets"), ("s", "samplers"))
        for i in LISTING[kind]
        for s in i["settings"]
    ),
]
NAMES = [item["name"] for item in [*LISTING["targets"], *LISTING["samplers"]]]
TEXTS = st.text(max_size=12) | st.sampled_from(NAMES) | (st.integers() | st.floats()).map(str)


@given(st.dictionaries(st.sampled_from(PARAMETERS), TEXTS, max_size=8))
def test_any_value_gives_a_spec_within_the_limits(query: dict[str, str]) -> None:
    spec, sentences = OPENING.read_query(query)
    assert spec == spec.checked()
    assert spec.chains <= url.MOST_CHAINS
    assert spec.chains * spec.known_dim <= url.MOST_NUMBERS
    assert all("\n" not in sentence and sentence.endswith(".") for sentence in sentences)


@pytest.mark.parametrize(
    ("sampler", "target"),
    [
        *((item["name"], "banana") for item in LISTING["samplers"]),
        *(("nuts", item["name"]) for item in LISTING["targets"]),
    ],
)
def test_defaults_are_left_out(sampler: str, target: str) -> None:
    query = Spec(target=target, sampler=sampler, draws=None).checked().to_query()
    assert query == {"target": target, "sampler": sampler}


def test_what_the_link_does_not_name_is_the_openings() -> None:
    assert OPENING.read_query({}) == (OPENING.checked(), [])
    spec, _ = OPENING.read_query({"sampler": "bps"})
    assert (spec.target, spec.target_settings["hidden"], spec.settings["refresh_rate"]) == ("network", "25-10", 1.0)
    spec, _ = OPENING.read_query({"target": "banana"})
    assert (spec.sampler, spec.settings["refresh_rate"], spec.warmup) == (OPENING.sampler, 1.0, Spec.warmup)
    spec, _ = OPENING.read_query({"s.refresh_rate": "3", "page": "lab", "theme": "dark"})
    assert (spec.sampler, spec.settings["refresh_rate"], spec.target_settings["hidden"]) == (
        OPENING.sampler,
        3.0,
        "25-10",
    )


# --- points


@given(st.lists(st.lists(number_of_point, min_size=2, max_size=2), max_size=200))
def test_points_are_read_again(points: list[list[float]]) -> None:
    assert url.read_points(url.write_points(points)) == points


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (";".join(["0,0"] * 201), "201 points are too many"),
        ("1,nan", "'1,nan' is not written as x,y"),
        ("1,inf", "'1,inf' is not written as x,y"),
        ("1", "'1' is not written as x,y"),
        ("1,2;1,2,0", "'1,2,0' is not written as x,y"),
        ("1,2,3,4", "is not written as x,y"),
        ("a,b", "is not written as x,y"),
    ],
)
def test_points_that_do_not_fit_get_a_sentence(text: str, words: str) -> None:
    with pytest.raises(BnnvizError, match=words):
        url.read_points(text)


# --- what does not fit


@pytest.mark.parametrize(
    ("query", "key"),
    [
        # names
        ("target=moon", "moon"),
        ("target=banana&sampler=magic", "magic"),
        ("target=<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("target=banana&colour=red", "colour"),
        ("target=banana&t.size=3", "size"),
        ("target=banana&sampler=bps&s.gamma=3", "gamma"),
        ("target=banana&sampler=boomerang&s.=3", "''"),
        ("target=banana&attachment=gASVBQ", "attachment"),
        # numbers out of range, and what was used
        ("target=banana&s.refresh_rate=50", "20"),
        ("target=banana&s.refresh_rate=1e999", "20"),
        ("target=banana&seed=99999999999", "2147483647"),
        ("target=banana&chains=0", "1"),
        # what cannot be read
        ("target=banana&s.refresh_rate=nan", "nan"),
        ("target=banana&s.horizon=soon", "soon"),
        ("target=gaussian&t.size=2.5", "2.5"),
        ("target=banana&seed=%00", "seed"),
        ("target=banana&s.bound=loose", "loose"),
        ("target=banana&s.clip_points=maybe", "maybe"),
        ("target=banana&device=cuda:0;rm%20-rf", "cuda:0;rm -rf"),
        ("target=network&t.data=mnist8", "mnist8"),
        ("target=network&t.hidden=" + "9-" * 150, "hidden"),
        # more than a page can hold
        ("target=banana&chains=4096", "64"),
        ("target=banana&draws=1000000", "100000"),
        ("target=gaussian&t.size=2000&chains=64", "50"),
        ("target=gaussian&t.size=100&chains=10&draws=100000", "50000"),
        ("target=network&t.hidden=5000-5000", "25,020,001"),
        ("target=banana&seed=" + "1" * 9000, "8 kB"),
        # stated twice
        ("target=banana&seed=1&seed=2", "'seed'"),
    ],
    ids=lambda text: text[:40],
)
def test_a_bad_link_gets_its_sentence_and_a_run(query: str, key: str) -> None:
    spec, sentences = OPENING.read_query(query)
    assert key in sentences[0]
    assert all("\n" not in statement and len(statement) < 280 for statement in sentences)
    # Taken over as it is: a link to what was taken says nothing more.
    assert OPENING.read_query(spec.to_query()) == (spec, [])


# --- scripts


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [
        Spec(target="gaussian", target_settings={"size": 3, "mean_list": "[0, 1, 2]"}, sampler="bps", **TINY),
        Spec(
            target="network",
            target_settings={"hidden": "3-2", "noise_sd": 0.1},
            settings={"bound": "interpolated", "horizon": 0.2, "clip_points": True, "start": "random"},
            dtype="float64",
            **TINY,
        ),
        Spec(target="banana", sampler="boomerang", settings={"mode_steps": 50}, **TINY),
    ],
    ids=lambda spec: spec.target,
)
def test_script_and_command_give_the_same_run(spec: Spec, tmp_path: Path) -> None:
    spec = spec.checked()
    script = tmp_path / "again.py"
    script.write_text(spec.as_python() + "import json\nprint(json.dumps(run.summary()['mean']))\n")
    assert spec == Spec(draws=None).read_query(spec.to_query())[0]
    printed = _run([sys.executable, str(script)])
    words = shlex.split(spec.as_command())
    assert words[0] == "bnnviz"
    summary = json.loads(_run([sys.executable, "-m", "bnnviz", *words[1:], "--json"]))
    assert summary["mean"] == json.loads(printed.splitlines()[-1])
    assert (summary["draws"], summary["chains"], summary["seed"]) == (20, 2, 7)
    assert "mean [" in printed


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_number_is_written_exactly() -> None:
    spec = Spec(target="banana", settings={"refresh_rate": math.pi}).checked()
    assert Spec(draws=None).read_query(spec.to_query())[0].settings["refresh_rate"] == math.pi
