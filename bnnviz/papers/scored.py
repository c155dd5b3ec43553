"""Experiments whose figures are of single draws' predictions on test rows, and the arrays of their pictures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.prediction import observed_rows
from bnnviz.engine.run import Run
from bnnviz.engine.scoring import chosen, measure, predict
from bnnviz.errors import BnnvizError
from bnnviz.papers import store
from bnnviz.papers.experiment import Case, Experiment, standard_error
from bnnviz.spec import Spec

_SLICE_S = 0.5
_PILOT_S = 2.0
_RESAMPLES = 100
_LABELS = {"auc": "AUC", "auc_weighted": "AUC"}
_ROWS = 4  # whose chances are drawn
PICTURES = ("roc", "history", "confusion", "chances", "errors2")


@dataclass(frozen=True)
class Scored(Experiment):
    """A table or figure whose numbers are means and standard deviations over single draws.

    Its runs are kept on disk, so that one that was interrupted goes on with those that are missing.

    Parameters
    ----------
    measures : tuple of str
        Figures of `bnnviz.measure`; or ``seconds``: of the run; or ``test_ms``: to predict one row by 100 draws.
    pictures : tuple of str
        What is drawn of the runs: ``roc``, ``history``, ``confusion``, ``chances``, ``errors2``.
    followed : tuple of str
        The figures that a history is of.
    together : bool
        Whether the cases' ROC curves, histories or errors stand in one picture.
    later : str
        Why it cannot be run yet, in a sentence; "" where it can.
    """

    pictures: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()
    together: bool = False
    later: str = ""

    @property
    def drawn(self) -> bool:
        """Whether it has a figure."""
        return bool(self.pictures)

    @property
    def keeps(self) -> bool:
        """Whether its runs are kept on disk."""
        return True

    def check(self) -> None:
        """Raise a `BnnvizError` if it cannot be run yet."""
        if self.later:
            raise BnnvizError(self.later, "experiment")

    def kept(self, repetitions: int | None = None) -> int:
        """Return how many of its runs are on disk."""
        return sum(self._read(spec) is not None for case in self.cases for spec in case.specs[:repetitions])

    def _place(self, spec: Spec) -> Any:
        return store.place(spec.checked().to_json(), [*self.pictures, *self.followed])

    def _read(self, spec: Spec) -> dict[str, Any] | None:
        return store.read(self._place(spec))

    def seconds(self, repetitions: int | None = None) -> float:
        """Return about how long the missing runs take here, from the first two seconds of one run of each case.

        A run that has no draws by then, such as one that is still trained, counts as ten times that.
        """
        total = 0.0
        for case in self.cases:
            missing = [spec for spec in case.specs[:repetitions] if self._read(spec) is None]
            if missing:
                total += len(missing) * _pilot(missing[0])
        return total

    def reproduce(self, repetitions: int | None = None) -> Iterator[tuple[Case, int, dict[str, Any]]]:
        """Run the cases, or read what is kept of them, and yield (case, repetition, summary)."""
        self.check()
        for case in self.cases:
            for i, spec in enumerate(case.specs[:repetitions]):
                found = self._read(spec)
                if found is None:
                    found = self._run(spec)
                    store.write(self._place(spec), found)
                yield case, i, found

    def _run(self, spec: Spec) -> dict[str, Any]:
        run = Run(spec)
        while not run.finished:
            run.advance(_SLICE_S)
        if run.error is not None:
            return {
                "error": run.error,
                "figures": {},
                "sds": {},
                "averaged": {},
                "pictures": {},
                "seconds": run.seconds,
            }
        draws, logs = _last(run, "history" in self.pictures)
        found = measure(run.target, draws, logs)
        figures = {name: one["mean"] for name, one in found["per_draw"].items()}
        return {
            "figures": figures | {"seconds": run.seconds, "test_ms": _test_ms(run, draws)},
            "sds": {name: one["sd"] for name, one in found["per_draw"].items()},
            "averaged": found["averaged"],
            "weights_ess": found["weights_ess"],
            "unknown": found["unknown"],
            "seconds": run.seconds,
            "pictures": {name: _PICTURES[name](self, run, draws, logs, found) for name in self.pictures},
        }

    def row(self, case: Case, summaries: Any) -> dict[str, Any]:
        """Return a case's figures: of each the mean over runs of its mean over draws, and what goes with it.

        ``<figure>_se``: the standard error over runs; ``_sd``: the mean standard deviation over draws; ``_averaged``:
        that of the averaged predictive; ``_published`` and ``_published_sd``: the paper's.
        """
        summaries = list(summaries)
        row: dict[str, Any] = {"experiment": self.name, "case": case.name, "runs": len(summaries)}
        for key in self.measures:
            values = _known(summaries, "figures", key)
            row[key], row[f"{key}_se"] = _mean(values), standard_error(values)
            row[f"{key}_sd"] = _mean(_known(summaries, "sds", key))
            row[f"{key}_averaged"] = _mean(_known(summaries, "averaged", key))
            row[f"{key}_published"] = case.published.get(key)
            row[f"{key}_published_sd"] = case.published.get(f"{key}_sd")
        row["weights_ess"] = _mean([s["weights_ess"] for s in summaries if s.get("weights_ess") is not None])
        failed = [s["error"] for s in summaries if s.get("error")]
        return row | {"note": " ".join([case.note, *failed[:1]]).strip()}

    def panels(self, done: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, dict[str, Any]]]:
        """Return (heading, view, part) of each picture of the first run of each case.

        Parameters
        ----------
        done : dict of str to list of dict
            What `reproduce` gave, by the cases' names.
        """
        firsts = [(case.name, done[case.name][0]["pictures"]) for case in self.cases if done.get(case.name)]
        firsts = [(name, pictures) for name, pictures in firsts if pictures]
        return [panel for picture in self.pictures for panel in self._panels_of(picture, firsts)]

    def _panels_of(self, picture: str, firsts: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str, dict]]:
        parts = [(name, pictures[picture]) for name, pictures in firsts if pictures.get(picture) is not None]
        if picture == "roc":
            curves = [(name, part | {"name": name}) for name, part in parts]
            if self.together:
                return [("All methods", "roc", {"curves": [curve for _, curve in curves]})]
            return [(name, "roc", {"curves": [curve]}) for name, curve in curves]
        if picture == "history":
            return [(_LABELS.get(f, f), "history", _joined(parts, f)) for f in self.followed]
        if picture == "errors2":
            return [("Squared errors", "errors2", {"boxes": [part | {"name": name} for name, part in parts]})]
        if picture == "chances":
            return [(name, "chances", one) for name, part in parts for one in part]
        return [(name, picture, part) for name, part in parts]


def _known(summaries: list[dict[str, Any]], kind: str, key: str) -> list[float]:
    return [s[kind][key] for s in summaries if s[kind].get(key) is not None]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _joined(parts: list[tuple[str, dict]], figure: str) -> dict[str, Any]:
    """Return the part of a history: the same figure of all cases."""
    lines = [{"name": name, "iteration": part["iteration"], **part[figure]} for name, part in parts]
    return {"label": _LABELS.get(figure, figure), "lines": lines}


def _pilot(spec: Spec) -> float:
    """Return about how many seconds a run takes, from the first few."""
    run = Run(spec)
    begun = time.perf_counter()
    while not run.finished and time.perf_counter() - begun < _PILOT_S:
        run.advance(_PILOT_S / 4)
    passed = time.perf_counter() - begun
    share = run.progress if run.progress > 0 else 0.1
    return passed / min(share, 1.0)


def _last(run: Run, whole: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Return draws (chains, draws, dim) and their logarithms of weights; those of the last iteration of a history."""
    draws, logs = run.draws, run.log_weights
    if not whole:
        return draws, logs
    each = _each(run)
    return draws[:, -each:], None if logs is None else logs[:, -each:]


def _each(run: Run) -> int:
    """Return the draws that an iteration makes of each chain."""
    return getattr(run.sampler, "draws_each", run.draws.shape[1])


def _test_ms(run: Run, draws: np.ndarray) -> float:
    """Return the milliseconds that a test row's prediction by a hundred draws takes."""
    theta = _flat(run, draws)[:_RESAMPLES]
    begun = time.perf_counter()
    predict(run.target, theta)
    return 1000 * (time.perf_counter() - begun) / len(observed_rows(run.target))


def _flat(run: Run, draws: np.ndarray) -> Any:
    import torch

    return torch.as_tensor(draws, dtype=run.target.dtype, device=run.target.device).reshape(-1, draws.shape[-1])


def _resampled(run: Run, draws: np.ndarray, logs: np.ndarray | None) -> Any:
    """Return what a hundred draws, taken by their weights, predict."""
    theta = _flat(run, draws)
    return predict(run.target, theta[chosen(len(theta), None if logs is None else logs.ravel(), _RESAMPLES, 0)])


def _roc(
    experiment: Scored, run: Run, draws: np.ndarray, logs: np.ndarray | None, found: dict
) -> dict[str, Any] | None:
    observed = observed_rows(run.target)
    positive = run.target.data_set.positive
    chances = _resampled(run, draws, logs).chances[..., positive]
    return diagnostics.roc_envelopes(chances, observed == positive)._asdict()


def _history(experiment: Scored, run: Run, draws: np.ndarray, logs: np.ndarray | None, found: dict) -> dict[str, Any]:
    """Return the followed figures of each iteration, with their standard deviations over draws."""
    each, all_draws, all_logs = _each(run), run.draws, run.log_weights
    count = all_draws.shape[1] // each
    figures: dict[str, dict[str, list]] = {name: {"mean": [], "sd": []} for name in experiment.followed}
    for t in range(count):
        part = slice(t * each, (t + 1) * each)
        one = measure(run.target, all_draws[:, part], None if all_logs is None else all_logs[:, part])["per_draw"]
        for name, lists in figures.items():
            for kind, values in lists.items():
                values.append(np.nan if one[name][kind] is None else one[name][kind])
    return {"iteration": list(range(1, count + 1)), **figures}


def _confusion(experiment: Scored, run: Run, draws: Any, logs: Any, found: dict) -> dict[str, Any]:
    return {"matrix": found["confusion_per_draw"], "classes": found["class_names"]}


def _chances(experiment: Scored, run: Run, draws: np.ndarray, logs: np.ndarray | None, found: dict) -> list[dict]:
    """Return the chances of the surest row, the most doubtful one, and two between."""
    chances = _resampled(run, draws, logs).chances[..., 1]
    order = np.argsort(np.abs(chances.mean(0) - 0.5))[::-1]
    rows = order[np.linspace(0, len(order) - 1, _ROWS).astype(int)]
    names, observed = found["class_names"], observed_rows(run.target).astype(int)
    return [
        {
            "label": f"chance of {names[1]}, test row {row + 1}",
            "observed": f"observed {names[observed[row]]}",
            **diagnostics.chance_spread(chances[:, row])._asdict(),
        }
        for row in rows.tolist()
    ]


def _errors2(experiment: Scored, run: Run, draws: np.ndarray, logs: np.ndarray | None, found: dict) -> dict | None:
    mean = _resampled(run, draws, logs).means.mean(0)
    spread = diagnostics.error_spread((mean - observed_rows(run.target)) ** 2)
    return None if spread is None else spread._asdict()


_PICTURES = {"roc": _roc, "history": _history, "confusion": _confusion, "chances": _chances, "errors2": _errors2}
