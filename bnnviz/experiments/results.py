"""Read and write results of experiments as records: this machine's go before those that come with bnnviz.

A maintainer records an experiment by

    python -m bnnviz.experiments.results NAME [--repetitions N] [--data D] [--scale S] [--case C]

It is run as `bnnviz reproduce` runs it, what is kept is not run again, and its rows are written to
``bnnviz/experiments/records``, with version, date, device, and the arrays of its picture where they are small. What
`bnnviz reproduce` came to on a user's machine is written in the same form under ``BNNVIZ_HOME``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bnnviz import files, paths
from bnnviz.errors import BnnvizError
from bnnviz.experiments.experiment import Experiment
from bnnviz.version import VERSION

FORMAT = 1
SHIPPED = Path(__file__).parent / "records"
MOST_BYTES = 400_000  # of a picture's arrays
PARTS = ("data", "scale")  # in which one part of an experiment differs from another
_DIGITS = 5
_SUFFIX = ".json"


@dataclass(frozen=True)
class Record:
    """One experiment, or a part of one, as it was measured.

    Parameters
    ----------
    panels : list
        (heading, view, part) of each picture; empty where there are none, or where they are large.
    """

    experiment: str
    version: str
    date: str
    device: str
    seconds: float
    rows: list[dict[str, Any]]
    part: dict[str, str] = field(default_factory=dict)
    panels: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    here: bool = False

    def row(self, case: str) -> dict[str, Any] | None:
        """Return the row of a case; None where it was not run."""
        return next((row for row in self.rows if row["case"] == case), None)

    @property
    def runs(self) -> int:
        """The runs of all its cases."""
        return sum(row["runs"] for row in self.rows)


def user_folder() -> Path:
    """Return the folder of this machine's records."""
    return paths.results()


def records(name: str) -> tuple[list[Record], list[str]]:
    """Return the records of an experiment's parts, this machine's before those that came with bnnviz."""
    return _of_folders(name, ((user_folder(), True), (SHIPPED, False)))


def shipped(name: str) -> tuple[list[Record], list[str]]:
    """Return the records of an experiment's parts that come with bnnviz, and what could not be read, as `records`."""
    return _of_folders(name, ((SHIPPED, False),))


def _of_folders(name: str, folders: Iterable[tuple[Path, bool]]) -> tuple[list[Record], list[str]]:
    """Return the records in folders, the first one's before those of the next."""
    found: dict[str, Record] = {}
    sentences = []
    for folder, here in folders:
        for path in _files(folder, name):
            if path.name in found:
                continue
            try:
                found[path.name] = read(path, name, here)
            except BnnvizError as error:
                sentences.append(error.sentence)
    return [found[key] for key in sorted(found, key=lambda key: (len(key), key))], sentences


def _files(folder: Path, name: str) -> list[Path]:
    """Return the files of an experiment's parts."""
    plain = folder / f"{name}{_SUFFIX}"
    return [*([plain] if plain.is_file() else []), *sorted(folder.glob(f"{name},*{_SUFFIX}"))]


def read(path: Path, name: str, here: bool) -> Record:
    """Read a record."""
    remedy = f"delete it, or write it again with: bnnviz reproduce {name}" if here else "install bnnviz again"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise BnnvizError(f"The record {path.name} of {name} cannot be read; {remedy}.", "record") from None
    if not _is_record(found, name):
        raise BnnvizError(
            f"The file {path.name} is not a record of {name} as this bnnviz writes it; {remedy}.", "record"
        )
    known = {key: found[key] for key in ("experiment", "version", "date", "device", "seconds", "rows", "part")}
    return Record(**known, panels=[tuple(panel) for panel in found["panels"]], here=here)


_TYPES = {"experiment": str, "version": str, "date": str, "device": str, "part": dict, "rows": list, "panels": list}


def _is_record(found: Any, name: str) -> bool:
    """Tell whether a file's content is a record of an experiment, as far as readers rely on it."""
    return (
        isinstance(found, dict)
        and found.get("format") == FORMAT
        and all(isinstance(found.get(key), kind) for key, kind in _TYPES.items())
        and found["experiment"] == name
        and isinstance(found.get("seconds"), int | float)
        and all(_is_row(row) for row in found["rows"])
        and all(isinstance(p, list) and len(p) == 3 and isinstance(p[2], dict) for p in found["panels"])
    )


def _is_row(row: Any) -> bool:
    """Tell whether it names its case and has figures that are numbers or missing."""
    if not isinstance(row, dict) or not isinstance(row.get("case"), str) or not isinstance(row.get("runs"), int):
        return False
    errors = [value for key, value in row.items() if key.endswith(("_se", "_published", "_sd"))]
    figures = [row.get(key.removesuffix("_se")) for key in row if key.endswith("_se")]
    return all(value is None or isinstance(value, int | float) for value in (*errors, *figures))


# --- writing


def keep(
    experiment: Experiment, done: dict[str, list[dict[str, Any]]], seconds: float, where: str | None = None
) -> None:
    """Write what an experiment came to on this machine; a folder that cannot be written to keeps nothing.

    A record of the same version with more runs stays as it is.
    """
    known = next((r for r in records(experiment.name)[0] if r.here and r.part == part_of(experiment)), None)
    if known is not None and known.version == VERSION and known.runs > sum(map(len, done.values())):
        return
    try:
        write(experiment, done, seconds, user_folder(), where)
    except OSError:
        return


def write(
    experiment: Experiment,
    done: dict[str, list[dict[str, Any]]],
    seconds: float,
    folder: Path,
    where: str | None = None,
    before: Record | None = None,
) -> Path:
    """Write a record, whole or not at all, and return its place; cases that were not run stay as they were before."""
    part = part_of(experiment)
    old = {} if before is None else {row["case"]: row for row in before.rows if row["case"] not in done}
    rows = [old.get(case.name) or _plain(experiment.row(case, done.get(case.name, []))) for case in experiment.cases]
    record = {
        "format": FORMAT,
        "experiment": experiment.name,
        "part": part,
        "version": VERSION,
        "date": datetime.now(UTC).date().isoformat(),
        "device": where or device(),
        "seconds": round(_seconds(done, seconds) + (before.seconds if before is not None else 0.0), 1),
        "rows": rows,
        "panels": _small([list(panel) for panel in experiment.panels(done)] if before is None else before.panels),
    }
    key = ",".join([experiment.name, *(f"{name}={value}" for name, value in part.items())])
    path = folder / f"{key}{_SUFFIX}"
    folder.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, _text(record).encode(), sync=False)
    return path


def part_of(experiment: Experiment) -> dict[str, str]:
    """Return in what it differs from the experiment that is registered under its name."""
    from bnnviz.experiments import EXPERIMENTS  # which imports this layer's modules

    first = EXPERIMENTS.get(experiment.name, experiment)
    chosen = {name: getattr(experiment, name, "") for name in PARTS}
    return {name: value for name, value in chosen.items() if value and value != getattr(first, name, "")}


def device() -> str:
    """Return in words what this process computes on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{cores} CPU {'core' if cores == 1 else 'cores'} ({platform.system()}, {platform.machine()})"


def _seconds(done: dict[str, list[dict[str, Any]]], seconds: float) -> float:
    """Return the CPU time of the runs, or the time by the clock of those that do not say."""
    each = [summary.get("cpu_seconds", summary.get("seconds")) for found in done.values() for summary in found]
    return seconds if None in each else sum(each)


def _small(panels: list[Any]) -> list[Any]:
    """Return the pictures with rounded numbers; none where they are large."""
    plain = _plain(panels)
    return plain if len(json.dumps(plain)) <= MOST_BYTES else []


def _plain(value: Any) -> Any:
    """Return arrays as lists, with five digits, and what is no number as nothing."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def _text(record: dict[str, Any]) -> str:
    """Write a record with a line for each row, as a change of one of them is read best."""
    lines = [f" {json.dumps(key)}: {_value(value)}" for key, value in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value, allow_nan=False)
    return "[\n  " + ",\n  ".join(json.dumps(each, allow_nan=False) for each in value) + "\n ]"


# --- the maintainers' command


def _run(experiment: Experiment, repetitions: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
    for case, i, summary in experiment.reproduce(repetitions):
        sys.stderr.write(f"{experiment.name}: {case.name}, run {i + 1}\n")
        yield case.name, summary


def _of_cases(experiment: Experiment, names: list[str] | None) -> Experiment:
    """Return an experiment with some of its cases alone."""
    if names is None:
        return experiment
    cases = tuple(case for case in experiment.cases if case.name in names)
    if unknown := set(names) - {case.name for case in cases}:
        raise BnnvizError(f"{experiment.name} has no case {min(unknown)!r}.", "case")
    return replace(experiment, cases=cases)


def _recorded(experiment: Experiment) -> Record | None:
    """Return the record of an experiment's part that comes with bnnviz."""
    part = part_of(experiment)
    return next((record for record in shipped(experiment.name)[0] if record.part == part), None)


def main(arguments: list[str] | None = None) -> int:
    """Run an experiment and write its record into the package; return the exit status."""
    from bnnviz import experiments

    parser = argparse.ArgumentParser(prog="python -m bnnviz.experiments.results", description=main.__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--repetitions", type=int, metavar="N", help="runs of each case; default: all of them")
    parser.add_argument("--case", action="append", metavar="C", help="run this one, and keep the record's other rows")
    for part in PARTS:
        parser.add_argument(f"--{part}", help="of a table that has such parts")
    given = parser.parse_args(arguments)
    try:
        for name in given.names:
            experiment = experiments.find(name).at(given.data, given.scale)
            experiment.check()
            begun, done = time.perf_counter(), {}
            for case, summary in _run(_of_cases(experiment, given.case), given.repetitions):
                done.setdefault(case, []).append(summary)
            before = _recorded(experiment) if given.case else None
            path = write(experiment, done, time.perf_counter() - begun, SHIPPED, before=before)
            sys.stdout.write(f"{path}\n")
    except BnnvizError as error:
        sys.stderr.write(f"{error.sentence}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
