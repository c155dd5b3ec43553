"""Write files atomically, and JSON with a checksum."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Matches files that a killed process has left incomplete.
HALF_WRITTEN = ".*.new"
#: Maximum nesting of lists and objects in JSON from other sources.
MOST_DEPTH = 64
_TOO_DEEP = f"it is nested more than {MOST_DEPTH} deep"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to a file or folder; its content replaces the original at the end of the block.

    If the block fails, the original is unchanged and the temporary path is removed. A folder replaces only an empty
    folder.
    """
    # Several processes or threads may write the same file; the last one to finish wins.
    new = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        yield new
        new.replace(path)
    finally:
        if new.is_dir():
            shutil.rmtree(new)
        else:
            new.unlink(missing_ok=True)


def make_private(folder: Path) -> None:
    """Create a folder and missing parents with access only for this user; an existing folder is not changed."""
    missing = [each for each in (folder, *folder.parents) if not each.is_dir()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def write_whole(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file atomically, through a temporary file next to it."""
    with replacing(path) as new, new.open("wb") as file:
        file.write(content)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object with its checksum atomically."""
    write_whole(path, sealed(value))


def sealed(value: dict[str, Any]) -> bytes:
    """Return a JSON object as text, with a checksum of its content."""
    body = json.dumps(value)
    return (body[:-1] + (", " if value else "") + f'"sha256": "{_digest(body)}"}}\n').encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """Return the object written by `sealed`."""
    found = plain_json(content.decode())
    if not isinstance(found, dict) or found.pop("sha256", None) != _digest(json.dumps(found)):
        raise ValueError("the checksum is another one")
    return found


def plain_json(text: str) -> Any:
    """Return the content of a JSON text from an untrusted source."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise ValueError("a number in it has thousands of digits") from None
    level, depth = [found], 0
    while level:
        if (depth := depth + 1) > MOST_DEPTH:
            raise ValueError(_TOO_DEEP)
        inner = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = [each for parts in inner for each in parts if isinstance(each, dict | list)]
    if "\\ud" in text or "\\uD" in text:  # half of a surrogate pair is not a character
        json.dumps(found, ensure_ascii=False).encode()
    return found


def to_json(value: Any) -> Any:
    """Convert NumPy values and messages to plain JSON; non-finite numbers become None."""
    if hasattr(value, "to_json"):
        value = value.to_json()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): to_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
