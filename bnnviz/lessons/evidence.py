"""Check the claims of lessons: each measured with its seeds, recorded, and compared with its interval."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.lessons import content, films
from bnnviz.lessons.content import Claim, Film, Lesson, Step

RECORDS = Path(__file__).with_name("records.json")


def claims(lessons: Mapping[str, Lesson]) -> Iterator[tuple[str, Step, Claim]]:
    """Yield each claim with its step and a name of its own."""
    for lesson in lessons.values():
        for number, step in enumerate(lesson.steps, start=1):
            for claim in step.claims:
                yield f"{lesson.name}/{number}/{claim.name}", step, claim


def key(film: Film, at: int, claim: Claim) -> str:
    """Return what the recorded values of a claim depend on, as a short text."""
    return films.digest([film.at(_value(film)).to_json(), film.watch, at, claim.quantity, claim.seeds])


def sample(film: Film, at: int, quantities: list[str], seed: int) -> list[float]:
    """Return quantities at a step of a film's run, with another seed."""
    spec = film.at(_value(film), seed)
    frame = films.frames_of(film, spec, 2, at, {*quantities}).frames[-1]
    return [frame["measured"][name] for name in quantities]


def check(lessons: Mapping[str, Lesson], records: Mapping[str, Any] | None = None) -> list[str]:
    """Return a sentence for each claim whose recorded values are missing, outdated or outside its interval."""
    records = read() if records is None else records
    found = []
    for name, step, claim in claims(lessons):
        record = records.get(name)
        low, high = claim.interval
        if record is None or record["key"] != key(step.film, step.at, claim):
            found.append(f"{name}: there are no values for it; run python -m bnnviz.lessons --seeds.")
        elif not all(low <= value <= high for value in record["values"]):
            worst = max(record["values"], key=lambda value: abs(value - (low + high) / 2))
            found.append(f"{name}: {claim.quantity} is {worst:.4g}, outside [{low:g}, {high:g}].")
    return found


def record(lessons: Mapping[str, Lesson], report: Callable[[str], None]) -> None:
    """Measure every claim whose record is missing or outdated, and keep the values."""
    present = {name for name, _, _ in claims(content.load())}
    records = {name: each for name, each in read().items() if name in present}
    wanted = {name: (step, claim) for name, step, claim in claims(lessons)}
    due = {name: pair for name, pair in wanted.items() if records.get(name, {}).get("key") != _key(*pair)}
    groups: dict[str, list[str]] = {}  # claims of one run are measured together
    for name, (step, claim) in due.items():
        groups.setdefault(films.digest([step.film.at(_value(step.film)).to_json(), step.at, claim.seeds]), []).append(
            name
        )
    for names in groups.values():
        step, first = due[names[0]]
        quantities = [due[name][1].quantity for name in names]
        begin = step.film.spec.seed
        seeds = range(begin, begin + first.seeds)
        rows = [sample(step.film, step.at, quantities, seed) for seed in seeds]
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            records[name] = {"key": _key(*due[name]), "values": [float(f"{value:.5g}") for value in values]}
            report(f"{name}: {min(values):.4g} to {max(values):.4g}, interval {due[name][1].interval}")
        RECORDS.write_text(json.dumps(dict(sorted(records.items())), indent=1) + "\n", encoding="utf-8")


def read() -> dict[str, Any]:
    """Return the recorded values by claim."""
    return json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.is_file() else {}


def require(lessons: Mapping[str, Lesson]) -> None:
    """Refuse lessons with a claim that does not hold."""
    wrong = check(lessons)
    if wrong:
        raise BnnvizError(f"{len(wrong)} claims of the lessons do not hold. " + " ".join(wrong[:5]))


def _key(step: Step, claim: Claim) -> str:
    return key(step.film, step.at, claim)


def _value(film: Film) -> Any:
    return film.values[film.opening]
