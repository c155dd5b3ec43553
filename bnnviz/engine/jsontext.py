"""JSON: what NumPy made as JSON knows it, and objects that carry their checksum."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any


def plain(value: Any) -> Any:
    """Turn what NumPy made into what JSON knows; a number that is not finite becomes None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def sealed(value: dict[str, Any]) -> bytes:
    """Return a JSON object with the checksum of the rest of it, as text."""
    body = json.dumps(value)
    return (body[:-1] + (", " if value else "") + f'"sha256": "{_digest(body)}"}}\n').encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """Return the object of `sealed`.

    Raises
    ------
    ValueError
        If it is not what was written.
    """
    found = json.loads(content.decode())
    if not isinstance(found, dict) or found.pop("sha256", None) != _digest(json.dumps(found)):
        raise ValueError("the checksum is another one")
    return found


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
