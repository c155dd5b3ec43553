"""The page on adding a sampler: its block is put into a copy of the package, and runs as the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from core_only import ROOT

PAGE = ROOT / "docs" / "contributing" / "add_a_sampler.md"
NAME = "mala"
MOST_LINES = 60

# Runs in a process of its own, whose bnnviz is the copy.
CHECKS = """
import sys
import numpy as np

import bnnviz
from bnnviz import targets
from bnnviz.specs import catalogue

(NAME,) = sys.argv[1:]

# In the catalogue, once that is generated again.
(entry,) = [item for item in catalogue.generate()["samplers"] if item["name"] == NAME]
assert {"step_size", "temperature", "thin"} <= {setting["name"] for setting in entry["settings"]}
catalogue.write()
assert catalogue.find("samplers", NAME) == entry

# Mean and variance of each coordinate, with errors over independent chains.
run = bnnviz.sample("gaussian", NAME, chains=64, draws=100, warmup=20, seed=1)
target = targets.Gaussian()
x = run.draws.astype(float)
for found, truth in ((x, target.mean()), ((x - target.mean()) ** 2, np.diag(target.cov()))):
    means = found.mean(1)
    error = means.std(0, ddof=1) / len(means) ** 0.5
    assert (abs(means.mean(0) - truth) < 4 * error).all(), (means.mean(0), truth, error)
assert 0.5 < run.summary()["accepted"] < 1
"""


def block() -> tuple[str, str]:
    """Return where the page says that its block is saved, and the block."""
    text = PAGE.read_text(encoding="utf-8")
    (place,) = re.findall(r"Save this as `(bnnviz/samplers/\w+/\w+\.py)`", text)
    (code,) = re.findall(r"^```python\n(r?\"\"\".*?)^```$", text, re.MULTILINE | re.DOTALL)
    return place, code


@pytest.mark.slow
def test_the_page_adds_a_sampler_in_one_short_file(tmp_path: Path) -> None:
    place, code = block()
    assert len(code.splitlines()) <= MOST_LINES
    # With what Python has compiled, which saves time.
    shutil.copytree(ROOT / "bnnviz", tmp_path / "bnnviz")
    (tmp_path / place).write_text(code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "BNNVIZ_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", CHECKS, NAME]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr[-3000:]
