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
from bnnviz.cli.output import progress, say
from bnnviz.errors import BnnvizError
from bnnviz.files import write_whole

if TYPE_CHECKING:
    import numpy as np

    from bnnviz.engine.evaluation.predictive_distribution import PredictiveDistribution

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # texts that a spreadsheet executes begin so
_NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?", re.IGNORECASE)
_HOW = (
    "The value of a row is between lower and upper with a probability of {level:g}%. For one row take the median; for"
    " sums and averages over rows take the mean."
)
_SAMPLING = "bnnviz sample ..."  # takes the options that its warnings name

app = typer.Typer()


@app.command(
    epilog=options.examples(
        "bnnviz sample --data houses.csv --target-column price --record houses",
        "bnnviz predict houses --data new.csv --out predictions.csv",
        "bnnviz predict houses --data new.csv --keep address --interval 80 > predictions.csv",
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
        float, typer.Option(min=1, max=99.9, metavar="PERCENT", help="Level of the interval of each number.")
    ] = 90,
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

    A number has its median, an interval, its mean, its sd and the parts of that (epistemic: more data would reduce it;
    aleatoric: noise); a class has its probabilities. far is 1 for a row far from all training rows. If the file
    contains the target's column, it is kept as observed and compared with the predictions.
    """
    out = None if out is None else options.free_place(out, ".csv", overwrite=overwrite)
    tail = (1 - interval / 100) / 2
    with progress() as bar:
        task = bar.add_task("reading", total=None)
        from bnnviz.api.recorded import recording
        from bnnviz.engine.recording.reader import check_zarr

        check_zarr()
        found = recording(run)
        rows = found.rows(data, decimal=decimal, missing=missing, keep=keep or ())
        bar.update(task, description=f"predicting {len(rows.row_notes):,} rows")
        predicted = found.predict(rows, (tail, 0.5, 1 - tail), draws=draws, conformal=conformal)
    for note in rows.notes:
        say(note)
    compared = {} if rows.observed is None else _compared(predicted, rows.observed)
    text = _table(rows.kept, compared | predicted.columns())
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
    if predicted.quantiles:
        say(_HOW.format(level=interval))
    if compared:
        say(_accuracy(predicted, rows.observed, compared))
    if far := int(sum(predicted.far)):
        rows_are = "row is" if far == 1 else "rows are"
        say(f"{far:,} {rows_are} far from all training rows (far = 1), where a prediction is a guess.")
    if judged := found.summary().get("verdict"):
        say(judged, command=_SAMPLING)


def _table(kept: dict[str, list[str]], columns: dict[str, np.ndarray]) -> str:
    """Return a line of predictions for each row."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    heads = [f"{name} (given)" if name in ("row", *columns) else name for name in kept]
    writer.writerow([_safe(head) for head in ("row", *heads, *columns)])
    for row, cells in enumerate(zip(*kept.values(), *columns.values(), strict=True), 1):
        writer.writerow([row, *map(_cell, cells)])
    return stream.getvalue()


def _safe(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return _safe(value)
    return "" if value != value else f"{value:.6g}"  # nan is unknown


def _compared(predicted: PredictiveDistribution, observed: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns of the observations and of their errors; unknown ones are nan."""
    import numpy as np

    known = np.isfinite(observed)
    if predicted.probabilities is not None:
        names = np.array([*predicted.class_names, ""], dtype=object)
        right = predicted.probabilities.argmax(1) == observed
        return {"observed": names[np.where(known, observed, -1).astype(int)], "correct": np.where(known, right, np.nan)}
    low, median, high = predicted.quantiles.values()
    inside = (observed >= low) & (observed <= high)
    return {"observed": observed, "error": observed - median, "inside": np.where(known, inside, np.nan)}


def _accuracy(predicted: PredictiveDistribution, observed: np.ndarray, compared: dict[str, np.ndarray]) -> str:
    """Return how well the rows with a known observation were predicted."""
    import numpy as np

    known = np.isfinite(observed)
    if predicted.probabilities is not None:
        own = predicted.probabilities[known][np.arange(known.sum()), observed[known].astype(int)]
        loss = -np.log(np.maximum(own, 1e-300)).mean()
        return f"Of {known.sum():,} rows {compared['correct'][known].mean():.1%} are correct; log loss {loss:.3f}."
    rmse = np.sqrt(np.square(predicted.mean - observed)[known].mean())
    off, inside = np.abs(compared["error"][known]).mean(), compared["inside"][known].mean()
    return (
        f"Compared with {known.sum():,} observations: the median is off by {off:.4g} on average (RMSE of the mean"
        f" {rmse:.4g}); {inside:.1%} are between lower and upper."
    )
