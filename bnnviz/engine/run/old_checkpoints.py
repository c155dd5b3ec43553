"""Read checkpoints of versions 7 and 8, and logs of their time: infos had other names.

In version 7 what samplers had learnt lay beside their states, which were lists of tensors. Up to version 8 Hamiltonian
samplers learnt scales in stages of another kind, trajectories had a left and a right end, and HMC kept no gradient.
At the beginning of version 9 the ends of a tree kept gradients, and not forces; later the step size was that of all
chains, and the mean of what had been tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from bnnviz.samplers import Sampler
    from bnnviz.samplers.mcmc.metric import Metric

#: That are read besides this one's.
VERSIONS = 7, 8
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
#: Parts of a tree of version 7, in their order, and of those that had parts of their own.
_TREE = (
    *("x", "momentum_sum", "count", "alive", "fresh", "initial_energy", "left", "right", "proposal"),
    *("subtree_proposal", "log_weight", "subtree_log_weight", "subtree_momentum_sum", "forward", "depth", "leaf"),
    *("checkpoint_momenta", "checkpoint_sums", "acceptance_sum", "n_steps"),
)
_POINT, _PROPOSAL = ("x", "momentum", "gradient"), ("x", "gradient", "potential")
_PARTS = {"left": _POINT, "right": _POINT, "proposal": _PROPOSAL, "subtree_proposal": _PROPOSAL}
_MOVES = "x", "momentum", "count", "alive"


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
    layout = _hamiltonian_layout(hints)
    if layout:
        named = {name: {part: next(made) for part in _PARTS[name]} if name in _PARTS else next(made) for name in layout}
        return named | {"adaptation": _adaptation(saved)}
    named = {name: _named(hint, made) for name, hint in hints.items() if name != "adaptation"}
    return named | ({"adaptation": _adaptation(saved)} if "adaptation" in hints else {})


def _hamiltonian_layout(hints: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the tensors of version 7 of a state that has others now; none of others."""
    if "checkpoint_sums" in hints:
        return _TREE
    return _MOVES if {"momentum", "gradient"} <= hints.keys() else ()


def of_now(kind: Any, saved: dict[str, Any], sampler: Sampler) -> dict[str, Any]:
    """Return a state, nested dicts by the names of version 8 or of the beginning of version 9, by those of today."""
    saved = _with_step_sizes(_renamed(kind, saved, sampler))
    if not {"front", "back"} <= saved.keys() or "gradient" not in saved["front"]:
        return saved
    # The page reads names of logs here, and no torch.
    from bnnviz.samplers.mcmc.metric import Metric
    from bnnviz.samplers.tree import restored

    device = sampler.target.device
    metric = restored(Metric, saved["adaptation"]["metric"], device)
    return saved | {end: _with_force(saved[end], metric, device) for end in ("front", "back")}


def _with_force(point: dict[str, Any], metric: Metric, device: torch.device) -> dict[str, Any]:
    """Return a point of a tree that kept the gradient itself."""
    force = metric.apply_transpose(point["gradient"].to(device))
    return {"x": point["x"], "momentum": point["momentum"], "force": force}


def _renamed(kind: Any, saved: dict[str, Any], sampler: Sampler) -> dict[str, Any]:
    bound = saved.get("bound")
    if isinstance(bound, dict) and "t0" in bound:
        # A grid had no reach; the speed counts where one is learnt, and is taken anew at the next event.
        zero = bound["t0"].new_zeros(bound["t0"].shape)
        raised = {"grid": bound, "reach": zero, "speed": zero + 1, "num_proposals": zero}
        saved = saved | {"bound": raised}
    adaptation = saved.get("adaptation")
    if not isinstance(adaptation, dict):
        return saved
    if "mean_event_time" in adaptation and "refreshment" not in adaptation:
        return saved | {"adaptation": _path_learnt(adaptation, sampler)}
    if not {"scale", "stage"} <= adaptation.keys():
        return saved
    saved = saved | {"adaptation": _metric_learnt(adaptation, sampler)}
    if "left" in saved:
        return _by_its_front(saved)
    if "gradient" in get_type_hints(kind):
        potential, gradient = sampler.target.gradient(saved["x"].to(sampler.target.device))
        return saved | {"potential": potential, "gradient": gradient}
    return saved


def _metric_learnt(saved: dict[str, Any], sampler: Sampler) -> dict[str, Any]:
    """Return what had been learnt; a warm-up that was not over begins anew with that."""
    stage, scale = saved["stage"], saved["scale"]
    if stage is not None:
        stage = {"number": 0, "moves": 0.0, "averaging": stage["averaging"], "sums": None}
    factor = scale.diag() if sampler.dense else None
    return {"step_size": saved["step_size"], "metric": {"scale": scale, "factor": factor}, "stage": stage}


def _with_step_sizes(saved: dict[str, Any]) -> dict[str, Any]:
    """Return a state from before a curve was fitted to the acceptance, and before a tree had a step size of its own."""
    adaptation = saved.get("adaptation")
    if not isinstance(adaptation, dict) or not {"metric", "stage"} <= adaptation.keys():
        return saved
    if "direction" in saved and "step_size" not in saved:
        saved = saved | {"step_size": saved["direction"].abs() * adaptation["step_size"]}
    stage = adaptation["stage"]
    if stage is None or "curve" in stage["averaging"]:
        return saved
    # The page reads names of logs here, and no torch.
    from bnnviz.samplers.mcmc.hamiltonian import NOTHING_POOLED
    from bnnviz.samplers.mcmc.step_size import AcceptanceCurve
    from bnnviz.samplers.tree import as_dicts

    curve = as_dicts(AcceptanceCurve.begun(math.exp(stage["averaging"]["log_mean"])))
    stage = stage | {"pooled": list(NOTHING_POOLED), "averaging": stage["averaging"] | {"curve": curve}}
    return saved | {"adaptation": adaptation | {"stage": stage}}


def _path_learnt(saved: dict[str, Any], sampler: Sampler) -> dict[str, Any]:
    """Return what a process had learnt before refresh rates, metrics and arrival were learnt; it knows none of them."""
    zero, scaling = saved["mean_event_time"].new_zeros(saved["mean_event_time"].shape), saved["scaling"]
    if isinstance(scaling, dict):
        scaling = {"factor": None, "inverse": None} | scaling
    none = zero.new_zeros(())
    return saved | {
        "scaling": scaling,
        "points": None,
        "refreshment": {"rate": none + sampler.refresh_rate, "bounces": none, "time": none},
        "energies": {"total": zero, "count": None, "steps": 0, "windows": []},
    }


def _by_its_front(saved: dict[str, Any]) -> dict[str, Any]:
    """Return a tree by its ends where it grows and where it does not."""
    left, right, forward, new = saved["left"], saved["right"], saved["forward"], saved["leaf"] == 0
    kept = {name: value for name, value in saved.items() if name not in ("left", "right", "forward", "n_steps")}

    def chosen(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        return {name: one[name].where(forward[:, None], other[name]) for name in _POINT}

    momenta = saved["checkpoint_momenta"]
    return kept | {
        "front": chosen(right, left),
        "back": chosen(left, right),
        "direction": (2.0 * forward - 1.0).to(saved["x"].dtype),
        "subtree_log_weight": saved["subtree_log_weight"].masked_fill(new, -math.inf),
        "subtree_momentum_sum": saved["subtree_momentum_sum"].masked_fill(new[:, None], 0.0),
        "checkpoint_sums": saved["checkpoint_sums"] - 0.5 * momenta,
    }


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


def log_as_stored(stored: list[str], names: list[str], values: np.ndarray) -> np.ndarray:
    """Return figures (steps, names) as a log that was begun with other names holds them; nan where there is none."""
    found = dict(zip(names, values.T, strict=True))
    if _GRADIENTS in stored:
        found[_GRADIENTS] = found.pop("n_steps") + 1
    nothing = np.full(len(values), np.nan)
    columns = [found.get(INFO_NAMES.get(name, name), nothing) for name in stored]
    return np.stack(columns, axis=1).astype(values.dtype)
