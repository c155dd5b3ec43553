"""Print the summary of a run: predictions, mixing of the chains, and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bnnviz.cli.output import console, print_json, table, text
from bnnviz.files import to_json

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN_COORDINATES = 20

#: Entries that tables for people omit: the header, and those in messages below the table.
_LEFT_OUT = {"baselines", "relative_score", "format", "metrics", "verdict", "phase", "spacing", "device_seconds"}


def print_summary(summary: dict[str, Any], as_json: bool, details: bool = True) -> None:
    """Print the summary of a run; without details only how a table's held-out rows are predicted."""
    if as_json:
        print_json(summary)
        return
    if scores := summary.get("baselines"):
        heads, rows, caption = comparison(summary["metrics"], scores)
        console().print(table(*heads, rows=rows, caption=caption))
        if not details:
            return
    summary = to_json(summary)
    metrics = summary.get("metrics") or {}
    averaged = metrics.get("averaged") or {}
    if averaged:
        console().print(_named_table(f"predictions of {metrics['rows']:,} rows", averaged))
    summary["seed"] = str(summary["seed"])  # it counts nothing
    others = {name: value for name, value in summary.items() if name not in _LEFT_OUT | set(averaged)}
    console().print(_named_table("summary", others))
    if "mean" in summary:
        console().print(_moments_table(summary))


def _named_table(title: str, values: dict[str, Any]) -> Table:
    """Return a table of the known values except lists, by the names in JSON and in the documentation."""
    known = {name: value for name, value in values.items() if value is not None and not isinstance(value, list)}
    rows = [(name, f"{value:,}" if isinstance(value, int) else text(value)) for name, value in known.items()]
    return table(title, "", rows=rows)


def comparison(metrics: dict[str, Any], scores: dict[str, Any]) -> tuple[list[str], list[tuple[str, ...]], str]:
    """Return heads, rows and caption of a table of the scores on held-out rows next to those of simple models."""
    classes = bool(metrics["class_names"])
    columns = (
        {"accuracy": "accuracy", "nll": "log loss"}
        if classes
        else {"crps": "error (CRPS)", "rmse": "RMSE", "nll": "NLL"}
    )
    found = {"this network": metrics["averaged"], **dict(reversed(scores.items()))}
    rows = [(name, *(text(each[key]) for key in columns)) for name, each in found.items()]
    if classes:
        caption = "accuracy: larger is better; log loss: smaller is better"
    else:
        caption = "error (CRPS) and RMSE: in the unit of the target; smaller is better"
    return [f"{metrics['rows']:,} held-out rows", *columns.values()], rows, caption


def _moments_table(summary: dict[str, Any]) -> Table:
    dimension = len(summary["mean"])
    variances, errors = ([row[i] for i, row in enumerate(summary[name])] for name in ("cov", "cov_se"))
    figures = zip(summary["mean"], summary["mean_se"], variances, errors, strict=True)
    rows = [(str(i), *map(text, each)) for i, each in enumerate(figures, 1)][:_SHOWN_COORDINATES]
    more = f"the first {_SHOWN_COORDINATES} of {dimension}; --json has them all"
    caption = more if dimension > _SHOWN_COORDINATES else None
    return table("coordinate", "mean", "± s.e.", "variance", "± s.e.", rows=rows, caption=caption)
