"""What mypy finds in a user's code: misspelt keywords, and values that are no choices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SNIPPET = """
import bnnviz
from bnnviz import plots, samplers

run = bnnviz.sample("banana", "hmc", drawz=5)
bnnviz.sample("banana", kernel="compild")
samplers.HMC(step_sise=0.1)
samplers.HMC(metric="round")
run.extend(draws="many")
plots.trace(run, draks=True)
plots.entropy(run, kind="bars")
bnnviz.race("banana", ["hmc", "nuts"], budgett=5)
run.get_samples()
"""
GOOD = """
import bnnviz
from bnnviz import plots, samplers

run = bnnviz.sample("banana", samplers.HMC(step_size=0.1, metric="diagonal"), draws=5, seed=None)
shape: tuple[int, ...] = run.extend(5).draws.shape
chains: int = run.spec.chains
size: float | None = samplers.HMC().step_size
name: str = plots.save(plots.trace(run), "trace.html").name
"""


@pytest.mark.slow
@pytest.mark.parametrize(("code", "lines"), [(SNIPPET, ["5", "6", "7", "8", "9", "10", "11", "12", "13"]), (GOOD, [])])
def test_a_type_checker_finds_misspelt_names(code: str, lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "snippet.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=170)
    assert [line.split(":")[1] for line in found.stdout.splitlines() if "error:" in line] == lines, found.stdout
