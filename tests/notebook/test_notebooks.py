"""The notebooks run from the first cell to the last, and their kept outputs are complete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from execute_notebooks import MOST_BYTES, NOTEBOOKS, PLACES, WIDGET, executed

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@each_notebook
def test_kept_outputs_need_no_kernel_and_hold_no_error(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for out in (out for cell in cells for out in cell["outputs"]):
        assert out["output_type"] != "error" and out.get("name") != "stderr"
        data = out.get("data", {})
        assert WIDGET not in data and set(data) <= {"text/plain", "text/html", "image/png"}
        assert not PLACES.search(json.dumps(out if "image/png" not in data else data.get("text/plain", "")))


@pytest.mark.slow
@pytest.mark.timeout(600)
@each_notebook
def test_a_notebook_runs(path: Path) -> None:
    assert all(cell.outputs for cell in executed(path).cells if "print(" in cell.source)
