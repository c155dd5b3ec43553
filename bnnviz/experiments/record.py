"""Read and write records: the rows and small pictures of a finished experiment, as JSON.

Records of this machine, written by ``bnnviz reproduce`` under ``BNNVIZ_HOME``, replace those in
``bnnviz/experiments/records``. A maintainer copies a record from the former folder to the latter.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bnnviz import files, paths
from bnnviz.errors import BnnvizError
from bnnviz.experiments.experiment import SCALES, Experiment, Panel
from bnnviz.version import VERSION

FORMAT = 1
SHIPPED = Path(__file__).parent / "records"
MOST_BYTES = 400_000  # of the pictures of a record
_DIGITS = 5


@dataclass(frozen=True)
class Record:
    """Measurements of an experiment or a part of one; ``here``: on this machine."""

    experiment: str
    version: str
    date: str
    device: str
    seconds: float
    rows: list[dict[str, Any]]
    part: dict[str, str] = field(default_factory=dict)
    panels: list[Panel] = field(default_factory=list)
    here: bool = False

    @property
    def runs(self) -> int:
        """The number of runs of all its cases."""
        return sum(row["runs"] for row in self.rows)


def records(name: str) -> tuple[list[Record], list[str]]:
    """Return the records of an experiment's parts, the whole one first, and messages on unreadable files."""
    found: dict[str, Record] = {}
    problems = []
    for folder, here in ((paths.results(), True), (SHIPPED, False)):
        for path in (folder / f"{name}.json", *sorted(folder.glob(f"{name},*.json"))):
            if path.name in found or not path.is_file():
                continue
            try:
                found[path.name] = read(path, name, here)
            except BnnvizError as error:
                problems.append(error.sentence)
    return [found[key] for key in sorted(found, key=lambda key: (len(key), key))], problems


def read(path: Path, name: str, here: bool = False) -> Record:
    """Read a record."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("format") != FORMAT or found["experiment"] != name or not all(map(_is_row, found["rows"])):
            raise ValueError
        record = Record(**found, here=here)
        # Readers rely on these; a file edited by hand may lack them.
        dict(record.part), float(record.seconds), [heading + view for heading, view, _ in record.panels]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        remedy = f"delete it, or write it again with: bnnviz reproduce {name}" if here else "install bnnviz again"
        raise BnnvizError(f"The record {path.name} of {name} cannot be read; {remedy}.", "record") from None
    return record


def _is_row(row: dict[str, Any]) -> bool:
    """Return whether a row names its case, and its measures are numbers or missing."""
    values = [row.get(key.removesuffix("_se")) for key in row if key.endswith("_se")]
    return isinstance(row["case"], str) and all(isinstance(v, int | float | None) for v in (row["runs"], *values))


def keep(
    experiment: Experiment, done: dict[str, list[dict[str, Any]]], seconds: float, where: str | None = None
) -> None:
    """Write a record of this machine, unless this version has one with more runs."""
    known = next((r for r in records(experiment.name)[0] if r.here and r.part == part_of(experiment)), None)
    if known is not None and known.version == VERSION and known.runs > sum(map(len, done.values())):
        return
    try:
        write(experiment, done, seconds, paths.results(), where)
    except OSError:
        return


def write(
    experiment: Experiment,
    done: dict[str, list[dict[str, Any]]],
    seconds: float,
    folder: Path,
    where: str | None = None,
) -> Path:
    """Write a record atomically, and return its path."""
    part = part_of(experiment)
    panels = _plain([list(panel) for panel in experiment.panels(done)])
    record = {
        "format": FORMAT,
        "experiment": experiment.name,
        "part": part,
        "version": VERSION,
        "date": datetime.now(UTC).date().isoformat(),
        "device": where or device(),
        "seconds": round(_seconds(done, seconds), 1),
        "rows": [_plain(experiment.row(case, done.get(case.name, []))) for case in experiment.cases],
        "panels": panels if len(json.dumps(panels)) <= MOST_BYTES else [],
    }
    path = folder / f"{','.join([experiment.name, *(f'{name}={value}' for name, value in part.items())])}.json"
    folder.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, text(record).encode(), sync=False)
    return path


def part_of(experiment: Experiment) -> dict[str, str]:
    """Return data set and scale if they differ from the first part's."""
    usual = {"data": next(iter(experiment.parts), ""), "scale": SCALES[0]}
    return {name: value for name, first in usual.items() if (value := getattr(experiment, name)) != first}


def device() -> str:
    """Describe the processor that this process computes on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{cores} CPU {'core' if cores == 1 else 'cores'} ({platform.system()}, {platform.machine()})"


def _seconds(done: dict[str, list[dict[str, Any]]], seconds: float) -> float:
    """Return the CPU time of the runs, or the wall time if a run lacks its CPU time."""
    each = [summary.get("cpu_seconds", summary.get("seconds")) for found in done.values() for summary in found]
    return seconds if None in each else sum(each)


def _plain(value: Any) -> Any:
    """Return arrays as lists of numbers with five digits; numbers that are not finite become None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def text(record: dict[str, Any]) -> str:
    """Format a record with one line per row, so that changes are easy to review."""
    lines = [f" {json.dumps(key)}: {_value(value)}" for key, value in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value, allow_nan=False)
    return "[\n  " + ",\n  ".join(json.dumps(each, allow_nan=False) for each in value) + "\n ]"
