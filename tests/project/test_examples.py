"""The Python of README and documentation runs as it stands there, in a folder with the files that it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from core_only import ROOT

import bnnviz

LONG = [
    "README.md",
    "docs/manual/python.md",
    "docs/manual/compare.md",
    "docs/manual/other_packages.md",
]  # each samples for minutes
PAGES = [
    *LONG,
    *(
        "docs/README.md",
        "docs/manual/densities.md",
        "docs/manual/networks.md",
        "docs/manual/likelihoods.md",
        "docs/manual/recordings.md",
        "docs/manual/figures.md",
    ),
]
# It needs an exported file: its Python is read and not run.
ELSEWHERE = {"docs/manual/tables.md"}


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Yield what the examples may use by name; runs among it are stopped."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["rooms", "area"])
    frame["price"] = frame["rooms"] - 0.5 * frame["area"] + 0.1 * rng.normal(size=60)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    frame.to_csv("mine.csv", index=False)
    frame.assign(street=[f"street {k}" for k in range(60)]).to_csv("houses.csv", index=False)
    frame.drop(columns="price").head(9).to_csv("new.csv", index=False)
    known = {"X": frame[["rooms", "area"]], "y": frame["price"], "X_new": frame[["rooms", "area"]].head(9)}
    yield known
    for value in known.values():
        if isinstance(value, bnnviz.Run):
            value.stop()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", [pytest.param(page, marks=[pytest.mark.slow] * (page in LONG)) for page in PAGES])
def test_examples_run(page: str, names: dict[str, Any]) -> None:
    shapes: dict[str, Any] = {}
    for number, block in enumerate(blocks(page)):
        before = names.get("run")
        exec(compile(block, f"{page}, block {number + 1}", "exec"), names)
        if names.get("run") is not before and before is not None:
            before.stop()
        if page.endswith("densities.md"):
            shapes |= {name: values.shape for name, values in names["run"].parameters().items()}
    if page.endswith("densities.md"):
        of_vectors = {"w": (4, 200, 3), "theta": (4, 200, 8), "z": (4, 200, 8), "x": (4, 200, 3)}
        assert shapes == of_vectors | dict.fromkeys(("mu", "tau"), (4, 200))
    if page == "README.md":
        assert Path("run.nc").exists()


def test_every_page_with_python_is_run_or_read() -> None:
    """Pages of contributors have tests of their own, and so have tutorials."""
    texts = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name not in ("contributing", "tutorials")]
    pages = {str(page.relative_to(ROOT)) for page in [ROOT / "README.md", *texts]}
    assert {page for page in pages if blocks(page)} == {*PAGES, *ELSEWHERE}
    for page in ELSEWHERE:
        for block in blocks(page):
            ast.parse(block)
