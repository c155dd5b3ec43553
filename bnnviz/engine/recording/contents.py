"""Check the JSON files of a recording, which may be forged with valid checksums.

`Recording` checks every header and progress here, so that callers may rely on their types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bnnviz.specs.forms import (
    is_amount,
    is_change,
    is_count,
    is_flag,
    is_message,
    is_name,
    is_object,
    is_phase,
    is_spec,
    is_text,
    list_of,
    matches,
    or_none,
    record,
    unfit,
)

_is_digest = matches(re.compile(r"[0-9a-f]{64}"))
_is_checkpoint = matches(re.compile(r"checkpoint-\d{1,15}-[0-9a-f]{12}"))

_HEADER = {
    "bnnviz": is_name,
    "spec": is_spec,
    "changes": list_of(is_change),
    "device": is_name,
    "notes": list_of(is_message),
    "torch": is_name,
    "threads": is_count,
    "kernel": is_name,
    "steps": is_count,
    "stats": is_object,
    "data_sha256": or_none(_is_digest),
    "start_sha256": or_none(_is_digest),
}
_CHECKPOINT = {"file": _is_checkpoint, "step": is_count, "size": is_count, "sha256": _is_digest}
_PROGRESS = {
    "counts": list_of(is_count, least=1),
    "alive": list_of(is_flag, least=1),
    "checkpoint": record(_CHECKPOINT),
    "spec": is_spec,
    "changes": list_of(is_change),
    "finished": is_flag,
    "phase": is_phase,
    "steps": is_count,
    "seconds": is_amount,
    "gradients": is_amount,
    "error": or_none(is_text),
}


def unfit_header(found: Mapping[str, Any]) -> str | None:
    """Return the invalid part of a header, or None."""
    return unfit(found, _HEADER, {})


def unfit_progress(found: Mapping[str, Any]) -> str | None:
    """Return the part of a progress that is invalid or inconsistent, or None."""
    wrong = unfit(found, _PROGRESS, {})
    if wrong is not None:
        return wrong
    fits = len(found["counts"]) == len(found["alive"]) == found["spec"]["chains"]
    return None if fits else "counts"
