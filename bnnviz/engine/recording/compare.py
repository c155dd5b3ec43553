"""Compare several recordings."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.recording.export import ExportedDraws, kept
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError

_MOST_NUMBERS = 20_000_000  # maximum for a figure
#: Metrics in a comparison, if any recording has them, with their labels.
FIGURES = {
    "draws": "draws of each chain",
    "chains": "chains",
    "ess_min": "smallest ESS",
    "rhat_max": "largest R-hat",
    "rhat_function_max": "largest R-hat of functions",
    "weight_ess": "ESS of the weights",
    "ess_pc1": "ESS of PC 1",
    "ess_function_median": "ESS of functions, median",
    "grad_evals": "gradients",
    "seconds": "seconds",
    "ess_per_million_grads": "ESS per million gradients",
    "rmse": "RMSE (units of the target)",
    "accuracy": "accuracy",
    "nll": "NLL (on the network's scale)",
    "ece": "calibration error (ECE)",
}


def readable(recording: Recording) -> ExportedDraws:
    """Return a recording's draws for a figure."""
    recording.check_written()
    dims = recording.whole * len(recording.progress["counts"]) * len(recording.names())
    if dims > _MOST_NUMBERS:
        raise BnnvizError(
            f"{recording.name} has {dims:,} numbers, more than a page reads; look at it in Python"
            f" (bnnviz.recording({recording.name!r})).",
            "run",
        )
    return kept(recording)


def ess(found: ExportedDraws, name: str) -> float:
    """Return the effective sample size of one coordinate over all chains; nan for weighted draws."""
    if found.log_weights is not None:
        return float("nan")
    return diagnostics.ess(found.draws[..., found.names.index(name)].astype(np.float64))


def rows(recordings: list[Recording]) -> list[tuple[str, list[Any]]]:
    """Return the values of each metric in any of the recordings' summaries."""
    summaries = [recording.last_summary or {} for recording in recordings]
    return [
        (label, [summary.get(name) for summary in summaries])
        for name, label in FIGURES.items()
        if any(summary.get(name) is not None for summary in summaries)
    ]


def differences(recordings: list[Recording]) -> list[tuple[str, list[Any]]]:
    """Return the common settings of the recordings' specs that differ, with each one's value."""
    specs = [_flat(recording.header["spec"]) for recording in recordings]
    found = [(name, [spec.get(name) for spec in specs]) for name in specs[0] if all(name in spec for spec in specs)]
    return [(name, values) for name, values in found if any(value != values[0] for value in values)]


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    flat = {name: value for name, value in spec.items() if not isinstance(value, dict)}
    for part, prefix in (("target_settings", "target."), ("settings", "")):
        flat |= {f"{prefix}{name}": value for name, value in (spec.get(part) or {}).items()}
    return flat
