"""Run ``bnnviz predict``: predict the rows of a file by a recorded run."""

from __future__ import annotations

import csv
import io
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnnviz.cli import options
from bnnviz.cli.output import say
from bnnviz.errors import BnnvizError
from bnnviz.files import write_whole

if TYPE_CHECKING:
    from bnnviz.data.tables.new_rows import NewRows
    from bnnviz.engine.evaluation.predictive_distribution import PredictiveDistribution

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # texts that a spreadsheet executes begin so
_NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?", re.IGNORECASE)
_SAMPLING = "bnnviz sample ..."  # takes the options that its warnings name

app = typer.Typer()


@app.command(
    epilog=options.examples(
        "bnnviz sample --data houses.csv --target-column price --record houses",
        "bnnviz predict houses --data new.csv --out predictions.csv",
        "bnnviz predict houses --data new.csv --keep address --interval 0.9 > predictions.csv",
    )
)
def predict(
    run: options.RecordingWord,
    data: Annotated[
        Path,
        typer.Option(metavar="FILE.csv", help="The rows to predict, with the columns that the run was trained on."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Where predictions are written; default: stdout.")
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.01, max=0.999, help="Probability that the interval of each number holds it.")
    ] = 0.95,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the file to copy to the output, such as a key."),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(min=1, help="Draws to use; default: all, or for many rows as many as seconds allow.")
    ] = None,
    conformal: Annotated[
        bool,
        typer.Option("--conformal", help="Correct intervals of numbers by the rows held out in training."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Overwrite the file of --out.")] = False,
    decimal: options.Decimal = None,
    missing: options.Missing = None,
) -> None:
    """Predict the rows of a CSV file, one line of predictions for each.

    A number has its mean, its sd and the parts of that (epistemic: more data would reduce it; aleatoric: noise), and an
    interval; a class has its probabilities. far is 1 for a row far from all training rows. If the file contains the
    target's column, its values are compared with the predictions.
    """
    from bnnviz.api.recorded import recording
    from bnnviz.engine.evaluation.predictive_distribution import scores_of
    from bnnviz.engine.recording.reader import check_zarr

    check_zarr()
    out = None if out is None else options.free_place(out, ".csv", overwrite=overwrite)
    found = recording(run)
    rows = found.rows(data, decimal=decimal, missing=missing, keep=keep or ())
    for note in rows.notes:
        say(note)
    tail = (1 - interval) / 2
    predicted = found.predict(rows, (tail, 0.5, 1 - tail), draws=draws, conformal=conformal)
    text = _table(rows, predicted)
    if out is None:
        sys.stdout.write(text)
    else:
        try:
            write_whole(out, text.encode())
        except OSError as error:
            raise BnnvizError(f"{out} cannot be written: {error.strerror or error}.", "out") from error
        say(f"{len(predicted):,} rows are predicted in {out}.")
    if predicted.note:
        say(predicted.note)
    if rows.observed is not None:
        say(_compared(scores_of(predicted, rows.observed)))
    if far := int(sum(predicted.far)):
        rows_are = "row is" if far == 1 else "rows are"
        say(f"{far:,} {rows_are} far from all training rows (far = 1), where a prediction is a guess.")
    if judged := found.summary().get("verdict"):
        say(judged, command=_SAMPLING)


def _table(rows: NewRows, predicted: PredictiveDistribution) -> str:
    """Return a line of predictions for each row."""
    columns = predicted.columns()
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    heads = [f"{name} (given)" if name in ("row", *columns) else name for name in rows.kept]
    writer.writerow([_safe(head) for head in ("row", *heads, *columns)])
    for row, cells in enumerate(zip(*rows.kept.values(), *columns.values(), strict=True), 1):
        writer.writerow([row, *map(_cell, cells)])
    return stream.getvalue()


def _safe(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def _cell(value: Any) -> str:
    import numpy as np

    if isinstance(value, np.bool_):
        return str(int(value))
    return _safe(value) if isinstance(value, str) else f"{value:.6g}"


def _compared(scores: dict[str, Any]) -> str:
    """Return how well the rows with a known observation were predicted."""
    if not scores:
        return "No predicted row has an observation to compare with."
    if "accuracy" in scores:
        return f"Of {scores['rows']:,} rows {100 * scores['accuracy']:.1f} % are right; nll {scores['nll']:.3f}."
    return (
        f"Compared with {scores['rows']:,} observations: RMSE {scores['rmse']:.4g};"
        f" {100 * scores['requested_coverage']:.0f} % intervals hold {100 * scores['coverage']:.1f} %."
    )
