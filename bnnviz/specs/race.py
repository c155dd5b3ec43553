"""Specify a race: two to six samplers on one target, each with the same budget of gradients, as plain JSON."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import param

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue, url
from bnnviz.specs.run import VERSION, Spec, read_json

FEWEST, MOST = 2, 6
LEAST_BUDGET, MOST_BUDGET = 1_000, 10**12
MOST_BUDGET_OF_LINK = 10**10  # a page must not keep a worker busy forever
DEFAULT_BUDGET = 1_000_000
#: Fields shared by all specs of a race.
SHARED = ("target", "target_settings", "chains", "seed", "device", "dtype", "file")
#: Fields of each sampler of a race.
_OWN_RUN = ("warmup", "kernel")
_OWN = ("sampler", "settings", *_OWN_RUN)
_FIELDS = (*SHARED, "budget", "entries")
_SEPARATOR = ","
#: Settings of samplers shared by all of them.
START = ("start", "mode_steps")
_WORDS = {"target_settings": "settings of the target", "file": "data file"}


class RaceSettings(param.Parameterized):
    """The settings of a race except those of its runs."""

    budget = settings.Integer(
        DEFAULT_BUDGET,
        bounds=(LEAST_BUDGET, MOST_BUDGET),
        unit="gradients",
        scale="log",
        doc="Per-example gradients for each sampler, over all its chains, including rejected proposals, tuning and"
        " warm-up.",
    )


@dataclass(frozen=True)
class RaceSpec:
    """Specification of a race.

    Parameters
    ----------
    entries : tuple of Spec
        Two to six specs that differ only in sampler, settings, warm-up and kernel. Their ``draws`` are None, because
        the budget determines the end of a run.
    budget : int
        Number of per-example gradients for each sampler, summed over its chains, including tuning and warm-up.

    Examples
    --------
    >>> import bnnviz
    >>> entries = tuple(bnnviz.Spec(target="banana", sampler=name, draws=None) for name in ("bps", "hmc"))
    >>> bnnviz.RaceSpec(entries, budget=100_000).names()
    ['Bouncy Particle', 'HMC']
    """

    #: Class that executes it, ``module:name``.
    factory: ClassVar[str] = "bnnviz.engine.race.race:Race"

    entries: tuple[Spec, ...]
    budget: int = DEFAULT_BUDGET

    @classmethod
    def described(cls) -> list[dict[str, Any]]:
        """Return the settings of the race as JSON, in the format of the catalogue."""
        return settings.describe(RaceSettings)

    @property
    def attachment(self) -> bytes | None:
        """The rows of the user's file, which are not part of the JSON."""
        return self.entries[0].attachment

    def to_json(self) -> dict[str, Any]:
        """Return the race as a JSON object: shared fields once, then each sampler's fields."""
        entries = [entry.to_json() for entry in self.entries]
        shared = {name: entries[0][name] for name in SHARED}
        return {
            "version": VERSION,
            **shared,
            "budget": self.budget,
            "entries": [{name: entry[name] for name in _OWN} for entry in entries],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any] | str, attachment: bytes | None = None) -> Self:
        """Create a validated race with all defaults from a JSON object or string.

        Parameters
        ----------
        value : dict or str
        attachment : bytes or None, default None
            The rows of the user's file, which the JSON does not contain.

        Raises
        ------
        BnnvizError
            If a name is unknown or a value is invalid. ``field`` is the name of the setting.
        """
        given = read_json(value, "A race", _FIELDS)
        if not isinstance(given.get("entries"), list):
            raise BnnvizError(
                "A race is a JSON object with the keys target and entries, a list of samplers.", "entries"
            )
        shared = {name: given[name] for name in SHARED if name in given}
        own = [read_json(entry, "A sampler of a race", _OWN) for entry in given["entries"]]
        entries = tuple(Spec(**shared, **entry, draws=None, attachment=attachment) for entry in own)
        return cls(entries, given.get("budget", DEFAULT_BUDGET)).checked()

    def checked(self, own_target: bool = False) -> Self:
        """Return a validated copy with all defaults.

        Parameters
        ----------
        own_target : bool, default False
            Whether the target is a custom object, as in `Spec.checked`.

        Raises
        ------
        BnnvizError
            If the number of samplers, their differences or a value is invalid. ``field`` is the name of the setting,
            prefixed by the index of the sampler and a dot.
        """
        if not FEWEST <= len(self.entries) <= MOST:
            raise BnnvizError(f"A race has {FEWEST} to {MOST} samplers, not {len(self.entries)}.", "entries")
        budget = self.budget
        if isinstance(budget, bool) or not isinstance(budget, int) or not LEAST_BUDGET <= budget <= MOST_BUDGET:
            raise BnnvizError(
                f"The budget is a whole number of gradients from {LEAST_BUDGET:,} to {MOST_BUDGET:,}, not {budget!r}.",
                "budget",
            )
        entries = tuple(_checked(number, entry, own_target) for number, entry in enumerate(self.entries))
        for entry, name in itertools.product(entries[1:], SHARED):
            if getattr(entry, name) != getattr(entries[0], name):
                word = _WORDS.get(name, name)
                raise BnnvizError(f"All samplers of a race share the {word}; give it once for all of them.", name)
        _refuse_starts(entries)
        return type(self)(entries, budget)

    def names(self) -> list[str]:
        """Return a label for each sampler: its title and the settings in which it differs from the others."""
        titles = [catalogue.find("samplers", entry.sampler)["title"] for entry in self.entries]
        differences = [self._differences(number) for number in range(len(self.entries))]
        names = [
            f"{title} ({text})" if text and titles.count(title) > 1 else title
            for title, text in zip(titles, differences, strict=True)
        ]
        # Identical samplers are numbered.
        again = [f" {names[: i + 1].count(name)}" if names.count(name) > 1 else "" for i, name in enumerate(names)]
        return [name + number for name, number in zip(names, again, strict=True)]

    def _differences(self, number: int) -> str:
        """Return the settings in which a sampler differs from others of its kind."""
        entry = self.entries[number]
        rivals = [other for other in self.entries if other.sampler == entry.sampler]
        differing = [n for n, v in entry.settings.items() if any(other.settings.get(n) != v for other in rivals)]
        return ", ".join(f"{name} {_short(entry.settings[name])}" for name in differing)

    def differing(self, number: int) -> dict[str, Any]:
        """Return the settings of the sampler that differ from the defaults."""
        entry = self.entries[number]
        return url.differing(catalogue.find("samplers", entry.sampler)["settings"], entry.settings)

    def replace(self, **shared: Any) -> Self:
        """Return a copy with a different ``budget`` or different shared fields, without validation."""
        budget = shared.pop("budget", self.budget)
        return type(self)(tuple(entry.replace(**shared) for entry in self.entries), budget)

    # --- links, scripts and commands

    def shareable(self) -> str:
        """Return the reason why the race cannot be shared as a link or script, or empty if it can."""
        return self.entries[0].shareable()

    def to_query(self) -> dict[str, str]:
        """Return the URL parameters of a validated race: target, samplers, budget and changed values.

        Parameters of a sampler have its number as a prefix, starting from 1: ``2.step_size``.
        """
        query = {"target": self.entries[0].target, "entries": _SEPARATOR.join(entry.sampler for entry in self.entries)}
        for number, entry in enumerate(self.entries, 1):
            for name, text in entry.to_query().items():
                if name.startswith("s.") or name in _OWN_RUN:
                    query[f"{number}.{name.removeprefix('s.')}"] = text
                elif number == 1 and name != "sampler":
                    query[name] = text
        return query | {"budget": str(self.budget)}

    def read_query(self, query: url.Query) -> tuple[Self, list[str]]:
        """Create a race from URL parameters. See `bnnviz.specs.run.Spec.read_query`."""
        link, opening = url.Link(query), self.checked()
        names = _read_entries(link, opening)
        budget = {"title": "The race", "settings": self.described()}
        limits = {"budget": MOST_BUDGET_OF_LINK}
        values = link.take_values(budget, {"budget": opening.budget}, limits=limits)
        entries = _at_one_start(_read_each(link, opening, names), link)
        # Shared parameters were read equally for each sampler, up to limits that depend on nothing else.
        return type(self)(tuple(entries), **values).checked(), link.sentences

    def as_python(self) -> str:
        """Return a Python script that reproduces the race."""
        first = self.entries[0]
        entries = [
            (entry.sampler, own) if (own := self.differing(i)) else entry.sampler
            for i, entry in enumerate(self.entries)
        ]
        run = {name: getattr(first, name) for name in ("chains", "seed", "warmup")}
        run |= {name: value for name, value in first.changed().items() if name in ("device", "dtype")}
        item = catalogue.find("targets", first.target)
        return url.python_call(
            "race = bnnviz.race",
            [first.target, entries],
            {"budget": self.budget, **run, "target_settings": url.script_values(item, first.target_settings)},
            ["print(race.statement)", "for row in race.table:", '    print(row["rank"], row["name"], row["error"])'],
        )

    def as_command(self) -> str:
        """Return a shell command that reproduces the race."""
        first, words = self.entries[0], ["race"]
        for number, entry in enumerate(self.entries):
            own = ",".join(f"{name}={url.write_value(value)}" for name, value in self.differing(number).items())
            words.append(f"{entry.sampler}:{own}" if own else entry.sampler)
        chosen = url.script_values(catalogue.find("targets", first.target), first.target_settings)
        assigned = {f"target.{name}": value for name, value in chosen.items()}
        changed = first.changed()
        assigned |= {name: changed[name] for name in ("warmup", "dtype") if name in changed}
        options = {"chains": first.chains, "seed": first.seed}
        options |= {name: changed[name] for name in ("device",) if name in changed}
        options |= {"budget": self.budget} if self.budget != DEFAULT_BUDGET else {}
        return url.command([*words, "--target", first.target], assigned, options)


@dataclass(frozen=True)
class ImageRaceSpec(RaceSpec):
    """A race on images with uncertainty estimates, for the Uncertainty page."""

    factory: ClassVar[str] = "bnnviz.engine.race.image_race:ImageRace"


def _checked(number: int, entry: Spec, own_target: bool = False) -> Spec:
    if entry.start is not None:
        raise BnnvizError("All samplers of a race have the same start. Omit the start of individual samplers.", "start")
    try:
        return entry.replace(draws=None).checked(own_target)
    except BnnvizError as error:
        raise of_entry(error, number, entry) from None


def of_entry(error: BnnvizError, number: int, entry: Spec) -> BnnvizError:
    """Return an error of one run as an error of the race, with its field."""
    own = error.field == "sampler" or any(
        setting["name"] == error.field
        for item in catalogue.load()["samplers"]
        if item["name"] == entry.sampler
        for setting in item["settings"]
    )
    if not own:
        return error
    return BnnvizError(f"Sampler {number + 1}: {error.sentence}", f"{number}.{error.field}")


def _refuse_starts(entries: tuple[Spec, ...]) -> None:
    """Raise if samplers would start differently."""
    for name in START:
        values = list(dict.fromkeys(entry.settings[name] for entry in entries if name in entry.settings))
        if len(values) > 1:
            listed = ", ".join(map(str, values))
            raise BnnvizError(f"A race has one start: give all samplers the same {name}, not {listed}.", name)


def _read_entries(link: url.Link, opening: RaceSpec) -> list[str]:
    """Return the samplers listed in a link, or those of the opening race if there are too few."""
    text = link.take("entries")
    before = [entry.sampler for entry in opening.entries]
    if text is None:
        return before
    known = [item["name"] for item in catalogue.load()["samplers"]]
    listed = [name.strip() for name in text.split(_SEPARATOR) if name.strip()]
    link.note(
        *(
            f"The link names a sampler {name[:40]!r}, which is not one of {', '.join(known)}; it was left out."
            for name in listed
            if name not in known
        )
    )
    names = [name for name in listed if name in known]
    if len(names) > MOST:
        link.note(f"A race has at most {MOST} samplers; the first {MOST} were used.")
    if len(names) < FEWEST:
        link.note(f"A race has at least {FEWEST} samplers; those of the opening race were used.")
        return before
    return names[:MOST]


def _read_each(link: url.Link, opening: RaceSpec, names: list[str]) -> list[Spec]:
    """Read each sampler of a link: shared parameters, and those with its number."""
    shared: dict[str, str] = {}
    own: list[dict[str, str]] = [{} for _ in names]
    for name, text in link.texts.items():
        number, _, rest = name.partition(".")
        if not (number.isascii() and number.isdigit()):
            shared |= {} if name in ("sampler", *_OWN_RUN) else {name: text}
        elif 1 <= int(number) <= len(names):
            own[int(number) - 1] |= {rest if rest in _OWN_RUN else f"s.{rest}": text}
        else:
            link.note(f"The link has no sampler {number}; {name} was left out.")
    entries = []
    for number, (name, texts) in enumerate(zip(names, own, strict=True)):
        same = number < len(opening.entries) and opening.entries[number].sampler == name
        begin = opening.entries[number] if same else opening.entries[0].replace(sampler=name, settings={})
        # A link with a target starts from the defaults, one without from the opening race.
        chosen = {} if same and "target" not in shared and not texts else {"sampler": name}
        entry, sentences = begin.read_query(shared | chosen | texts)
        link.note(*sentences)
        entries.append(entry)
    return entries


def _at_one_start(entries: list[Spec], link: url.Link) -> list[Spec]:
    """Return the specs with one start, that of the first sampler."""
    for name in START:
        values = [entry.settings[name] for entry in entries if name in entry.settings]
        if len(set(values)) > 1:
            link.note(f"A race has one start; {name} = {values[0]} was used for every sampler.")
            entries = [
                entry.replace(settings=entry.settings | {name: values[0]}) if name in entry.settings else entry
                for entry in entries
            ]
    return entries


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "auto" if value is None else str(value)
