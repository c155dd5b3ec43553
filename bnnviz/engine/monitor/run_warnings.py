"""Warn in sentences where a run's own figures speak against its estimates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.importance import BAD_K, CLEAR_WEIGHTED, GOOD_K, POOR
from bnnviz.engine.monitor.mixing import BAD_RHAT
from bnnviz.engine.monitor.variances import is_clear, most_off
from bnnviz.engine.monitor.words import named_chains
from bnnviz.engine.protocol import DrawSource
from bnnviz.engine.run.failures import INFINITE
from bnnviz.engine.run.initialization import OTHER_MODES
from bnnviz.targets import BNN

#: ESS of a coordinate from which on its standard error can be relied on (Vehtari et al. 2021, section 4).
ENOUGH = 400
#: Draws of each chain from which on ESS and R-hat are known.
LEAST_DRAWS = 4
_ENDS = 4  # chains that are looked at
_NARROW = "the chains have not been everywhere yet, so make more draws{}"


def warnings(run: DrawSource, found: dict[str, Any]) -> list[str]:
    """Return why the estimates of a run are not to be relied on yet; nothing where no figure says so."""
    if run.sampler.traits.weighted:
        return [*_of_weights(run, found), *_of_coverage(run, found)]
    if not run.sampler.traits.converges:
        return []
    known = None if "cov" not in found else run.target.cov()
    inflation = found["widening"]
    of_variances = _of_variance_inflation(run, inflation) if known is None else _of_known(run, found, known)
    # A functional's draws are wider than the density by what it is, and not because of settings.
    of_variances = () if run.sampler.traits.functional else of_variances
    return [*_of_chains(run, found), *of_variances]


def _of_chains(run: DrawSource, found: dict[str, Any]) -> Iterator[str]:
    network, more = isinstance(run.target, BNN), remedies.more(run)
    rhat, ess, what = found["rhat_max"], found["ess_min"], "weight" if network else "coordinate"
    # Hidden units that change places alter the weights, and not what the network predicts.
    else_by = "; what it predicts may be right all the same: see ess_function_min" if network else ""
    of_functions, draws = found.get("rhat_function_max"), found.get("draws", LEAST_DRAWS)
    if 0 < draws < LEAST_DRAWS:
        yield (
            f"There {'is 1 draw' if draws == 1 else f'are {draws} draws'} of each chain, and ESS and R-hat are known of"
            f" {LEAST_DRAWS} and more, so nothing tells good estimates from bad ones: make more draws{more}."
        )
    elif of_functions is not None and of_functions > BAD_RHAT:
        yield (
            f"The chains disagree on what the network predicts (R-hat up to {of_functions:.2f}, good below"
            f" 1.01{_of_weights_too(found)}), so standard errors are too small: make more draws{more}."
        )
    elif rhat is not None and rhat > BAD_RHAT:
        else_by = else_by if of_functions is None else f"; on what it predicts they agree ({of_functions:.2f})"
        yield (
            f"The chains disagree on a {what} (R-hat up to {rhat:.2f}, good below 1.01{_in_one_order(found)}), so"
            f" standard errors are too small: make more draws{more}{else_by}."
        )
    elif ess is not None and ess < ENOUGH:
        yield (
            f"The ESS of the {what} that mixes worst is {ess:.0f}, and standard errors can be relied on from {ENOUGH}"
            f" on: make more draws{more}{else_by}."
        )
    else:
        yield from _of_tails(run, found, what, else_by)


def _in_one_order(found: dict[str, Any]) -> str:
    """Say what R-hat is where hidden units that change places do not count; "" where that is not known."""
    canonical = found.get("rhat_canonical_max")
    return "" if canonical is None else f"; {canonical:.2f} with hidden units in one order"


def _of_weights_too(found: dict[str, Any]) -> str:
    return "" if found["rhat_max"] is None else f"; of weights {found['rhat_max']:.2f}{_in_one_order(found)}"


def _of_tails(run: DrawSource, found: dict[str, Any], what: str, else_by: str) -> Iterator[str]:
    tail, energy = found.get("ess_tail_min"), found.get("ess_energy")
    if tail is not None and tail < ENOUGH:
        yield (
            f"The tail ESS of the {what} that mixes worst is {tail:.0f}, and its 5 % and 95 % quantiles can be relied"
            f" on from {ENOUGH} on: make more draws{remedies.more(run)}{else_by}."
        )
    if energy is not None and energy < ENOUGH:
        yield (
            f"U itself mixes slowly (ESS {energy:.0f}, good from {ENOUGH} on), so spreads may be wrong though means are"
            f" right: make more draws{remedies.more(run)}{remedies.refreshed(run)}."
        )


def of_run(run: DrawSource) -> Iterator[str]:
    """Say why a run has no draws, which chains it has lost, and what its sampler is known to do wrong as it was set."""
    if run.phase == "failed" and run.error:
        yield run.error
        return
    lost = np.flatnonzero(~np.asarray(run.alive)).tolist()
    if lost:
        yield (
            f"{named_chains(lost)} met values that are not finite and stopped, so estimates are of the others alone: if"
            f" these kept away from where U is not finite, they are biased. {remedies.finite(run)}"
        )
    if not run.draws.size:
        yield f"There are no draws yet: the run is in its phase {run.phase}, so nothing is estimated."
        return
    yield from (note for note in run.notes if note.startswith((OTHER_MODES, INFINITE)))
    yield from _of_modes(run)
    sentence, labelled = run.sampler.text(run.sampler).warning(run.sampler_stats.summary())
    if sentence:
        ways = [f"{each['label']}{remedies.of_sampler(run, **each['settings'])}." for each in labelled]
        yield " ".join([sentence, *(ways or [remedies.otherwise(run)])])


def _of_modes(run: DrawSource) -> Iterator[str]:
    """Say which chains are meant to be at a mode and are not."""
    chains, draws = np.flatnonzero(np.asarray(run.alive)), run.store.view(run.alive)
    ends = draws[:_ENDS, -1].to(run.target.device, run.target.dtype)
    places = {chain: run.sampler.place(run.target, end) for chain, end in zip(chains.tolist(), ends, strict=False)}
    told = {chain: place for chain, place in places.items() if place is not None and not place.is_mode}
    for saddle in (True, False):
        named = {chain: place for chain, place in told.items() if bool(place.sinking) == saddle}
        if not named:
            continue
        most = max(place.sinking if saddle else place.away for place in named.values())
        where = f"up to {most:.2g} posterior standard deviations from a mode in each direction"
        where = f"at saddles, from which U falls in {most} of {run.target.dim} directions" if saddle else where
        yield (
            f"{named_chains(list(named))} {'has' if len(named) == 1 else 'have'} ended {where}, so what is drawn there"
            f" is no most probable point: {remedies.way_down(run)}."
        )


def _of_known(run: DrawSource, found: dict[str, Any], known: np.ndarray) -> Iterator[str]:
    variance, error = (np.diag(np.array(found[name])) for name in ("cov", "cov_se"))
    off = most_off(variance, error, np.diag(known))
    if off is not None:
        biased = f"the settings bias it{remedies.unbiased(run)}"
        narrow = _NARROW.format(remedies.more(run))
        cause = biased if off.ratio > 1 else narrow if remedies.rejects(run) else f"{narrow}, or {biased}"
        yield (
            f"The variance of {run.target.names()[off.coordinate]} is {off.ratio:.2f} times the true one,"
            f" {abs(off.z):.0f} standard errors off: {cause}."
        )


def _of_variance_inflation(run: DrawSource, inflation: dict[str, Any] | None) -> Iterator[str]:
    if inflation is None or not is_clear(inflation["share"], inflation["se"]):
        return
    share, error = 100 * inflation["share"], 100 * inflation["se"]
    if share > 0:
        yield (
            f"By Stein's identity the variances are {share:.0f} ± {error:.0f} % too large: the settings bias"
            f" them{remedies.unbiased(run)}."
        )
    else:
        cause = _NARROW.format(remedies.more(run))
        yield f"By Stein's identity the variances are {-share:.0f} ± {error:.0f} % too small: {cause}."


def _of_coverage(run: DrawSource, found: dict[str, Any]) -> Iterator[str]:
    """Say where weighted draws miss a part of the density: their weights do not know of what no draw has found."""
    known = run.target.cov() if "cov" in found else None
    inflation, k = found.get("widening"), found["pareto_k"]
    blind = "" if k is None or k >= GOOD_K else f", which the weights' tail (Pareto k-hat {k:.2f}) does not show"
    cause = f"the proposals have not been everywhere{blind}: {remedies.more_weighed(run)}, or wider proposals"
    off = None
    if known is not None:
        variance, error = np.diag(np.array(found["cov"])), np.array(found["variance_se"])
        off = most_off(variance, error, np.diag(known), CLEAR_WEIGHTED)
    if off is not None:
        yield (
            f"The weighted variance of {run.target.names()[off.coordinate]} is {off.ratio:.2f} times the true one,"
            f" {abs(off.z):.0f} standard errors off: {cause}."
        )
    elif inflation is not None and is_clear(inflation["share"], inflation["se"], CLEAR_WEIGHTED):
        share, error = 100 * inflation["share"], 100 * inflation["se"]
        side = "large" if share > 0 else "small"
        yield f"By Stein's identity the weighted variances are {abs(share):.0f} ± {error:.0f} % too {side}: {cause}."


def _of_weights(run: DrawSource, found: dict[str, Any]) -> Iterator[str]:
    k, share = found["pareto_k"], found["weight_ess_share"]
    if k is not None and k > BAD_K:
        yield (
            f"The weights have so long a tail (Pareto k-hat {k:.2f}, good below 0.7) that weighted means need not"
            f" settle: {remedies.more_weighed(run)}."
        )
    elif share < POOR:
        yield (
            f"The weight ESS is {100 * share:.1f} % of the number of draws: estimates rest on few draws, so"
            f" {remedies.more_weighed(run)}."
        )
