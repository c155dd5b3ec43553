"""Messages: every surface writes the same statement, with options in its own way, and files keep them."""

from __future__ import annotations

import json
import pickle

import pytest

from bnnviz.cli.output import say
from bnnviz.errors import BnnvizError
from bnnviz.files import to_json
from bnnviz.messages import Message, Remedy, fill

DIVERGED = Message(
    "divergences",
    Remedy("take shorter steps", {"settings": {"step_size": 0.1}}),
    Remedy("make more draws", {"draws": 4000}),
    Remedy("rescale"),
    count=3,
    total=1670,
)


def test_each_surface_writes_options_its_own_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert '(`settings={"step_size": 0.1}`)' in str(DIVERGED) and "(`draws=4000`), or rescale." in str(DIVERGED)
    assert "(" not in DIVERGED.text and DIVERGED.text.startswith(DIVERGED.statement)
    say(DIVERGED, command="bnnviz sample ...")
    printed = capsys.readouterr().err
    assert "(bnnviz sample ... --set step_size=0.1)" in printed and "--draws 4000" in printed and "`" not in printed


def test_a_shell_reads_options_as_they_are_meant(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"leave_out": ["a b", "$(c)"], "missing": [], "settings": {"start": "x y"}}
    say(Message("remark", Remedy("try", options), text="Odd."))
    printed = capsys.readouterr().err
    assert "--leave-out 'a b' --leave-out '$(c)' --missing none --set start='x y'" in printed


def test_files_and_processes_keep_a_message() -> None:
    read = Message.from_json(json.loads(json.dumps(to_json({"found": [DIVERGED]})))["found"][0])
    assert read == DIVERGED == pickle.loads(pickle.dumps(DIVERGED))
    assert pickle.loads(pickle.dumps(BnnvizError(DIVERGED, "run"))).message == DIVERGED


@pytest.mark.parametrize("found", [None, "text", {}, {"code": "none"}, DIVERGED.to_json() | {"values": {"count": 3}}])
def test_what_is_no_message_is_refused(found: object) -> None:
    with pytest.raises(ValueError, match="not a message"):
        Message.from_json(found)


@pytest.mark.parametrize(
    ("value", "written"), [(1670.0, "1,670"), (-12345.0, "-12,300"), (0.25, "0.25"), (3e-6, "3e-06")]
)
def test_thousands_are_written_in_digits(value: float, written: str) -> None:
    assert fill("{value:.3g}", {"value": value}) == written
