"""Test every sampler, bound and target with a known answer: whether the draws are right.

A case is a target; its rows are the samplers with each of their bounds, and with draws at events and the weights that
undo their bias. Chains start from exact draws wherever the target has them: a right kernel leaves their law as it is
from the first moment on, so that short runs of many chains are a sharp test and need no warm-up. A row is the worst of
the standardised errors of means, variances and two quantiles and, where the path is integrated, of means and variances
along it. Stated before looking: the rows that are meant to be right fail together where the worst of all their errors
is one that chance brings about in less than one table of 10,000.

Three more cases. ``far`` begins elsewhere: what stands still keeps every law. ``horizon`` is the papers' bound on
the banana, whose bias is known in kind. ``sbc`` simulates data sets from a small network and its prior, and asks
where the true weights lie among the draws (`bnnviz.benchmarks.simulated`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from bnnviz import samplers, settings, targets
from bnnviz.benchmarks.calibration import ErrorTest, KnownAnswers, limit, of_draws, of_path, p_value
from bnnviz.benchmarks.chains import ChainDraws, begin, follow, move, one_thread
from bnnviz.benchmarks.simulated import PLACES, SimulatedNetwork, uniformity
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell
from bnnviz.engine.run.initialization import Descent
from bnnviz.errors import BnnvizError
from bnnviz.samplers import warmup
from bnnviz.samplers.random import seeded

LEVEL = 1e-4
CHAINS, DRAWS = 600, 80
#: Settings of targets that say more than the defaults; every other target with known moments is taken as it is.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "gaussian": {
        "gaussian": {},
        "gaussian-1": {"size": 1},
        "gaussian-5": {"size": 5, "correlation": 0.8, "spread": 3.0},
    },
    # In the tails of one bent by 1 a Boomerang meets rates of thousands, and takes minutes.
    "banana": {"banana": {"bend": 0.5}},
    # A Boomerang centred in one of three modes far apart takes minutes on the way to the others, too.
    "gaussian_mixture": {"gaussian_mixture": {"components": 2, "radius": 1.5}},
    # Nothing can be told of Neal's own in a minute: its neck is too narrow.
    "funnel": {"funnel": {"size": 3, "spread": 1.0}},
}
#: Settings that are tested beside the defaults, of the samplers that have them.
_OPTIONS = (("samples", "events"), ("trajectory_length", "chees"), ("metric", "low_rank"))
_IN_BATCHES = {"bound": "exact", "batch_size": 1, "control_variates": True}  # on losses of a linear predictor
_FEWER = 8  # times fewer draws there: dozens of proposals are made for an event
#: What shows its bias and has no limit.
_BIASED = {"bound": "interpolated"}
_APPROXIMATE = ("interpolated", "regression")  # bounds that rates are above now and then
_MOST_TESTS = 6  # of a coordinate: mean, variance, two quantiles, mean and variance of the path
_MODE_STEPS, _MODE_CHAINS = 300, 16
_OFF_MODE = 0.2  # standard deviations: a process whose centre is a Gaussian's mean would never bounce
#: Variance inflation of the banana's first coordinate in percent, by horizon and alpha, as another program has it on a
#: banana of unknown bend.
_REFERENCE = {
    1.0: {1.0: 53.0, 1.2: 46.0, 1.5: 41.0, 2.0: 37.0},
    0.3: {1.0: 15.0, 1.2: 10.0, 1.5: 7.5, 2.0: 5.3},
    0.1: {1.0: 4.6, 1.2: 2.3, 1.5: 0.8, 2.0: 1.3},
}
_SHORT = 0.1  # a horizon at which little of the bias is left
_HORIZON_DRAWS = 600
_FAR_DIM = 2


@dataclass(frozen=True)
class SamplerCase:
    """A sampler with settings."""

    sampler: str
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        """Sampler and settings in a word."""
        return "_".join([self.sampler, *map(str, self.settings.values())])

    @property
    def right(self) -> bool:
        """Whether the draws are meant to be right."""
        return self.settings.get("bound") not in _APPROXIMATE

    def make(self) -> samplers.Sampler:
        """Return the sampler."""
        return samplers.REGISTRY.get(self.sampler)(**self.settings)


def sampler_cases(target: targets.Target) -> Iterator[SamplerCase]:
    """Walk the samplers, each with every bound and option that it has, where it fits the target."""
    for cls in _exact():
        choices = {s["name"]: s["choices"] or [] for s in settings.describe(cls)}
        variants = [{"bound": bound} for bound in choices.get("bound", [])] or [{}]
        variants += [{name: value} for name, value in _OPTIONS if value in choices.get(name, [])]
        variants += [_IN_BATCHES] if "control_variates" in choices else []
        for variant in variants:
            if _fits(cls(**variant), target):
                yield SamplerCase(cls.registered, variant)


def _exact() -> list[type[samplers.Sampler]]:
    """Return the samplers that have no step size to be wrong by."""
    return [cls for cls in samplers.REGISTRY if cls.traits.exact]


def _fits(sampler: samplers.Sampler, target: targets.Target) -> bool:
    try:
        sampler.check(target)
    except BnnvizError:
        return False
    return True


def measure(
    case: SamplerCase, target: targets.Target, patience: float = 60.0, draws: int = DRAWS, chains: int = CHAINS
) -> list[ErrorTest]:
    """Return the tests of a case.

    Parameters
    ----------
    case : SamplerCase
    target : Target
        One that knows its moments.
    patience : float
        Seconds that the chains may take.
    draws, chains : int
        Draws of each chain, and how many chains.

    Raises
    ------
    BnnvizError
        If the chains are too slow.
    """
    sampler, truth = case.make(), _truth(target)
    # Where the chains do not start in the law that the draws follow, the first half of the draws is forgotten.
    settled = case.right and truth.quantiles is not None
    mode = _mode(target) if sampler.needs_mode else None
    rng = seeded(0)
    state = warmup.run(sampler, rng, begin(target, sampler, _starts(target, chains, 0), rng, mode))
    state = move(sampler, rng, state, _starts(target, chains, 1))
    course = follow(sampler, rng, state, (2 - settled) * draws, patience)
    if case.settings.get("samples") == "events":
        return of_draws(course.draws, truth, _weights(sampler, course, settled))
    if settled:
        return of_draws(course.draws, truth) + ([] if course.path is None else of_path(course.path[:, -1], truth))
    return of_draws(course.draws[:, draws:], truth)


def _weights(sampler: samplers.Sampler, course: ChainDraws, settled: bool) -> np.ndarray:
    """Return weights (chains, draws) of draws at events: of those within a stretch of path time, the same for all.

    The events of a stretch of a path in equilibrium are spread as their law is. The first hundred are not.
    """
    if course.path is None:
        raise BnnvizError("Draws at events are tested by their path times, and these chains have none; take fewer.")
    at = course.path[..., 0]
    end = at[:, -1].min()
    inside = (at <= end) & (at > (0 if settled else end / 2))
    weights = sampler.event_weights(torch.as_tensor(course.draws).flatten(0, 1), course.draw_collector).numpy()
    return weights.reshape(inside.shape) * inside


@cache
def _truth(target: targets.Target) -> KnownAnswers:
    return KnownAnswers.of(target)


def _starts(target: targets.Target, chains: int, seed: int) -> np.ndarray:
    exact = target.exact_draws(chains, seed=seed)
    if exact is not None:
        return exact
    return np.random.default_rng(seed).multivariate_normal(target.mean(), target.cov(), size=chains)


def _mode(target: targets.Target) -> np.ndarray:
    target.to("cpu", torch.float64)
    descent = Descent(target, torch.as_tensor(_starts(target, _MODE_CHAINS, 2)), _MODE_STEPS)
    descent.advance(_MODE_STEPS)
    return descent.best().numpy() + _OFF_MODE * np.sqrt(np.diag(target.cov()))


# --- the cases


@cache
def known_targets() -> dict[str, targets.Target]:
    """Return the targets that know their moments, by the names of their cases."""
    found = {}
    for cls in targets.REGISTRY:
        if cls.mean is targets.Target.mean:
            continue  # none ever knows them, and some read data to be made
        for name, values in VARIANTS.get(cls.registered, {cls.registered: {}}).items():
            target = cls(**values)
            if target.mean() is not None:
                found[name] = target
    return found


@cache
def worst_allowed() -> float:
    """Return the standardised error that the worst of all in the table that are meant to be right may have."""
    tests = sum(
        _MOST_TESTS * target.dim for target in known_targets().values() for case in sampler_cases(target) if case.right
    )
    tests += _MOST_TESTS * _FAR_DIM * len(_exact())
    return limit(LEVEL, tests, CHAINS)


def _target_case(name: str, seconds: float, tell: Tell) -> Iterator[Row]:
    """Test every sampler and bound on one target."""
    target = known_targets()[name]
    for case in sampler_cases(target):
        tell(f"{case.name} on {name}: {CHAINS} chains.")
        yield row(case, target, seconds)


def row(
    case: SamplerCase, target: targets.Target, patience: float = 60.0, draws: int = DRAWS, chains: int = CHAINS
) -> Row:
    """Return a case's row: its worst standardised error, and what it says of the variances."""
    begun = time.monotonic()
    draws = max(1, draws // _FEWER) if "batch_size" in case.settings else draws
    try:
        found = _row_of(case, measure(case, target, patience, draws, chains), chains, draws)
    except BnnvizError as error:
        return Row(case.name, float("nan"), "s.e.", _goal(case), {"note": error.sentence})
    found.more["seconds"] = time.monotonic() - begun
    return found


def _goal(case: SamplerCase) -> Goal | None:
    return Goal("<", worst_allowed()) if case.right else None


def _row_of(case: SamplerCase, tests: list[ErrorTest], chains: int, draws: int) -> Row:
    worst, wide = _worst(tests), _worst([test for test in tests if test.label.startswith("variance")])
    p, bias, error = p_value(worst.z, len(tests), chains), 100 * wide.error, 100 * wide.se
    note = f"{worst.label}, p = {p:.2g} of {len(tests)}; {wide.label} {bias:+.1f} ± {error:.1f} %"
    more = {"sampler": case.sampler, **case.settings, "chains": chains, "draws": draws, "tests": len(tests)}
    more |= {"worst": worst.label, "z": worst.z, "p": p}
    more |= {"bias_of": wide.label, "bias_percent": bias, "bias_se_percent": error, "note": note}
    return Row(case.name, abs(worst.z), "s.e.", _goal(case), more)


def _worst(tests: list[ErrorTest]) -> ErrorTest:
    return max(tests, key=lambda test: abs(test.z))


def far(case: SamplerCase, patience: float = 60.0, draws: int = DRAWS, chains: int = CHAINS) -> Row:
    """Return the row of chains that all begin at one point, two standard deviations off on a round Gaussian."""
    target, sampler = targets.Gaussian(size=_FAR_DIM, correlation=0.0), case.make()
    truth, x0 = _truth(target), np.tile([2.0, 0.0], (chains, 1))
    mode = np.array([_OFF_MODE, 0.0]) if sampler.needs_mode else None
    rng = seeded(0)
    state = warmup.run(sampler, rng, begin(target, sampler, x0, rng, mode))
    course = follow(sampler, rng, move(sampler, rng, state, x0), 2 * draws, patience)
    return _row_of(case, of_draws(course.draws[:, draws:], truth), chains, draws)


def _far_case(seconds: float, tell: Tell) -> Iterator[Row]:
    """See whether the chains forget where they began, which those that begin in equilibrium do not tell."""
    for cls in _exact():
        tell(f"{cls.registered} from one point.")
        yield far(SamplerCase(cls.registered, {}), seconds)


def _horizon_case(seconds: float, tell: Tell) -> Iterator[Row]:
    """Show how the papers' bound widens the banana, beside another program's figures for another bend.

    The goals are taken from those figures: half of the least in their line at least, or, where the horizon is so short
    that little is left, twice the greatest at most.
    """
    for horizon, line in _REFERENCE.items():
        short = horizon == _SHORT
        goal = Goal("<=", 2 * max(line.values())) if short else Goal(">=", min(line.values()) / 2)
        for alpha, figure in line.items():
            chosen = _BIASED | {"horizon": horizon, "alpha": alpha, "spacing": 0.5}
            tell(f"bps with horizon {horizon:g} and alpha {alpha:g}.")
            tests = measure(SamplerCase("bps", chosen), targets.Banana(), seconds, _HORIZON_DRAWS)
            wide = next(test for test in tests if test.label == "variance x1")
            note = f"± {100 * wide.se:.1f}; another program {figure:+g}"
            more = {"error": 100 * wide.se, "peer": "another program", "reference": figure, "note": note, **chosen}
            yield Row(f"bps_horizon_{horizon:g}_alpha_{alpha:g}", 100 * wide.error, "%", goal, more)


def _sbc_case(seconds: float, tell: Tell) -> Iterator[Row]:
    """Rank true functions and weights of simulated networks among the draws given simulated data."""
    simulation = SimulatedNetwork()
    found = [case for case in sampler_cases(simulation.target) if "bound" in case.settings]
    least = Goal(">=", LEVEL / (len(simulation.quantities) * sum(case.right for case in found)))
    for case in found:
        tell(f"{case.name} on {simulation.replications} simulated data sets.")
        for quantity, ranks in simulation.ranks(case.make(), seconds).items():
            chi2, p = uniformity(ranks)
            more = {"sampler": case.sampler, **case.settings, "chi2": chi2, "places": PLACES}
            more["note"] = f"chi-square {chi2:.1f} of {PLACES} places"
            yield Row(f"{case.name}_{quantity}", p, "p", least if case.right else None, more)


def _on_one_thread(case: Case) -> Case:
    def alone(seconds: float, tell: Tell) -> Iterator[Row]:
        with one_thread():
            yield from case(seconds, tell)

    return alone


_CASES: dict[str, Case] = {name: partial(_target_case, name) for name in known_targets()}
_CASES |= {"far": _far_case, "horizon": _horizon_case, "sbc": _sbc_case}
SUITE = Suite(
    "truth",
    "Every sampler, bound and target with a known answer, and networks with simulated data.",
    {name: _on_one_thread(case) for name, case in _CASES.items()},
)
