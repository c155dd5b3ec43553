"""Export draws of a network as one program of PyTorch or ONNX, which predicts rows in the units of the data."""

from __future__ import annotations

import copy
import io
import json

import torch
from torch import Tensor, nn

from bnnviz.data import DataSet
from bnnviz.engine.evaluation.metrics import NetworkDraws, chosen, class_names
from bnnviz.errors import BnnvizError
from bnnviz.targets import BNN

DRAWS = 50
LABELS = "labels.json"  # the file in the archive with the names of inputs and classes


class Ensemble(nn.Module):
    """The networks of some draws, and the likelihood of each.

    ``forward`` maps rows (rows, ...) to a dict of tensors: for a regression ``mean``, ``sd``, ``epistemic_sd`` and
    ``aleatoric_sd``, (rows,) or (rows, columns); for a classification ``probabilities`` (rows, classes), ``entropy``
    and ``mutual_information``; for a likelihood that is a function ``mean`` and ``epistemic_sd`` of the outputs.
    """

    def __init__(self, target: BNN, theta: Tensor) -> None:
        super().__init__()
        self.members = nn.ModuleList([_network(target, draw) for draw in theta])
        self.likelihood, self.whole = target.likelihood_at(theta), target.whole
        scaled = isinstance(target.data_set, DataSet)
        known = target.data_set.standardiser if scaled else None
        shape = target.x.shape[1:]
        self.register_buffer("y_mean", torch.as_tensor(known.y_mean if scaled else 0.0).double())
        self.register_buffer("y_scale", torch.as_tensor(known.y_scale if scaled else 1.0).double())
        self.register_buffer("x_mean", torch.as_tensor(known.x_mean) if scaled else torch.zeros(shape).double())
        self.register_buffer("x_scale", torch.as_tensor(known.x_scale) if scaled else torch.ones(shape).double())

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Return predictions of rows in the units of the data."""
        scaled = x.long() if self.whole else (x.to(self.x_mean.dtype) - self.x_mean) / self.x_scale
        f = torch.stack([member(scaled) for member in self.members])
        if self.likelihood.task == "classification":
            found = self.likelihood.mean(f)
            each = found if found.ndim == 3 else torch.stack([1 - found, found], -1)
            mean = each.mean(0)
            entropy = -torch.xlogy(mean, mean).sum(1)
            information = entropy + torch.xlogy(each, each).sum(2).mean(0)
            return {"probabilities": mean, "entropy": entropy, "mutual_information": information}
        if self.likelihood.task == "outputs":
            f = f[:, :, 0] if f.shape[2] == 1 else f
            return {"mean": f.mean(0), "epistemic_sd": f.std(0, unbiased=False)}
        means, aleatoric = self.likelihood.mean(f), self.likelihood.variance(f).mean(0)
        epistemic = means.var(0, unbiased=False)
        return {
            "mean": means.mean(0) * self.y_scale + self.y_mean,
            "sd": (epistemic + aleatoric).sqrt() * self.y_scale,
            "epistemic_sd": epistemic.sqrt() * self.y_scale,
            "aleatoric_sd": aleatoric.sqrt() * self.y_scale,
        }


def _network(target: BNN, draw: Tensor) -> nn.Module:
    """Return the network with the weights of a draw (dim,), in double precision."""
    module = copy.deepcopy(target.module).cpu().double()
    module.load_state_dict(target.state_dict(draw))
    # Predictions are converted to NumPy, which does not accept tensors with gradients.
    return module.eval().requires_grad_(False)


def exported(given: NetworkDraws, draws: int = DRAWS) -> torch.export.ExportedProgram:
    """Return the program of at most ``draws`` draws, evenly thinned, or resampled by their weights."""
    target = given.target
    if target.data_set is not None and not isinstance(target.data_set, DataSet):
        raise BnnvizError("A network on images cannot be written as an ensemble: take its state dicts.", "format")
    if draws < 1:
        raise BnnvizError(f"draws = {draws} must be at least 1.", "draws")
    theta = given.theta[torch.as_tensor(chosen(len(given.theta), given.log_weights, draws, 0))].detach().double().cpu()
    rows = torch.zeros(2, *target.x.shape[1:], dtype=torch.float64)
    any_number = {"x": {0: torch.export.Dim("rows", min=1)}}
    try:
        with torch.no_grad():
            return torch.export.export(Ensemble(target, theta), (rows,), dynamic_shapes=any_number, strict=False)
    except Exception as error:  # raised by the user's code
        raise BnnvizError(
            f"The network cannot be exported by PyTorch ({(str(error).strip().splitlines() or [''])[0]:.100}); take its"
            " state dicts: --format torch.",
            "format",
        ) from error


def archive(given: NetworkDraws, draws: int = DRAWS) -> bytes:
    """Return the program as bytes for `torch.export.load`, with names of inputs and classes as an extra file."""
    data, into = given.target.data_set, io.BytesIO()
    names = data.x_names if isinstance(data, DataSet) else given.target.input_names
    labels = {"names": list(names), "class_names": class_names(given.target)}
    torch.export.save(exported(given, draws), into, extra_files={LABELS: json.dumps(labels)})
    return into.getvalue()


def in_onnx(given: NetworkDraws, draws: int = DRAWS) -> bytes:
    """Return the program as a model of ONNX, with the outputs of `Ensemble` by name."""
    program = exported(given, draws)
    example = torch.zeros(2, *given.target.x.shape[1:], dtype=torch.float64)
    names = list(program.module()(example))
    made = torch.onnx.export(program, dynamo=True, input_names=["x"], output_names=names, verbose=False)
    # PyTorch 2.13 gives an output the name that an intermediate value may have.
    outputs = {id(value) for value in made.model.graph.outputs}
    for value in (each for node in made.model.graph for each in node.outputs):
        if value.name in names and id(value) not in outputs:
            value.name = f"{value.name}_within"
    return made.model_proto.SerializeToString()
