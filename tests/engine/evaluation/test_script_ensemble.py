"""Ensembles as TorchScript programs: of every likelihood, run where bnnviz cannot be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

import bnnviz
from bnnviz import targets
from bnnviz.errors import BnnvizError
from tests.engine.evaluation.test_likelihood_runs import KINDS, REAL, X, few, network

LEVELS = (0.001, 0.3, 0.99)
CASES = (*KINDS, "bernoulli", "categorical")
KNOWN = {
    "regression": ("mean", "sd", "epistemic_sd", "aleatoric_sd", "quantiles"),
    "classification": ("probabilities", "entropy", "mutual_information"),
    "outputs": ("mean", "epistemic_sd", "quantiles"),
}

ALONE = """
import json, sys
sys.modules["bnnviz"] = None  # importing it is an error
import torch
rows, found = torch.tensor(json.loads(sys.argv[1]), dtype=torch.float64), {}
for path in sys.argv[2:]:
    program = torch.jit.load(path)
    said = {name: value.numpy().tolist() for name, value in program(rows).items()}
    found[path] = [said, program.names, program.levels, program.class_names,
                   {name: value.tolist() for name, value in program.learned.items()}]
print(json.dumps(found))
"""


def alone(rows: np.ndarray, *paths: Path) -> dict[str, list]:
    """Return what programs say of rows, in a process that cannot import bnnviz."""
    line = [sys.executable, "-c", ALONE, json.dumps(rows.tolist()), *map(str, paths)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd="/")
    return {Path(path).stem: said for path, said in json.loads(done.stdout).items()}


def sampled(kind: str) -> bnnviz.Run:
    """Return a run in double precision, as programs compute."""
    if kind in KINDS:
        return few(kind, draws=4, dtype="float64")
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1 if kind == "bernoulli" else 3))
    y = (REAL > 0).astype(int) if kind == "bernoulli" else np.arange(12) % 3
    posterior = bnnviz.BNN(module, (X, y), likelihood=kind)
    few_steps = {"mode_steps": 20}
    return bnnviz.sample(posterior, "hmc", draws=4, warmup=10, chains=2, dtype="float64", settings=few_steps)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bnnviz.Run, list]]:
    """Return each kind's run, and what its program says of five rows."""
    folder = tmp_path_factory.mktemp("programs")
    runs = {kind: sampled(kind) for kind in CASES}
    for kind, run in runs.items():
        run.ensemble(1000, LEVELS).save(str(folder / f"{kind}.pt"))
    said = alone(X[:5], *(folder / f"{kind}.pt" for kind in CASES))
    return {kind: (run, said[kind]) for kind, run in runs.items()}


@pytest.mark.parametrize("kind", CASES)
def test_a_program_says_what_the_run_predicts(kind: str, programs: dict[str, tuple[bnnviz.Run, list]]) -> None:
    run, (said, names, levels, class_names, learned) = programs[kind]
    known = run.predict(X[:5], LEVELS)
    assert set(said) == set(KNOWN[known.task])
    for name, values in said.items():
        wanted = getattr(known, name)
        wanted = list(wanted.values()) if name == "quantiles" else wanted
        np.testing.assert_allclose(values, wanted, rtol=1e-6, atol=1e-8, err_msg=name)
    assert names == ["x1", "x2"] and class_names == known.class_names
    assert levels == ([] if known.task == "classification" else list(LEVELS))
    own = {name: value for name, value in run.parameters().items() if name not in dict(network_names(run))}
    assert set(learned) == set(own)
    for name, values in learned.items():
        np.testing.assert_allclose(values, own[name].reshape(np.shape(values)), rtol=1e-10)


def network_names(run: bnnviz.Run) -> dict[str, Tensor]:
    return dict(run.network_draws().target.module.named_parameters())


def test_a_recording_of_a_network_of_ones_own_becomes_a_program(tmp_path: Path) -> None:
    run = few("student_t", draws=4, record=str(tmp_path / "kept"))
    kept = bnnviz.recording(tmp_path / "kept")
    with pytest.raises(BnnvizError, match="target"):
        kept.ensemble()
    program = kept.ensemble(1000, target=network("student_t"))
    rows = torch.as_tensor(X[:3])
    # The run's own predictions are in single precision.
    np.testing.assert_allclose(program(rows)["mean"].numpy(), run.predict(X[:3]).mean, rtol=1e-4, atol=1e-6)


class Laplace(targets.Likelihood):
    """A likelihood of one's own, with mean and variance in torch."""

    name, task = "laplace", "regression"

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        return -(y - f[..., 0]).abs() - 0.6931471805599453

    def mean(self, f: Tensor) -> Tensor:
        return f[..., 0]

    def variance(self, f: Tensor) -> Tensor:
        return torch.full_like(f[..., 0], 2.0)

    def cdf(self, f: Tensor, y: np.ndarray) -> np.ndarray:
        return stats.laplace(f[..., 0].numpy()).cdf(y)

    def draw(self, f: Tensor, rng: np.random.Generator) -> np.ndarray:
        return f[..., 0].numpy() + rng.laplace(size=f.shape[:-1])


class Counted(Laplace):
    """One whose variance is made for as many rows as there were when it was traced."""

    def variance(self, f: Tensor) -> Tensor:
        return torch.full((len(f), int(f.shape[1])), float(f.shape[1])).to(f)


def of_own(likelihood: targets.Likelihood) -> bnnviz.Run:
    torch.manual_seed(0)
    posterior = bnnviz.BNN(nn.Linear(2, 1), (X, REAL), likelihood=likelihood)
    few_steps = {"mode_steps": 20}
    return bnnviz.sample(posterior, "hmc", draws=4, warmup=10, chains=2, dtype="float64", settings=few_steps)


def test_a_likelihood_of_ones_own_has_moments_and_no_quantiles() -> None:
    run = of_own(Laplace())
    program, known = run.ensemble(1000), run.predict(X[:4])
    said = program(torch.as_tensor(X[:4]))
    assert program.levels == [] and said["quantiles"].shape == (0, 4)
    for name in ("mean", "sd", "epistemic_sd", "aleatoric_sd"):
        np.testing.assert_allclose(said[name].numpy(), getattr(known, name), rtol=1e-9)


def test_a_likelihood_that_depends_on_the_number_of_rows_is_refused() -> None:
    with pytest.raises(BnnvizError, match="how many rows"):
        of_own(Counted()).ensemble()
