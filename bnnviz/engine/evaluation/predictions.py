"""Predict with the draws of a network, updated as draws come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics
from bnnviz.engine.evaluation.observables import ObservationLaw
from bnnviz.engine.protocol import AnyRun
from bnnviz.engine.run.draw_store import DrawStore
from bnnviz.targets import BNN

_GRID = 100
_MAP = 36  # points per side of a map
_MOST = 400
_SETTLING = 16  # draws of the warm-up of each chain, until there are enough others
_BAND_DRAWS = 24  # minimum draws of a band; until then those of the warm-up are shown too
_CHUNK = 64
_LAYER_NUMBERS = 2_000_000  # activations of one layer, in draws x rows x units
_FUNCTIONS = 20
_INTERVAL_ROWS = 120
_NOTHING = 1e-6  # of the largest weight

Key = tuple[int, int]  # the chain and number of a draw


class Predictor:
    """Predict by a thinned selection of draws, evaluated once each.

    A regression on one input is predicted on a line of inputs (kind ``band``), a choice between two classes on
    two inputs on a grid (``area``), everything else on the test rows: ``intervals`` for a regression, ``classes``
    for a choice between classes. All numbers are in original units but the nll, which is that of `scores`.
    """

    def __init__(self, target: BNN) -> None:
        self.target = target
        # Integer inputs have no line or map.
        inputs, likelihood = 0 if target.whole else target.x.shape[1], target.likelihood
        if likelihood.task == "outputs":
            self.kind = "outputs"
        elif likelihood.task == "regression":
            self.kind = "band" if inputs == 1 and likelihood.columns == 1 else "intervals"
        else:
            self.kind = "area" if inputs == 2 and likelihood.name == "bernoulli" else "classes"
        self.forget()
        data, (x, y) = target.data_set, training_rows(target)
        #: The map to the network's scale; None for images, and for data without one.
        self.scale = getattr(data, "standardiser", None)
        if self.kind == "band":
            self.range = _widened(x[:, 0], 0.3)
            reach = None if data is None else data.test_interval
            if reach is not None:  # points that a user draws may lie outside
                outside = len(x) and (x.min() < reach[0] or x.max() > reach[1])
                self.range = (min(reach[0], self.range[0]), max(reach[1], self.range[1])) if outside else reach
            raw = np.linspace(*self.range, _GRID)[:, None]
        elif self.kind == "area":
            sides = (_widened(x[:, 0], 0.25), _widened(x[:, 1], 0.25))
            self.box = sum(data.test_box if data is not None and data.test_box else sides, ())
            sides = np.linspace(*self.box[:2], _MAP), np.linspace(*self.box[2:], _MAP)
            raw = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        else:
            self.inputs = target.held_out()[0][:_INTERVAL_ROWS]
            self.observed = (y if data is None else data.y_test)[:_INTERVAL_ROWS].ravel()
            return
        self.raw = raw
        inputs = raw if data is None else self.scale.x(raw)
        self.inputs = torch.as_tensor(inputs, dtype=target.dtype, device=target.device)

    def forget(self) -> None:
        """Drop all predictions, after a change of the draws."""
        self._width = 0
        self.keys: list[Key] = []
        self.values = np.empty((0, 0))

    def functions(self, theta: Tensor, most: int | None = None) -> np.ndarray:
        """Return predictions (draws, inputs) in original units, or class probabilities, of weights (draws, dim)."""
        inputs = self.inputs if most is None else self.inputs[evenly(len(self.inputs), most)]
        parts = [self.target.outputs(part, inputs) for part in torch.split(theta, _CHUNK)]
        f = torch.cat(parts)
        if self.kind == "area":
            return torch.sigmoid(f[..., 0]).float().cpu().numpy()
        if self.kind == "classes":
            if self.target.likelihood.name == "bernoulli":
                probabilities = torch.cat([torch.sigmoid(-f), torch.sigmoid(f)], -1)
            else:
                probabilities = self.target.likelihood_at(theta.to(f)).mean(f)
            return probabilities.flatten(1).float().cpu().numpy()
        if self.kind == "outputs":
            return f.flatten(1).double().cpu().numpy()
        values = self.target.likelihood_at(theta.to(f)).mean(f).double().cpu().numpy()
        return (values if self.scale is None else self.scale.y_back(values)).reshape(len(values), -1)

    def _rows(self, theta: Tensor) -> np.ndarray:
        """Return functions of weights (draws, dim), for a regression with noise sds and observations' log densities."""
        if self.kind not in ("band", "intervals"):
            functions = self.functions(theta)
            self._width = functions.shape[1]
            return functions
        law = ObservationLaw(self.target, theta, self.target.outputs(theta, self.inputs))
        parts = [law.means.reshape(len(theta), -1), law.sds.reshape(len(theta), -1)]
        self._width = parts[0].shape[1]
        if self.kind == "intervals":
            parts.append(law.log_density(self.observed.reshape(law.means.shape[1:])))
        return np.column_stack(parts)

    def update(self, store: DrawStore, alive: np.ndarray, current: Tensor) -> np.ndarray:
        """Predict the selected draws that are not known yet, and the current point; return the row of the latter."""
        chosen = chosen_draws(store, alive, _MOST)
        place = {key: row for row, key in enumerate(self.keys)}
        missing = [key for key in chosen if key not in place]
        # Together: for a small network a call costs more than its rows.
        found = self._rows(torch.cat([weights(store, missing), current[None]]))
        if chosen != self.keys:
            place.update((key, len(self.keys) + row) for row, key in enumerate(missing))
            rows = np.concatenate([self.values, found[:-1]]) if self.keys else found[:-1]
            self.keys, self.values = chosen, rows[[place[key] for key in chosen]]
        return found[-1]

    def scene(self) -> dict[str, Any]:
        """Return the static view data, with the training rows if they can be drawn and whether they may be edited."""
        target, data = self.target, self.target.data_set
        if self.kind == "classes":
            return {"kind": self.kind, "observed": self.observed}
        if self.kind == "intervals":
            unit = "" if data is None or not data.y_unit else f", {data.y_unit}"
            label = "observed" if data is None else f"{data.y_label}{unit}"
            return {
                "kind": self.kind,
                "observed": self.observed,
                "label": label,
                "range": _widened(self.observed, 0.15),
            }
        x, y = training_rows(target)
        shown = {
            "kind": self.kind,
            "x": x[:, 0],
            "editable": "points" in target.param and target.param["points"].live,
        }
        if self.kind == "band":
            return shown | {
                "y": y,
                "x_label": "x" if data is None else data.x_label,
                "y_label": "y" if data is None else data.y_label,
                "x_range": tuple(float(v) for v in self.range),
                "y_range": _widened(y if len(y) > 1 or data is None else data.y_test, 0.6),
            }
        x_label, y_label = ("x1", "x2") if data is None else data.x_names
        return shown | {
            "y": x[:, 1],
            "class": y,
            "class_names": ["0", "1"] if data is None else list(data.class_names),
            "x_label": x_label,
            "y_label": y_label,
            "x_range": self.box[:2],
            "y_range": self.box[2:],
            "columns": _MAP,
        }

    def part(self, name: str, store: DrawStore, alive: np.ndarray, current: Tensor) -> dict[str, Any]:
        """Return the frame part ``prediction``, or ``spread`` for a map; of few draws with the last of the warm-up."""
        now, values = self.update(store, alive, current), self.values
        ended = alive.any() and store.full()[alive].all()
        settling = len(self.keys) < _BAND_DRAWS and not ended
        if settling:
            early = store.settling(alive)[:, -_SETTLING:].flatten(0, 1)
            found = self._rows(early) if len(early) else values
            values = np.concatenate([values, found]) if len(values) else found
        values = values if len(values) else now[None]
        return {"sd": values.std(0)} if name == "spread" else self._part(values, now, len(self.keys), settling)

    def part_of(self, name: str, theta: Tensor, current: Tensor) -> dict[str, Any]:
        """Return the frame part of these draws (draws, dim), or of the current point."""
        if name == "spread":
            return {"sd": self._rows(theta).std(0)} if len(theta) else {}
        now = self._rows(current[None])
        return self._part(self._rows(theta) if len(theta) else now, now[0], len(theta), not len(theta))

    def _part(self, values: np.ndarray, now: np.ndarray, draws: int, settling: bool) -> dict[str, Any]:
        if self.kind == "area":
            drawn = {"mean": values.mean(0)}
        elif self.kind == "classes":
            drawn, now = self._classes(values), self._classes(now[None])["mean"]
        else:
            drawn = self._band(values) if self.kind == "band" else self._intervals(values)
            now = now[: self._width]
        return {"kind": self.kind, "current": now, "draws": draws, "settling": settling, **drawn}

    def _band(self, rows: np.ndarray) -> dict[str, Any]:
        values, noise = rows[:, : self._width], rows[:, -1]
        low95, low50, high50, high95 = diagnostics.column_quantiles(values, [0.025, 0.25, 0.75, 0.975])
        mean, observed = values.mean(0), {}
        if self.target.noise_is_learned:
            reach = 1.96 * np.sqrt(values.var(0) + (noise**2).mean())
            observed = {"observed_lo": mean - reach, "observed_hi": mean + reach}
        return {
            "x": self.raw[:, 0],
            "mean": mean,
            "lo50": low50,
            "hi50": high50,
            "lo95": low95,
            "hi95": high95,
            "functions": values[evenly(len(values), _FUNCTIONS)],
            "noise": float(noise.mean()) if self.target.noise_is_learned else None,
            **observed,
        }

    def _classes(self, values: np.ndarray) -> dict[str, Any]:
        """Return the probability of each row's observed class, and whether it is the likeliest one."""
        rows, observed = len(self.inputs), self.observed.astype(int)
        probabilities = values.reshape(len(values), rows, -1)
        own = probabilities[:, np.arange(rows), observed]
        low, high = diagnostics.column_quantiles(own, [0.025, 0.975])
        right = probabilities.mean(0).argmax(-1) == observed
        mean = own.mean(0)
        nll = -np.log(np.maximum(mean, 1e-30)).mean()
        figures = {"accuracy": float(right.mean()), "nll": float(nll)}
        return {"mean": mean, "lo": low, "hi": high, "right": right, **figures}

    def _intervals(self, rows: np.ndarray) -> dict[str, Any]:
        width = self._width
        values, noise = rows[:, :width], rows[:, width : 2 * width]
        mean, sd = values.mean(0), np.sqrt(values.var(0) + (noise**2).mean(0))
        low, high = mean - 1.96 * sd, mean + 1.96 * sd
        inside = (self.observed >= low) & (self.observed <= high)
        density = rows[:, 2 * width :]
        nll = np.log(len(density)) - np.logaddexp.reduce(density, axis=0).mean()
        return {
            "observed": self.observed,
            "mean": mean,
            "lo": low,
            "hi": high,
            "rmse": float(np.sqrt(np.mean((mean - self.observed) ** 2))),
            "nll": float(nll),
            "coverage": float(inside.mean()),
        }

    def through(self, box: tuple[float, float, float, float]) -> list[Key]:
        """Return the known draws whose function passes through a box (x0, x1, y0, y1); only for a band."""
        if self.kind != "band" or not self.keys:
            return []
        x0, x1, y0, y1 = box
        x = self.raw[:, 0]
        # A box narrower than the grid still includes two of its points.
        first, last = np.searchsorted(x, x0, side="right") - 1, np.searchsorted(x, x1, side="left")
        columns = slice(max(first, 0), min(last, len(x) - 1) + 1)
        values = self.values[:, : self._width][:, columns]
        within = ((values >= y0) & (values <= y1)).any(1) | ((values.min(1) < y0) & (values.max(1) > y1))
        return [key for key, chosen in zip(self.keys, within, strict=True) if chosen]


def training_rows(target: BNN) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (rows, inputs) and observations (rows,) of the training rows, in original units."""
    data = target.data_set
    if data is not None:
        return data.x_train, data.y_train
    return target.x.double().cpu().numpy(), target.y.double().cpu().numpy()


def evenly(count: int, most: int) -> np.ndarray:
    """Return at most ``most`` evenly spaced indices below ``count``."""
    return np.linspace(0, count - 1, min(most, count)).astype(int)


def chosen_draws(store: DrawStore, alive: np.ndarray, most: int) -> list[Key]:
    """Return (chain, number) of at most ``most`` evenly spread draws of the living chains."""
    # Multiples of the smallest sufficient power of two, so that a choice from more draws reuses the known ones.
    chains = np.flatnonzero(alive).tolist()
    count = store.common(alive)
    stride = 1
    while len(chains) * -(-count // stride) > most:
        stride *= 2
    return [(c, slot * store.every) for slot in range(0, count, stride) for c in chains]


def weights(store: DrawStore, keys: list[Key]) -> Tensor:
    """Return the draws (n, dim) of (chain, number)."""
    chain = torch.tensor([c for c, _ in keys], dtype=torch.long, device=store.buffer.device)
    slot = torch.tensor([number // store.every for _, number in keys], dtype=torch.long, device=store.buffer.device)
    return store.buffer[chain, slot]


def _widened(values: np.ndarray, share: float) -> tuple[float, float]:
    """Return the range of values, widened by a fraction on each side."""
    if not len(values):
        return (-1.0, 1.0)
    low, high = float(np.min(values)), float(np.max(values))
    room = share * max(high - low, 1e-6)
    return (low - room, high + room)


def at_once(target: BNN, rows: int) -> int:
    """Return the number of draws to predict for ``rows`` at a time: a cache holds only a few layers."""
    return max(1, min(_CHUNK, _LAYER_NUMBERS // max(rows * target.widest, 1)))


def averaged(target: BNN, draws: Tensor, weights: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Return the mean prediction of draws at the test rows, and its nll.

    The mean is (rows,), (rows, columns) or (rows, classes): in original units for a regression, and the outputs for a
    likelihood that is a function. ``weights`` sum to 1; None for equal ones.
    """
    x, y = target.held_out()
    flat = draws.reshape(-1, draws.shape[-1])
    shares = np.full(len(flat), 1 / len(flat)) if weights is None else weights.ravel()
    # Most draws of a population may have negligible weight.
    kept = np.flatnonzero(shares > _NOTHING * shares.max())
    if len(kept) < len(flat):
        flat, shares = flat[torch.as_tensor(kept, device=flat.device)], shares[kept] / shares[kept].sum()
    total, log_sum, size = 0.0, [], at_once(target, len(x))
    shares = torch.as_tensor(shares, device=flat.device)
    for begin in range(0, len(flat), size):
        part, share = flat[begin : begin + size], shares[begin : begin + size]
        f = target.outputs(part, x)
        likelihood = target.likelihood_at(part)
        # A likelihood that is a function has no expected observations.
        expected = f if target.likelihood.task == "outputs" else likelihood.mean(f)
        total = total + torch.tensordot(share, expected.double(), 1).cpu()
        density = likelihood.log_density(f, y).double()
        log_sum.append(torch.logsumexp(density + share.log()[:, None], 0).cpu())
    nll = float(-torch.logsumexp(torch.stack(log_sum), 0).mean())
    if target.likelihood.task == "classification":
        return (total if total.ndim > 1 else torch.stack([1 - total, total], -1)).numpy(), nll
    scale = None if target.data_set is None else target.data_set.standardiser
    mean = total.numpy()
    return (mean if scale is None else scale.y_back(mean)).ravel(), nll


def observed_rows(target: BNN) -> np.ndarray:
    """Return the observations of the test rows, in original units or as class indices, one column after another."""
    return (target.y.double().cpu().numpy() if target.data_set is None else target.data_set.y_test).ravel()


def scores(target: BNN, draws: Tensor, weights: np.ndarray | None = None) -> dict[str, float]:
    """Return nll of the averaged predictive with rmse (original units), or accuracy and ece; see `averaged`."""
    mean, nll = averaged(target, draws, weights)
    if target.likelihood.task == "outputs":
        return {"nll": nll}
    y = observed_rows(target)
    if target.likelihood.task == "classification":
        right = float((mean.argmax(-1) == y).mean())
        return {"accuracy": right, "ece": diagnostics.calibration_error(mean, y), "nll": nll}
    return {"rmse": float(np.sqrt(np.square(mean - y).mean())), "nll": nll}


#: Weighted draws are resampled after this growth of their number.
_WEIGHED_AGAIN = 1.3


class DrawTable:
    """Cache a function of evenly thinned, or resampled weighted, draws: ``evaluate`` returns (n, ...) for (n, dim)."""

    def __init__(self, run: AnyRun, evaluate: Callable[[Tensor], np.ndarray]) -> None:
        self._run, self._evaluate = run, evaluate
        self._known: dict[Any, np.ndarray] = {}
        self._resampled: tuple[int, Tensor] = (0, torch.empty(0))

    @property
    def keys(self) -> list[Any]:
        """The evaluated draws."""
        return list(self._known)

    @property
    def rows(self) -> np.ndarray:
        """Values (draws, ...) of the evaluated draws."""
        return np.array(list(self._known.values()))

    def missing(self, most: int) -> list[Any]:
        """Return those of at most ``most`` chosen draws that are not evaluated yet."""
        return [key for key in self._chosen(most) if key not in self._known]

    def fill(self, most: int, at_once: float = np.inf) -> None:
        """Evaluate missing draws of at most ``most`` chosen ones, and forget all others."""
        chosen = self._chosen(most)
        missing = self.missing(most)[: int(min(at_once, len(chosen)))]
        if missing:
            self._known.update(zip(missing, self._evaluate(self.draws(missing)), strict=True))
        self._known = {key: self._known[key] for key in chosen if key in self._known}

    def draws(self, keys: list[Any]) -> Tensor:
        """Return draws (n, dim)."""
        return self._resampled[1][keys] if self._run.sampler.traits.weighted else weights(self._run.store, keys)

    def values(self, most: int, at_once: float = np.inf) -> np.ndarray:
        """Return the values (chains, draws, values) of at most ``most`` draws of all living chains."""
        self.fill(most, at_once)
        # The keys of a slot are adjacent: the known ones are the start of every chain.
        chains = max(int(self._run.alive.sum()), 1)
        rows = self.rows[: len(self._known) // chains * chains].astype(float)
        return rows.reshape(-1, chains, rows.shape[1]).swapaxes(0, 1) if rows.size else np.empty((chains, 0, 1))

    def _chosen(self, most: int) -> list[Any]:
        run = self._run
        if not run.sampler.traits.weighted:
            return chosen_draws(run.store, run.alive, most)
        made = int(run.store.counts.sum())
        if made > _WEIGHED_AGAIN * self._resampled[0]:
            self._resampled, self._known = (made, run.resampled(most)), {}
        return list(range(len(self._resampled[1])))
