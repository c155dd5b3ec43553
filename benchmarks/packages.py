"""Run the blocks of docs/manual/other_packages.md: the same network in each package, and its prediction at 0."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.rows import Case, Report, Row

PAGE = Path(__file__).parent.parent / "docs" / "manual" / "other_packages.md"
_NOISE = 0.2
_AT = 2  # the row of ``new`` at 0
#: What the page leaves out of each block: imports, and for laplace-torch the training of the module.
_BEFORE = {
    "bnnviz": "",
    "NumPyro": "import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist\n"
    "from numpyro.infer import MCMC, NUTS, Predictive",
    "PyMC": "import pymc as pm",
    "BlackJAX": "import blackjax, jax, jax.numpy as jnp\nfrom jax.scipy.stats import norm",
    "posteriors": "import posteriors",
    "laplace-torch": """
from laplace import Laplace
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y[:, None]), batch_size=60)
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=5_000, line_search_fn="strong_wolfe")
def loss():
    optimizer.zero_grad()
    value = ((net(x)[:, 0] - y) ** 2).sum() / (2 * 0.2**2) + sum((w**2).sum() for w in net.parameters()) / 2
    value.backward()
    return value
optimizer.step(loss)
""",
}


def block(package: str) -> str:
    """Return the code of a package on the page, without its imports and the data."""
    text = PAGE.read_text(encoding="utf-8")
    if package == "bnnviz":
        return re.search(r"```python\n.*?\n\n(net = .*?)```", text, re.DOTALL)[1]
    return re.search(rf"^## {package}\n\n```py\n(.*?)```", text, re.DOTALL | re.MULTILINE)[1]


def measure(package: str, seconds: float, report: Report) -> Iterator[Row]:
    """Run the block of one package and yield lines of code, mean and sd of an observation at 0, and seconds."""
    code = block(package)
    lines = [line for line in code.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    yield Row("lines", len(lines), "")
    names = _data(package)
    exec(_BEFORE[package], names)
    begun = time.perf_counter()
    exec(code, names)
    mean, sd = _prediction(package, names)
    yield Row("mean at 0", float(mean), "")
    yield Row("sd at 0", float(sd), "")
    yield Row("seconds", time.perf_counter() - begun, "s")


def _data(package: str) -> dict[str, Any]:
    """Return the names of the page before the first block; tensors for packages of torch."""
    import bnnviz

    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (60, 1))
    y = np.sin(2 * x[:, 0]) + rng.normal(0, _NOISE, 60)
    new = np.linspace(-2, 2, 5)[:, None]
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
    names = {"x": x, "y": y, "new": new}
    if package in ("posteriors", "laplace-torch"):
        names = {name: torch.as_tensor(value, dtype=torch.float32) for name, value in names.items()}
    return names | {"np": np, "torch": torch, "bnnviz": bnnviz, "net": net}


def _prediction(package: str, names: dict[str, Any]) -> tuple[float, float]:
    """Return mean and standard deviation of an observation at 0."""
    if package == "bnnviz":
        return names["predicted"].mean[_AT], names["predicted"].sd[_AT]
    if package == "laplace-torch":
        return names["mean"][_AT, 0], np.hypot(float(names["variance"][_AT, 0, 0]) ** 0.5, _NOISE)
    if package in ("NumPyro", "PyMC"):
        drawn = names["drawn"] if package == "NumPyro" else names["predicted"].predictions["y"].values
        return np.asarray(drawn)[..., _AT].mean(), np.asarray(drawn)[..., _AT].std()
    if package == "posteriors":
        of = partial(torch.func.functional_call, names["net"], args=names["new"])
        f = np.array([float(of(parameter_and_buffer_dicts=each)[_AT, 0]) for each in names["draws"]])
    else:
        f = np.array([(np.tanh(names["new"] @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"])[_AT] for w in names["draws"]])
    return f.mean(), np.hypot(f.std(), _NOISE)


CASES: dict[str, Case] = {package: partial(measure, package) for package in _BEFORE}
