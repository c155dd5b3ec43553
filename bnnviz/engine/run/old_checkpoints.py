"""Read checkpoints of version 7, and logs of their time: infos had other names.

What samplers had learnt lay beside their states, which were lists of tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

VERSION = 7
#: What infos called their fields.
INFO_NAMES = {
    "chance": "acceptance_rate",
    "went": "jump_distance",
    "leaves": "n_steps",
    "diverged": "diverging",
    "error": "energy_error",
    "size": "step_size",
}
_GRADIENTS = "gradients"  # of HMC: leapfrog steps, and one


def is_old(saved: dict[str, Any]) -> bool:
    """Return whether a saved state has the form of version 7."""
    return isinstance(saved.get("state"), list)


def state(kind: Any, saved: dict[str, Any]) -> dict[str, Any]:
    """Return a saved state of a type as nested dicts by the names of its fields."""
    if "sums" in saved:
        return _process(kind, saved)
    tensors = list(saved["state"])
    if "mode" in saved:
        del tensors[1]  # the Laplace approximation had velocities, all zero
    made, hints = iter(tensors), get_type_hints(kind)
    named = {name: _named(hint, made) for name, hint in hints.items() if name != "adaptation"}
    return named | ({"adaptation": _adaptation(saved)} if "adaptation" in hints else {})


def _named(kind: Any, tensors: Iterator[Tensor]) -> Any:
    if not hasattr(kind, "_fields"):
        return next(tensors)
    return {name: _named(hint, tensors) for name, hint in get_type_hints(kind).items()}


def _adaptation(saved: dict[str, Any]) -> dict[str, Any]:
    if "found" not in saved:
        return {"resting": False, "anew": False}
    if "frozen" in saved:
        return {"step_size": saved["found"], "frozen": saved["frozen"]}
    if "averaging" not in saved:
        return {"step_size": saved["found"]}
    tuning, number, moves, pooled = saved["tuning"]
    averaging = {{"seen": "updates"}.get(name, name): value for name, value in saved["averaging"].items()}
    stage = {"number": number, "moves": moves, "pooled": pooled, "averaging": averaging, "positions": saved["spread"]}
    return {"step_size": saved["found"], "scale": saved["scale"], "stage": stage if tuning else None}


def _process(kind: Any, saved: dict[str, Any]) -> dict[str, Any]:
    """Return the saved state of a piecewise deterministic process; it held the mean time between events itself."""
    parts = list(saved["state"])
    mean_event_time, num_events = parts.pop(5), parts.pop(5)
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name != "adaptation"}
    reference = saved.get("reference", {})
    adaptation = {
        "mean_event_time": mean_event_time,
        "num_events": num_events,
        "scaling": {name: reference[name] for name in ("centre", "precision")} if reference else saved.get("scale", []),
        "rounds_left": saved.get("rounds_left", int(not saved.get("learnt", True))),
        "sums": saved["sums"],
    }
    named = {name: _listed(hint, part) for (name, hint), part in zip(hints.items(), parts, strict=True)}
    return named | {"adaptation": adaptation}


def _listed(kind: Any, saved: Any) -> Any:
    """Return a list of a named tuple's parts as a dict by the names of its fields; of several types by their number."""
    if not isinstance(saved, list) or not saved:
        return saved
    kind = next(each for each in get_args(kind) or (kind,) if len(getattr(each, "_fields", ())) == len(saved))
    return {name: _listed(hint, part) for (name, hint), part in zip(get_type_hints(kind).items(), saved, strict=True)}


def stats(saved: dict[str, Any]) -> dict[str, Any]:
    """Return saved counters with the names that they, and fields of infos, have now."""
    if "worth" in saved:
        return {"counts": saved["counts"], "weight_ess": saved["worth"], "weighed": saved["of"]}
    if "sums" not in saved:
        return saved
    return saved | {"sums": {INFO_NAMES.get(name, name): value for name, value in saved["sums"].items()}}


def log_by_name(names: list[str], values: np.ndarray) -> dict[str, np.ndarray]:
    """Return the figures of a stored log (steps, names) by the names that they have now."""
    named = {INFO_NAMES.get(name, name): values[:, k] for k, name in enumerate(names)}
    if _GRADIENTS in named:
        named["n_steps"] = named.pop(_GRADIENTS) - 1
    return named


def log_as_stored(names: list[str], values: np.ndarray) -> np.ndarray:
    """Return new figures (steps, names) as a log that was begun with these names holds them."""
    return values + [name == _GRADIENTS for name in names]
