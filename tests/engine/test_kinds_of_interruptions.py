"""Whatever interrupts a run, its draws are those of one that goes on; the manual's page is made from this table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.odd_interruptions import KINDS, Example
from tests.engine.script_host import ScriptHost


@pytest.fixture(scope="module")
def host() -> Iterator[ScriptHost]:
    with ScriptHost() as made:
        yield made


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(each, id=f"{kind.name[:40]}-{k}", marks=[getattr(pytest.mark, each.mark)] if each.mark else [])
        for kind in KINDS
        for k, each in enumerate(kind.examples)
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_left_of_an_interrupted_run_is_right(example: Example, host: ScriptHost, tmp_path: Path) -> None:
    example.check(host, tmp_path)
