"""Run a suite: ``python -m benchmarks nuts --case logistic --seconds 30 --json``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from benchmarks.rows import Case
from bnnviz.errors import BnnvizError
from bnnviz.files import to_json

#: The suites, each a module with ``CASES``.
SUITES = {
    "live": "the dashboard in a real browser while a sampler runs",
    "pdmp": "events and effective draws of the PDMP samplers, compared with pdmp-jax",
    "nuts": "NUTS, compared with numpyro",
    "posteriors": "every sampler at its defaults on published posteriors",
    "tables": "default settings on tables, compared with scikit-learn (hours; --case NAME for one)",
    "cuda": "steps of many chains on a GPU; reduced on a CPU",
}


def cases(suite: str) -> dict[str, Case]:
    """Return the cases of a suite by name."""
    return import_module(f"benchmarks.{suite}").CASES


def measure(suite: str, case: str | None, seconds: float) -> Iterator[dict[str, Any]]:
    """Measure one case of a suite, or all, and yield each row as JSON."""
    found = cases(suite)
    if case is not None and case not in found:
        raise BnnvizError(f"The suite {suite} has no case {case!r}; choose one of {', '.join(found)}.")
    for name in found if case is None else [case]:
        for row in found[name](seconds, _report):
            yield row.to_json(suite, name)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    suites = "\n".join(f"  {name:<12}{title}" for name, title in SUITES.items())
    parser = argparse.ArgumentParser("benchmarks", None, f"suites:\n{suites}", None)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--case", help="only this part")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each part is measured")
    parser.add_argument("--json", action="store_true", help="print all rows as one list")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that browsers and servers are stopped
    rows = []
    try:
        for row in measure(given.suite, given.case, given.seconds):
            rows.append(to_json(row))
            _report(_line(rows[-1]))
    except (BnnvizError, ImportError) as error:
        _report(f"benchmarks: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    sys.stdout.write((json.dumps(rows) if given.json else "\n".join(map(_line, rows))) + "\n")
    return 0


def _line(row: dict[str, Any]) -> str:
    value = "-" if row["value"] is None else f"{row['value']:.4g}"
    parts = [f"{row['case']}, {row['metric']}: {value} {row['unit']}".rstrip()]
    parts += [f"{row['target']} {'met' if row['ok'] else 'missed'}"] if row["target"] else []
    parts += [row[key] for key in ("note", "includes") if row.get(key)]
    return "; ".join(parts)


def _report(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
