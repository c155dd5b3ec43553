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

# Runs in a process of its own, whose bnnviz is the copy; argv: a folder to record in.
CHECKS = """
import sys
import numpy as np
import torch
from pathlib import Path

import bnnviz
from bnnviz import samplers, targets
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.resume import resume
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.samplers.random import seeded
from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec

NAME, PLACE = sys.argv[1:]

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

# What it says of its moves.
assert 0.5 < run.summary()["accepted"] < 1, run.summary()
sampler = samplers.REGISTRY.get(NAME)(step_size=0.4)
sampler.prepare(targets.Gaussian().to("cpu", torch.float32), None)
rng = seeded(0)
state = sampler.init(rng.normal((100, 2), torch.float32), rng)
infos = []
for _ in range(20):
    state, info = sampler.step(rng, state)
    infos.append(info)
accepted = torch.stack([info.accepted for info in infos])
probability = torch.stack([info.acceptance_rate for info in infos])
assert abs(accepted.mean() - probability.mean()) < 4 * 0.5 / accepted.numel() ** 0.5
assert 0.05 < accepted.mean() < 0.95

# A checkpoint, and a recording that is left halfway, go on with the same draws.
spec = Spec("banana", {}, NAME, {"thin": 2}, chains=3, draws=60, warmup=5, seed=4, device="cpu").checked()

def halfway(run):
    run.prepare()
    while run.store.counts.min() < 30:
        run.take(8)
    return run

def finished(run):
    while not run.finished:
        run.advance(0.1)
    return run.draws

whole = finished(ViewedRun(spec))
assert whole.shape == (3, 60, 2)
assert np.array_equal(finished(ViewedRun.restore(halfway(ViewedRun(spec)).checkpoint())), whole)

def leave():
    run = ViewedRun(spec)
    recorder = RecordingWriter(run, Path(PLACE))
    halfway(run)
    recorder.note(now=True)
    run.take(5)

leave()
again = resume(PLACE)
recorder = RecordingWriter(again, Path(PLACE))
assert np.array_equal(finished(again), whole)
recorder.close()
assert np.array_equal(Recording(Path(PLACE)).read_draws(), whole)
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
    command = [sys.executable, "-c", CHECKS, NAME, str(tmp_path / "recording")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr[-3000:]
