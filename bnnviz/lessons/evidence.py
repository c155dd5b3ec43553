"""Check the claims of lessons: each measured with its seeds, recorded, and compared with its interval."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.lessons import content, films
from bnnviz.lessons.content import Claim, Lesson, Step

RECORDS = Path(__file__).with_name("records.json")


def claims(lessons: Mapping[str, Lesson]) -> Iterator[tuple[str, Step, Claim]]:
    """Yield each claim with its step and a unique name."""
    for lesson in lessons.values():
        for number, step in enumerate(lesson.steps, start=1):
            for claim in step.claims:
                yield f"{lesson.name}/{number}/{claim.name}", step, claim


def key(step: Step, claim: Claim) -> str:
    """Return a fingerprint of everything that determines the recorded values of a claim."""
    return films.digest([_run(step), claim.quantity, claim.seeds])


def sample(step: Step, quantities: list[str], seed: int) -> list[float]:
    """Return quantities at a step of a film's run, with another seed."""
    spec = step.film.at(step.film.values[step.place], seed)
    frame = films.frames_of(step.film, spec, 2, step.at, {*quantities}).frames[-1]
    return [frame["measured"][name] for name in quantities]


def _run(step: Step) -> list[Any]:
    return [step.film.identity(step.place), step.at]


def check(lessons: Mapping[str, Lesson], records: Mapping[str, Any] | None = None) -> list[str]:
    """Return a message for each claim whose recorded values are missing, outdated or outside its interval."""
    records = read() if records is None else records
    found = []
    for name, step, claim in claims(lessons):
        values = _values(records, name, step, claim)
        low, high = claim.interval
        if not values:
            found.append(f"{name}: no recorded values; run python -m bnnviz.lessons.")
        elif not all(low <= value <= high for value in values):
            worst = max(values, key=lambda value: abs(value - (low + high) / 2))
            found.append(f"{name}: {claim.quantity} is {worst:.4g}, outside [{low:g}, {high:g}].")
    return found


def record(lessons: Mapping[str, Lesson], seeds: int, report: Callable[[str], None]) -> None:
    """Measure every claim with the given number of seeds, at most as many as it requests; recorded values stay."""
    everything = {name: (step, claim) for name, step, claim in claims(content.load())}
    requested = {name for name, _, _ in claims(lessons)}
    records = {name: {"key": key(*pair), "values": _values(read(), name, *pair)} for name, pair in everything.items()}
    runs: dict[str, list[str]] = {}  # the claims that one run measures together
    for name in sorted(requested):
        step, claim = everything[name]
        runs.setdefault(films.digest([_run(step), claim.seeds]), []).append(name)
    for number in range(seeds):
        for names in runs.values():
            step, claim = everything[names[0]]
            missing = [name for name in names if len(records[name]["values"]) <= number]
            if number >= claim.seeds or not missing:
                continue
            quantities = [everything[name][1].quantity for name in missing]
            values = sample(step, quantities, step.film.spec.seed + number)
            for name, value in zip(missing, values, strict=True):
                records[name]["values"].append(float(f"{value:.5g}"))
                report(f"{name}, seed {number + 1}: {value:.4g} in {everything[name][1].interval}")
            kept = {name: each for name, each in sorted(records.items()) if each["values"]}
            RECORDS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _values(records: Mapping[str, Any], name: str, step: Step, claim: Claim) -> list[float]:
    """Return the recorded values of a claim, or none if the claim has changed since."""
    record = records.get(name)
    return list(record["values"]) if record is not None and record["key"] == key(step, claim) else []


def read() -> dict[str, Any]:
    """Return the recorded values by claim."""
    return json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.is_file() else {}


def require(lessons: Mapping[str, Lesson]) -> None:
    """Refuse lessons with a claim that does not hold."""
    wrong = check(lessons)
    if wrong:
        raise BnnvizError(f"{len(wrong)} claims of the lessons do not hold. " + " ".join(wrong[:5]))
