"""Make one TorchScript program of draws of a network, which predicts rows in the units of the data without bnnviz.

Its ``forward`` takes rows (rows, ...) and returns a dict of tensors: ``mean``, ``sd``, ``epistemic_sd``,
``aleatoric_sd`` and ``quantiles`` (levels, rows) of a regression; ``probabilities`` (rows, classes), ``entropy`` and
``mutual_information`` of classes. Its attributes ``names``, ``class_names`` and ``levels`` say what is what.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bnnviz.data import DataSet
from bnnviz.engine.evaluation.metrics import NetworkDraws, chosen, class_names
from bnnviz.engine.evaluation.predictive_distribution import QUANTILES
from bnnviz.errors import BnnvizError
from bnnviz.targets import BNN
from bnnviz.targets.likelihoods import Bernoulli, Categorical, Normal

DRAWS = 50
_HALVINGS = 50


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
    """The law of a number: an equal mixture of normal ones."""

    def __init__(
        self, members: _Members, y_mean: float, y_scale: float, noise: Tensor, levels: list[float], names: list[str]
    ) -> None:
        super().__init__()
        self.members = members
        self.y_mean, self.y_scale = y_mean, y_scale
        self.register_buffer("noise", noise)
        self.levels, self.names, self.halvings = levels, names, _HALVINGS

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return mean, standard deviations and quantiles."""
        means = self.members(x)[:, :, 0] * self.y_scale + self.y_mean
        noise = self.noise[:, None]
        mean = means.mean(0)
        epistemic = means.var(0, unbiased=False)
        aleatoric = noise.square().mean().expand_as(mean)
        wanted = torch.tensor(self.levels, dtype=means.dtype)[:, None]
        reach = 10.0 * noise.max()
        low = (means.min(0)[0] - reach).expand(len(self.levels), -1)
        high = (means.max(0)[0] + reach).expand(len(self.levels), -1)
        for _ in range(self.halvings):
            middle = 0.5 * (low + high)
            z = (middle[:, None, :] - means) / noise
            below = (0.5 * (1.0 + torch.erf(z * 0.7071067811865476))).mean(1)
            low = torch.where(below < wanted, middle, low)
            high = torch.where(below < wanted, high, middle)
        return {
            "mean": mean,
            "sd": (epistemic + aleatoric).sqrt(),
            "epistemic_sd": epistemic.sqrt(),
            "aleatoric_sd": aleatoric.sqrt(),
            "quantiles": 0.5 * (low + high),
        }


class _LawOfClasses(nn.Module):
    """The law of a class: the mean of the draws' probabilities."""

    def __init__(self, members: _Members, labels: list[str], names: list[str]) -> None:
        super().__init__()
        self.members = members
        self.class_names, self.names = labels, names

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return probabilities and their entropy."""
        outputs = self.members(x)
        if outputs.shape[2] == 1:
            outputs = torch.cat([torch.zeros_like(outputs), outputs], 2)
        logs = torch.log_softmax(outputs, 2)
        mean = logs.exp().mean(0)
        entropy = -(mean * mean.clamp_min(1e-300).log()).sum(1)
        return {
            "probabilities": mean,
            "entropy": entropy,
            "mutual_information": entropy + (logs.exp() * logs).sum(2).mean(0),
        }


def script(given: NetworkDraws, draws: int = DRAWS, levels: Sequence[float] = QUANTILES) -> torch.jit.ScriptModule:
    """Return the program of so many draws, evenly spread, or drawn by their weights.

    Parameters
    ----------
    given : NetworkDraws
    draws : int
        At most; all where there are fewer.
    levels : sequence of float
        Probabilities of the quantiles, of a regression.

    Raises
    ------
    BnnvizError
        If the network is on images, or cannot be traced.
    """
    target = given.target
    data = target.data_set
    if data is not None and not isinstance(data, DataSet):
        raise BnnvizError("A network on images cannot be written as an ensemble: take its state dicts.", "format")
    if draws < 1:
        raise BnnvizError(f"draws = {draws} must be 1 at least.", "draws")
    if not isinstance(target.likelihood, Normal | Bernoulli | Categorical):
        raise BnnvizError(
            f"A network with a {target.likelihood.name} likelihood cannot be written as an ensemble, which has"
            " gaussian, bernoulli and categorical ones: take its state dicts.",
            "format",
        )
    theta = given.theta[torch.as_tensor(chosen(len(given.theta), given.log_weights, draws, 0))].double().cpu()
    shape = target.x.shape[1:]
    mean, scale = torch.zeros(shape, dtype=torch.float64), torch.ones(shape, dtype=torch.float64)
    y_mean, y_scale, names = 0.0, 1.0, [f"x{k + 1}" for k in range(shape.numel())]
    if isinstance(data, DataSet):
        known = data.standardiser
        mean, scale = torch.as_tensor(known.x_mean), torch.as_tensor(known.x_scale)
        y_mean, y_scale, names = float(known.y_mean), float(known.y_scale), list(data.x_names)
    with warnings.catch_warnings():
        # TorchScript is what runs anywhere without this program's source; PyTorch would rather have torch.export.
        warnings.simplefilter("ignore")
        members = _Members([_traced(target, draw) for draw in theta], mean, scale, target.whole)
        made: nn.Module
        if target.likelihood.task == "classification":
            made = _LawOfClasses(members, class_names(target), names)
        else:
            noise = target.noise_sd_of(theta).double() * y_scale
            made = _LawOfNumbers(members, y_mean, y_scale, noise, [float(level) for level in levels], names)
        return torch.jit.script(made.eval())


def _traced(target: BNN, draw: Tensor) -> torch.jit.ScriptModule:
    """Return the network with the weights of a draw (dim,) as a traced module, in double precision."""
    module = copy.deepcopy(target.module).cpu().double()
    module.load_state_dict(target.state_dict(draw))
    rows = target.fed(target.x[:2], torch.float64).cpu()
    try:
        return torch.jit.trace(module.eval(), rows, check_trace=False)
    except Exception as error:  # whatever the user's own code raises
        raise BnnvizError(
            f"The network cannot be traced by PyTorch ({str(error).splitlines()[0]:.100}); take its state dicts:"
            " --format torch.",
            "format",
        ) from error
