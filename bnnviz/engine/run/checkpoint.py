"""Write checkpoints, all that is needed to go on, as bytes."""

from __future__ import annotations

import io
import pickle
from typing import Any, get_type_hints

import torch

from bnnviz.engine.run import old_checkpoints
from bnnviz.errors import BnnvizError
from bnnviz.samplers import Sampler
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import restored


def pack(saved: dict[str, Any]) -> bytes:
    """Return tensors and plain values, with their ``version``, as bytes."""
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    return buffer.getvalue()


def unpack(data: bytes, version: int, remedy: str, older: tuple[int, ...] = ()) -> dict[str, Any]:
    """Return what was packed; nothing but tensors and plain values is read.

    Parameters
    ----------
    data : bytes
    version : int
        That it has to have.
    remedy : str
        What to do where it cannot be used.
    older : tuple of int, default ()
        Versions that it may have instead.

    Raises
    ------
    BnnvizError
        If the bytes are no checkpoint of these versions.
    """
    place = None if torch.cuda.is_available() else "cpu"  # it may have been written on a GPU
    try:
        saved = torch.load(io.BytesIO(data), map_location=place, weights_only=True)
    except (RuntimeError, EOFError, ValueError, OSError, pickle.UnpicklingError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BnnvizError(f"The checkpoint cannot be read ({first}); {remedy}.") from error
    if saved.get("version") not in (version, *older):
        raise BnnvizError(f"The checkpoint was written by another version of bnnviz; {remedy}.")
    return saved


def restored_state(sampler: Sampler, saved: dict[str, Any], rng: RandomNumbers, frozen: bool) -> Any:
    """Return the state that was saved of a sampler, which is prepared, as this version or an older one wrote it.

    ``frozen`` tells that the warm-up is over, of which older ones said nothing in the state.
    """
    kind = get_type_hints(type(sampler).init)["return"]
    old = old_checkpoints.is_old(saved)
    named = old_checkpoints.of_now(kind, old_checkpoints.state(kind, saved) if old else saved, sampler)
    state = restored(kind, named, sampler.target.device)
    return sampler.freeze(rng, state) if old and frozen else state
