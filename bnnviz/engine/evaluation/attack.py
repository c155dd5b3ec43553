"""Attack a network's predictions: perturb rows so that one draw errs, and evaluate the other draws (FGSM)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from bnnviz.engine.evaluation.metrics import NetworkDraws, class_names, network_draws
from bnnviz.engine.evaluation.predictions import evenly
from bnnviz.engine.evaluation.uncertainty import class_rows, kept, pixel_scale, predictive, row_numbers
from bnnviz.engine.protocol import AnyRun
from bnnviz.errors import BnnvizError
from bnnviz.targets import BNN

Judge = Literal["others", "mean", "attacker"]
EPS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
EXAMPLES = 6
_AT_ONCE = 256  # rows per derivative of one draw


def attack(
    target_or_run: BNN | AnyRun,
    draws: Any = None,
    log_weights: Any = None,
    *,
    eps: Sequence[float] = EPS,
    judge: Judge = "others",
    attacker: int = 0,
    rows: int | Sequence[int] | None = None,
    examples: int = EXAMPLES,
    base: float = math.e,
    seed: int = 0,
) -> dict[str, Any]:
    """Attack test rows by the fast gradient sign method and measure the robustness of the predictions.

    Each row is replaced by x + eps sign(d loss / d x). The loss is the negative log probability of the true class under
    the attacked draw (Goodfellow et al. 2015).

    Parameters
    ----------
    target_or_run : BNN, Run, Recording, str or Path
        A classification network, or a run or recording of one. Runs and recordings provide the draws and their weights
        by default.
    draws : array_like, shape (..., dim), optional
        Weights of the network.
    log_weights : array_like, shape (...), optional
        Log weights of the draws, up to a constant. The default is equal weights.
    eps : sequence of float
        Step sizes, at least 0. For images the unit is a pixel value from 0 to 1 and the result is clipped to this
        range. For other rows the step is on the scale of the network.
    judge : {"others", "mean", "attacker"}
        The evaluated prediction: the mean of all draws except the attacked draw, the mean of all draws, or the attacked
        draw.
    attacker : int, default 0
        Index of the attacked draw in the draws of all chains, concatenated.
    rows : int, sequence of int or None
        Number of evenly spaced test rows, or their indices. None attacks all rows.
    examples : int, default 6
        Number of rows that are returned in original and attacked form.
    base : float, default e
        Base of the logarithm in entropies: e for nats, 2 for bits.
    seed : int, default 0
        Seed of the bootstrap.

    Returns
    -------
    dict
        Lists with one number per eps: ``accuracy`` of the averaged prediction with Wilson's interval (``accuracy_low``,
        ``accuracy_high``; 95%), ``entropy``, its mean predictive entropy with a bootstrap interval over rows
        (``entropy_low``, ``entropy_high``), ``expected``, the mean entropy of single draws, and ``mutual``, their
        difference. Intervals refer to rows and do not include the choice of the attacked draw. Also ``eps``, ``judge``,
        ``attacker``, ``rows``, ``judges`` (number of draws), ``base``, ``class_names``, ``unit`` (``pixels``, or
        ``scaled`` for the network's scale), and ``unmoved``, the share of rows without any derivative, which are not
        attacked. ``examples`` has arrays: ``rows`` (indices of test rows), ``observed``, ``inputs`` (eps, examples,
        ...) in that unit, and ``predicted`` and ``chance`` (eps, examples), the likeliest class and its probability.

    Raises
    ------
    BnnvizError
        If the target is not a classification network, there are too few draws, an index does not exist, or a step size
        is invalid.

    Examples
    --------
    >>> import bnnviz
    >>> import torch
    >>> x = torch.linspace(-2, 2, 40).reshape(20, 2)
    >>> network = bnnviz.BNN(torch.nn.Linear(2, 1), (x, (x[:, 0] > 0).int()), likelihood="bernoulli")
    >>> run = bnnviz.sample(network, "hmc", draws=20, warmup=20, chains=2, seed=1, settings={"mode_steps": 20})
    >>> found = bnnviz.attack(run, eps=(0.0, 1.0))
    >>> found["entropy"][0] < found["entropy"][1]
    True
    """
    given = network_draws(target_or_run, draws, log_weights)
    steps = [float(size) for size in eps]
    if not steps or not all(0 <= size < math.inf for size in steps):
        raise BnnvizError("eps is a sequence of sizes of a step, finite numbers from 0, at least one.", "eps")
    attacked, judges, weights = _roles(given, attacker, judge)
    numbers, x, y = _rows(given.target, rows)
    pixels = pixel_scale(given.target.data_set)
    # A row in the unit of the steps is x * sd + mean, from low to high.
    unit, mean, sd, low, high = "scaled", x.new_zeros(()), x.new_ones(()), -math.inf, math.inf
    if pixels is not None:
        unit, low, high = "pixels", 0.0, 1.0
        mean, sd = (torch.as_tensor(each).to(x) for each in pixels)
    sign = _ascent(given.target, attacked, x, y).sign()

    def moved(size: float) -> Tensor:
        return x if size == 0 else torch.clamp(x + size / sd * sign, (low - mean) / sd, (high - mean) / sd)

    found = [predictive(given.target, judges, moved(size), weights, base) for size in steps]
    observed, few = y.cpu().numpy().astype(int), slice(max(examples, 0))
    figures = [each.accuracy(observed) | each.entropies(seed) for each in found]
    return {
        "eps": steps,
        **{name: [each[name] for each in figures] for name in figures[0]},
        "judge": judge,
        "attacker": attacker,
        "rows": len(x),
        "judges": len(judges),
        "base": base,
        "unit": unit,
        "unmoved": float((sign == 0).flatten(1).all(1).double().mean()),
        "class_names": class_names(given.target),
        "examples": {
            "rows": numbers[few],
            "observed": observed[few],
            "inputs": np.stack(
                [torch.clamp(moved(size)[few] * sd + mean, low, high).float().cpu().numpy() for size in steps]
            ),
            "predicted": np.stack([each.probabilities[few].argmax(1) for each in found]),
            "chance": np.stack([each.probabilities[few].max(1) for each in found]),
        },
    }


def _roles(given: NetworkDraws, attacker: int, judge: str) -> tuple[Tensor, Tensor, np.ndarray | None]:
    """Return the attacked draw (1, dim) and the judging draws (draws, dim), with weights of sum 1 or None."""
    if judge not in get_args(Judge):
        raise BnnvizError(f"judge cannot be {judge!r}; choose one of {', '.join(get_args(Judge))}.", "judge")
    count = len(given.theta)
    if not isinstance(attacker, int | np.integer) or not 0 <= attacker < count:
        raise BnnvizError(f"attacker is the number of a draw, from 0 to {count - 1}.", "attacker")
    alone = given.theta[attacker : attacker + 1]
    if judge == "mean":
        return alone, *kept(given)
    if judge == "attacker":
        return alone, alone, None
    if count < 2:
        raise BnnvizError("There is only one draw. Use at least two draws, or judge='attacker'.", "judge")
    others = np.arange(count) != attacker
    logs = None if given.log_weights is None else given.log_weights[others]
    theta = given.theta[torch.as_tensor(others, device=given.theta.device)]
    return alone, *kept(given._replace(theta=theta, log_weights=logs))


def _rows(target: BNN, rows: int | Sequence[int] | None) -> tuple[np.ndarray, Tensor, Tensor]:
    """Return the indices of the test rows to attack, their inputs and their classes."""
    x, y = class_rows(target)
    if rows is None:
        rows = len(x)
    numbers = evenly(len(x), max(rows, 0)) if isinstance(rows, int | np.integer) else row_numbers(rows, len(x))
    if not len(numbers):
        raise BnnvizError("There is no row to attack.", "rows")
    taken = torch.as_tensor(numbers, device=x.device)
    return numbers, x[taken], y[taken]


def _ascent(target: BNN, theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the derivative by the inputs of minus the log probability of each row's class, for a draw (1, dim)."""
    found = []
    for rows, labels in zip(torch.split(x, _AT_ONCE), torch.split(y, _AT_ONCE), strict=True):
        at = rows.detach().clone().requires_grad_(True)
        with torch.enable_grad():
            loss = -target.likelihood_at(theta).log_density(target.outputs(theta, at), labels).sum()
        found.append(torch.autograd.grad(loss, at)[0])
    return torch.cat(found)
