"""Bound what a message of a browser may become in the server's memory."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

from bokeh.core.serialization import DeserializationError, Deserializer

MOST_MESSAGE = 20 << 20  # bytes of a message: a file comes in pieces of 10 MiB
MOST_BODY = 1 << 20  # bytes of a form: there is but the login
_MOST_UNPACKED = 64 << 20  # bytes that a packed part of a message may become
_GZIP = 31  # of zlib: a header of gzip, the largest window


def bound_messages() -> None:
    """Have Bokeh unpack no part of a message that becomes far larger than a page ever sends."""
    if getattr(Deserializer._decode_bytes, "bounded", False):
        return
    decode = Deserializer._decode_bytes

    def decode_bounded(self: Deserializer, obj: dict[str, Any]) -> Any:
        return unpacked(obj["data"]) if isinstance(obj["data"], str) else decode(self, obj)

    decode_bounded.bounded = True
    Deserializer._decode_bytes = decode_bounded


def unpacked(text: str) -> bytes:
    """Return the bytes that were packed by gzip and written in base 64."""
    stream = zlib.decompressobj(_GZIP)
    try:
        content = stream.decompress(base64.b64decode(text), _MOST_UNPACKED)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise DeserializationError(f"a part of a message that was not packed ({error})") from error
    if not stream.eof:
        raise DeserializationError(f"a part of a message of more than {_MOST_UNPACKED} bytes")
    return content
