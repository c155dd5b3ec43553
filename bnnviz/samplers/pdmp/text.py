"""Describe piecewise deterministic samplers: captions, statistics and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from bnnviz.messages import Message, Remedy, fill
from bnnviz.samplers.pdmp.thinning import BOUNCE, HORIZON, PROBE, REFRESH, REJECTED, START, VIOLATION
from bnnviz.samplers.pdmp.trace.path_picture import Evaluation
from bnnviz.samplers.text import MoveText, percent

KINDS = {
    PROBE: "probe",
    REJECTED: "rejected",
    BOUNCE: "bounce",
    REFRESH: "refresh",
    HORIZON: "horizon",
    VIOLATION: "violation",
    START: "phase",
}
# Below this mean excess of rate over envelope, variances are accurate to a few percent.
_SMALL_EXCESS = 0.03
_LEAST_EXCESS = 0.002


class ProcessText(MoveText):
    """Warnings about the settings."""

    def warnings(self, figures: dict[str, float]) -> list[Message]:
        """Return warnings of violations, held batches and draws at events."""
        found = list(self._of_violations(figures))
        if self.sampler.source.held:
            fresh = Remedy("draw a new batch at every proposal", {"settings": {"batch": "proposal"}})
            found.append(Message("held_batch", fresh))
        if self.sampler.samples == "events":
            found.append(Message("draws_at_events", Remedy("draw along the path", {"settings": {"samples": "path"}})))
        return found

    def _of_violations(self, figures: dict[str, float]) -> Iterator[Message]:
        """Warn of proposals whose rate exceeds the bound."""
        excess = figures["excess"]
        if figures["proposals"] <= 200 or excess <= _LEAST_EXCESS:
            return
        estimated = self.sampler.bound in ("interpolated", "regression")
        remedies = [Remedy("use the grid bound", {"settings": {"bound": "grid"}})] if estimated else []
        percent = 100 * figures["violation_share"]
        if excess < _SMALL_EXCESS:
            yield Message("small_violations", *remedies, percent=percent, excess=excess)
            return
        if estimated and self.sampler.horizon is not None:
            shorter = {"settings": {"horizon": None, "clip_points": False}}
            remedies.append(Remedy("shorten the horizon", shorter))
        # Proposals have the envelope's rate, so the mean excess estimates the missed bounces.
        missed = excess / max(excess + figures["acceptance"], 1e-12)
        # On a network, violations may improve predictions, since they drive chains out of their modes.
        network = " For a network this can improve predictions, because violations help chains to leave modes."
        yield Message(
            "violations",
            *remedies,
            percent=percent,
            excess=excess,
            missed=100 * missed,
            effect=self.sampler.late_events,
            network=network if estimated and self.sampler.target.start_at_mode else "",
        )


class BoomerangText(ProcessText):
    """Add the distance of the chains from the reference."""

    def rows(self, state: Any) -> list[list[str]]:
        """Return the distance of the chains from x*, relative to that of a draw from the reference."""
        d = state.x - state.adaptation.scaling.centre
        square = (d * state.adaptation.scaling.pull(d))[state.alive]
        far = ["Distance from w* / reference's", f"{float(square.mean().clamp_min(0).sqrt()):.2f}", ""]
        return [*super().rows(state), far]


_CAPTIONS = {
    BOUNCE: "Event {events} is a bounce: the {nth} proposal was accepted (rate {e.rate:.3g}, envelope {e.height:.3g}).",
    REFRESH: "Event {events} is a refreshment at time {e.t:.3g}: the path takes a random velocity.",
    REJECTED: "The {nth} proposal was rejected: its uniform draw {e.uniform:.2f} exceeds rate / envelope ="
    " {share:.2f}.",
    VIOLATION: "The {nth} proposal was discarded.",
    PROBE: "A look-ahead to time {e.t:.3g}: {found}, which sets the envelope up to this time.",
    HORIZON: "No proposal occurred before the horizon at time {e.t:.3g}. The envelope is extended from there.",
    START: "The chain starts: the rate is evaluated at its position.",
}
_TOO_FAR = "A look-ahead to time {e.t:.3g}: the potential is not finite. The next look-ahead is shorter."


def caption(last: Evaluation, tried: Sequence[Evaluation], events: int, nothing_ahead: bool) -> str:
    """Describe a chain's last evaluation."""
    form = _CAPTIONS[VIOLATION if last.violated and last.kind == REJECTED else last.kind]
    if last.kind == PROBE and not isfinite(last.rate):
        form = _TOO_FAR
    nth = _ordinal(len(tried))
    share = max(last.rate, 0.0) / last.height if last.height > 0 else 0.0
    found = f"the rate is {last.rate:.3g}" if last.rate > 0 else "U decreases there and the rate is 0"
    text = fill(form, {"e": last, "events": events, "nth": nth, "share": share, "found": found})
    if last.kind == PROBE and nothing_ahead:
        text += " The envelope is zero, so no event can occur before this time."
    violations = [(n, e) for n, e in enumerate(tried, 1) if e.violated]
    if violations:
        number, e = violations[-1]
        over = f"by {percent(e.rate / e.height - 1)}" if e.height > 0 else "of zero"
        text += f" The {_ordinal(number)} proposal violated the envelope {over}: the event is too late."
    return text


def _ordinal(n: int) -> str:
    suffix = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"
