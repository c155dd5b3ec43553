"""Check the form of values from untrusted sources: files of recordings, and checkpoints."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from bnnviz.messages import Message
from bnnviz.specs.run import BYTES, Spec

Check = Callable[[Any], bool]

#: The phases of a run.
PHASES = frozenset({"start", "tuning", "warm-up", "sampling", "done", "failed"})
_MOST_COUNT = 1 << 53  # largest exact integer in JSON
_MOST_TEXT, _MOST_NAME = 1 << 16, 100


def is_count(value: Any) -> bool:
    """Return whether a value is a nonnegative integer."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNT


def is_positive(value: Any) -> bool:
    """Return whether a value is a positive integer."""
    return is_count(value) and value > 0


def is_amount(value: Any) -> bool:
    """Return whether a value is a finite nonnegative number."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= _MOST_COUNT  # false for nan


def is_text(value: Any) -> bool:
    """Return whether a value is a text that a page can display."""
    return isinstance(value, str) and len(value) <= _MOST_TEXT


def is_name(value: Any) -> bool:
    """Return whether a value can be the name of a sampler, a setting or a version."""
    return isinstance(value, str) and 0 < len(value) <= _MOST_NAME and value.isprintable()


def is_flag(value: Any) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def is_object(value: Any) -> bool:
    """Return whether a value is a JSON object."""
    return isinstance(value, dict)


def is_settings(value: Any) -> bool:
    """Return whether a value is a mapping from names to values of settings."""
    return isinstance(value, dict) and all(map(is_name, value))


def is_change(value: Any) -> bool:
    """Return whether a value is an entry of a change log: a step, and settings."""
    return isinstance(value, list | tuple) and len(value) == 2 and is_count(value[0]) and is_settings(value[1])


def is_phase(value: Any) -> bool:
    """Return whether a value is a phase of a run."""
    return isinstance(value, str) and value in PHASES


def matches(pattern: re.Pattern[str]) -> Check:
    """Return a check for texts that match a pattern."""
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


is_digest = matches(re.compile(r"[0-9a-f]{64}"))


def or_none(check: Check) -> Check:
    """Return a check that also accepts None."""
    return lambda value: value is None or check(value)


def is_message(value: Any) -> bool:
    """Return whether a value is a result of `bnnviz.messages.Message.to_json`."""
    try:
        Message.from_json(value)
    except ValueError:
        return False
    return True


def list_of(check: Check, least: int = 0) -> Check:
    """Return a check for lists whose elements pass a check."""
    return lambda value: isinstance(value, list) and len(value) >= least and all(map(check, value))


def record(checks: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Return a check for objects with these keys."""
    return lambda value: isinstance(value, dict) and unfit(value, checks, optional or {}) is None


def unfit(found: Mapping[str, Any], checks: Mapping[str, Check], optional: Mapping[str, Check]) -> str | None:
    """Return the first key whose value is missing or invalid; None if all are valid."""
    missing = next((name for name, check in checks.items() if name not in found or not check(found[name])), None)
    return missing or next((name for name, check in optional.items() if name in found and not check(found[name])), None)


_SPEC = {
    "target": is_name,
    "target_settings": is_settings,
    "sampler": is_name,
    "settings": is_settings,
    "chains": is_positive,
    "draws": or_none(is_positive),
    "warmup": is_count,
    "seed": is_count,
    "version": is_count,
    "device": is_name,
    "dtype": is_name,
    "kernel": is_name,
    "file": or_none(is_settings),
}
_SPEC_OPTIONAL = {"start": is_digest}
_SPEC_KEYS = {"version", *(field.name for field in dataclasses.fields(Spec) if field.name not in BYTES)}


def is_spec(value: Any) -> bool:
    """Return whether a value has the form of a spec, without looking its names up."""
    known = isinstance(value, dict) and value.keys() <= _SPEC_KEYS
    return known and unfit(value, _SPEC, _SPEC_OPTIONAL) is None
