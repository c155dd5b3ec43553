"""Warn if a run's metrics show that its estimates are unreliable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.importance import BAD_K, CLEAR_WEIGHTED, GOOD_K, POOR
from bnnviz.engine.monitor.mixing import BAD_RHAT
from bnnviz.engine.monitor.variances import is_clear, most_off
from bnnviz.engine.protocol import AnyRun
from bnnviz.messages import Message, Remedy
from bnnviz.numerals import named_chains
from bnnviz.targets import BNN

#: Minimum ESS for a reliable standard error (Vehtari et al. 2021, section 4).
ENOUGH = 400
#: Minimum draws per chain for ESS and R-hat.
LEAST_DRAWS = 4
#: Draws of all chains, or weight ESS, below which a standard error is unknown.
FEW = 40
_ENDS = 4  # chains that are examined
_NOTED = ("other_modes", "infinite_points", "overflow")  # notes of a run that are warnings too
_NETWORK = " Predictions can still be accurate: see ess_function_min."


def warnings(run: AnyRun, found: dict[str, Any]) -> list[Message]:
    """Return why the estimates of a run are unreliable; [] if no metric shows it."""
    if run.sampler.traits.weighted:
        return [*_of_weights(run, found), *_of_coverage(run, found)]
    if not run.sampler.traits.converges:
        return []
    known = None if "cov" not in found else run.target.cov()
    of_variances = _of_stein(run, found["widening"]) if known is None else _of_known(run, found, known)
    if found.get("chains", FEW) * found.get("draws", FEW) < FEW:
        of_variances = ()
    # Draws of a functional are wider than the density by construction.
    of_variances = _of_functionals(run, found) if run.sampler.traits.functional else of_variances
    return [*_of_chains(run, found), *of_variances]


def _of_chains(run: AnyRun, found: dict[str, Any]) -> Iterator[Message]:
    more = remedies.more(run)
    rhat, of_functions, canonical = (
        found.get(name) for name in ("rhat_max", "rhat_function_max", "rhat_canonical_max")
    )
    ess, draws = found["ess_min"], found.get("draws", LEAST_DRAWS)
    one_order = "" if canonical is None else f"; {canonical:.2f} with hidden units in canonical order"
    # Permutations of hidden units change the weights, but not the predictions.
    network, what = (_NETWORK, "weight") if isinstance(run.target, BNN) else ("", "coordinate")
    if 0 < draws < LEAST_DRAWS:
        yield Message("few_draws", *more, draws=draws, least=LEAST_DRAWS)
    elif of_functions is not None and of_functions > BAD_RHAT:
        also = "" if rhat is None else f"; of weights {rhat:.2f}{one_order}"
        yield Message("rhat_functions", *more, rhat=of_functions, also=also)
    elif rhat is not None and rhat > BAD_RHAT:
        network = network if of_functions is None else f" Predictions agree (R-hat {of_functions:.2f})."
        yield Message("rhat", *more, what=what, rhat=rhat, also=one_order, network=network)
    elif ess is not None and ess < ENOUGH:
        yield Message("low_ess", *more, what=what, ess=ess, least=ENOUGH, network=network)
    else:
        tail, energy = found.get("ess_tail_min"), found.get("ess_energy")
        if tail is not None and tail < ENOUGH:
            yield Message("low_tail_ess", *more, what=what, ess=tail, least=ENOUGH, network=network)
        if energy is not None and energy < ENOUGH:
            yield Message("low_energy_ess", *more, *remedies.refreshed(run), ess=energy, least=ENOUGH)


def of_run(run: AnyRun) -> Iterator[Message]:
    """Return the reasons for missing draws, lost chains, and known problems of the settings."""
    if run.phase == "failed" and run.error:
        yield run.error
        return
    lost = np.flatnonzero(~np.asarray(run.alive)).tolist()
    if lost:
        ways = remedies.shorter_steps(run) or [remedies.DOUBLE]
        yield Message("lost_chains", *ways, chains=named_chains(lost), numbers=lost)
    if not run.draws.size:
        yield Message("no_draws", phase=run.phase)
        return
    yield from (note for note in run.notes if note.code in _NOTED)
    # A descent that a pilot shortens to its time does not end at a mode, and the check costs more than the run.
    if not run.chosen:
        yield from _of_modes(run)
    for message in run.sampler.text(run.sampler).warnings(run.sampler_stats.summary()):
        # Remedies of a sampler are settings.
        ways = [remedies.of_sampler(run, each.text, **each.options["settings"]) for each in message.remedies]
        if not ways and run.sampler.traits.weighted:
            begin = remedies.of_sampler(run, "use other initial positions", start="random")
            ways = [begin, *remedies.more_weighted(run)]
        elif not ways:
            ways = [remedies.raised(run, "increase the bound's margin", "margin")]
        yield Message(message.code, *ways, **message.values)


def _of_modes(run: AnyRun) -> Iterator[Message]:
    """Return the chains that should be at a mode but are not."""
    chains, draws = np.flatnonzero(np.asarray(run.alive)), run.store.view(run.alive)
    ends = draws[:_ENDS, -1].to(run.target.device, run.target.dtype)
    places = {chain: run.sampler.place(run.target, end) for chain, end in zip(chains.tolist(), ends, strict=False)}
    missed = {chain: place for chain, place in places.items() if place is not None and not place.is_mode}
    for saddle in (True, False):
        named = {chain: place for chain, place in missed.items() if bool(place.sinking) == saddle}
        if not named:
            continue
        ways, who = remedies.closer_to_mode(run), {"chains": named_chains(list(named)), "numbers": list(named)}
        if saddle:
            most = max(place.sinking for place in named.values())
            yield Message("saddle", *ways, **who, directions=most, dim=run.target.dim)
        else:
            yield Message("not_at_mode", *ways, **who, distance=max(place.away for place in named.values()))


def _of_known(run: AnyRun, found: dict[str, Any], known: np.ndarray) -> Iterator[Message]:
    variance, error = (np.diag(np.array(found[name])) for name in ("cov", "cov_se"))
    off = most_off(variance, error, np.diag(known))
    if off is None:
        return
    biased, narrow = " The sampler is biased with these settings.", " The chains have not converged."
    ways = remedies.unbiased(run)
    if off.ratio < 1:
        ways = remedies.more(run) + ([] if remedies.rejects(run) else ways)
    cause = biased if off.ratio > 1 else narrow
    name = run.target.names()[off.coordinate]
    yield Message("variance_wrong", *ways, name=name, ratio=off.ratio, z=abs(off.z), cause=cause)


def _of_stein(run: AnyRun, inflation: dict[str, Any] | None) -> Iterator[Message]:
    if inflation is None or not is_clear(inflation["share"], inflation["se"]):
        return
    share, error = 100 * inflation["share"], 100 * inflation["se"]
    if share > 0:
        yield Message("stein_wide", *remedies.unbiased(run), share=share, error=error)
    else:
        yield Message("stein_narrow", *remedies.more(run), share=-share, error=error)


def _of_coverage(run: AnyRun, found: dict[str, Any]) -> Iterator[Message]:
    """Warn if weighted draws miss a part of the density, which their weights cannot show."""
    known = run.target.cov() if "cov" in found else None
    inflation, k = found.get("widening"), found["pareto_k"]
    if found.get("weight_ess", FEW) < FEW:
        return
    hidden = "" if k is None or k >= GOOD_K else f", although Pareto k-hat is {k:.2f}"
    ways, off = [*remedies.more_weighted(run), Remedy("use wider proposals")], None
    if known is not None:
        variance, error = np.diag(np.array(found["cov"])), np.array(found["variance_se"])
        off = most_off(variance, error, np.diag(known), CLEAR_WEIGHTED)
    if off is not None:
        name = run.target.names()[off.coordinate]
        yield Message("weighted_variance_wrong", *ways, name=name, ratio=off.ratio, z=abs(off.z), hidden=hidden)
    elif found.get("shift") is not None:
        yield _of_shift(run, found["shift"], ways, "the proposals do not cover the target", hidden)
    elif inflation is not None and is_clear(inflation["share"], inflation["se"], CLEAR_WEIGHTED):
        share, error = 100 * inflation["share"], 100 * inflation["se"]
        side = "large" if share > 0 else "small"
        yield Message("weighted_stein", *ways, share=abs(share), error=error, side=side, hidden=hidden)


def _of_shift(run: AnyRun, shift: dict[str, Any], ways: list[Remedy], cause: str, hidden: str = "") -> Message:
    """Return the moment that differs under wider proposals."""
    values = {"name": run.target.names()[shift["coordinate"]], "value": shift["value"], "check": shift["check"]}
    return Message(f"{shift['moment']}_elsewhere", *ways, **values, z=abs(shift["z"]), cause=cause, hidden=hidden)


def _of_functionals(run: AnyRun, found: dict[str, Any]) -> Iterator[Message]:
    """Warn that draws of functionals do not follow the density; held-out rows judge a network."""
    if isinstance(run.target, BNN) or not found.get("draws"):
        return
    ways = [remedies.reference_sampler("use NUTS for means and variances")]
    if found.get("shift") is not None:
        yield _of_shift(run, found["shift"], ways, "draws follow a mixture of functionals")
    weighted = " The summary has weighted_mean and weighted_cov." if "weighted_mean" in found else ""
    yield Message("functionals", *ways, sampler=run.sampler.title, weighted=weighted)


def _of_weights(run: AnyRun, found: dict[str, Any]) -> Iterator[Message]:
    k, share = found["pareto_k"], found["weight_ess_share"]
    if k is not None and k > BAD_K:
        yield Message("pareto_k", *remedies.more_weighted(run), k=k)
    elif found.get("weight_ess", FEW) < FEW:
        yield Message("few_weights", *remedies.more_weighted(run), ess=found["weight_ess"], least=FEW)
    elif share < POOR:
        yield Message("low_weight_ess", *remedies.more_weighted(run), percent=100 * share)
