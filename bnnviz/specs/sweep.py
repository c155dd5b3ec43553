"""Specify a sweep: many runs, as a base, a grid of settings and a list of specs; YAML or JSON.

    base: {target: banana, chains: 4, draws: 500}
    grid:
      sampler: [bps, boomerang]
      target.bend: [0.5, 1.0]
      seed: 0-2

is a run for each combination. A value of the grid is a list, or ``first-last`` where it is of whole numbers.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from bnnviz import optional
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue
from bnnviz.specs.run import BYTES, Spec, read_json

MOST = 10_000  # runs
MOST_BYTES = 1_000_000  # of a file
LONGEST = 96  # letters of a run's name
_KEYS = ("base", "grid", "specs")
_FIELDS = tuple(f.name for f in dataclasses.fields(Spec) if f.name not in (*BYTES, "file"))
_PLACES = {
    "sampler": "settings",
    "settings": "settings",
    "target": "target_settings",
    "target_settings": "target_settings",
    "start": "start",
}
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")
_UNSAFE = re.compile(r"[^A-Za-z0-9._=+-]+")
# What YAML 1.1 takes for a text: 1e-3.
_FLOAT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+")


@dataclass(frozen=True)
class SweepSpec:
    """What a sweep runs."""

    runs: dict[str, Spec]

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Make a sweep from YAML or JSON; see `from_json`."""
        if len(text) > MOST_BYTES:
            raise BnnvizError(f"A sweep is a file of at most {MOST_BYTES:,} letters; give it as a grid.", "sweep")
        return cls.from_json(_loaded(text))

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Make a sweep from a JSON object or a list of specs, every run of it checked."""
        value = {"specs": value} if isinstance(value, list) else value
        given = read_json(value, "A sweep", _KEYS)
        base = _object(given.get("base"), "base")
        grid = {str(key): _values(key, found) for key, found in _object(given.get("grid"), "grid").items()}
        specs = _listed(given.get("specs"))
        count = len(specs) * math.prod(map(len, grid.values()))
        if count > MOST:
            raise BnnvizError(f"The sweep is {count:,} runs; {MOST:,} is the most: make its grid smaller.", "grid")
        return cls(_named(_checked(base, specs, grid)))


def _loaded(text: str) -> Any:
    yaml = optional.require("yaml", "Sweeps need", "sweep")

    class Loader(yaml.SafeLoader):
        """Plain values only; a key twice is a mistake, and 1e-3 a number."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
            seen = set()
            for key, _ in node.value:
                name = self.construct_object(key, deep=True)
                if isinstance(name, Hashable) and name in seen:
                    raise BnnvizError(f"The sweep has the key {name!r} twice in one place; give it once.", str(name))
                seen.add(name if isinstance(name, Hashable) else None)
            return super().construct_mapping(node, deep)

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
    try:
        found = yaml.load(text, Loader)  # the subclass makes no objects either
        if _written_out(found, {}) > MOST_BYTES:
            raise BnnvizError("The sweep repeats its aliases without measure; write out what they stand for.", "sweep")
    except BnnvizError:
        raise
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BnnvizError(
            f"The sweep is neither YAML nor JSON ({reason}); check its indents and colons.", "sweep"
        ) from None
    return found


def _written_out(value: Any, known: dict[int, int]) -> int:
    """Return how many values there are, each counted as often as aliases repeat it."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = MOST_BYTES + 1  # for one within itself
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_written_out(part, known) for part in parts)
    return known[id(value)]


def _object(value: Any, owner: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BnnvizError(f"The {owner} of a sweep is an object of names and values, not {_short(value)}.", owner)
    return value


def _listed(specs: Any) -> list[dict[str, Any]]:
    if specs is None:
        return [{}]
    if not isinstance(specs, list) or not specs or not all(isinstance(spec, dict) for spec in specs):
        raise BnnvizError("The specs of a sweep are a list of objects, each with what goes over the base.", "specs")
    return specs


def _values(key: Any, found: Any) -> list[Any]:
    """Return the values that a key of the grid takes."""
    if isinstance(found, str) and (match := _RANGE.fullmatch(found.strip())):
        first, last = map(int, match.groups())
        if last - first >= MOST:
            raise BnnvizError(f"The grid's {key} has {last - first + 1:,} values; {MOST:,} is the most.", str(key))
        found = list(range(first, last + 1))
    if not isinstance(found, list) or not found:
        raise BnnvizError(
            f"The grid's {key} is a list of values, or first-last for whole numbers, not {_short(found)}.", str(key)
        )
    return found


def _checked(
    base: dict[str, Any], specs: list[dict[str, Any]], grid: dict[str, list[Any]]
) -> Iterator[tuple[list[str], Spec]]:
    """Yield what each run's name is made of, and its spec."""
    own = len(specs) > 1 or bool(specs[0])
    for number, entry in enumerate(specs, 1):
        entry = dict(entry)
        label = entry.pop("name", None)
        if label is not None and (not isinstance(label, str) or not label.strip()):
            raise BnnvizError(f"The name of the sweep's spec {number} is a text, not {_short(label)}.", "name")
        for values in itertools.product(*grid.values()):
            point = dict(zip(grid, values, strict=True))
            words = [f"{key.rpartition('.')[2]}={_word(one)}" for key, one in point.items()]
            where = ", ".join([*([f"spec {number}"] if own else []), *words]) or "the base"
            try:
                request: dict[str, Any] = {}
                for part in (base, entry, point):
                    _enter(request, part)
                _refuse_own_file(request)
                spec = Spec.from_json(request)
                if spec.draws is None:
                    raise BnnvizError("It has no end; say how many draws to make.", "draws")
            except BnnvizError as error:
                raise BnnvizError(f"A run of the sweep ({where}): {error.sentence}", error.field) from None
            yield [label or (f"{spec.sampler}-{spec.target}" if own else ""), *words], spec


def _enter(request: dict[str, Any], part: dict[str, Any]) -> None:
    """Put fields of a spec, and settings as sampler.NAME or target.NAME, over what there is."""
    for key, value in part.items():
        owner, dot, name = str(key).partition(".")
        if dot and owner in _PLACES:
            request[_PLACES[owner]] = {**request.get(_PLACES[owner], {}), name: value}
        elif key in _PLACES.values():
            request[key] = {**request.get(key, {}), **_object(value, key)}
        elif key in (*_FIELDS, "version"):
            request[key] = value
        else:
            raise BnnvizError(_unknown(str(key)), str(key))


def _refuse_own_file(request: dict[str, Any]) -> None:
    if _object(request.get("target_settings"), "target_settings").get("data") == catalogue.own_data():
        raise BnnvizError("A sweep takes data sets that have a name; bnnviz sample takes a file of yours.", "data")


def _unknown(key: str) -> str:
    owners = [
        f"{kind}.{key}"
        for kind in ("sampler", "target")
        if any(setting["name"] == key for item in catalogue.load()[f"{kind}s"] for setting in item["settings"])
    ]
    remedy = (
        f"write {' or '.join(owners)}" if owners else f"its keys are {', '.join(_FIELDS)}, sampler.NAME, target.NAME"
    )
    return f"There is no key {key!r}; {remedy}."


def _named(runs: Iterator[tuple[list[str], Spec]]) -> dict[str, Spec]:
    """Return the runs by names that hang on the run alone: a longer grid leaves those of the shorter one."""
    found: dict[str, Spec] = {}
    marks: dict[str, str] = {}
    taken: set[str] = set()
    for words, spec in runs:
        digest = _digest(spec)
        name = _UNSAFE.sub("_", "-".join(filter(None, words))).strip("._-") or f"{spec.sampler}-{spec.target}"
        name = name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}-{digest[:8]}"
        if digest in marks:
            raise BnnvizError(f"The sweep has the run {marks[digest]} twice; take one of them out.", "grid")
        # Names that some disks take for the same differ by what is in the spec.
        name = f"{name}-{digest[:8]}" if name.casefold() in taken else name
        marks[digest] = name
        taken.add(name.casefold())
        found[name] = spec
    return found


def _digest(spec: Spec) -> str:
    return hashlib.sha256(json.dumps(spec.to_json(), sort_keys=True).encode()).hexdigest()


def _word(value: Any) -> str:
    if isinstance(value, list | dict):
        return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:8]
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
