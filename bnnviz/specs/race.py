"""The spec of a race: two to six samplers on one target, each with the same budget of gradients, as plain JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec

VERSION = 1
FEWEST, MOST = 2, 6
LEAST_BUDGET, MOST_BUDGET = 1_000, 10**12
DEFAULT_BUDGET = 1_000_000
#: What all lanes have in common, as fields of a spec.
SHARED = ("target", "target_settings", "chains", "seed", "device", "dtype", "file")
_OWN = ("sampler", "settings", "warmup", "kernel")
_FIELDS = ("version", *SHARED, "budget", "lanes")
#: Settings of samplers that all lanes have alike.
START = ("start", "mode_steps")
_WORDS = {"target_settings": "settings of the target", "file": "data file"}


@dataclass(frozen=True)
class RaceSpec:
    """What races.

    Parameters
    ----------
    lanes : tuple of Spec
        Two to six, alike in all but the sampler, its settings, the warm-up and the kernel. The budget decides when a
        lane ends: their ``draws`` are None.
    budget : int
        Per-example gradients that each lane may spend, all its chains together, tuning and warm-up included.
    """

    #: What executes it, ``module:name``.
    factory: ClassVar[str] = "bnnviz.engine.race.race:Race"

    lanes: tuple[Spec, ...]
    budget: int = DEFAULT_BUDGET

    @property
    def attachment(self) -> bytes | None:
        """The rows of the user's own file, which are not part of the JSON."""
        return self.lanes[0].attachment

    def to_json(self) -> dict[str, Any]:
        """Return the race as a JSON object: what the lanes have in common once, then each lane's own."""
        lanes = [lane.to_json() for lane in self.lanes]
        shared = {name: lanes[0][name] for name in SHARED}
        return {
            "version": VERSION,
            **shared,
            "budget": self.budget,
            "lanes": [{name: lane[name] for name in _OWN} for lane in lanes],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any] | str, attachment: bytes | None = None) -> Self:
        """Make a race from a JSON object or text, checked, with every default filled in.

        Parameters
        ----------
        value : dict or str
        attachment : bytes or None, default None
            What the JSON cannot hold: the rows of the user's own file.

        Raises
        ------
        BnnvizError
            If a name is unknown or a value does not fit; ``field`` names the setting.
        """
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except json.JSONDecodeError as error:
                raise BnnvizError(f"The race is not JSON ({error}); check its commas and quotes.") from None
        if not isinstance(value, dict) or not isinstance(value.get("lanes"), list):
            raise BnnvizError("A race is a JSON object with the keys target and lanes, a list of samplers.", "lanes")
        if value.get("version", VERSION) != VERSION:
            raise BnnvizError(
                f"The race has version {value['version']!r}; this bnnviz reads version {VERSION}.", "version"
            )
        _refuse_unknown(value, _FIELDS, "A race")
        shared = {name: value[name] for name in SHARED if name in value}
        lanes = []
        for lane in value["lanes"]:
            if not isinstance(lane, dict):
                raise BnnvizError(f"A lane is a JSON object with the key sampler, not {lane!r}.", "lanes")
            _refuse_unknown(lane, _OWN, "A lane")
            lanes.append(Spec(**shared, **lane, draws=None, attachment=attachment))
        return cls(tuple(lanes), value.get("budget", DEFAULT_BUDGET)).checked()

    def checked(self) -> Self:
        """Return the same race with its names and values checked and every default filled in.

        Raises
        ------
        BnnvizError
            If there are too few or too many lanes, if they differ in more than they may, or if a value does not fit;
            ``field`` is that of the setting, for a lane's own after its number from 0 and a dot.
        """
        if not FEWEST <= len(self.lanes) <= MOST:
            raise BnnvizError(f"A race has {FEWEST} to {MOST} samplers, not {len(self.lanes)}.", "lanes")
        budget = self.budget
        if isinstance(budget, bool) or not isinstance(budget, int) or not LEAST_BUDGET <= budget <= MOST_BUDGET:
            raise BnnvizError(
                f"The budget is a whole number of gradients from {LEAST_BUDGET:,} to {MOST_BUDGET:,}, not {budget!r}.",
                "budget",
            )
        lanes = tuple(_checked(number, lane) for number, lane in enumerate(self.lanes))
        for lane in lanes[1:]:
            _refuse_difference(lanes[0], lane)
        _refuse_starts(lanes)
        return type(self)(lanes, budget)

    def names(self) -> list[str]:
        """Return what to call each lane: the sampler, and the settings that tell it from another lane of its kind."""
        titles = [catalogue.find("samplers", lane.sampler)["title"] for lane in self.lanes]
        told = [self._told(number) for number in range(len(self.lanes))]
        names = [
            f"{title} ({text})" if text and titles.count(title) > 1 else title
            for title, text in zip(titles, told, strict=True)
        ]
        # Two lanes that are alike in every setting are told apart by a number.
        again = [f" {names[: i + 1].count(name)}" if names.count(name) > 1 else "" for i, name in enumerate(names)]
        return [name + number for name, number in zip(names, again, strict=True)]

    def _told(self, number: int) -> str:
        """Return the settings of a lane that another lane of the same sampler has otherwise."""
        lane = self.lanes[number]
        rivals = [other for other in self.lanes if other.sampler == lane.sampler]
        differing = [n for n, v in lane.settings.items() if any(other.settings.get(n) != v for other in rivals)]
        return ", ".join(f"{name} {_short(lane.settings[name])}" for name in differing)

    def differing(self, number: int) -> dict[str, Any]:
        """Return the settings of a lane's sampler that are not the defaults."""
        lane = self.lanes[number]
        defaults = {s["name"]: s["default"] for s in catalogue.find("samplers", lane.sampler)["settings"]}
        return {name: value for name, value in lane.settings.items() if value != defaults[name]}

    def replace(self, **shared: Any) -> Self:
        """Return a race with some fields changed, ``budget`` or those that all lanes have in common (not checked)."""
        budget = shared.pop("budget", self.budget)
        return type(self)(tuple(lane.replace(**shared) for lane in self.lanes), budget)


def _refuse_unknown(given: dict[str, Any], names: tuple[str, ...], owner: str) -> None:
    for name in given:
        if name not in names:
            raise BnnvizError(f"{owner} has no key {name!r}; its keys are {', '.join(names)}.", name)


def _checked(number: int, lane: Spec) -> Spec:
    if lane.start is not None:
        raise BnnvizError(
            "A race has one start for all, which it looks for itself: leave out the lanes' start.", "start"
        )
    try:
        return lane.replace(draws=None).checked()
    except BnnvizError as error:
        raise of_lane(error, number, lane) from None


def of_lane(error: BnnvizError, number: int, lane: Spec) -> BnnvizError:
    """Return an error of a lane as one of the race: a setting of the sampler is that of this lane."""
    own = error.field == "sampler" or any(
        setting["name"] == error.field
        for item in catalogue.load()["samplers"]
        if item["name"] == lane.sampler
        for setting in item["settings"]
    )
    if not own:
        return error
    return BnnvizError(f"Lane {number + 1}: {error.sentence}", f"{number}.{error.field}")


def _refuse_difference(first: Spec, lane: Spec) -> None:
    for name in SHARED:
        if getattr(first, name) != getattr(lane, name):
            word = _WORDS.get(name, name)
            raise BnnvizError(f"All lanes of a race have the same {word}; give it once for all of them.", name)


def _refuse_starts(lanes: tuple[Spec, ...]) -> None:
    """Raise where samplers would set out from different places: a race has one start."""
    for name in START:
        values = list(dict.fromkeys(lane.settings[name] for lane in lanes if name in lane.settings))
        if len(values) > 1:
            said = ", ".join(map(str, values))
            raise BnnvizError(f"A race has one start for all: give all lanes the same {name}, not {said}.", name)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "auto" if value is None else str(value)
