"""Checkpoints: what is saved of whatever can go on, as bytes."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch

from bnnviz.errors import BnnvizError


def pack(saved: dict[str, Any]) -> bytes:
    """Return tensors and plain values, with their ``version``, as bytes."""
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    return buffer.getvalue()


def unpack(data: bytes, version: int, remedy: str) -> dict[str, Any]:
    """Return what was packed; nothing but tensors and plain values is read.

    Parameters
    ----------
    data : bytes
    version : int
        That it has to have.
    remedy : str
        What to do where it cannot be used.

    Raises
    ------
    BnnvizError
        If the bytes are no checkpoint of this version.
    """
    try:
        saved = torch.load(io.BytesIO(data), weights_only=True)
    except (RuntimeError, EOFError, ValueError, OSError, pickle.UnpicklingError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BnnvizError(f"The checkpoint cannot be read ({first}); {remedy}.") from error
    if saved.get("version") != version:
        raise BnnvizError(f"The checkpoint was written by another version of bnnviz; {remedy}.")
    return saved
