"""Read draws with names from whatever holds them: a run, a recording, an ArviZ tree, or plain arrays."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bnnviz import diagnostics, optional
from bnnviz.engine.recording import export, reader
from bnnviz.errors import BnnvizError
from bnnviz.figures.marks import CHAIN

MOST_VARIABLES = 4  # shown by default
COMPONENT = re.compile(r"PC ([1-9]\d?)")
_KINDS = (
    "a Run, a recording (its name, its folder, or opened), an ArviZ tree (or a .nc file of one), an array of draws, a"
    " dict of arrays by their names, or a list of these"
)
_TREES = (".nc", ".netcdf", ".zarr")


@dataclass(frozen=True)
class SourceDraws:
    """Draws of chains by variable; each array is (chains, draws)."""

    name: str
    values: dict[str, np.ndarray] = field(repr=False)
    log_weights: np.ndarray | None = field(default=None, repr=False)
    diverging: np.ndarray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        shapes = {values.shape for values in self.values.values()}
        if len(shapes) > 1:
            raise BnnvizError(
                f"The variables of {self.name} have different numbers of draws: {sorted(shapes)}.", "source"
            )
        if 0 in self.shape:
            raise BnnvizError(f"{self.name} has no draws yet.", "source")

    @property
    def shape(self) -> tuple[int, int]:
        """Chains, and draws of each."""
        return next(iter(self.values.values())).shape

    def chosen(self, variables: str | Sequence[str] | None = None, most: int = MOST_VARIABLES) -> list[str]:
        """Return the requested names of variables, or by default the first few."""
        if variables is None:
            return list(self.values)[:most]
        found = []
        for asked in [variables] if isinstance(variables, str) else map(str, variables):
            own = asked in self.values or (COMPONENT.fullmatch(asked) and len(self.values) > 1)
            parts = [asked] if own else [name for name in self.values if name.startswith(f"{asked}[")]
            if not parts:
                known = ", ".join(list(self.values)[:8]) + (", ..." if len(self.values) > 8 else "")
                raise BnnvizError(f"{self.name} has no variable {asked!r}; choose among {known}.", "variables")
            found += parts
        return found

    def of(self, variable: str) -> np.ndarray:
        """Return a variable (chains, draws), or a principal component of all of them."""
        found = COMPONENT.fullmatch(variable)
        if variable in self.values or found is None:
            return self.values[variable]
        number, most = int(found.group(1)), min(len(self.values), _MOST_COMPONENTS)
        if number > most:
            raise BnnvizError(f"{self.name} has {most} principal components here, no {variable}.", "variables")
        return self._components[..., number - 1]

    @cached_property
    def _components(self) -> np.ndarray:
        stacked = np.stack(list(self.values.values()), axis=-1).astype(float)
        flat = stacked.reshape(-1, stacked.shape[-1])
        centre, axes = diagnostics.principal_axes(flat, min(_MOST_COMPONENTS, flat.shape[1]))
        return (stacked - centre) @ axes

    def finite(self, variable: str) -> np.ndarray:
        """Return a variable (chains, draws) as float64, for a statistic."""
        values = np.asarray(self.of(variable), dtype=float)
        if not np.isfinite(values).all():
            raise BnnvizError(
                f"{variable} of {self.name} has {int((~np.isfinite(values)).sum())} draws that are not finite; leave"
                " them out, or choose another variable.",
                "variables",
            )
        return values

    def representative(self, variable: str) -> np.ndarray:
        """Return draws (n,) of a variable that count the same: all, or by their weights an even choice of them."""
        values = self.finite(variable).ravel()
        if self.log_weights is None:
            return values
        if not diagnostics.normalised(self.log_weights).any():
            raise BnnvizError(f"No draw of {self.name} has a weight above zero.", "source")
        return values[diagnostics.systematic(self.log_weights.ravel(), min(_MOST_RESAMPLED, values.size))]

    @property
    def ids(self) -> np.ndarray:
        """A number (chains, draws) for each draw, which identifies it across figures."""
        chain, draw = np.indices(self.shape)
        return draw_id(chain, draw)


_MOST_COMPONENTS, _MOST_RESAMPLED = 10, 4000


def draw_id(chain: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """Return a unique number for each draw of each chain."""
    return np.asarray(chain) * CHAIN + np.asarray(draw)


def read(source: Any) -> list[SourceDraws]:
    """Return the draws of a source, or of each source in a list or dict, under unique names.

    Arrays have the shape (draws,), (chains, draws) or (chains, draws, ...).
    """
    arrays = isinstance(source, Mapping) and all(_is_numbers(each) or is_array(each) for each in source.values())
    if isinstance(source, Mapping) and not (arrays or _is_tree(source)):
        found = [replace(one(each), name=str(name)) for name, each in source.items()]
    elif isinstance(source, list | tuple) and not _is_numbers(source):
        found = [one(each) for each in source]
    else:
        found = [one(source)]
    if not found:
        raise BnnvizError(f"There is nothing to draw: give {_KINDS}.", "source")
    seen: Counter[str] = Counter()
    for place, draws in enumerate(found):
        seen[draws.name] += 1
        if seen[draws.name] > 1:
            found[place] = replace(draws, name=f"{draws.name} {seen[draws.name]}")
    return found


def one(source: Any) -> SourceDraws:
    """Return the draws of a single source."""
    if isinstance(source, SourceDraws):
        return source
    recording = recording_of(source)
    if recording is not None:
        return exported(recording.name, export.kept(recording, target=getattr(recording, "target", None)))
    if isinstance(source, str | os.PathLike):
        return _of_file(Path(source))
    if hasattr(source, "to_arviz"):
        draws = getattr(source, "draws", None)
        if draws is not None and (np.ndim(draws) < 2 or 0 in np.shape(draws)[:2]):
            raise BnnvizError("The run has no draws yet. Wait until it has draws.", "source")
        return _of_tree(source.to_arviz(), getattr(getattr(source, "spec", None), "sampler", None))
    if _is_tree(source):
        return _of_tree(source)
    if isinstance(source, Mapping):
        return _of_arrays(source)
    if is_array(source) or _is_numbers(source):
        return _of_arrays({"x": source})
    raise BnnvizError(f"Draws cannot be read from {type(source).__name__}: give {_KINDS}.", "source")


def recording_of(source: Any) -> reader.Recording | None:
    """Return the recording that a source is or names; None for other sources."""
    if isinstance(source, reader.Recording):
        return source
    if isinstance(source, str | os.PathLike) and Path(source).suffix not in _TREES:
        return reader.Recording(reader.find(source))
    return None


# --- kinds of source


def exported(name: str, found: export.ExportedDraws) -> SourceDraws:
    """Return the draws of a recording that were read."""
    values = {label: found.draws[..., i] for i, label in enumerate(found.names)}
    diverging = found.stats.get("diverging")
    return SourceDraws(name, values, found.log_weights, None if diverging is None else np.asarray(diverging) > 0)


def _of_file(path: Path) -> SourceDraws:
    xarray = optional.require("xarray", "A file of ArviZ needs")
    try:
        with xarray.open_datatree(path, engine="zarr" if path.suffix == ".zarr" else "h5netcdf") as tree:
            return _of_tree(tree.load(), path.stem)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise BnnvizError(f"{path} cannot be read as a file of ArviZ ({reason}).", "source") from error


def _of_tree(tree: Any, name: str | None = None) -> SourceDraws:
    """Return the draws of a tree, or of a data set that is its group ``posterior``."""
    posterior, stats = (tree["posterior"], tree.get("sample_stats")) if "posterior" in tree else (tree, None)
    if name is None:
        try:
            name = json.loads(tree.attrs.get("bnnviz", "{}"))["spec"]["sampler"]
        except (ValueError, LookupError, TypeError):
            name = "draws"
    values: dict[str, np.ndarray] = {}
    for key, array in posterior.data_vars.items():
        if {"chain", "draw"} <= set(array.dims):
            values |= _components(str(key), array.transpose("chain", "draw", ...))
    if not values:
        raise BnnvizError(f"{name} has no draws: no variable of its posterior has the dimensions chain and draw.", None)
    known = {key: np.asarray(stats[key].transpose("chain", "draw")) for key in _STATS if stats and key in stats}
    diverging = known["diverging"].astype(bool) if "diverging" in known else None
    return SourceDraws(name, values, known.get("log_weight"), diverging)


_STATS = ("log_weight", "diverging")
#: The axis of our own trees, whose labels are names already.
_COORDINATE = "coordinate"


def _components(key: str, array: Any) -> dict[str, np.ndarray]:
    """Return each number of a variable (chain, draw, ...), by its name and the labels of its place."""
    if array.ndim == 2:
        return {key: np.asarray(array)}
    flat = np.asarray(array).reshape(*array.shape[:2], -1)
    axes = [
        [str(label) for label in np.asarray(array.coords[axis])] if axis in array.coords else map(str, range(size))
        for axis, size in zip(array.dims[2:], array.shape[2:], strict=True)
    ]
    own = array.dims[2:] == (_COORDINATE,)
    names = [", ".join(place) if own else f"{key}[{', '.join(place)}]" for place in product(*axes)]
    return {label: flat[..., i] for i, label in enumerate(names)}


def _of_arrays(arrays: Mapping[str, Any]) -> SourceDraws:
    values: dict[str, np.ndarray] = {}
    for key, given in arrays.items():
        array = np.asarray(given)
        if array.ndim == 0 or array.dtype.kind not in "biuf":
            raise BnnvizError(
                f"Give {key} as numbers of the shape (draws,), (chains, draws) or (chains, draws, ...), not of shape"
                f" {array.shape} and type {array.dtype}.",
                "source",
            )
        array = np.atleast_2d(array)
        flat = array.reshape(*array.shape[:2], math.prod(array.shape[2:]))
        several = array.ndim > 2
        values |= {f"{key}[{i}]" if several else str(key): flat[..., i] for i in range(flat.shape[2])}
    if not values:
        raise BnnvizError(f"There is nothing to draw: give {_KINDS}.", "source")
    return SourceDraws("draws", values)


# --- lists and dicts


def _is_tree(source: Any) -> bool:
    """Return whether something is a tree or a data set of xarray, which are mappings too."""
    return hasattr(source, "children") or hasattr(source, "data_vars")


def is_array(source: Any) -> bool:
    """Return whether an object is an array; trees and data sets also have ``__array__``."""
    return hasattr(source, "__array__") and hasattr(source, "dtype")


def _is_numbers(source: Any) -> bool:
    """Return whether a list holds numbers, not sources."""
    if not isinstance(source, list | tuple):
        return False
    return bool(source) and all(isinstance(each, int | float | np.number) or _is_numbers(each) for each in source)


def shared(
    source: Any, variables: str | Sequence[str] | None, most: int = MOST_VARIABLES
) -> tuple[list[SourceDraws], list[str]]:
    """Return the draws of each source, and names of variables that all of them have."""
    found = read(source)
    if variables is not None:
        asked, *_ = [draws.chosen(variables) for draws in found]  # every source raises for its missing variables
        return found, asked
    common = [name for name in found[0].values if all(name in draws.values for draws in found)]
    if not common:
        names = ", ".join(draws.name for draws in found)
        raise BnnvizError(f"{names} have no variable in common; draw each by itself.", "source")
    return found, common[:most]
