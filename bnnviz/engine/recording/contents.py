"""Check what the JSON files of a recording hold: somebody may have made them up, with right checksums.

`Recording` hands out no value that was not checked here, so that whoever reads one may rely on its type.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from bnnviz.specs.run import BYTES, Spec

Check = Callable[[Any], bool]

_MOST_COUNT = 1 << 53  # whole numbers that JSON has everywhere
_MOST_TEXT, _MOST_NAME = 1 << 16, 100
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHECKPOINT = re.compile(r"checkpoint-\d{1,15}-[0-9a-f]{12}")
_FRAMES = re.compile(r"frames-(scene|\d{1,15})-[0-9a-f]{12}")
_PHASES = frozenset({"start", "tuning", "warm-up", "sampling", "done", "failed"})


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNT


def _is_positive(value: Any) -> bool:
    return _is_count(value) and value > 0


def _is_amount(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= _MOST_COUNT  # which nan is not


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_TEXT


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MOST_NAME and value.isprintable()


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_settings(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_name, value))


def _is_change(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_count(value[0]) and _is_settings(value[1])


def _matches(pattern: re.Pattern[str]) -> Check:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check, least: int = 0) -> Check:
    return lambda value: isinstance(value, list) and len(value) >= least and all(map(check, value))


def _object(checks: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    def check(value: Any) -> bool:
        return isinstance(value, dict) and unfit(value, checks, optional or {}) is None

    return check


_SPEC = {
    "target": _is_name,
    "target_settings": _is_settings,
    "sampler": _is_name,
    "settings": _is_settings,
    "chains": _is_positive,
    "draws": _or_none(_is_positive),
    "warmup": _is_count,
    "seed": _is_count,
}
_SPEC_OPTIONAL = {
    "version": _is_count,
    "device": _is_name,
    "dtype": _is_name,
    "kernel": _is_name,
    "file": _or_none(_is_settings),
    "start": _or_none(
        _object({"recording": _or_none(_is_text), "points": _is_name, "sha256": _or_none(_is_name)}),
    ),
}
_SPEC_KEYS = {"version", *(field.name for field in dataclasses.fields(Spec) if field.name not in BYTES)}
_HEADER = {
    "bnnviz": _is_name,
    "spec": lambda value: is_spec(value),
    "changes": _list_of(_is_change),
    "device": _is_name,
    "notes": _list_of(_is_text),
}
_HEADER_OPTIONAL = {
    "torch": _is_name,
    "threads": _is_count,
    "kernel": _is_name,
    "steps": _is_count,
    "search": _or_none(lambda value: isinstance(value, dict)),
    "stats": lambda value: isinstance(value, dict),
    "data_sha256": _or_none(_matches(_DIGEST)),
    "start_sha256": _or_none(_matches(_DIGEST)),
}
_MARK = {"file": _matches(_CHECKPOINT), "step": _is_count, "size": _is_count, "sha256": _matches(_DIGEST)}
_FRAME_FILE = {"file": _matches(_FRAMES), "sha256": _matches(_DIGEST), "size": _is_count}
_PIECE = _FRAME_FILE | {"first": _is_count, "last": _is_count, "count": _is_positive}
_FRAME_INDEX = {"scene": _or_none(_object(_FRAME_FILE)), "pieces": _list_of(_object(_PIECE))}
_PROGRESS = {
    "counts": _list_of(_is_count, least=1),
    "alive": _list_of(_is_flag, least=1),
    "marks": _list_of(_object(_MARK), least=1),
    "spec": lambda value: is_spec(value),
    "changes": _list_of(_is_change),
    "finished": _is_flag,
    "phase": lambda value: isinstance(value, str) and value in _PHASES,
    "steps": _is_count,
    "seconds": _is_amount,
    "gradients": _is_amount,
    "error": _or_none(_is_text),
}
_PROGRESS_OPTIONAL = {"frames": _or_none(_object(_FRAME_INDEX))}


def unfit(found: Mapping[str, Any], checks: Mapping[str, Check], optional: Mapping[str, Check]) -> str | None:
    """Return the first key whose value is missing or does not fit; None where all do."""
    missing = next((name for name, check in checks.items() if name not in found or not check(found[name])), None)
    return missing or next((name for name, check in optional.items() if name in found and not check(found[name])), None)


def is_spec(value: Any) -> bool:
    """Tell whether a value has the form of a spec; whether its names are known is not asked."""
    known = isinstance(value, dict) and value.keys() <= _SPEC_KEYS
    return known and unfit(value, _SPEC, _SPEC_OPTIONAL) is None


def unfit_header(found: Mapping[str, Any]) -> str | None:
    """Return what of a header does not fit; None where all does."""
    return unfit(found, _HEADER, _HEADER_OPTIONAL)


def unfit_progress(found: Mapping[str, Any]) -> str | None:
    """Return what of a progress does not fit, by itself or with the rest; None where all does."""
    wrong = unfit(found, _PROGRESS, _PROGRESS_OPTIONAL)
    if wrong is not None:
        return wrong
    spec, counts = found["spec"], found["counts"]
    if not len(counts) == len(found["alive"]) == spec["chains"]:
        return "counts"
    index = found.get("frames") or {"pieces": []}
    ordered = all(piece["first"] <= piece["last"] for piece in index["pieces"])
    return None if ordered and (index.get("scene") or not index["pieces"]) else "frames"
