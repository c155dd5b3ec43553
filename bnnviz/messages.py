"""Messages of runs as data: a code, its values, and remedies as options, which each surface renders differently.

Python renders an option as a keyword (``draws=4000``), the command line as a flag (``--draws 4000``). Pages omit it,
because the control is visible. Tests compare codes and values; only `TEXTS` contains wording.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bnnviz.numerals import general

TEXTS = {
    # A text from elsewhere: a note on a data set, an error
    "remark": "{text}",
    # Convergence
    "few_draws": "Each chain has only {draws} draws. ESS, R-hat and standard errors require at least {least}.",
    "rhat_functions": "The chains have not converged: R-hat of the network's predictions is up to {rhat:.2f} (should"
    " be below 1.01{also}). Standard errors are too small.",
    "rhat": "The chains have not converged: R-hat of a {what} is up to {rhat:.2f} (should be below 1.01{also})."
    " Standard errors are too small.{network}",
    "low_ess": "The smallest ESS of a {what} is {ess:.0f} (should be at least {least} for reliable standard"
    " errors).{network}",
    "low_tail_ess": "The smallest tail ESS of a {what} is {ess:.0f} (should be at least {least} for reliable 5% and"
    " 95% quantiles).{network}",
    "low_energy_ess": "The ESS of the energy U is {ess:.0f} (should be at least {least}): estimated variances may be"
    " wrong.",
    # Bias against known moments or Stein's identity
    "variance_wrong": "The variance of {name} is {ratio:.2f} times the true value, {z:.0f} standard errors"
    " away.{cause}",
    "stein_wide": "By Stein's identity the variances are {share:.0f} ± {error:.0f}% too large: the sampler is biased"
    " with these settings.",
    "stein_narrow": "By Stein's identity the variances are {share:.0f} ± {error:.0f}% too small: the chains have not"
    " converged.",
    "weighted_variance_wrong": "The weighted variance of {name} is {ratio:.2f} times the true value, {z:.0f} standard"
    " errors away: the proposals do not cover the target{hidden}.",
    "weighted_stein": "By Stein's identity the weighted variances are {share:.0f} ± {error:.0f}% too {side}: the"
    " proposals do not cover the target{hidden}.",
    "mean_elsewhere": "The mean of {name} is {value:.3g}, and {check:.3g} by importance sampling with wider proposals,"
    " {z:.0f} standard errors apart: {cause}{hidden}.",
    "variance_elsewhere": "The variance of {name} is {value:.3g}, and {check:.3g} by importance sampling with wider"
    " proposals, {z:.0f} standard errors apart: {cause}{hidden}.",
    "functionals": "Draws of {sampler} follow a mixture of functionals, which is wider than the density and has a"
    " different mean if the density is skewed.{weighted}",
    # Importance weights
    "few_weights": "The weight ESS is {ess:.1f} (should be at least {least} for reliable standard errors).",
    "pareto_k": "The importance weights are heavy-tailed (Pareto k-hat {k:.2f}, should be below 0.7): estimates are"
    " unreliable.",
    "low_weight_ess": "The weight ESS is {percent:.1f}% of the number of draws: few draws dominate the estimates.",
    "no_weights": "All importance weights are zero, because U is not finite at any draw.",
    "collapsed_weights": "The weights have collapsed: the weight ESS is {ess:.1f} of {draws:,} draws ({percent:.2g}%,"
    " should be at least {least:.0f}%). Standard errors are too small.",
    # Approximations
    "approximation_outside": "{percent:.2g}% of the draws of the approximation are outside the support, where U is not"
    " finite.",
    "approximation_poor": "The approximation is poor ({tail}probabilities may be off by about {distance:.2f}{more}),"
    " and more draws do not improve it. Check predictions on held-out rows.",
    # Moves
    "stuck": "{chains}: almost all draws equal the previous draw, so the chain is stuck.",
    "edge_divergences": "{count:,} of {total:,} trajectories ended outside the support, where U is not finite. This"
    " does not bias the draws, but lowers the acceptance rate.",
    "divergences": "{count:,} of {total:,} transitions diverged: estimates may be biased.",
    "max_treedepth": "{percent:.0f}% of the trees reached the maximum depth, which increases the autocorrelation of"
    " the draws.",
    "low_bfmi": "{chains}: low E-BFMI ({bfmi:.2f}, should be above {least}). The tails may be poorly explored.",
    # The density
    "random_density": "U differs between two calls at the same point, so there is no density to sample.",
    "chains_interact": "U of one chain depends on the other chains, so there is no density to sample.",
    "rounding": "U is up to {largest:.1g}, where {dtype} cannot resolve differences below {grain:.1g}: rounding errors"
    " affect which proposals are accepted.",
    "wrong_gradient": "The gradient of U disagrees with finite differences on {count} of {lines} lines between draws"
    " (part of U may be detached or computed under torch.no_grad): {effect}.",
    "jumps": "U is discontinuous on {count} of {lines} lines between draws. {sampler} uses only the gradient and is"
    " biased there.",
    "infinite_points": "U is minus infinity at some evaluated points (first: {where}), so the density is infinite"
    " there. These points {fate}, and the draws represent the rest of the density. {cause}",
    "infinite_density": "Chain {chain} reached a point where U is minus infinity ({where}): the density is infinite."
    " {cause}",
    "edge": "Chain {chain} reached an edge of the support at step {step}, where U is {value}. {sampler} cannot"
    " continue there.",
    "overflow": "U overflowed in chain {chain} at step {step} ({sampler}), although the support has no edge there.",
    "runs_away": "Chain {chain} diverges: U decreases without bound from its start up to {reached:.1g} and beyond, so"
    " exp(-U) cannot be normalised. Check the sign: U must be the negative log density.",
    "wanders_off": "Chain {chain} does not stay in a bounded region: U does not increase from its start up to"
    " {reached:.1g} and beyond, so exp(-U) cannot be normalised.",
    "rejected_points": "The density raised a domain error at {count:,} points (first: {first}). It is treated as zero"
    " there.",
    # Chains that fail or start badly
    "chain_stopped": "Chain {chain} encountered a non-finite value at step {step} ({sampler}) and stopped. The other"
    " chains continue.",
    "all_stopped": "All {chains} chains of {sampler} encountered non-finite values (the last at step {step}). The run"
    " keeps the draws.",
    "lost_chains": "{chains} encountered non-finite values and stopped. Estimates use the remaining chains and are"
    " biased if the target has mass near the points where U is not finite.",
    "no_draws": "There are no draws yet (phase: {phase}), so no estimates are available.",
    "no_start": "{chains} found no valid initial position in {tries} attempts: U or its gradient is not finite at"
    " random points{first}.",
    "undefined_start": "{chains} start where U or its gradient is not finite.",
    "other_modes": "Optimisation found other modes ({count} of {total} starts), but all chains start from the best"
    " mode and may miss the others.",
    "not_at_mode": "{chains} stopped up to {distance:.2g} posterior standard deviations from a mode in each direction.",
    "saddle": "{chains} stopped at a saddle point, where U decreases in {directions} of {dim} directions.",
    # Violations of a bound
    "small_violations": "{percent:.2g}% of the proposals violate the bound (mean excess {excess:.3f}), but the bias is"
    " small.",
    "violations": "{percent:.2g}% of the proposals violate the bound (mean excess {excess:.3f}). About {missed:.2g}%"
    " of the bounces were missed, so {effect}.{network}",
    "held_batch": "The batch is kept between events and becomes part of the state: the posterior is too wide.",
    "draws_at_events": "Draws at events are biased toward regions where events are frequent.",
    # Live
    "even_weights": "The variances of this iteration are wrong although its weight ESS is {percent:.0f}% of the draws:"
    " its proposals miss a part of the density, which weights cannot show.",
    "live_variance": "The variance of {name} is currently {ratio:.2f} times the true value.",
    "live_stein_large": "By Stein's identity the variances are currently at least {share:.0f}% too large.",
    "live_stein": "By Stein's identity the variances are currently about {share:.0f}% too large ({low:.0f} to"
    " {high:.0f}%).",
    "live_narrow": "By Stein's identity the variances are {percent:.0f}% of the posterior variances: {cause}.",
    "no_progress": "No chain has produced a draw for {seconds:,.0f} s. Use fewer steps per draw or rescale the"
    " parameters.",
    "steps_left": "Step {done:,} of {most}, {how} {seconds:,.0f} s left.",
    "warmup_left": "Warm-up {percent:.0f}% done, about {seconds:,.0f} s left.",
    # Notes on how a run was made
    "tuning_ended": "Tuning ended after {steps} steps, before {awaited}.",
    "other_start": "{sampler} chooses its own initial positions on this target.",
    "given_start": "The chains start from given points.",
    "other_device": "The run continues on a different type of device ({device}), which generates different random"
    " numbers. Later draws differ from those of an uninterrupted run.",
    "not_compiled": "The step is not compiled: {reason}.",
    "no_event": "No event in {steps} steps: the chain may be far from the mode, or the rate is zero.",
    "search_cut": "The search for initial positions ended after {seconds:.2g} s, before it had converged.",
    "warmup_cut": "The warm-up was shortened to {steps:,} steps to leave time for draws.",
    "ended_early": "The run ended after {draws:,} draws per chain: {reason}.",
    "missing_package": "{figures} missing: {remedy}.",
    "missing_scores": "{text}",
    # Notes on a target or a sampler
    "raw_inputs": "The inputs are not standardised (column {column} has mean {mean:.3g} and sd {sd:.3g}). The prior"
    " expects a scale near 1.",
    "raw_observations": "The observations are not standardised (mean {mean:.3g}, sd {sd:.3g}). The prior expects a"
    " scale near 1.",
    "frozen_weights": "{frozen:,} of {total:,} weights of the module are frozen (requires_grad=False).",
    "dropout_off": "Dropout is disabled (evaluation mode), because the weights are sampled.",
    "outputs_positive": "The outputs of the module are non-negative, but the {likelihood} likelihood interprets them"
    " as {what}.",
    "outputs_bounded": "The outputs of the module are between {low:.3g} and {high:.3g} for all weights, but"
    " {percent:.0f}% of the observations are far outside this range.",
    "likelihood_sign": "The log likelihood increases without bound as outputs move away from the observations. Check"
    " the sign: a loss is the negative log likelihood.",
    "batch_norm": "Batch normalisation uses the stored means and variances of the module (evaluation mode).",
    "jumping_module": "The outputs of the module are discontinuous in its weights (for example through a sign, an"
    " argmax, a branch or a division by zero). HMC and NUTS are correct but slow. Samplers that rely on the gradient"
    " alone are biased.",
    "one_by_one": "The {what} does not support batches of chains. Chains are computed one by one, which is slower.",
    "fixed_covariances": "Covariances are not adapted, because each proposal generates only one draw.",
    "reference_not_at_mode": "The reference that replaces the prior is at {where}.",
    "floored_precision": "{count} of {dim} precisions of the reference were negative or too small and were set to a"
    " minimum{learned}.",
    # Verdict on a network's predictions
    "usable": "Usable: {findings}",
    "usable_with_care": "Usable with care: {findings}",
    "not_usable_yet": "Not usable yet: {findings}",
    "not_usable": "Not usable: {findings}",
    "not_judged": "Not judged: {findings}",
    "no_verdict": "No verdict yet: {findings}",
}


class _Formatter(string.Formatter):
    """Format large numbers without exponents (1,670 instead of 1.67e+03), and messages within messages."""

    def format_field(self, value: Any, spec: str) -> str:
        if spec.endswith("g") and isinstance(value, float):
            return general(value, spec)
        return super().format_field(value, spec)


_FORMATTER = _Formatter()


def fill(template: str, values: dict[str, Any]) -> str:
    """Return a template filled with values; formats ending in ``g`` write large numbers without exponents."""
    return _FORMATTER.vformat(template, (), values)


@dataclass(frozen=True)
class Remedy:
    """A way to resolve a problem: a description, and the options of a run that do it.

    Parameters
    ----------
    text : str
        An imperative without a full stop, such as "make more draws".
    options : dict, default {}
        Values by option, as in `bnnviz.sample`: ``{"draws": 4000}`` or ``{"settings": {"step_size": 0.1}}``.
    """

    text: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, init=False, repr=False)
class Message:
    """A statement about a run, given by code and values, with remedies.

    ``str`` renders it for Python, `text` without options for a page, `render` with a custom format of options.

    Parameters
    ----------
    code : str
        A key of `TEXTS`.
    *remedies : Remedy
    **values
        Values of the template.

    Examples
    --------
    >>> from bnnviz.messages import Message, Remedy
    >>> found = Message("divergences", Remedy("take shorter steps", {"settings": {"step_size": 0.1}}), count=3, total=9)
    >>> found.code, found.values["count"]
    ('divergences', 3)
    >>> print(found)
    3 of 9 transitions diverged: estimates may be biased. Take shorter steps (`settings={"step_size": 0.1}`).
    >>> print(found.text)
    3 of 9 transitions diverged: estimates may be biased. Take shorter steps.
    """

    code: str
    remedies: tuple[Remedy, ...]
    values: dict[str, Any]

    def __init__(self, code: str, *remedies: Remedy, **values: Any) -> None:
        for name, value in (("code", code), ("remedies", remedies), ("values", values)):
            object.__setattr__(self, name, value)

    @property
    def statement(self) -> str:
        """The message without its remedies."""
        return fill(TEXTS[self.code], self.values)

    def render(self, write: Callable[[dict[str, Any]], str] | None) -> str:
        """Return statement and remedies; ``write`` renders options as text, None omits them."""
        parts = [
            f"{each.text} ({write(each.options)})" if write and each.options else each.text for each in self.remedies
        ]
        ways = ", or ".join(parts)
        return f"{self.statement} {ways[0].upper()}{ways[1:]}." if ways else self.statement

    def __str__(self) -> str:
        return self.render(lambda options: f"`{keywords(options)}`")

    def __repr__(self) -> str:
        return f"<{self.code}: {self}>"

    @property
    def text(self) -> str:
        """The message without options, for a surface that has controls."""
        return self.render(None)

    def to_json(self) -> dict[str, Any]:
        """Return code, text, values and remedies as plain JSON."""
        remedies = [{"text": each.text, "options": each.options} for each in self.remedies]
        return {"code": self.code, "text": str(self), "values": self.values, "remedies": remedies}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Message:
        """Return the message from the result of `to_json`; raises ValueError if it is invalid."""
        try:
            remedies = (Remedy(str(each["text"]), dict(each["options"])) for each in found["remedies"])
            made = cls(found["code"], *remedies, **found["values"])
            str(made)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise ValueError(f"not a message: {error!r:.100}") from None
        return made


def keywords(options: dict[str, Any]) -> str:
    """Return options as keywords of a call: ``draws=4000, settings={"step_size": 0.1}``."""
    return ", ".join(f"{name}={_literal(value)}" for name, value in options.items())


def _literal(value: Any) -> str:
    """Format a value as Python does, with double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)
