"""Write the leaderboard of a race as HTML, which needs no run."""

from __future__ import annotations

import html
import math
from typing import Any, NamedTuple

from bnnviz.figures.palette import LIGHT


class Column(NamedTuple):
    """A column of the table."""

    name: str
    head: str
    form: str = "small"  # two significant digits, "count" or "rhat"
    best: int = -1  # 1 if larger is better, -1 if smaller is better, 0 otherwise

    @property
    def doc(self) -> str:
        """The definition of its numbers."""
        return _DEFINITIONS[self.name]


COLUMNS = (
    Column("error", "error"),
    Column("error_low", "from", best=0),
    Column("error_high", "to", best=0),
    Column("error_mean", "mean"),
    Column("error_sd", "sd"),
    Column("rhat", "R-hat", "rhat"),
    Column("ess", "ESS", "count", 1),
    Column("ess_per_s", "ESS/s", best=1),
    Column("ess_per_million", "ESS/10⁶ grad.", "count", 1),
    Column("draws", "draws", "count", 1),
    Column("nll", "NLL"),
    Column("rmse", "RMSE"),
    Column("accuracy", "accuracy", best=1),
    Column("ece", "ECE"),
    Column("auroc", "AUROC", best=1),
    Column("gradients", "gradients", "count", 0),
    Column("seconds", "seconds"),
    Column("device_seconds", "seconds busy"),
)
RANK = "Rank in the race; samplers without a significant difference share a range of ranks, such as 1–2."
_DEFINITIONS = {
    "error": "How wrong the draws are: the root of half the sum of squared errors of means and of sds. 0 is right.",
    "error_low": "The error two standard errors lower, by the jackknife over chains of its logarithm.",
    "error_high": "The error two standard errors higher.",
    "error_mean": "The root mean square error of the means of all coordinates, in true standard deviations.",
    "error_sd": "The root mean square of sd / true sd - 1 over all coordinates: 0.1 is 10% too wide or too narrow.",
    "rhat": "How far chains differ from each other in the first principal component; below 1.01 they agree.",
    "ess": "Number of equally informative independent draws: bulk, of the first principal component, all chains.",
    "ess_per_s": "ESS per second of this sampler, warm-up included.",
    "ess_per_million": "ESS by a million gradients of single data rows, warm-up included.",
    "draws": "Draws of each chain.",
    "nll": "The mean negative log predictive density of the test rows, for numbers that of the standardised target.",
    "rmse": "The root mean square error of the predictive mean on the test rows, in units of the target.",
    "accuracy": "The share of the test rows whose class is the likeliest.",
    "ece": "Expected calibration error: how far confidence is from the share that is right, on the test rows, 15 bins.",
    "auroc": "The probability that an image out of distribution has more entropy than a test image; 0.5 is chance.",
    "gradients": "Gradients of single data rows that were spent, tuning and warm-up included.",
    "seconds": "Seconds of this sampler.",
    "device_seconds": "CPU time of the thread that computed it; on a GPU from the first to the last kernel of a block.",
}
SCORES = ("nll", "rmse", "accuracy", "ece", "auroc")
_ERRORS = ("error", "error_low", "error_high", "error_mean", "error_sd")
_STYLE = """<style>
.race {border-collapse: collapse; font: 14px sans-serif} .race th, .race td {padding: 5px 11px; text-align: right}
.race th {border-bottom: 2px solid; cursor: help} .race td {border-bottom: 1px solid #d9e0e6}
.race th:first-child, .race td:first-child, .race th:nth-child(2), .race td:nth-child(2) {text-align: left}
.race .lost {color: #b3134f; font-weight: 600} .race i {display: inline-block; width: 12px; height: 12px; border-radius:
3px; margin-right: 7px}
</style>"""


def columns_for(scores: list[str], errors: bool = True) -> list[Column]:
    """Return the columns of a race whose target has these scores, and errors against a truth if it has any."""
    left_out = {name for name in SCORES if name not in scores} | (set() if errors else {*_ERRORS})
    return [each for each in COLUMNS if each.name not in left_out]


def cell(row: dict[str, Any], each: Column) -> str:
    """Return the text of a cell; unknown values are dashes."""
    value = row.get(each.name)
    if value is None or not math.isfinite(value):
        return "–"
    if each.form == "count":
        return f"{value:,.0f}"
    if each.form == "rhat":
        return f"{value:.2f}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def settings_text(settings: dict[str, Any]) -> str:
    """Return a sampler's settings that differ from the defaults, in one line."""
    texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in settings.items()}
    return ", ".join(f"{name}={text}" for name, text in texts.items())


def divergence_text(row: dict[str, Any], chains: int) -> str:
    """Describe the divergence of a sampler's chains; "" without divergence."""
    if row["diverged"]:
        return "diverged"
    return f"{row['chains_lost']} of {chains} chains diverged" if row["chains_lost"] else ""


def table_html(rows: list[dict[str, Any]], scores: list[str], chains: int) -> str:
    """Return the table of a race, best sampler first."""
    shown, colours = columns_for(scores), LIGHT.chains
    heads = "".join(f"<th title='{html.escape(each.doc)}'>{html.escape(each.head)}</th>" for each in shown)
    lines = []
    for row in rows:
        divergence = divergence_text(row, chains)
        settings = settings_text(row["settings"])
        name = f"<i style='background:{colours[row['entry']]}'></i>{html.escape(row['name'])}"
        name += f" <small>{html.escape(settings)}</small>" if settings and settings not in row["name"] else ""
        name += f" <span class='lost'>{divergence}</span>" if divergence else ""
        cells = "".join(f"<td>{cell(row, each)}</td>" for each in shown)
        lines.append(f"<tr><td>{row.get('ranks') or '–'}</td><td>{name}</td>{cells}</tr>")
    rank = f"<th title='{html.escape(RANK)}'></th>"
    return f"{_STYLE}<table class='race'><tr>{rank}<th>sampler</th>{heads}</tr>{''.join(lines)}</table>"
