"""Write checkpoints, the states from which runs continue, as bytes."""

from __future__ import annotations

import io
import pickle
import zipfile
from typing import Any, get_type_hints

import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.samplers import Sampler
from bnnviz.samplers.tree import flat, restored
from bnnviz.specs.forms import (
    Check,
    is_amount,
    is_change,
    is_count,
    is_message,
    is_object,
    is_phase,
    is_spec,
    list_of,
    or_none,
    record,
    unfit,
)

_ZIP = b"PK\3\4"
_MOST_SHRINK, _FREE = 4, 1 << 26  # a checkpoint may expand by this factor, plus this number of bytes
#: Errors of inconsistent checkpoints.
UNFIT = (AttributeError, LookupError, TypeError, ValueError, RuntimeError, OverflowError, MemoryError)
_UNREADABLE = (
    *UNFIT,
    *(EOFError, OSError, pickle.UnpicklingError, zipfile.BadZipFile, NotImplementedError),
)


def pack(saved: dict[str, Any]) -> bytes:
    """Return tensors and plain values, with their ``version``, as bytes."""
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    return buffer.getvalue()


def unpack(data: bytes, version: int, remedy: str) -> dict[str, Any]:
    """Unpack a checkpoint, reading only tensors and plain values."""
    place = None if torch.cuda.is_available() else "cpu"  # it may be from a GPU
    try:
        _believe(data)
        saved = torch.load(io.BytesIO(data), map_location=place, weights_only=True)
    except _UNREADABLE as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BnnvizError(f"The checkpoint cannot be read ({first}); {remedy}.") from error
    if not isinstance(saved, dict) or _bytes_of(saved) > _most(data):
        raise BnnvizError(f"The checkpoint cannot be read (it holds something else); {remedy}.")
    if (found := saved.get("version")) != version:
        raise BnnvizError(f"The checkpoint has version {found!r:.20}; this bnnviz reads version {version}: {remedy}.")
    return saved


def _believe(data: bytes) -> None:
    """Raise for an archive that would become far larger: torch does not compress."""
    if data.startswith(_ZIP):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _most(data):
                raise ValueError("it would become far larger than it is")


def _bytes_of(value: Any) -> int:
    """Return the expanded bytes of all tensors: one may repeat a number endlessly."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return sum(map(_bytes_of, parts))


def _most(data: bytes) -> int:
    return _FREE + _MOST_SHRINK * len(data)


def check(saved: dict[str, Any]) -> None:
    """Raise for a forged checkpoint with wrong types or sizes, before anything is allocated."""
    if wrong := unfit(saved, _CONTENTS, {}):
        raise damaged(wrong)
    spec = saved["spec"]
    alive, counts = saved["alive"], saved["store"]["counts"]
    if not spec["chains"] == saved["begun"]["chains"] == len(alive) == len(counts):
        raise damaged("chains")
    if spec["draws"] is not None and int(counts.max()) > spec["draws"]:
        raise damaged("counts")


def damaged(part: str) -> BnnvizError:
    """Return the error for a damaged part of a checkpoint."""
    return BnnvizError(f"The checkpoint is damaged ({part}); start the run again.", "run")


def _is_vector(dtype: torch.dtype) -> Check:
    return lambda value: isinstance(value, Tensor) and value.ndim == 1 and value.dtype == dtype


def _is_store(value: Any) -> bool:
    counts = isinstance(value, dict) and all(map(_is_vector(torch.int64), (value.get("counts"), value.get("made"))))
    if not (counts and len(value["counts"]) == len(value["made"]) > 0 and "buffer" in value):
        return False
    steps = isinstance(value.get("every"), int) and value["every"] > 0
    steps = steps and all(is_count(value.get(name)) for name in ("skip", "offset"))
    kept = value["buffer"]
    fits = isinstance(kept, list) or (isinstance(kept, Tensor) and kept.ndim == 3 and len(kept) == len(value["counts"]))
    return steps and fits and bool((value["counts"] >= 0).all() and (value["made"] >= value["counts"]).all())


def _is_point(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim == 2 and len(value) == 1


_FINGERPRINT = {"dim": is_count, "x": _is_point, "potential": lambda value: isinstance(value, float)}
#: Checks of the parts of a checkpoint.
_CONTENTS: dict[str, Check] = {
    **dict.fromkeys(("spec", "begun"), is_spec),
    **dict.fromkeys(("attachment", "start_points"), lambda value: value is None or isinstance(value, bytes)),
    **dict.fromkeys(("emitter", "kernel"), or_none(is_object)),
    **dict.fromkeys(("steps", "generation"), is_count),
    **dict.fromkeys(("gradients", "seconds", "cpu_seconds", "device_seconds"), is_amount),
    **dict.fromkeys(("store", "logs", "path", "draw_stats"), _is_store),
    **dict.fromkeys(("mode", "origin", "events"), or_none(lambda value: isinstance(value, Tensor) and value.ndim <= 2)),
    "given": or_none(record(_FINGERPRINT, {"generation": is_count})),
    "phase": is_phase,
    "notes": list_of(is_message),
    "changes": list_of(is_change),
    "alive": _is_vector(torch.bool),
    "rng": _is_vector(torch.uint8),
    "tally": is_object,
    "compiled_since": or_none(is_count),
    "rejected": lambda value: isinstance(value, dict) and value.keys() <= {"count", "first"},
}


def restored_state(sampler: Sampler, saved: dict[str, Any], chains: int, dtype: torch.dtype) -> Any:
    """Return the saved state of a prepared sampler; raise for another number of chains or dimensions."""
    state = restored(get_type_hints(type(sampler).init)["return"], saved, sampler.target.device)
    x, dim = getattr(state, "x", None), sampler.target.dim
    if x is not None and (x.shape != (chains, dim) or x.dtype != dtype):
        raise damaged("x")
    for name, part in zip(state._fields, state, strict=True):
        if name != "adaptation" and any(tensor.ndim and len(tensor) != chains for tensor in flat(part)):
            raise damaged(name)
    return state
