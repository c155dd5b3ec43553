"""What draws figures is imported beside the page, and no pane is built while a half of it is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import panel as pn
import pytest

from bnnviz_app.components import still
from bnnviz_app.pages.base import TextPage

SLOW = """
import time
time.sleep(1)
done = True
"""
# What Panel asks before it builds a pane: whether HoloViews is there, of which a half may be.
SCENE = """
import sys
import panel as pn
from bnnviz_app.components import still
still._DRAW = ("slow",)
still.prepare()
while "slow" not in sys.modules:
    pass
assert not hasattr(sys.modules["slow"], "done")
pn.Column(pn.pane.HTML("built")).get_root()
print(getattr(sys.modules["slow"], "done", False))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW, encoding="utf-8")
    return tmp_path


def test_no_pane_is_built_while_a_half_of_what_draws_is_imported(folder: Path) -> None:
    command = [sys.executable, "-c", f"import sys; sys.path.append({str(folder)!r})\n{SCENE}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "True"


def test_it_is_imported_when_the_page_is_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    put_off: list[Any] = []
    monkeypatch.setattr(type(pn.state), "onload", lambda state, callback: put_off.append(callback))
    begun = still._importing.cache_info().currsize
    page = type("Plain", (TextPage,), {"name": "recordings"})(False, {})
    page._lay_out()
    assert put_off == [still.prepare] and still._importing.cache_info().currsize == begun
