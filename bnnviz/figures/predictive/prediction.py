"""Draw the predictions of a network: a band, a map of two classes, predicted against observed, or test rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SQUARE, Axis, Band, Drawing, Image, Line, Mark, Points, chain, future, whiskers
from bnnviz.figures.palette import PICKED, Kind
from bnnviz.figures.plane import level_line
from bnnviz.figures.ranges import extent, gapped
from bnnviz.numerals import general

if TYPE_CHECKING:
    from bnnviz.targets import BNN

DATA = Kind("data", "circle", "red", False)
CLASSES = (Kind("class 0", "circle", "blue", True), Kind("class 1", "square", "orange", True))
INSIDE = Kind("in its 95% interval", "circle", "blue", True)
OUTSIDE = Kind("outside", "square", "red", False)
RIGHT = Kind("right", "circle", "blue", True)
WRONG = Kind("wrong", "square", "red", False)
NOW = Kind("now", "dash", "orange", False)
BAND, MAP, AGAINST, ROWS = "band", "area", "intervals", "classes"
TITLES = {BAND: "Prediction", MAP: "P(class 1)", AGAINST: "Predicted against observed", ROWS: "Test rows"}
WIDE, NARROW = 0.2, 0.28  # opacity of the bands
RAMP = ("blue", "surface", "orange")
ROOM = 0.75  # of the data's range is the most that the band may add on each side
_PICKED_LOOK = {"colour": "green", "opacity": 0.8, "label": PICKED.label}
_OBSERVED = (0.025, 0.975)  # quantiles of observations
DRAWS = 400  # that a prediction is made of, evenly spread over the chains


class Prediction(Figure):
    """Draw the predictions of the network: a band for one input, a map for two, each test row for more."""

    name, title = "prediction", "Prediction"
    needs = ("prediction",)
    place = 3
    touch = {}
    x, y = Axis("input", (-1.0, 1.0), "exact"), Axis("output", (-1.0, 1.0), "exact")
    rows: Any = ()  # the data points: x, y, and on a map the class

    def begin(self, scene: dict[str, Any]) -> None:
        """Take the new run's data."""
        super().begin(scene)
        data, self.rows = scene.get("data"), ()
        if data is not None and data["kind"] in (BAND, MAP):
            columns = [data["x"], data["y"], *([data["class"]] if data["kind"] == MAP else [])]
            self.rows = np.column_stack(columns)

    def blank(self) -> Drawing:
        """Return the data of the scene."""
        data = self.scene.get("data")
        if data is None:
            return self.drawing()
        marks = self._points(data["kind"], data) if data["kind"] in (BAND, MAP) else []
        return Drawing(marks, title=_title(data), **axes_of(data))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw a part of one of four kinds."""
        data = self.scene["data"]
        return {BAND: self._band, MAP: self._map, AGAINST: _against, ROWS: _test_rows}[part["kind"]](data, part)

    def _band(self, data: dict[str, Any], part: dict[str, Any]) -> Drawing:
        futures, x = part.get("futures", ()), part["x"]
        marks = band_of(part)
        if np.size(part.get("functions", ())):
            marks.append(Line(*gapped(x, part["functions"]), 1.0, colour="blue", opacity=0.45, label="draws"))
        for name in ("observed_lo", "observed_hi"):
            if name in part:
                marks.append(Line(x, part[name], 1.5, (6, 4), colour="blue", label="95% of observations"))
        if self._picked.size:
            marks.append(Line(*gapped(x, self._picked), 1.6, **_PICKED_LOOK))
        marks.append(Line(x, part["mean"], 2.6, label="mean"))
        if "current" in part:
            marks.append(Line(x, part["current"], 2.6, colour="orange", label="now"))
        for other in futures:
            number = future(other["letter"])
            for name, width in (("mean", 3.0), ("lo95", 1.5), ("hi95", 1.5)):
                dash = () if width > 2 else (5, 4)
                marks.append(Line(other["x"], other[name], width, dash, colour=chain(number), label=other["letter"]))
        ends = [band[name] for band in (part, *futures) for name in ("lo95", "hi95")]
        axes = axes_of(data) | {"y": Axis(data["y_label"], limited(data, extent(*ends, data["y_range"])))}
        return Drawing([*marks, *self._points(BAND, data)], note=_from(part), title=TITLES[BAND], **axes)

    def _map(self, data: dict[str, Any], part: dict[str, Any]) -> Drawing:
        edges = [("mean", 3.0, (), "boundary"), ("current", 2.0, (5, 4), "now")]
        lines = [
            Line(*_boundary(data, part[name]), width, dash, label=label)
            for name, width, dash, label in edges
            if name in part
        ]
        if self._picked.size:
            lines.insert(0, Line(*np.hstack([_boundary(data, each) for each in self._picked]), 1.6, **_PICKED_LOOK))
        image = map_of(data, part["mean"], RAMP, 1.0, _title(data))
        marks = [image, *lines, *self._points(MAP, data)]
        return Drawing(marks, note=_from(part), title=_title(data), size=SQUARE, **axes_of(data))

    @property
    def _picked(self) -> np.ndarray:
        """The functions (n, points) of the draws that are selected."""
        return np.atleast_2d(self.selection.get("functions", np.empty((0, 0))))

    def _points(self, kind: str, data: dict[str, Any]) -> list[Mark]:
        """Return the data, which a page may let a reader move."""
        table = np.asarray(self.rows, dtype=float) if len(self.rows) else np.empty((0, 3))
        if kind == BAND:
            # One mark holds all points: a reader moves them by their numbers.
            look = {"fill": "surface", "label": "data", "editable": True, "still": True}
            return [Points(table[:, 0], table[:, 1], DATA, 7, 1.8, **look)]
        marks: list[Mark] = []
        for code, (of, name) in enumerate(zip(CLASSES, _class_names(data), strict=True)):
            at = np.where((table[:, 2] == code)[:, None], table[:, :2], np.nan)  # with the numbers of the rows
            look = {"colour": "ink", "fill": of.role, "label": name, "still": True}
            marks.append(Points(at[:, 0], at[:, 1], of, 9, editable=True, **look))
        return marks


def band_of(part: dict[str, Any]) -> list[Mark]:
    """Return the bands that hold 95 and 50% of the functions of draws."""
    ends = (("lo95", "hi95", WIDE, "95%"), ("lo50", "hi50", NARROW, "50%"))
    return [
        Band(part["x"], part[low], part[high], colour="blue", opacity=o, label=label) for low, high, o, label in ends
    ]


def limited(data: dict[str, Any], need: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the range of the axis, ignoring wide bands of early draws."""
    low, high = map(float, data["y_range"] if "y_range" in data else data["range"])
    room = ROOM * (high - low)
    return None if need is None else (max(need[0], low - room), min(need[1], high + room))


def map_of(data: dict[str, Any], values: Any, ramp: tuple[str, ...], high: float, label: str) -> Image:
    """Return values on the grid of the map's inputs."""
    box = (*map(float, data["x_range"]), *map(float, data["y_range"]))
    return Image(np.asarray(values), box, int(data["columns"]), ramp, 0.0, high, label=label, ends=("0", f"{high:g}"))


def _boundary(data: dict[str, Any], probabilities: Any) -> np.ndarray:
    """Return the line (2, points) on which a function on the map's grid is one half."""
    across = int(data["columns"])
    grid = np.asarray(probabilities, dtype=float).reshape(-1, across)
    axes = np.linspace(*data["x_range"], across), np.linspace(*data["y_range"], len(grid))
    return level_line(*axes, grid, 0.5).T


def _class_names(data: dict[str, Any]) -> list[str]:
    return [f"class {name}" if name.isdigit() else name[:12] for name in map(str, data["class_names"])]


def _title(data: dict[str, Any]) -> str:
    return f"P({_class_names(data)[1]})" if data["kind"] == MAP else TITLES[data["kind"]]


def axes_of(data: dict[str, Any]) -> dict[str, Axis]:
    """Return the axes of the scene."""
    if data["kind"] == AGAINST:
        ends = tuple(map(float, data["range"]))
        return {"x": Axis(f"observed {data['label']}", ends, "exact"), "y": Axis("predicted", ends, "exact")}
    if data["kind"] == ROWS:
        rows = float(len(data["observed"]))
        x = Axis("test row, the surest first", (-1.0, rows), "exact")
        return {"x": x, "y": Axis("probability of its class", (-0.02, 1.02), "exact")}
    return {axis: Axis(data[f"{axis}_label"], tuple(map(float, data[f"{axis}_range"])), "exact") for axis in "xy"}


def _from(part: dict[str, Any]) -> str:
    noise = "" if part.get("noise") is None else f"noise sd {part['noise']:.3g} · "
    if "draws" not in part:
        return noise
    return noise + ("warm-up" if part.get("settling") else f"from {part['draws']:,} draws")


def _against(data: dict[str, Any], part: dict[str, Any]) -> Drawing:
    # By observed value, so that equal frames give equal columns.
    order = np.argsort(part["observed"])
    observed, low, high = (np.asarray(part[name], dtype=float)[order] for name in ("observed", "lo", "hi"))
    inside = (low <= observed) & (observed <= high)
    ends = extent(observed, data["range"])
    same = Line(ends, ends, 1.5, (6, 4), colour="axis", label="predicted = observed")
    rows = _rows(part, order, observed, inside, (INSIDE, OUTSIDE), "95% interval")
    units = f"RMSE {general(part['rmse'])} (units of the target) · NLL {part['nll']:.2f} (standardised)"
    note = f"{units} · {100 * part['coverage']:.0f}% inside"
    y = Axis("predicted", limited(data, extent(low, high, data["range"])))
    return Drawing([same, *rows], x=Axis(f"observed {data['label']}", ends), y=y, note=note, title=TITLES[AGAINST])


def _test_rows(data: dict[str, Any], part: dict[str, Any]) -> Drawing:
    order = np.argsort(-np.asarray(part["mean"], dtype=float))
    right = np.asarray(part["right"], dtype=bool)[order]
    rows = _rows(part, order, np.arange(len(order)), right, (RIGHT, WRONG), "95% of draws")
    note = f"accuracy {100 * part['accuracy']:.1f}% · NLL {part['nll']:.2f}"
    return Drawing(rows, note=note, title=TITLES[ROWS], **axes_of({"kind": ROWS, "observed": order}))


def _rows(
    part: dict, order: np.ndarray, at: np.ndarray, good: np.ndarray, kinds: tuple[Kind, Kind], label: str
) -> list:
    """Mark the predictions of test rows, good or not, their intervals, and those of the present network."""
    mean, low, high = (np.asarray(part[name], dtype=float)[order] for name in ("mean", "lo", "hi"))
    marks: list[Mark] = [whiskers(at, low, high, colour="blue", opacity=0.55, label=label)]
    if "current" in part:
        marks.append(Points(at, np.asarray(part["current"], dtype=float)[order], NOW, 10, 2.4, label="now"))
    for kind, own, size in zip(kinds, (good, ~good), (7, 8), strict=True):
        marks.append(Points(at[own], mean[own], kind, size, 1.8, label=kind.label))
    return marks


def prediction(source: Any, *, observations: bool = False) -> Drawing:
    """Plot the predictions of a network for up to 400 evenly spaced draws.

    For one input, the figure shows the mean of the functions and central 50% and 95% bands, and optionally the 95%
    predictive interval of *observations*. For two inputs and two classes, it shows the probability of the second class
    with the decision boundary. For other data, it shows predicted against observed values of the test rows with 95%
    predictive intervals, or the probability of the observed class of each row.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A network on data, or the part ``prediction`` of a frame, with its scene under ``scene``.
    observations : bool, default False
        Whether to show the 95% predictive interval of observations.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> network = {"data": "toy_c", "hidden": "5", "prior_sd": 2.0}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=40, warmup=20, chains=2)
    >>> plots.prediction(run, observations=True)
    :Overlay...
    """
    if isinstance(source, Mapping):
        scene, part = parts.part(source, "prediction", "prediction")
        data = scene.get("data")
    else:
        predictor, theta = network(source)
        data, part = predictor.scene(), predictor.part_of("prediction", theta, theta[-1])
    kind = str(part.get("kind"))
    if kind not in TITLES or data is None:
        raise BnnvizError("The prediction has no scene with data; give a run, or both parts of a frame.", "source")
    if observations:
        part = part | _observations(source, kind, part)
    if kind == AGAINST and not isinstance(source, Mapping):
        part = part | _intervals(predictor, theta)
    figure = Prediction()
    figure.begin({"data": data})
    return figure.draw({name: value for name, value in part.items() if name != "current"})


def _observations(source: Any, kind: str, part: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the ends of 95% of the observations along a band."""
    if kind != BAND:
        raise BnnvizError(
            "Only the band of a regression on one input has lines of observations; the intervals of test rows are of"
            " observations already.",
            "observations",
        )
    if isinstance(source, Mapping):
        raise BnnvizError("A part of a frame has no observations. Use a run or a recording.", "observations")
    from bnnviz.engine.evaluation.predictive_distribution import predict

    found = predict(parts.network_draws(source), np.asarray(part["x"], dtype=float)[:, None], _OBSERVED)
    return {f"observed_{end}": found.quantiles[level] for end, level in zip(("lo", "hi"), _OBSERVED, strict=True)}


def _intervals(predictor: Any, theta: Any) -> dict[str, Any]:
    """Return the ends of 95% intervals of the test rows, which a frame approximates by symmetric ones."""
    from bnnviz.engine.evaluation.observables import ObservationLaw, quantiles

    law = ObservationLaw(predictor.target, theta, predictor.target.outputs(theta, predictor.inputs))
    low, high = (each.ravel() for each in quantiles(law, np.full(len(theta), 1 / len(theta)), _OBSERVED))
    inside = (low <= predictor.observed) & (predictor.observed <= high)
    return {"lo": low, "hi": high, "coverage": float(inside.mean())}


def network(source: Any) -> tuple[Any, Any]:
    """Return the predictive function of a network, and equally weighted draws."""
    from bnnviz.engine.evaluation.predictions import Predictor, evenly

    given = parts.network_draws(source)
    if given.log_weights is None:
        chosen = evenly(len(given.theta), DRAWS)
    else:
        chosen = diagnostics.systematic(given.log_weights, DRAWS)
    return Predictor(given.target), given.theta[chosen]


def prior_predictive(posterior: BNN, *, seed: int = 0, observations: bool = False) -> Drawing:
    """Plot the predictions of a network for 400 draws from its prior, and the data.

    The figure is that of `prediction`. For one input, its vertical axis covers the whole bands.

    Parameters
    ----------
    posterior : BNN
        The network and its data.
    seed : int, default 0
        Seed of the draws.
    observations : bool, default False
        Whether to show the 95% predictive interval of observations.

    Examples
    --------
    >>> import bnnviz
    >>> import torch
    >>> from bnnviz import plots
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    >>> x = torch.linspace(-1, 1, 20)[:, None]
    >>> plots.prior_predictive(bnnviz.BNN(net, (x, x[:, 0] ** 2), noise_sd=0.1))
    :Overlay...
    """
    from bnnviz.engine.evaluation.metrics import prior_draws
    from bnnviz.targets import BNN

    if not isinstance(posterior, BNN):
        raise BnnvizError(f"Give a BNN, not {type(posterior).__name__}.", "posterior")
    drawing = prediction(prior_draws(posterior, DRAWS, seed), observations=observations)
    bands = [end for mark in drawing.marks if isinstance(mark, Band) for end in (mark.low, mark.high)]
    y = replace(drawing.y, ends=extent(*bands, drawing.y.ends))
    return replace(drawing, title="Prior predictive", y=y)
