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
from bnnviz.targets.base import REGISTRY
from bnnviz.targets.bnn import BNN, NOISES
from bnnviz.targets.weight_scales import PRIORS

# The toys' own noise (sd 0.015 on the input and the target) makes a posterior too narrow to see.
_TOY_NOISE_SD = 0.05


def _point_rows(points: list[list[float]], data: datasets.DataSet) -> tuple[np.ndarray, np.ndarray]:
    """Return drawn points as inputs (rows, inputs) and observations (rows,)."""
    inputs = {"regression": 1, "classification": 2}[data.task]
    if data.inputs != inputs:
        raise BnnvizError(
            f"{data.title} is a {data.task} with {data.inputs} inputs, which takes no points: points are for regression"
            " with one input and for classification with two.",
            "points",
        )
    table = np.array(points, dtype=float).reshape(len(points), -1 if points else inputs + 1)
    if table.shape[1] != inputs + 1:
        form = "[x, y]" if inputs == 1 else "[x1, x2, class]"
        raise BnnvizError(
            f"The rows of points hold {table.shape[1]} numbers; {data.title} needs rows {form}.",
            "points",
        )
    wrong = [] if data.task == "regression" else table[~np.isin(table[:, -1], np.arange(data.classes)), -1]
    if len(wrong):
        raise BnnvizError(f"A point has the class {wrong[0]:g}; {data.title} has 0 to {data.classes - 1}.", "points")
    return table[:, :-1], table[:, -1]


_TABLES = datasets.names("table")
_ATTACHED = [name for name in _TABLES if datasets.describe(name)["attached"]]
_STANDARDISED = [name for name in _TABLES if datasets.describe(name)["standardised"]]
_VALIDATED = [name for name in _TABLES if datasets.describe(name)["validation"]]
_WITH_WEIGHTS = [name for name in _TABLES if datasets.describe(name)["published_weights"]]
# Whatever may be a regression: of a table of the user's own only the table says.
_REGRESSIONS = [name for name in _TABLES if datasets.describe(name)["task"] != "classification"]


@REGISTRY.add
class Network(BNN):
    """Posterior of a multilayer perceptron on a data set: regression, or classes with one logit or softmax.

    Parameters
    ----------
    attachment : bytes or None
        The packed table of the data set that stands for a file of the user's (`bnnviz.data.UserTable`).
    values
        The settings, by name.

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.Network(data="toy_c", hidden="5").dim
    16
    """

    registered = "network"
    title = "Network on data"
    fixed_dim = None

    data = settings.Choice("toy_c", objects=_TABLES, hidden=_ATTACHED, doc="The data set.")
    split = settings.Integer(
        0,
        bounds=(0, 19),
        doc="Which split into training and test rows: Gal's for the UCI regressions, made by the same rule elsewhere.",
    )
    hidden = settings.Text("50", label="Hidden layers", doc="Units of each hidden layer, such as 50 or 25-10.")
    activation = settings.Choice("tanh", objects=list(ACTIVATIONS), doc="Activation of the hidden layers.")
    linear_path = settings.Boolean(False, doc="Add a linear map of the inputs to the outputs of the network.")
    prior_sd = settings.Number(
        1.0, bounds=(0.01, 100.0), scale="log", doc="Standard deviation of the normal prior of every weight."
    )
    prior = settings.Choice(
        "equal",
        objects=list(PRIORS),
        label="Scales of the prior",
        doc="equal: prior_sd for every weight, as in the papers; fan_in: prior_sd over the root of the number of units"
        " that a weight's unit reads; learned: each input and each later layer has an unknown scale besides, where ten"
        " weights or more share it.",
    )
    noise_sd = settings.Number(
        None,
        bounds=(0.001, 10.0),
        scale="log",
        allow_None=True,
        when={"data": _REGRESSIONS},
        doc="Standard deviation of the observation noise, in standardised units for the UCI sets and your"
        " file, in the target's unit for PMCnet's regressions; empty: the data set's own (1 on the UCI sets, as in the"
        " papers, and on your file; 0.05 on the toys, 4 and 0.003 on PMCnet's protein and naval, ours)."
        " Classes have no such noise.",
    )
    noise = settings.Choice(
        "fixed",
        objects=list(NOISES),
        when={"data": _REGRESSIONS},
        label="Observation noise",
        doc="fixed: its sd is noise_sd; learned: its sd is one more unknown, whose logarithm is normal around that of"
        " noise_sd with sd 1.",
    )
    scaling = settings.Choice(
        "training",
        objects=["training", "own"],
        when={"data": _STANDARDISED},
        label="Scale of the test rows",
        doc="training: all inputs are standardised by the training rows' mean and standard deviation; own: those of the"
        " test rows by their own, as some published figures are.",
    )
    evaluate = settings.Choice(
        "test",
        objects=["test", "validation"],
        when={"data": _VALIDATED},
        label="Evaluate on",
        doc="The rows that predictions and scores are for. With validation the test rows are not loaded into the target"
        " at all: to choose settings by.",
    )
    initial_weights = settings.Choice(
        "random",
        objects=["random", "published"],
        when={"data": _WITH_WEIGHTS},
        doc="Where chains begin that do not begin at a mode of their own, and from where modes are sought: random, or"
        " the weights that the data set's source has published.",
    )
    points = settings.Points(
        None,
        live=True,
        label="Points",
        doc="Your own points in the place of the training rows, as rows [x, y] for a regression with one input or"
        " [x1, x2, class] for a classification with two, in original units; [] samples the prior; empty: the data"
        " set's own points.",
    )

    def __init__(self, attachment: bytes | None = None, **values: Any) -> None:
        chosen = settings.fill(settings.describe(type(self)), values, self.title)
        data_set = datasets.load(chosen["data"], chosen["split"], attachment)
        if chosen["evaluate"] == "validation":
            data_set = data_set.for_validation()
        data_set = self._original = replace(data_set, own_scales=chosen["scaling"] == "own")
        if chosen["points"] is not None:
            data_set = data_set.with_training(*_point_rows(chosen["points"], data_set))
        outputs = data_set.classes if data_set.classes > 2 else 1
        widths, path = parse_hidden(chosen["hidden"]), chosen["linear_path"]
        module = mlp(data_set.inputs, widths, outputs, chosen["activation"], path)
        noise = _noise_of(data_set) if chosen["noise_sd"] is None else chosen["noise_sd"]
        learns = chosen["noise"] if data_set.task == "regression" else "fixed"
        super().__init__(module, data_set, _likelihood(data_set), chosen["prior_sd"], noise, learns, chosen["prior"])
        self.param.update(**chosen)
        self._published = self._read_published() if chosen["initial_weights"] == "published" else None

    def _read_published(self) -> Tensor:
        """Return the published weights (weights,); refuse those of another network."""
        network, theta = datasets.published_weights(self.data)
        own = (parse_hidden(self.hidden), self.activation, self.linear_path)
        if own != (parse_hidden(network.hidden), network.activation, False):
            raise BnnvizError(
                f"The published weights on {self.data} are of a network with hidden={network.hidden} and"
                f" activation={network.activation}, without a linear path: set these, or initial_weights=random.",
                "initial_weights",
            )
        return torch.as_tensor(theta)

    def initial(self, chains: int, rng: torch.Generator) -> Tensor:
        """Return starts (chains, dim): random ones as of any network, or all at the published weights."""
        x = super().initial(chains, rng)
        if self._published is not None:
            x[:, : len(self._published)] = self._published.to(x) / (1.0 if self._scale is None else self._scale.to(x))
        return x

    def change(self, settings: dict[str, Any]) -> None:
        """Become the posterior given other points (the one setting that may change while a run goes on)."""
        self.with_points(settings["points"])

    def with_points(self, points: list[list[float]] | None) -> None:
        """Put points in the place of the training rows, between two steps; a live run calls this on an edit.

        Parameters
        ----------
        points : list of rows or None
            As the setting `points`; None goes back to the data set's own rows.

        Raises
        ------
        BnnvizError
            If they do not fit the data set; the target is as before then.
        """
        setting = next(s for s in settings.describe(type(self)) if s["name"] == "points")
        points = settings.check(setting, points, self.title)
        original = self._original
        self.replace_rows(*((original.x_train, original.y_train) if points is None else _point_rows(points, original)))
        self.points = points

    def describe_value(self) -> str:
        """Return the data and the network in one line."""
        drawn = "" if self.points is None else f" with {len(self.points)} drawn points"
        sizes = f"{self.x.shape[1]}-{self.hidden}-{self._outputs}{' and a linear path' if self.linear_path else ''}"
        noise = " and the noise" if self.noise_is_learned else ""
        scales = f", {len(self.scale_names)} scales" if self.scale_names else ""
        return f"{self.data_set.name}{drawn}, {sizes} {self.activation}, {self.weights} weights{scales}{noise}"


def _noise_of(data: datasets.DataSet) -> float:
    """Return the sd of the observation noise that is assumed where none is given."""
    if data.noise_sd is not None:
        return data.noise_sd
    return 1.0 if data.standardise else _TOY_NOISE_SD


def _likelihood(data: datasets.DataSet) -> str:
    if data.task == "regression":
        return "gaussian"
    return "bernoulli" if data.classes == 2 else "categorical"
