"""Export a recording to files for other programs."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnnviz import optional
from bnnviz.engine.recording.arviz import NETCDF, tree
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from bnnviz.files import replacing

if TYPE_CHECKING:
    import xarray

    from bnnviz.engine.evaluation.metrics import NetworkDraws
    from bnnviz.targets import Target


class ExportedDraws(NamedTuple):
    """A recording's living chains: draws (chains, draws, dim), log weights, names, header, sample statistics."""

    draws: np.ndarray
    log_weights: np.ndarray | None
    names: list[str]
    header: dict[str, Any]
    stats: dict[str, np.ndarray]


def kept(recording: Recording, *, target: Target | None = None) -> ExportedDraws:
    """Return the common draws of all living chains of a recording; ``target`` is the caller's own, if any."""
    if not recording.whole:
        raise BnnvizError(f"The recording {recording.folder} has no draws yet.", "run")
    alive = np.array(recording.progress["alive"], dtype=bool)
    chosen = alive if alive.any() else ~alive
    draws, logs = recording.read_draws(), recording.read_log_weights()
    header = {name: value for name, value in recording.header.items() if name != "format"}
    header["changes"] = recording.progress["changes"]  # the header is not updated at each change
    if draws is None:  # an unfinished run without an end
        from bnnviz.engine.recording.resume import resume

        run = resume(recording.folder, target=target)
        return ExportedDraws(run.draws, run.log_weights, list(run.target.names()), header, run.sample_stats)
    whole = recording.whole
    logs = None if logs is None else logs[chosen, :whole]
    stats = {name: values[chosen, :whole] for name, values in recording.read_sample_stats().items()}
    return ExportedDraws(draws[chosen, :whole], logs, recording.names(), header, stats)


def to_arviz(recording: Recording) -> xarray.DataTree:
    """Return the common draws of all living chains of a recording as an ArviZ data tree."""
    return tree(*kept(recording))


def export(recording: Recording, form: str, out: str | os.PathLike[str], draws: int | None = None) -> Path:
    """Write a recording to a file atomically."""
    if form not in FORMS:
        raise BnnvizError(f"There is no format {form!r}; choose one of {', '.join(FORMS)}.", "format")
    if draws is not None and form not in _OF_DRAWS:
        raise BnnvizError(f"The format {form} has all draws; leave out draws.", "draws")
    out = Path(out)
    if os.path.lexists(out):
        raise BnnvizError(f"{out} exists already; choose another name.", "out")
    try:
        with replacing(out) as new:
            if form in _OF_DRAWS:
                _OF_DRAWS[form](recording, new, draws)
            else:
                _WRITERS[form](recording, new)
    except OSError as error:
        raise BnnvizError(f"{out} cannot be written: {error.strerror or error}.", "out") from error
    return out


def suffix(form: str) -> str:
    """Return the file suffix of a format."""
    return {"netcdf": ".nc", "torch": ".pt", "ensemble": ".pt2", "zip": ".zip"}.get(form, f".{form}")


def _write_netcdf(recording: Recording, path: Path) -> None:
    optional.check(NETCDF, "Saving a run needs")
    path.write_bytes(to_arviz(recording).to_netcdf(engine="h5netcdf"))


def _write_zarr(recording: Recording, path: Path) -> None:
    # This format specifies labels of any length only, not of a fixed length.
    labels = {"coordinate": np.array(recording.names(), dtype=object)}
    data = to_arviz(recording).map_over_datasets(lambda part: part.assign_coords(labels) if "x" in part else part)
    data.to_zarr(path, zarr_format=3, consolidated=False)


def _write_npz(recording: Recording, path: Path) -> None:
    draws, logs, names, header, stats = kept(recording)
    weights = {} if logs is None else {"log_weights": logs}
    with path.open("wb") as file:
        np.savez(
            file, draws=draws, coordinates=np.array(names), header=np.array(json.dumps(header)), **weights, **stats
        )


def _write_csv(recording: Recording, path: Path) -> None:
    draws, logs, names, *_ = kept(recording)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["chain", "draw", *([] if logs is None else ["log_weight"]), *names])
        for chain, number in np.ndindex(draws.shape[:2]):
            weight = [] if logs is None else [logs[chain, number]]
            # The shortest text that reads as the same number.
            writer.writerow([chain, number, *(str(value) for value in [*weight, *draws[chain, number]])])


def _network_draws(recording: Recording) -> NetworkDraws:
    from bnnviz.engine.evaluation.metrics import network_draws
    from bnnviz.engine.recording.resume import resume
    from bnnviz.targets import BNN

    run = resume(recording.folder)
    if not isinstance(run.target, BNN):
        raise BnnvizError(
            "The target of this run is not a network and has no state dicts. Use another format.", "format"
        )
    return network_draws(run)


def _write_torch(recording: Recording, path: Path, draws: int | None) -> None:
    import torch

    from bnnviz.engine.evaluation.predictions import evenly

    found = _network_draws(recording)
    places = range(len(found.theta)) if draws is None else evenly(len(found.theta), draws)
    saved: dict[str, Any] = {
        "state_dicts": [found.target.state_dict(found.theta[int(place)].cpu()) for place in places],
        "header": kept(recording).header,
    }
    if found.log_weights is not None:
        saved["log_weights"] = torch.as_tensor(found.log_weights[list(places)])
    with path.open("wb") as file:
        torch.save(saved, file)


def _write_ensemble(recording: Recording, path: Path, draws: int | None) -> None:
    from bnnviz.engine.evaluation.exported_ensemble import DRAWS, archive

    path.write_bytes(archive(_network_draws(recording), DRAWS if draws is None else draws))


def _write_onnx(recording: Recording, path: Path, draws: int | None) -> None:
    optional.check(("onnx", "onnxscript"), "The format onnx needs", extra="onnx")
    from bnnviz.engine.evaluation.exported_ensemble import DRAWS, in_onnx

    path.write_bytes(in_onnx(_network_draws(recording), DRAWS if draws is None else draws))


_WRITERS: dict[str, Callable[[Recording, Path], None]] = {
    "netcdf": _write_netcdf,
    "zarr": _write_zarr,
    "npz": _write_npz,
    "csv": _write_csv,
}
_OF_DRAWS: dict[str, Callable[[Recording, Path, int | None], None]] = {
    "torch": _write_torch,
    "ensemble": _write_ensemble,
    "onnx": _write_onnx,
}
FORMS = (*_WRITERS, *_OF_DRAWS)
