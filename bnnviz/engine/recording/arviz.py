"""Write a run in a format for ArviZ."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import optional
from bnnviz.engine.protocol import AnyRun
from bnnviz.errors import BnnvizError
from bnnviz.files import write_whole
from bnnviz.version import VERSION

if TYPE_CHECKING:
    import xarray

    from bnnviz.targets import Target

#: Packages that write NetCDF files.
NETCDF = ("arviz_base", "h5netcdf", "h5py")
# Boolean sample statistics of ArviZ.
_YES_OR_NO = ("diverging", "reached_max_treedepth")


def header(run: AnyRun) -> dict[str, Any]:
    """Return the data to repeat the run: spec, change log, device, versions."""
    import torch

    return {
        "bnnviz": VERSION,
        "torch": torch.__version__,
        "spec": run.begun.to_json(),
        "changes": run.changes,
        "device": str(run.device),
        "threads": run.threads,
        "kernel": "eager" if run.compiled_since is None else f"compiled since step {run.compiled_since}",
        "steps": run.steps,
        "notes": [note.to_json() for note in run.notes],
        "stats": run.stats,
        "data_sha256": data_checksum(run.target),
    }


def data_checksum(target: Target) -> str | None:
    """Return the SHA-256 of a network's training rows in memory, or None without rows."""
    rows = [getattr(target, name, None) for name in ("x", "y")]
    if any(part is None for part in rows):
        return None
    digest = hashlib.sha256()
    for part in rows:
        digest.update(f"{part.dtype} {tuple(part.shape)}".encode())
        digest.update(part.detach().cpu().contiguous().numpy())
    return digest.hexdigest()


def to_arviz(run: AnyRun, predictions: bool | None = None) -> xarray.DataTree:
    """Return the draws as an ArviZ data tree; the header is the attribute ``bnnviz`` (JSON)."""
    from bnnviz.engine.recording import arviz_groups

    stats, lp = run.sample_stats, arviz_groups.log_densities(run.target, run.draws)
    if lp is not None:
        stats["lp"] = lp
    if "reached_max_treedepth" in stats:
        # d complete doublings take 2^d - 1 leapfrog steps; a started one counts as well.
        stats["tree_depth"] = np.ceil(np.log2(stats["n_steps"] + 1))
    made = tree(run.draws, run.log_weights, list(run.target.names()), header(run), stats)
    return arviz_groups.completed(made, run, predictions)


def tree(
    draws: np.ndarray,
    log_weights: np.ndarray | None,
    names: list[str],
    header: dict[str, Any],
    stats: dict[str, np.ndarray],
) -> xarray.DataTree:
    """Return an ArviZ data tree of draws (chains, draws, dim), their log weights and sample statistics."""
    arviz_base = optional.require("arviz_base", "Data trees need")
    groups = {"posterior": {"x": draws}}
    # A sum over draws needs the weights.
    weights = {} if log_weights is None else {"log_weight": log_weights}
    kept = weights | {name: values > 0 if name in _YES_OR_NO else values for name, values in stats.items()}
    if kept:
        groups["sample_stats"] = kept
    made = arviz_base.from_dict(groups, coords={"coordinate": names}, dims={"x": ["coordinate"]})
    made.attrs["bnnviz"] = json.dumps(header)
    return made


def save(run: AnyRun, path: str | os.PathLike[str]) -> Path:
    """Write the run to a NetCDF file; the suffix ``.nc`` is added if missing."""
    optional.check(NETCDF, "Saving a run needs")
    path = Path(path)
    path = path if path.suffix else path.with_suffix(".nc")
    # In memory first: HDF5 crashes the process when the disk is full.
    content = to_arviz(run).to_netcdf(engine="h5netcdf")
    try:
        write_whole(path, content)
    except OSError as error:
        raise BnnvizError(f"The run cannot be written to {path}: {error.strerror or error}.", "out") from error
    return path
