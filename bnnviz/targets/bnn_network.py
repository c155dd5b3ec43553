"""Define the posterior of a multilayer perceptron on a data set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz import data as datasets
from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.models import ACTIVATIONS, mlp, parse_hidden
from bnnviz.targets import likelihoods
from bnnviz.targets.base import REGISTRY
from bnnviz.targets.bnn import BNN
from bnnviz.targets.weight_priors import PRIORS

# The toys' true noise (sd 0.015 on input and target) gives a posterior too narrow to see.
_TOY_NOISE_SD = 0.05


def _point_rows(points: list[list[float]], data: datasets.DataSet) -> tuple[np.ndarray, np.ndarray]:
    """Return drawn points as inputs (rows, inputs) and observations (rows,)."""
    inputs = {"regression": 1, "classification": 2}[data.task]
    if data.inputs != inputs:
        raise BnnvizError(
            f"{data.title} is a {data.task} with {data.inputs} inputs, which takes no points; points need a regression"
            " with one input or a classification with two.",
            "points",
        )
    table = np.array(points, dtype=float).reshape(len(points), -1 if points else inputs + 1)
    if table.shape[1] != inputs + 1:
        form = "[x, y]" if inputs == 1 else "[x1, x2, class]"
        raise BnnvizError(
            f"The rows of points have {table.shape[1]} numbers; {data.title} needs rows {form}.",
            "points",
        )
    wrong = [] if data.task == "regression" else table[~np.isin(table[:, -1], np.arange(data.classes)), -1]
    if len(wrong):
        raise BnnvizError(
            f"A point has class {wrong[0]:g}; {data.title} has classes 0 to {data.classes - 1}.", "points"
        )
    return table[:, :-1], table[:, -1]


_TABLES = datasets.names("table")
_ATTACHED = [name for name in _TABLES if datasets.describe(name)["attached"]]
_STANDARDISED = [name for name in _TABLES if datasets.describe(name)["standardised"]]
_VALIDATED = [name for name in _TABLES if datasets.describe(name)["validation"]]
_WITH_WEIGHTS = [name for name in _TABLES if datasets.describe(name)["published_weights"]]
# Data sets that may be a regression; a user's table decides this itself.
_REGRESSIONS = [name for name in _TABLES if datasets.describe(name)["task"] != "classification"]


@REGISTRY.add
class Network(BNN):
    """Posterior of a multilayer perceptron on a data set, for regression or classification.

    Parameters
    ----------
    attachment : bytes or None
        Packed table of an uploaded file (`bnnviz.data.UserTable`).
    values
        Settings by name.

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.Network(data="toy_c", hidden="5").dim
    16
    """

    registered = "network"
    title = "Network on data"

    data = settings.Choice("toy_c", objects=_TABLES, hidden=_ATTACHED, doc="The data set.")
    split = settings.Integer(
        0,
        bounds=(0, 19),
        doc="Index of the split into training and test rows. UCI regressions use the published splits of Gal; other"
        " data sets use splits generated in the same way.",
    )
    hidden = settings.Text("50", label="Hidden layers", doc="Units of each hidden layer, such as 50 or 25-10.")
    activation = settings.Choice("tanh", objects=list(ACTIVATIONS), doc="Activation of the hidden layers.")
    linear_path = settings.Boolean(False, doc="Add a linear map from inputs to outputs to the network.")
    prior_sd = settings.Number(
        1.0, bounds=(0.01, 100.0), scale="log", doc="Standard deviation of the normal prior of the weights."
    )
    prior = settings.Choice(
        "equal",
        objects=list(PRIORS),
        label="Scales of the prior",
        doc="equal: prior_sd for every weight, as in the papers; fan_in: prior_sd divided by the square root of the"
        " number of inputs of a unit; learned: each input and each later layer also has a learned scale if it has at"
        " least ten weights.",
    )
    family = settings.Choice(
        "auto",
        objects=["auto", *likelihoods.NAMES],
        when={"data": _REGRESSIONS},
        label="Likelihood",
        doc="Distribution of an observation given the outputs. auto: gaussian for numbers, bernoulli for two classes"
        " and categorical for more. log_normal requires positive numbers, poisson and negative_binomial counts, and"
        " ordinal ordered classes.",
    )
    noise_sd = settings.Number(
        None,
        bounds=(0.001, 10.0),
        scale="log",
        allow_None=True,
        when={"data": _REGRESSIONS},
        doc="Standard deviation of the observation noise of a regression, in standardised units for UCI data sets and"
        " uploaded files, and in the unit of the target for regressions of PMCnet. Empty: the default of the data set"
        " (1 for UCI data sets and uploaded files, 0.05 for toys, 4 and 0.003 for protein and naval of PMCnet).",
    )
    noise = settings.Choice(
        "fixed",
        objects=list(likelihoods.NOISES),
        when={"data": _REGRESSIONS},
        label="Observation noise",
        doc="fixed: the sd is noise_sd; learned: the logarithm of the sd has a normal prior with mean log noise_sd and"
        " sd 1.",
    )
    scaling = settings.Choice(
        "training",
        objects=["training", "own"],
        when={"data": _STANDARDISED},
        label="Scale of the test rows",
        doc="training: all inputs are standardised by mean and standard deviation of the training rows; own: test"
        " inputs are standardised by the test rows, as in some published figures.",
    )
    evaluate = settings.Choice(
        "test",
        objects=["test", "validation"],
        when={"data": _VALIDATED},
        label="Evaluate on",
        doc="Rows for predictions and scores. With validation, test rows are not loaded.",
    )
    initial_weights = settings.Choice(
        "random",
        objects=["random", "published"],
        when={"data": _WITH_WEIGHTS},
        doc="Initial positions of chains and of the optimisation: random, or published weights for the data set.",
    )
    points = settings.Points(
        None,
        live=True,
        label="Points",
        doc="Points that replace the training rows, as rows [x, y] for regression with one input or [x1, x2, class] for"
        " classification with two inputs, in original units. [] samples the prior. Empty: the rows of the data set.",
    )

    def __init__(self, attachment: bytes | None = None, **values: Any) -> None:
        chosen = settings.fill(settings.describe(type(self)), values, self.title)
        data_set = datasets.load(chosen["data"], chosen["split"], attachment)
        if chosen["evaluate"] == "validation":
            data_set = data_set.for_validation()
        data_set = replace(data_set, own_scales=chosen["scaling"] == "own")
        likelihood = family(data_set, chosen["family"])
        data_set = self._original = in_unit_of(data_set, likelihood)
        outputs = outputs_of(data_set, likelihood)
        if chosen["points"] is not None:
            data_set = data_set.with_training(*_point_rows(chosen["points"], data_set))
        widths, path = parse_hidden(chosen["hidden"]), chosen["linear_path"]
        module = mlp(data_set.inputs, widths, outputs, chosen["activation"], path)
        noise = data_set.noise_sd if chosen["noise_sd"] is None else chosen["noise_sd"]
        noise = (1.0 if data_set.standardise else _TOY_NOISE_SD) if noise is None else noise
        learns = chosen["noise"] if likelihood in likelihoods.WITH_NOISE else "fixed"
        super().__init__(module, data_set, likelihood, chosen["prior_sd"], noise, learns, chosen["prior"])
        self.param.update(**chosen)
        self._published = self._read_published() if chosen["initial_weights"] == "published" else None

    def _read_published(self) -> Tensor:
        """Return the published weights (weights,). Raise if they belong to another network."""
        network, theta = datasets.published_weights(self.data)
        own = (parse_hidden(self.hidden), self.activation, self.linear_path)
        if own != (parse_hidden(network.hidden), network.activation, False):
            raise BnnvizError(
                f"The published weights on {self.data} belong to a network with hidden={network.hidden} and"
                f" activation={network.activation}, without a linear path: set these, or initial_weights=random.",
                "initial_weights",
            )
        return torch.as_tensor(theta)

    def initial(self, chains: int, rng: torch.Generator) -> Tensor:
        """Return random initial positions (chains, dim), or the published weights."""
        x = super().initial(chains, rng)
        if self._published is not None:
            scale = 1.0 if self.weight_prior is None else self.weight_prior.scale.to(x)
            x[:, : len(self._published)] = self._published.to(x) / scale
        return x

    def change(self, live: dict[str, Any]) -> None:
        """Replace the training rows by the setting `points` during a run; None restores those of the data set."""
        setting = next(s for s in settings.describe(type(self)) if s["name"] == "points")
        points = settings.check(setting, live["points"], self.title)
        original = self._original
        self.replace_rows(*((original.x_train, original.y_train) if points is None else _point_rows(points, original)))
        self.points = points

    def describe_value(self) -> str:
        """Describe data and network in one line."""
        drawn = "" if self.points is None else f" with {len(self.points)} drawn points"
        sizes = (
            f"{self.x.shape[1]}-{self.hidden}-{self.outputs_per_row}{' and a linear path' if self.linear_path else ''}"
        )
        noise = " and the noise" if self.noise_is_learned else ""
        scales = f", {len(self.scale_names)} scales" if self.scale_names else ""
        return f"{self.data_set.name}{drawn}, {sizes} {self.activation}, {self.weights} weights{scales}{noise}"


def outputs_of(data: datasets.DataSet, likelihood: str) -> int:
    """Return how many outputs a likelihood needs."""
    return {"heteroscedastic": 2, "categorical": data.classes}.get(likelihood, 1)


def family(data: datasets.DataSet, name: str) -> str:
    """Return the likelihood of a name, that of the task for auto. Refuse one of the other task."""
    if name == "auto":
        return "gaussian" if data.task == "regression" else "bernoulli" if data.classes == 2 else "categorical"
    able = {each for each, kind in likelihoods.NAMED.items() if kind.task == data.task}
    if data.classes > 2:
        able.discard("bernoulli")
    if name not in able:
        what = f"a {data.task} of {data.classes} classes" if data.classes else "a regression"
        raise BnnvizError(
            f"A {name} likelihood does not fit {data.name}, {what}; choose one of {', '.join(sorted(able))}.",
            "likelihood",
        )
    return name


def in_unit_of(data: datasets.DataSet, likelihood: str) -> datasets.DataSet:
    """Return the data with observations on the scale that a likelihood needs: counts as they are, positive numbers."""
    if likelihood in ("poisson", "negative_binomial"):
        return replace(data, scale=replace(data.standardiser, y_mean=0.0, y_scale=1.0))
    if likelihood == "log_normal" and (data.y_train > 0).all():
        return replace(
            data, scale=replace(data.standardiser, y_mean=0.0, y_scale=float(np.exp(np.log(data.y_train).mean())))
        )
    return data
