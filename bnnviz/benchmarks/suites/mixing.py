"""Measure how samplers mix on networks: effective draws by gradients and by CPU seconds, and how far off they are.

A case is a network (`bnnviz.benchmarks.networks.mixing.NETWORKS`); each sampler runs with its default settings, four
chains and so many CPU seconds of one thread, the search for a start, tuning and warm-up included. A row is the
effective sample size of one quantity by a million gradients of one data row. Its note has what that is worth: by what
share variances are off by Stein's identity, how far mean predictions are from those of a long run of NUTS (five times
the seconds, kept for the next time), and R-hat of the predictions. The last row compares the best PDMP with NUTS; only
those count whose deviations are under 5 % and whose R-hat of predictions is under 1.01. The NUTS of numpyro and
blackjax and the PDMPs of pdmp-jax are in the same table where they are installed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from importlib import util

from bnnviz import optional, targets
from bnnviz.benchmarks import budget
from bnnviz.benchmarks.chains import one_thread
from bnnviz.benchmarks.networks import peers
from bnnviz.benchmarks.networks.mixing import (
    NETWORKS,
    SIZES,
    TARGET,
    Mixing,
    NetworkPosterior,
    distance,
    measure,
    reference,
)
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell

LONGER = 5.0  # how many times the seconds of the others the reference takes
DEVIATION, RHAT = 0.05, 1.01  # of what may be compared
#: Samplers of other libraries: the module and what runs it.
PEERS = {
    "numpyro_nuts": ("numpyro", peers.numpyro),
    "blackjax_nuts": ("blackjax", peers.blackjax),
    **{f"pdmp_jax_{kind}": ("pdmp_jax", partial(peers.pdmp_jax, kind)) for kind in ("bps", "zigzag", "boomerang")},
}
_WORST = "prediction_least"


def rows_of(
    name: str, found: Mixing | None, known: Mixing | None, gradients: float, cpu_seconds: float, warnings: list[str]
) -> Iterator[Row]:
    """Give the rows of a sampler: one for each quantity, or one that says that there were too few draws."""
    more = {"sampler": name, "grad_evals": gradients, "cpu_seconds": cpu_seconds, "warned": bool(warnings)}
    if found is None:
        said = warnings[0] if warnings else "not warned"
        yield Row(f"{name}_{_WORST}", math.nan, "1/Mgrad", None, more | {"note": f"too few draws; {said}"})
        return
    more |= {"stein": found.stein, "stein_se": found.stein_se, "rhat": found.rhat}
    worth = f"variances {100 * found.stein:+.0f} ± {100 * found.stein_se:.0f} % (Stein)"
    if known is None:
        worth += "; no reference"
    else:
        off = distance(found, known)
        more |= {"distance": off.mean, "distance_by_chance": off.chance, "sd_distance": off.sd}
        more |= {"reference_rhat": known.rhat, "reference_ess": known.prediction_least}
        worth += f"; predictions {off.mean:.2f} sd off ({off.chance:.2f} by chance), spread {100 * off.sd:.0f} % off"
    for quantity in SIZES:
        ess = float(getattr(found, quantity))
        rate, each = budget.per(ess, cpu_seconds), budget.per(1e6 * ess, gradients)
        figures = {"quantity": quantity, "ess": ess, "per_cpu_second": rate, "per_million_gradients": each}
        note = f"{rate:.3g} a CPU second; {worth}; R-hat {found.rhat:.3f}"
        yield Row(f"{name}_{quantity}", each, "1/Mgrad", None, more | figures | {"note": note})


def _case(name: str, seconds: float, tell: Tell) -> Iterator[Row]:
    """Compare all samplers on one network."""
    network = NETWORKS[name]
    optional.check("arviz_stats", "Effective draws need")
    with one_thread():
        target = network.target()
        tell(f"The reference of {name}: NUTS for {LONGER * seconds:g} CPU seconds, unless it was kept.")
        known = reference(network, LONGER * seconds)
        yield _reference_row(network, target, known)
        rows: list[Row] = []
        for cls in budget.chain_samplers():
            tell(f"{cls.title} on {name}, for {seconds:g} CPU seconds.")
            run = budget.run(TARGET, cls.registered, seconds, target_settings=network.settings)
            gradients = run.summary.get("grad_evals", 0)
            found = None if run.error else measure(target, run.draws)
            made = list(rows_of(cls.registered, found, known, gradients, run.cpu_seconds, run.warnings))
            rows += made
            yield from made
        for peer in PEERS:
            yield from _peer(peer, target, name, known, seconds, tell)
        yield best_pdmp(rows)


def _reference_row(network: NetworkPosterior, target: targets.Target, known: Mixing | None) -> Row:
    more = {"shape": network.shape, "dim": target.dim, "data_rows": target.examples}
    if known is None:
        return Row("reference_prediction_least", math.nan, "ESS", None, more | {"note": "too few draws"})
    note = f"{network.shape}, {target.dim} weights; R-hat {known.rhat:.3f}, Stein {100 * known.stein:+.0f} %"
    return Row("reference_prediction_least", known.prediction_least, "ESS", None, more | {"note": note})


def _peer(peer: str, target: targets.BNN, name: str, known: Mixing | None, seconds: float, tell: Tell) -> Iterator[Row]:
    module, sample = PEERS[peer]
    if util.find_spec(module) is None:
        tell(f"{module} is not installed, so {peer} is not compared with: pip install 'bnnviz[bench]'.")
        return
    from bnnviz.benchmarks.networks.jax_network import network_potential

    tell(f"{peer} on {name}.")
    found = sample(network_potential(target), target.dim, seconds, budget.CHAINS)
    gradients = found.gradients * target.examples
    yield from rows_of(peer, measure(target, found.draws), known, gradients, found.cpu_seconds, [])


def best_pdmp(rows: list[Row]) -> Row:
    """Return the row of the best PDMP beside NUTS: the ratio of what the worst prediction's ESS is by gradients."""
    worst = {row.more["sampler"]: row for row in rows if row.more.get("quantity") == _WORST}
    pdmps = {cls.registered for cls in budget.chain_samplers() if cls.__module__.split(".")[-2] == "pdmp"}
    right = {name: row for name, row in worst.items() if name in pdmps and _comparable(row)}
    if "nuts" not in worst or not right:
        return Row("best_pdmp_by_nuts", math.nan, "", Goal(">=", 0.5), {"note": "none is right by Stein and R-hat"})
    best = max(right, key=lambda name: right[name].value)
    more = {"sampler": best, "note": best}
    return Row("best_pdmp_by_nuts", right[best].value / worst["nuts"].value, "", Goal(">=", 0.5), more)


def _comparable(row: Row) -> bool:
    return abs(row.more["stein"]) < DEVIATION and row.more["rhat"] < RHAT


_CASES: dict[str, Case] = {name: partial(_case, name) for name in NETWORKS}
SUITE = Suite("mixing", "How samplers mix on networks: effective draws by gradients and by CPU seconds.", _CASES)
