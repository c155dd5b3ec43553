"""Races as links, as Python and as a command, in the manner of `link`: reading one never fails."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from bnnviz.specs import catalogue, url
from bnnviz.specs.race import DEFAULT_BUDGET, FEWEST, LEAST_BUDGET, MOST, START, RaceSpec
from bnnviz.specs.run import Spec

MOST_BUDGET = 10**10  # one page must not keep a worker for ever
_OWN = ("warmup", "kernel")
_SEPARATOR = ","


def to_query(race: RaceSpec) -> dict[str, str]:
    """Return a race as a link's parameters: target, lanes, budget, and what differs from the defaults.

    A lane's own parameters have its number from 1 before them: ``2.step_size``.
    """
    first = url.to_query(race.lanes[0])
    query = {"target": first["target"], "lanes": _SEPARATOR.join(lane.sampler for lane in race.lanes)}
    query |= {n: text for n, text in first.items() if not n.startswith("s.") and n not in ("sampler", "target", *_OWN)}
    for number, lane in enumerate(race.lanes):
        for name, text in url.to_query(lane).items():
            own = name.removeprefix("s.") if name.startswith("s.") else name if name in _OWN else None
            if own is not None:
                query[f"{number + 1}.{own}"] = text
    return query | {"budget": str(race.budget)}


def shareable(race: RaceSpec) -> str:
    """Return why a race cannot be shared as a link or a script; an empty text if it can."""
    return url.shareable(race.lanes[0])


def from_query(
    given: Mapping[str, str | bytes | Sequence[str | bytes]], opening: RaceSpec
) -> tuple[RaceSpec, list[str]]:
    """Read a race from a link's parameters; whatever they are, there is a race to run.

    Parameters
    ----------
    given : mapping
        Texts, bytes, or lists of them, by name.
    opening : RaceSpec
        What runs where the link names nothing that can be run.

    Returns
    -------
    race : RaceSpec
        Checked, within the limits of links.
    sentences : list of str
        One for each thing that was clamped or left out.
    """
    texts = {_text(name): _text(value) for name, value in given.items()}
    texts = {name: text for name, text in texts.items() if name not in url.PAGE and not name.startswith("bokeh-")}
    if sum(len(name) + len(text) for name, text in texts.items()) > url.MOST_CHARACTERS:
        long = f"The link is longer than {url.MOST_CHARACTERS // 1024} kB and was not read; send the command or a file."
        return opening.checked(), [long]
    reading = _Reading(texts, opening.checked())
    race = reading.race()
    return race, list(dict.fromkeys(reading.sentences))[: url.MOST_SENTENCES]


class _Reading:
    """One link being read."""

    def __init__(self, texts: dict[str, str], opening: RaceSpec) -> None:
        self.sentences: list[str] = []
        self._texts, self._opening = texts, opening

    def race(self) -> RaceSpec:
        """Return what the link asks for."""
        names, budget = self._names(), self._budget()
        shared = {
            n: t for n, t in self._texts.items() if n not in ("lanes", "budget", "sampler", *_OWN) and not _own(n)
        }
        for name in self._texts:
            if _own(name) and not 1 <= int(name.split(".")[0]) <= len(names):
                self.sentences.append(f"The link has no lane {name.split('.')[0]}; {name} was left out.")
        lanes = [self._lane(number, name, shared) for number, name in enumerate(names)]
        # What all have in common was read for each of them alike, but for limits that depend on nothing else.
        return type(self._opening)(tuple(self._at_one_start(lanes)), budget).checked()

    def _names(self) -> list[str]:
        text = self._texts.get("lanes")
        opening = [lane.sampler for lane in self._opening.lanes]
        if text is None:
            return opening
        known = [item["name"] for item in catalogue.load()["samplers"]]
        names = [name.strip() for name in text.split(_SEPARATOR) if name.strip()]
        for name in names:
            if name not in known:
                self.sentences.append(
                    f"The link names a sampler {name[:40]!r}, which is not one of {', '.join(known)}; it was left out."
                )
        names = [name for name in names if name in known]
        if len(names) > MOST:
            self.sentences.append(f"A race has at most {MOST} lanes; the first {MOST} were taken.")
        if len(names) < FEWEST:
            self.sentences.append(f"A race has at least {FEWEST} lanes; those of the opening race were taken.")
            return opening
        return names[:MOST]

    def _budget(self) -> int:
        text = self._texts.get("budget")
        if text is None:
            return self._opening.budget
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if value != value:
            self.sentences.append(f"budget = {text[:40]!r} is no number; {self._opening.budget:,} was taken.")
            return self._opening.budget
        taken = int(min(max(value, LEAST_BUDGET), MOST_BUDGET))
        if taken != value:
            self.sentences.append(f"budget = {text[:40]} is out of range; {taken:,} was taken.")
        return taken

    def _lane(self, number: int, name: str, shared: dict[str, str]) -> Spec:
        """Read a lane as a link of its own would be read."""
        own = {n.partition(".")[2]: text for n, text in self._texts.items() if n.startswith(f"{number + 1}.")}
        texts = {"sampler": name, **{n if n in _OWN else f"s.{n}": text for n, text in own.items()}}
        same = number < len(self._opening.lanes) and self._opening.lanes[number].sampler == name
        opening = self._opening.lanes[number if same else 0]
        if not same:
            opening = opening.replace(sampler=name, settings={})
        # A link that names a target begins with the defaults, one that does not with the opening race.
        if same and "target" not in shared and not own:
            texts.pop("sampler")
        spec, sentences = url.from_query(shared | texts, opening)
        self.sentences += sentences
        if spec.start is None:
            return spec
        self.sentences.append("A race looks for its one start itself; that of the link was left out.")
        return spec.replace(start=None)

    def _at_one_start(self, lanes: list[Spec]) -> list[Spec]:
        """Return the lanes with one start, that of the first lane."""
        for name in START:
            values = [lane.settings[name] for lane in lanes if name in lane.settings]
            if len(set(values)) > 1:
                self.sentences.append(f"A race has one start for all; {name} = {values[0]} was taken for every lane.")
                lanes = [
                    lane.replace(settings=lane.settings | {name: values[0]}) if name in lane.settings else lane
                    for lane in lanes
                ]
        return lanes


def _own(name: str) -> bool:
    """Tell whether a parameter belongs to one lane."""
    return name.partition(".")[0].isascii() and name.partition(".")[0].isdigit()


def _text(value: str | bytes | Sequence[str | bytes]) -> str:
    first = value if isinstance(value, str | bytes) else next(iter(value), "")
    return (first.decode(errors="replace") if isinstance(first, bytes) else first).strip()


def as_python(race: RaceSpec) -> str:
    """Return a complete script that repeats the race."""
    first = race.lanes[0]
    lanes = [(lane.sampler, race.differing(number)) for number, lane in enumerate(race.lanes)]
    told = [f"        ({name!r}, {own!r})," if own else f"        {name!r}," for name, own in lanes]
    options = {"budget": race.budget, "chains": first.chains, "seed": first.seed, "warmup": first.warmup}
    options |= {
        name: getattr(first, name) for name in ("device", "dtype") if getattr(first, name) != getattr(Spec, name)
    }
    settings = _target_settings(first)
    options |= {"target_settings": settings} if settings else {}
    return "\n".join(
        [
            "import bnnviz",
            "",
            "race = bnnviz.race(",
            f"    {first.target!r},",
            "    [",
            *told,
            "    ],",
            *(f"    {name}={value!r}," for name, value in options.items()),
            ")",
            "print(race.said)",
            "for row in race.table:",
            '    print(row["rank"], row["name"], row["error"])',
            "",
        ]
    )


def as_command(race: RaceSpec) -> str:
    """Return a line for the shell that repeats the race."""
    first = race.lanes[0]
    words = ["bnnviz", "race"]
    for number, lane in enumerate(race.lanes):
        own = ",".join(f"{name}={url.write_value(value)}" for name, value in race.differing(number).items())
        words.append(f"{lane.sampler}:{own}" if own else lane.sampler)
    words += ["--target", first.target]
    for name, value in _target_settings(first).items():
        words += ["--set", f"target.{name}={url.write_value(value) if not isinstance(value, list) else value}"]
    words += ["--chains", str(first.chains), "--seed", str(first.seed)]
    words += ["--set", f"warmup={first.warmup}"] if first.warmup != Spec.warmup else []
    words += ["--set", f"dtype={first.dtype}"] if first.dtype != Spec.dtype else []
    words += ["--device", first.device] if first.device != Spec.device else []
    words += ["--budget", str(race.budget)] if race.budget != DEFAULT_BUDGET else []
    return shlex.join(words)


def _target_settings(spec: Spec) -> dict:
    return url.settings_of("targets", spec.target, spec.target_settings)
