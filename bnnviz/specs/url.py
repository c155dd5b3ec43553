"""Specs as links, as Python and as a command: what repeats a run elsewhere.

A link's parameters are short texts that anybody may have typed or cut off, so reading them never fails:
what does not fit is clamped or left out, with one sentence each.
"""

from __future__ import annotations

import json
import math
import pprint
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote_plus

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue
from bnnviz.specs.run import POINTS, RECORDING, Spec

MOST_CHARACTERS = 8192
MOST_POINTS = 200
MOST_CHAINS = 64  # one page must not fill a worker
MOST_DRAWS = 100_000
MOST_NUMBERS = 100_000  # chains times dimensions
MOST_KEPT = 50_000_000  # chains times dimensions times draws: 200 MB
MOST_SENTENCES = 4
#: Parameters of the page's own, not of the spec.
PAGE = ("page", "scene", "step", "play", "speed", "projector", "hide", "tour", "theme", "recording")
BATCH_DRAWS = 1000  # draws of a script that repeats a live run, which has no end

_RUN = ("chains", "draws", "warmup", "seed", "device", "dtype", "kernel")
_START = {"start": "recording", "start_from": "points", "start_sha256": "sha256"}
_PREFIXES = {"t": ("targets", "target_settings"), "s": ("samplers", "settings")}
_DEVICE = re.compile(r"auto|cpu|cuda(:\d{1,2})?")
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NOTHING = "none"
_LISTED = 12  # choices in a sentence


# --- writing


def to_query(spec: Spec) -> dict[str, str]:
    """Return a spec as a link's parameters: target, sampler, and what differs from the defaults.

    Parameters
    ----------
    spec : Spec
        A checked spec.

    Returns
    -------
    dict of str
        Texts by name, not yet quoted; `query_text` joins them.
    """
    query = {"target": spec.target, "sampler": spec.sampler}
    for prefix, (kind, place) in _PREFIXES.items():
        item = catalogue.find(kind, spec.target if prefix == "t" else spec.sampler)
        for name, value in _differing(item["settings"], getattr(spec, place)).items():
            query[f"{prefix}.{name}"] = write_value(value)
    defaults = _run_defaults()
    query |= {name: write_value(getattr(spec, name)) for name in _RUN if getattr(spec, name) != defaults[name]}
    return query | _started(spec)


def _started(spec: Spec) -> dict[str, str]:
    """Return where chains set out from, as a link's parameters and a command's options say it."""
    said = {name: (spec.start or {}).get(key) for name, key in _START.items()}
    return {name: text for name, text in said.items() if text is not None and text != POINTS[0]}


def query_text(query: Mapping[str, str]) -> str:
    """Join a link's parameters to what stands after the question mark, as readable as it may be."""
    return "&".join(f"{quote_plus(name)}={quote_plus(value, safe=',;:')}" for name, value in query.items())


def write_points(points: Iterable[Sequence[float]]) -> str:
    """Write rows of numbers as ``x,y;x,y``, rounded to four significant digits."""
    return ";".join(",".join(f"{number:.4g}" for number in row) for row in points)


def shareable(spec: Spec) -> str:
    """Return why a spec cannot be shared as a link or a script; an empty text if it can."""
    if spec.target_settings.get("data") == "own":
        return "This run is on data of your own, which no link can hold; share the file and load it on the other page."
    if spec.start is not None and not RECORDING.fullmatch(spec.start["recording"] or ""):
        return (
            "This run starts from points that no link can hold: record the run that they are from under a name, and"
            " start from that."
        )
    if spec.attachment is not None:
        return (
            "This run has a network or a function of your own, which no link can hold; share the script that made it."
        )
    return ""


def _differing(declared: list[dict[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values that are not the defaults, in declared order."""
    return {s["name"]: given[s["name"]] for s in declared if s["name"] in given and given[s["name"]] != s["default"]}


def _run_defaults() -> dict[str, Any]:
    """Return the run's settings of a link that says nothing of them: a live run has no end."""
    return {**{name: getattr(Spec, name) for name in _RUN}, "draws": None}


def write_value(value: Any) -> str:
    """Write a value as a link and a command do."""
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(int(value) if value.is_integer() and abs(value) < 1e15 else value)
    return write_points(value) if isinstance(value, list | tuple) else str(value)


# --- reading


def from_address(query: str, opening: Spec | None = None) -> tuple[Spec, list[str]]:
    """Read what stands after the question mark of a link; as `from_query`."""
    return from_query(parse_qs(query, keep_blank_values=True), opening)


def from_query(
    given: Mapping[str, str | bytes | Sequence[str | bytes]], opening: Spec | None = None
) -> tuple[Spec, list[str]]:
    """Read a spec from a link's parameters; whatever they are, there is a spec to run.

    Parameters
    ----------
    given : mapping
        Texts, bytes, or lists of them, by name. Those of the page's own (`PAGE`) are passed over.
    opening : Spec, optional
        What runs where the link names no target or no sampler, or one that there is not.

    Returns
    -------
    spec : Spec
        Checked, within the limits of links.
    sentences : list of str
        One for each thing that was clamped or left out.
    """
    opening = opening or Spec(draws=None)
    texts, sentences = _texts(given)
    if sum(len(name) + len(text) for name, text in texts.items()) > MOST_CHARACTERS:
        long = f"The link is longer than {MOST_CHARACTERS // 1024} kB and was not read; send the command or a file."
        return opening.checked(), [long]
    reading = _Reading(texts, opening, sentences)
    return reading.spec(), _few(reading.sentences)


def read_points(text: str) -> list[list[float]]:
    """Read rows of two or three numbers from ``x,y;x,y``; an empty text is no point.

    Raises
    ------
    BnnvizError
        If there are more than 200, or if one is not a row of finite numbers as long as the others.
    """
    rows = [row for row in text.split(";") if row.strip()]
    if len(rows) > MOST_POINTS:
        raise BnnvizError(f"{len(rows)} points are too many; a link holds at most {MOST_POINTS}.", "points")
    points = []
    for row in rows:
        try:
            numbers = [float(number) for number in row.split(",")]
        except ValueError:
            numbers = [math.nan]
        if (
            len(numbers) not in (2, 3)
            or not all(map(math.isfinite, numbers))
            or len(numbers) != len(rows[0].split(","))
        ):
            raise BnnvizError(f"The point {_short(row)} is not written as x,y with finite numbers.", "points")
        points.append(numbers)
    return points


class _Reading:
    """One link being read: the texts, and the sentences on what is wrong with them."""

    def __init__(self, texts: dict[str, str], opening: Spec, sentences: list[str]) -> None:
        self.sentences, self._texts, self._opening = sentences, texts, opening

    def spec(self) -> Spec:
        """Return what the link asks for, within the limits."""
        spec = self._named()
        if spec is None:
            return self._opening.checked()
        changes: dict[str, Any] = {}
        for prefix, (kind, place) in _PREFIXES.items():
            item = catalogue.find(kind, spec.target if prefix == "t" else spec.sampler)
            changes[place] = self._values(item, getattr(spec, place), f"{prefix}.")
        run = {"title": "The run", "settings": [s for s in catalogue.load()["run"] if s["name"] in _RUN]}
        changes |= self._values(run, {name: getattr(spec, name) for name in _RUN}, "")
        changes |= self._start()
        self._refuse_unknown(spec)
        return self._within_limits(spec.replace(**changes).checked())

    def _named(self) -> Spec | None:
        """Return the named target and sampler with their defaults; None if there is none such."""
        target, sampler = (self._texts.get(name) for name in ("target", "sampler"))
        spec = self._opening.checked()
        for kind, name in (("targets", target), ("samplers", sampler)):
            try:
                if name is not None:
                    catalogue.find(kind, name)
            except BnnvizError:
                noun = kind[:-1]
                known = ", ".join(item["name"] for item in catalogue.load()[kind])
                self.sentences.append(
                    f"The link names a {noun} {_short(name)}, which is not one of {known}; the opening run was taken."
                )
                return None
        if target is not None:
            defaults = _run_defaults() | {"start": None, "start_points": None}
            spec = spec.replace(target=target, target_settings={}, settings={}, **defaults)
        if sampler is not None:
            spec = spec.replace(sampler=sampler, settings={})
        return spec.checked()

    def _values(self, item: dict[str, Any], begin: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """Return the values to begin with, changed where the link has one that can be read."""
        values = dict(begin)
        for setting in item["settings"]:
            name = setting["name"]
            texts = (self._texts.get(prefix + each) for each in (name, *settings.old_names(name)))
            text = next((text for text in texts if text is not None), None)
            if text is not None:
                try:
                    values[name] = self._value(setting, text, item["title"])
                except BnnvizError as error:
                    self.sentences.append(f"{error.sentence}; {_taken(setting, values[name])} was taken.")
        return values

    def _start(self) -> dict[str, Any]:
        """Return where chains set out from, if the link says it; whether there is such a recording is not asked."""
        given = {key: self._texts[name] for name, key in _START.items() if self._texts.get(name)}
        if not given:
            return {}
        try:
            if not RECORDING.fullmatch(given.get("recording", "")):
                raise BnnvizError(f"start = {_short(given.get('recording', ''))} is not the name of a recording.")
            return {"start": self._opening.replace(start=given).checked().start, "start_points": None}
        except BnnvizError as error:
            self.sentences.append(f"{error.sentence.rstrip('.')}; the start was left out.")
            return {}

    def _value(self, setting: dict[str, Any], text: str, owner: str) -> Any:
        """Read one value; raise the beginning of a sentence if that is not possible."""
        if text == _NOTHING and (setting["optional"] or setting["default"] is None):
            return None
        refused = BnnvizError(f"{setting['name']} = {_short(text)} {_wanted(setting)}")
        if setting["name"] == "device" and not _DEVICE.fullmatch(text):
            raise refused
        try:
            return settings.check(setting, self._clamped(setting, _parse(setting, text)), owner)
        except BnnvizError as error:
            raise BnnvizError(error.sentence.rstrip(".")) if setting["type"] == "points" else refused from None

    def _clamped(self, setting: dict[str, Any], value: Any) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
            return value
        low, high = setting["bounds"] or (None, None)
        name = setting["name"]
        if name == "chains":
            high = MOST_CHAINS
        elif name == "draws":
            high = MOST_DRAWS
        taken = value if low is None else max(value, low)
        taken = taken if high is None else min(taken, high)
        if taken != value:
            why = f"more than a link may ask for ({high})" if _limited(name, value, setting) else "out of range"
            self.sentences.append(f"{name} = {write_value(value)} is {why}; {write_value(taken)} was taken.")
        return taken

    def _refuse_unknown(self, spec: Spec) -> None:
        known = {"target", "sampler", *PAGE, *_RUN, *_START}
        for name in self._texts:
            prefix, dot, rest = name.partition(".")
            if name in known or name.startswith("bokeh-"):
                continue
            if not dot or prefix not in _PREFIXES:
                self.sentences.append(f"A link has no parameter {_short(name)}; it was left out.")
                continue
            item = catalogue.find(_PREFIXES[prefix][0], spec.target if prefix == "t" else spec.sampler)
            if settings.current_name(rest, names := {s["name"] for s in item["settings"]}) not in names:
                self.sentences.append(f"{item['title']} has no setting {_short(rest)}; it was left out.")

    def _within_limits(self, spec: Spec) -> Spec:
        """Return the spec with fewer weights, chains or draws where a page could not hold them."""
        dim = dimension(spec)
        if dim > MOST_NUMBERS:
            kept = {n: v for n, v in spec.target_settings.items() if n not in ("hidden", "size")}
            self.sentences.append(
                f"The link asks for {dim:,} dimensions, more than the {MOST_NUMBERS:,} a link may ask for;"
                " the default size was taken."
            )
            spec = spec.replace(target_settings=kept).checked()
            dim = dimension(spec)
        chains = max(1, min(spec.chains, MOST_NUMBERS // max(dim, 1)))
        if chains < spec.chains:
            self.sentences.append(
                f"chains = {spec.chains} in {dim:,} dimensions is more than a link may ask for; {chains} was taken."
            )
        draws = spec.draws
        if draws is not None:
            draws = min(draws, max(1, MOST_KEPT // (chains * max(dim, 1))))
            if draws < spec.draws:
                self.sentences.append(
                    f"draws = {spec.draws} of {chains} chains in {dim:,} dimensions is more than a link may ask for;"
                    f" {draws} was taken."
                )
        return spec.replace(chains=chains, draws=draws)


def dimension(spec: Spec) -> int:
    """Return the dimensions of a spec's target as far as its settings tell, at least; 0 where they do not tell."""
    item, chosen = catalogue.find("targets", spec.target), spec.target_settings
    if item["dim"] is not None:
        return item["dim"]
    if "hidden" not in chosen:
        return int(chosen.get("size", 0))
    data = next((entry for entry in catalogue.load()["data"] if entry["name"] == chosen.get("data")), {})
    outputs = max(1, data.get("classes", 0))
    try:
        widths = [data.get("inputs", 1), *(int(width) for width in chosen["hidden"].split("-") if width), outputs]
    except ValueError:
        return 0  # what the hidden layers are, the target itself will refuse
    return sum((a + 1) * b for a, b in zip(widths, widths[1:], strict=False))


def _texts(given: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return one text for each name, and what was wrong with those that were not one text."""
    texts, sentences = {}, []
    for name, values in given.items():
        values = [values] if isinstance(values, str | bytes) else list(values)
        decoded = [value.decode(errors="replace") if isinstance(value, bytes) else value for value in values]
        name = name.decode(errors="replace") if isinstance(name, bytes) else name
        if len(decoded) > 1 and name not in PAGE:
            sentences.append(f"The link gives {_short(name)} {len(decoded)} times; the first was taken.")
        if decoded:
            texts[name] = decoded[0].strip()
    return texts, sentences


def _parse(setting: dict[str, Any], text: str) -> Any:
    """Read a text in its setting's type; what cannot be read stays a text, for the check to refuse."""
    kind = setting["type"]
    if kind == "points":
        return read_points(text)
    if kind == "boolean":
        return _WORDS.get(text.lower(), text)
    if kind == "choice":
        return next((choice for choice in setting["choices"] if str(choice) == text), text)
    if kind in ("number", "integer"):
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if kind == "integer" and number.is_integer() else number
    return text


def _limited(name: str, value: float, setting: dict[str, Any]) -> bool:
    """Tell whether a value is within its setting's own bounds, so that only a link may not ask for it."""
    return name in ("chains", "draws") and setting["bounds"][0] <= value <= setting["bounds"][1]


def _wanted(setting: dict[str, Any]) -> str:
    kind = setting["type"]
    if kind == "choice":
        choices = [str(choice) for choice in setting["choices"]]
        more = f" and {len(choices) - _LISTED} more" if len(choices) > _LISTED else ""
        return f"is not one of {', '.join(choices[:_LISTED])}{more}"
    return {
        "boolean": "is neither true nor false",
        "integer": "is no whole number",
        "number": "is no finite number",
        "text": "is not auto, cpu or cuda:N" if setting["name"] == "device" else "is too long",
        "points": "are no points",
    }[kind]


def _taken(setting: dict[str, Any], value: Any) -> str:
    """Return what stands in a sentence for the value taken instead."""
    if setting["type"] == "points":
        return "the data set's own"
    return {None: "the automatic value", "": "the default"}.get(value, write_value(value))


def _short(text: str) -> str:
    """Return a text as a sentence quotes it: printable and not long."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return repr(plain if len(plain) <= 40 else plain[:37] + "...")


def _few(sentences: list[str]) -> list[str]:
    """Return as many sentences as anybody reads at once."""
    if len(sentences) <= MOST_SENTENCES:
        return sentences
    shown = sentences[: MOST_SENTENCES - 1]
    return [*shown, f"{len(sentences) - len(shown)} more parameters of the link did not fit."]


# --- scripts


def as_python(spec: Spec) -> str:
    """Return a complete script that repeats the run from its beginning.

    Parameters
    ----------
    spec : Spec
        A shareable spec; a live run, which has no end, is repeated for 1000 draws.
    """
    arguments = {
        "target_settings": settings_of("targets", spec.target, spec.target_settings),
        "settings": settings_of("samplers", spec.sampler, spec.settings),
        **_run_of(spec),
        "start": spec.start or {},
    }
    lines = [f"    {name}={_literal(value)}," for name, value in arguments.items() if value != {}]
    return "\n".join(
        [
            "import bnnviz",
            "",
            "run = bnnviz.sample(",
            f"    {_literal(spec.target)},",
            f"    {_literal(spec.sampler)},",
            *lines,
            ")",
            "print(run)",
            'print("mean", run.draws.mean(axis=(0, 1)))',
            'print("sd", run.draws.std(axis=(0, 1)))',
            "",
        ]
    )


def as_command(spec: Spec) -> str:
    """Return a line for the shell that repeats the run from its beginning, as `as_python`."""
    words = ["bnnviz", "sample", "--target", spec.target, "--sampler", spec.sampler]
    owned = {
        "target": settings_of("targets", spec.target, spec.target_settings),
        "sampler": settings_of("samplers", spec.sampler, spec.settings),
    }
    for owner, chosen in owned.items():
        for name, value in chosen.items():
            words += ["--set", f"{owner}.{name}={json.dumps(value) if isinstance(value, list) else write_value(value)}"]
    for name, value in _run_of(spec).items():
        words += (
            [f"--{name}", write_value(value)] if name in _OPTIONS else ["--set", f"run.{name}={write_value(value)}"]
        )
    for name, text in _started(spec).items():
        words += [f"--{name.replace('_', '-')}", text]
    return shlex.join(words)


_OPTIONS = ("chains", "draws", "seed", "device", "kernel")


def settings_of(kind: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not the defaults, as a script says them."""
    chosen = _differing(catalogue.find(kind, name)["settings"], given)
    # Points are written rounded wherever they are written, so that a link, a script and a command agree.
    return {n: read_points(write_points(v)) if isinstance(v, list) else v for n, v in chosen.items()}


def _run_of(spec: Spec) -> dict[str, Any]:
    """Return the run's settings; those that decide how much is done are always said."""
    spec = spec.replace(draws=spec.draws or BATCH_DRAWS)
    always = ("chains", "draws", "warmup", "seed")
    return {name: getattr(spec, name) for name in _RUN if name in always or getattr(spec, name) != getattr(Spec, name)}


def _literal(value: Any) -> str:
    """Write a value as Python."""
    if isinstance(value, dict):
        return "\n".join(["{", *(f"        {_literal(n)}: {_literal(v)}," for n, v in value.items()), "    }"])
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return pprint.pformat(value, width=100, compact=True).replace("\n", "\n            ")
