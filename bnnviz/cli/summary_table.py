"""Print the summary of a run: predictions, mixing of the chains, and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bnnviz.cli.output import console, print_json, table, text
from bnnviz.files import to_json

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN_COORDINATES = 20

#: Labels of the averaged predictive metrics on held-out rows, by the name in `bnnviz.metrics`.
_PREDICTIONS = {
    "rmse": "RMSE, in the unit of the target",
    "crps": "CRPS, in the unit of the target",
    "nll": "NLL",
    "coverage_50": "share within 50 % intervals",
    "coverage_90": "share within 90 % intervals",
    "accuracy": "accuracy",
    "ece": "calibration error (ECE)",
    "brier": "Brier score",
    "auc": "AUC",
    "f1": "F1",
}
#: How well chains mixed, by the name in the summary.
_MIXING = {
    "rhat_function_max": "largest R-hat of predictions",
    "rhat_max": "largest R-hat of coordinates",
    "rhat_canonical_max": "largest R-hat, hidden units sorted",
    "ess_function_min": "smallest ESS of predictions",
    "ess_function_median": "median ESS of predictions",
    "ess_min": "smallest ESS of coordinates",
    "ess_tail_min": "smallest tail ESS of coordinates",
    "ess_pc1": "ESS of principal component 1",
    "ess_energy": "ESS of the energy",
    "weight_ess": "ESS of the weights",
    "weight_ess_share": "ESS of the weights by draws",
    "pareto_k": "Pareto k-hat of the weights",
    "log_z": "log evidence",
    "log_z_se": "log evidence, ± s.e.",
    "diverging": "divergent moves",
    "acceptance_rate": "acceptance rate",
}
#: Labels of the target and the cost.
_SAMPLING = {
    "sampler": "sampler",
    "target": "target",
    "dim": "coordinates",
    "frozen": "frozen parameters",
    "chains": "chains",
    "draws": "draws of each chain",
    "grad_evals": "gradients",
    "ess_per_million_grads": "ESS per million gradients",
    "weight_ess_per_million_grads": "ESS of the weights per million gradients",
    "ess_per_s": "ESS per second",
    "weight_ess_per_s": "ESS of the weights per second",
    "seconds": "seconds",
    "cpu_seconds": "CPU seconds",
    "seed": "seed",
    "device": "device",
    "kernel": "kernel",
}
#: Entries that tables for people omit: the header, and those in messages below the table.
_LEFT_OUT = {
    "baselines",
    "format",
    "metrics",
    "verdict",
    "phase",
    "spacing",
    "device_seconds",
    "rmse",
    "nll",
    "accuracy",
    "ece",
}


def print_summary(summary: dict[str, Any], as_json: bool, details: bool = True) -> None:
    """Print the summary of a run; without details only how a table's held-out rows are predicted."""
    if as_json:
        print_json(summary)
        return
    if scores := summary.get("baselines"):
        console().print(_comparison(summary["metrics"], scores))
        if not details:
            return
    from bnnviz.samplers import REGISTRY

    summary = to_json(summary)
    summary["seed"] = str(summary["seed"])  # it counts nothing
    if REGISTRY.get(summary["sampler"]).traits.one_point:
        summary["draws"] = f"{summary['draws']:,}, all one point"
    for title, rows in _parts(summary):
        if rows:
            console().print(table(title, "", rows=[(label, _text(value)) for label, value in rows]))
    if "mean" in summary:
        console().print(_moments_table(summary))


def _comparison(metrics: dict[str, Any], scores: dict[str, Any]) -> Table:
    """Return the scores of the network on held-out rows next to those of simple models."""
    classes = bool(metrics["class_names"])
    columns = {"accuracy": "accuracy", "nll": "log loss"} if classes else {"crps": "CRPS", "rmse": "RMSE", "nll": "NLL"}
    found = {"this network": metrics["averaged"], **dict(reversed(scores.items()))}
    rows = [(name, *(text(each[key]) for key in columns)) for name, each in found.items()]
    if classes:
        caption = "accuracy: larger is better; log loss: smaller is better"
    else:
        shares = (f"{level} % intervals cover {metrics['averaged'][f'coverage_{level}']:.0%}" for level in (50, 90))
        caption = f"smaller is better; {' and '.join(shares)} of the rows"
    return table(f"{metrics['rows']:,} held-out rows", *columns.values(), rows=rows, caption=caption)


def _parts(summary: dict[str, Any]) -> list[tuple[str, list[tuple[str, Any]]]]:
    """Return tables' titles and rows; entries without a label are in the last table under their names."""
    named = {**_MIXING, **_SAMPLING}
    others = [
        (name, value)
        for name, value in summary.items()
        if name not in named and name not in _LEFT_OUT and value is not None and not isinstance(value, list)
    ]
    return [
        _predictions(summary),
        ("Mixing", _labelled(summary, _MIXING)),
        ("Sampling", _labelled(summary, _SAMPLING)),
        ("Settings and counts", others),
    ]


def _predictions(summary: dict[str, Any]) -> tuple[str, list[tuple[str, Any]]]:
    """Return the title and the rows on predictions; of a run that predicts nothing no rows."""
    metrics = summary.get("metrics") or {}
    found = metrics.get("averaged") or {name: summary[name] for name in _PREDICTIONS if name in summary}
    labels = _PREDICTIONS | ({"nll": "NLL, on the scale that the network sees"} if "rmse" in found else {})
    rows = _labelled(found, labels)
    return (f"Predictions of {metrics['rows']:,} rows" if metrics.get("rows") else "Predictions"), rows


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else text(value)


def _labelled(found: dict[str, Any], labels: dict[str, str]) -> list[tuple[str, Any]]:
    return [(label, found[name]) for name, label in labels.items() if found.get(name) is not None]


def _moments_table(summary: dict[str, Any]) -> Table:
    dimension = len(summary["mean"])
    variances, errors = ([row[i] for i, row in enumerate(summary[name])] for name in ("cov", "cov_se"))
    figures = zip(summary["mean"], summary["mean_se"], variances, errors, strict=True)
    rows = [(str(i), *map(text, each)) for i, each in enumerate(figures, 1)][:_SHOWN_COORDINATES]
    more = f"the first {_SHOWN_COORDINATES} of {dimension}; --json has them all"
    caption = more if dimension > _SHOWN_COORDINATES else None
    return table("coordinate", "mean", "± s.e.", "variance", "± s.e.", rows=rows, caption=caption)
