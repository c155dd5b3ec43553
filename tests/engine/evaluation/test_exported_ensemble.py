"""Exported ensembles: of every likelihood, with the predictions of the run."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import bnnviz
from bnnviz import targets
from bnnviz.errors import BnnvizError
from tests.engine.evaluation.test_likelihood_runs import KINDS, REAL, X, few, network

KNOWN = {
    "regression": ("mean", "sd", "epistemic_sd", "aleatoric_sd"),
    "classification": ("probabilities", "entropy", "mutual_information"),
    "outputs": ("mean", "epistemic_sd"),
}
FEW_STEPS = {"draws": 4, "warmup": 10, "chains": 2, "settings": {"mode_steps": 20}, "dtype": "float64"}


def sampled(kind: str) -> bnnviz.Run:
    """Return a run in double precision, as programs compute."""
    if kind in KINDS:
        return few(kind, draws=4, dtype="float64")
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1 if kind == "bernoulli" else 3))
    y = (REAL > 0).astype(int) if kind == "bernoulli" else np.arange(12) % 3
    return bnnviz.sample(bnnviz.BNN(module, (X, y), likelihood=kind), "hmc", **FEW_STEPS)


@pytest.mark.parametrize("kind", [*KINDS, "bernoulli", "categorical"])
def test_a_program_predicts_like_the_run(kind: str) -> None:
    run, file = sampled(kind), io.BytesIO()
    torch.export.save(run.ensemble(1000), file)
    file.seek(0)
    program = torch.export.load(file).module()
    for rows in (X[:5], X[:1]):
        found, known = program(torch.as_tensor(rows)), run.predict(rows)
        assert set(found) == set(KNOWN[known.task])
        for name, values in found.items():
            np.testing.assert_allclose(values.numpy(), getattr(known, name), rtol=1e-6, atol=1e-8, err_msg=name)


def test_a_recording_of_a_network_of_ones_own_becomes_a_program(tmp_path: Path) -> None:
    run = few("student_t", draws=4, record=str(tmp_path / "kept"))
    with pytest.raises(BnnvizError, match="target"):
        bnnviz.recording(tmp_path / "kept").ensemble()
    program = bnnviz.recording(tmp_path / "kept", target=network("student_t")).ensemble(1000).module()
    # The run's own predictions are in single precision.
    np.testing.assert_allclose(program(torch.as_tensor(X[:3]))["mean"], run.predict(X[:3]).mean, rtol=1e-4, atol=1e-6)


class Branching(targets.Likelihood):
    """A likelihood that reads a value on the host."""

    name, task = "branching", "regression"

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        return -(y - f[..., 0]).abs() - 0.6931471805599453

    def mean(self, f: Tensor) -> Tensor:
        return f[..., 0] if f.sum() > 0 else 2 * f[..., 0]

    variance = cdf = draw = mean


def test_a_likelihood_that_reads_values_on_the_host_is_refused() -> None:
    torch.manual_seed(0)
    posterior = bnnviz.BNN(nn.Linear(2, 1), (X, REAL), likelihood=Branching())
    run = bnnviz.start(posterior, "hmc", **FEW_STEPS)
    run.wait()
    with pytest.raises(BnnvizError) as refused:
        run.ensemble()
    assert refused.value.field == "format"
