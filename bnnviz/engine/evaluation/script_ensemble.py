"""Export draws of a network as one TorchScript program, which predicts rows in the units of the data without bnnviz.

Its ``forward`` takes rows (rows, ...) and returns a dict of tensors: for a regression ``mean``, ``sd``,
``epistemic_sd`` and ``aleatoric_sd``, (rows,) or (rows, columns), and ``quantiles`` (levels, rows, ...); for a
classification ``probabilities`` (rows, classes), ``entropy`` and ``mutual_information``; for a likelihood that is a
function ``mean``, ``epistemic_sd`` and ``quantiles`` of the outputs. The attributes ``names``, ``class_names`` and
``levels`` label them. ``learned`` has the learned parameters of the likelihood by name, such as ``noise_sd``: a value
per draw, on the network's scale.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from bnnviz.data import DataSet
from bnnviz.engine.evaluation.metrics import NetworkDraws, chosen, class_names
from bnnviz.engine.evaluation.predictive_distribution import QUANTILES
from bnnviz.engine.evaluation.script_laws import NormalLaw, law_of
from bnnviz.errors import BnnvizError
from bnnviz.targets import BNN

DRAWS = 50
_HALVINGS, _DOUBLINGS = 50, 60
_REACH = 10.0  # standard deviations of the first bracket of quantiles


class _Members(nn.Module):
    """Members of an ensemble, each a traced network, and the scales of the inputs."""

    def __init__(self, members: Sequence[nn.Module], mean: Tensor, scale: Tensor, whole: bool) -> None:
        super().__init__()
        self.whole = whole
        self.members = nn.ModuleList(members)
        self.register_buffer("x_mean", mean)
        self.register_buffer("x_scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        """Return outputs (draws, rows, outputs)."""
        scaled = x.long() if self.whole else (x.to(self.x_mean.dtype) - self.x_mean) / self.x_scale
        found = []
        for member in self.members:
            found.append(member(scaled))
        return torch.stack(found)


class _LawOfNumbers(nn.Module):
    """The law of a number: an equal mixture over draws."""

    def __init__(
        self,
        members: _Members,
        moments: torch.jit.ScriptFunction,
        law: nn.Module,
        discrete: bool,
        y_mean: float,
        y_scale: float,
    ) -> None:
        super().__init__()
        self.members, self.moments, self.law = members, moments, law
        self.discrete, self.y_mean, self.y_scale = discrete, y_mean, y_scale
        self.halvings, self.doublings, self.reach = _HALVINGS, _DOUBLINGS, _REACH

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return mean, standard deviations and quantiles."""
        means, variances = self.moments(self.members(x))
        epistemic, aleatoric = means.var(0, unbiased=False), variances.mean(0)
        mean = means.mean(0) * self.y_scale + self.y_mean
        levels = [mean[:0]]
        for level in self.levels:
            levels.append(self.quantile(means, variances.sqrt(), level) * self.y_scale + self.y_mean)
        return {
            "mean": mean,
            "sd": (epistemic + aleatoric).sqrt() * self.y_scale,
            "epistemic_sd": epistemic.sqrt() * self.y_scale,
            "aleatoric_sd": aleatoric.sqrt() * self.y_scale,
            "quantiles": torch.stack(levels[1:]) if len(levels) > 1 else mean[None][:0],
        }

    def quantile(self, means: Tensor, sds: Tensor, level: float) -> Tensor:
        """Return a quantile (rows, ...) of the mixture by bisection; for counts the smallest that reaches it."""
        step = self.reach * sds.max(0)[0]
        low, high = means.min(0)[0] - step, means.max(0)[0] + step
        for _ in range(self.doublings):
            left, right = self.below(low, means, sds) > level, self.below(high, means, sds) < level
            if not bool((left | right).any()):
                break
            step = 2 * step
            low, high = torch.where(left, low - step, low), torch.where(right, high + step, high)
        if self.discrete:
            low, high = low.floor(), high.ceil()
        for _ in range(self.halvings):
            middle = 0.5 * (low + high)
            if self.discrete:
                middle = middle.floor()
                if bool((high - low).max() <= 1):
                    break
            under = self.below(middle, means, sds) < level
            low, high = torch.where(under, middle, low), torch.where(under, high, middle)
        return high if self.discrete else 0.5 * (low + high)

    def below(self, y: Tensor, means: Tensor, sds: Tensor) -> Tensor:
        """Return the mixture's probability of at most y (rows, ...)."""
        return self.law(y, means, sds).mean(0)


class _LawOfClasses(nn.Module):
    """The law of a class: the mean of the draws' probabilities."""

    def __init__(self, members: _Members, probabilities: torch.jit.ScriptFunction) -> None:
        super().__init__()
        self.members, self.probabilities = members, probabilities

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return probabilities and their entropy."""
        each = self.probabilities(self.members(x))
        mean = each.mean(0)
        entropy = -torch.xlogy(mean, mean).sum(1)
        return {
            "probabilities": mean,
            "entropy": entropy,
            "mutual_information": entropy + torch.xlogy(each, each).sum(2).mean(0),
        }


class _LawOfOutputs(nn.Module):
    """The outputs alone, for a likelihood without observations."""

    def __init__(self, members: _Members) -> None:
        super().__init__()
        self.members = members

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return mean, standard deviation and quantiles."""
        outputs = self.members(x)
        outputs = outputs[:, :, 0] if outputs.shape[2] == 1 else outputs
        ordered = outputs.sort(0)[0]
        found = []
        for level in self.levels:
            reached = torch.arange(1, len(ordered) + 1, dtype=torch.float64) / len(ordered)
            found.append(ordered[int((reached < level - 1e-12).sum())])
        return {
            "mean": outputs.mean(0),
            "epistemic_sd": outputs.std(0, unbiased=False),
            "quantiles": torch.stack(found) if len(found) > 0 else outputs[:0],
        }


def script(given: NetworkDraws, draws: int = DRAWS, levels: Sequence[float] = QUANTILES) -> torch.jit.ScriptModule:
    """Return the program of at most ``draws`` draws, evenly thinned, or resampled by their weights."""
    target = given.target
    data = target.data_set
    if data is not None and not isinstance(data, DataSet):
        raise BnnvizError("A network on images cannot be written as an ensemble: take its state dicts.", "format")
    if draws < 1:
        raise BnnvizError(f"draws = {draws} must be 1 at least.", "draws")
    theta = given.theta[torch.as_tensor(chosen(len(given.theta), given.log_weights, draws, 0))].detach().double().cpu()
    shape = target.x.shape[1:]
    mean, scale = torch.zeros(shape, dtype=torch.float64), torch.ones(shape, dtype=torch.float64)
    y_mean, y_scale, names = 0.0, 1.0, [f"x{k + 1}" for k in range(shape.numel())]
    if isinstance(data, DataSet):
        known = data.standardiser
        mean, scale = torch.as_tensor(known.x_mean), torch.as_tensor(known.x_scale)
        y_mean, y_scale, names = float(known.y_mean), float(known.y_scale), list(data.x_names)
    with warnings.catch_warnings():
        # TorchScript runs anywhere without the source of this program, although PyTorch recommends torch.export.
        warnings.simplefilter("ignore")
        members = _Members([_traced(target, draw) for draw in theta], mean, scale, target.whole)
        made, has_quantiles = _program(target, theta, members, y_mean, y_scale)
        made.names, made.class_names = names, torch.jit.Attribute(class_names(target), list[str])
        made.levels = torch.jit.Attribute([float(level) for level in levels] if has_quantiles else [], list[float])
        made.learned = torch.jit.Attribute(target.own_values(theta), dict[str, Tensor])
        return torch.jit.script(made.eval())


def _program(target: BNN, theta: Tensor, members: _Members, y_mean: float, y_scale: float) -> tuple[nn.Module, bool]:
    """Return the prediction module for the target's kind of likelihood, and whether it has quantiles."""
    likelihood = target.likelihood_at(theta)
    if likelihood.task == "outputs":
        return _LawOfOutputs(members), True
    rows = target.fed(target.x[:3], torch.float64).cpu()
    f = torch.stack([member(rows) for member in members.members]).detach()
    if likelihood.task == "classification":

        def probabilities(f: Tensor) -> Tensor:
            found = likelihood.mean(f)
            return found if found.ndim == 3 else torch.stack([1 - found, found], -1)

        return _LawOfClasses(members, _traced_likelihood(probabilities, f)), False
    moments, law = _traced_likelihood(lambda f: (likelihood.mean(f), likelihood.variance(f)), f), law_of(likelihood)
    # A program without quantiles does not use its law.
    found = _LawOfNumbers(members, moments, law or NormalLaw(), likelihood.discrete, y_mean, y_scale)
    return found, law is not None


def _traced(target: BNN, draw: Tensor) -> torch.jit.ScriptModule:
    """Return the network with the weights of a draw (dim,) as a traced module, in double precision."""
    module = copy.deepcopy(target.module).cpu().double()
    module.load_state_dict(target.state_dict(draw))
    rows = target.fed(target.x[:2], torch.float64).cpu()
    # Predictions are converted to NumPy, which does not accept tensors with gradients.
    return _trace(module.eval().requires_grad_(False), rows, "The network")


def _traced_likelihood(says: Callable[[Tensor], Any], f: Tensor) -> torch.jit.ScriptFunction:
    """Return a function of a likelihood, traced on outputs (draws, rows, outputs)."""
    traced = _trace(says, f[:, :2], "The likelihood")
    with torch.no_grad():
        pairs = [(says(some), traced(some)) for some in (f, f[:, :1])]
    try:
        torch.testing.assert_close([one for one, _ in pairs], [other for _, other in pairs], equal_nan=True)
    except AssertionError as error:
        raise BnnvizError(
            "The likelihood's mean and variance depend on how many rows there are, as far as PyTorch's tracing sees;"
            " take the state dicts: --format torch.",
            "format",
        ) from error
    return traced


def _trace(module: Callable[[Tensor], Any], example: Tensor, what: str) -> Any:
    try:
        with torch.no_grad():
            return torch.jit.trace(module, example, check_trace=False)
    except Exception as error:  # raised by the user's code
        raise BnnvizError(
            f"{what} cannot be traced by PyTorch ({(str(error).splitlines() or [''])[0]:.100}); take its state"
            " dicts: --format torch.",
            "format",
        ) from error
