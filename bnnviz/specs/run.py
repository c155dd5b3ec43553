"""Specify a run, as plain JSON (share link, record header, command line and cluster job)."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json
from bnnviz.specs import catalogue, url

VERSION = 1
#: What may name a recording.
RECORDING = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+=,@()-]{0,99}")
#: What chains may set out from, of a recording.
POINTS = ("last", "draws")
#: What the JSON does not hold.
BYTES = ("attachment", "start_points")

#: Whose settings a field holds; a link calls the owner by its first letter.
_OWNERS = {"target_settings": "target", "settings": "sampler"}
_START = ("recording", "points", "sha256")
#: What a link and a command call the keys of a start.
_START_WORDS = {"start": "recording", "start_from": "points", "start_sha256": "sha256"}
_LONGEST_PATH = 4096
_DIGEST = re.compile(r"[0-9a-f]{12}")
#: What a script always says of the run, since it decides how much is done.
_ALWAYS = ("chains", "draws", "warmup", "seed")
#: What a command has an option for.
_OPTIONS = ("chains", "draws", "seed", "device", "kernel")


def read_json(value: Any, owner: str, keys: tuple[str, ...] | None = None, version: int = VERSION) -> dict[str, Any]:
    """Return what a JSON object or text holds, but for its version, which is checked."""
    if isinstance(value, str):
        try:
            value = plain_json(value)
        except ValueError as error:
            raise BnnvizError(f"{owner} is a JSON object, and this is not JSON ({error}); check its commas.") from None
    if not isinstance(value, dict):
        some = f" with the keys {', '.join(keys)}" if keys else " of names and values"
        raise BnnvizError(f"{owner} is a JSON object{some}, not {str(value)[:60]!r}.", "settings")
    given = dict(value)
    if (found := given.pop("version", version)) != version:
        raise BnnvizError(
            f"{owner} of version {found!r} cannot be read; this bnnviz reads version {version}.", "version"
        )
    if unknown := next((name for name in given if keys and name not in keys), None):
        raise BnnvizError(f"{owner} has no key {unknown!r}; its keys are {', '.join(keys or ())}.", str(unknown))
    return given


@dataclass(frozen=True)
class Spec:
    """What to run.

    Parameters
    ----------
    target, sampler : str
        Registered names.
    target_settings, settings : dict
        Settings of the target and of the sampler by name; the others keep their defaults.
    chains : int
        Chains in lock-step.
    draws : int or None
        Draws kept of each chain; None is a live run without an end.
    warmup : int
        Draws of each chain thrown away first; of HMC and NUTS the moves in which they learn step size and metric.
    seed : int
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    dtype : {"float32", "float64"}
    kernel : {"eager", "compiled", "auto"}
        How a step is computed: operation by operation, as machine code made of the whole step, or the one until there
        is the other, which a run that takes long has made beside it.
    file : dict or None
        What the JSON says of a file of the user's: name, sha256, rows, inputs, target and task.
        `checked` fills it in from the attachment.
    start : dict or None
        Where chains set out from instead of where the target and the sampler put them: ``recording``, its name or its
        folder (None for a run that was not recorded); ``points``, ``last`` (chain by chain the last draw) or ``draws``
        (chosen at random by the seed); ``sha256``, the first 12 digits of the checksum of what they are taken from,
        or None, which takes what is there (`bnnviz.engine.recording.warm_start`).
    attachment : bytes or None
        The rows of that file, a packed `bnnviz.data.UserTable`; not part of the JSON, so that the
        file has to be opened again where the JSON comes from a link.
    start_points : bytes or None
        The points of ``start``, packed (`bnnviz.engine.run.start_points`); not part of the JSON. A run that has
        begun has them, so that it needs the recording no more.

    Examples
    --------
    >>> import bnnviz
    >>> spec = bnnviz.Spec(target="banana", sampler="hmc", chains=2, draws=100)
    >>> bnnviz.Spec.from_json(spec.to_json()).draws
    100
    """

    #: What executes it, ``module:name``.
    factory: ClassVar[str] = "bnnviz.engine.viewed_run:ViewedRun"

    target: str = "gaussian"
    target_settings: dict[str, Any] = field(default_factory=dict)
    sampler: str = "bps"
    settings: dict[str, Any] = field(default_factory=dict)
    chains: int = 4
    draws: int | None = 1000
    warmup: int = 200
    seed: int = 0
    device: str = "auto"
    dtype: str = "float32"
    kernel: str = "eager"
    file: dict[str, Any] | None = None
    start: dict[str, Any] | None = None
    attachment: bytes | None = field(default=None, repr=False, compare=False)
    start_points: bytes | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as a JSON object; without ``start`` where there is none."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in BYTES}
        if self.start is None:
            del fields["start"]
        return {"version": VERSION, **json.loads(json.dumps(fields))}

    @classmethod
    def from_json(
        cls, value: dict[str, Any] | str, attachment: bytes | None = None, start_points: bytes | None = None
    ) -> Spec:
        """Make a spec from a JSON object or text, checked, with every default filled in.

        Parameters
        ----------
        value : dict or str
        attachment, start_points : bytes or None, default None
            What the JSON cannot hold: the rows of the user's own file, and the points of a start.

        Raises
        ------
        BnnvizError
            If a name is unknown or a value does not fit; ``field`` names the setting.
        """
        names = tuple(f.name for f in dataclasses.fields(cls) if f.name not in BYTES)
        given = read_json(value, "A spec", names)
        return cls(**given, attachment=attachment, start_points=start_points).checked()

    def checked(self, own_target: bool = False) -> Spec:
        """Return the same spec with its names and values checked and every default filled in.

        Parameters
        ----------
        own_target : bool, default False
            The target is an object of the caller's: its name and settings are not looked up.

        Raises
        ------
        BnnvizError
            If a name is unknown or a value does not fit.
        """
        run = settings.fill(catalogue.load()["run"], self._run_settings, "The run")
        for place, noun in _OWNERS.items():
            if noun != "target" or not own_target:
                run[place] = _filled(noun, getattr(self, noun), getattr(self, place))
        checked = self.replace(start=_checked_start(self.start), **run)
        return checked.replace(file=None if own_target else checked._file_facts())

    def replace(self, **changes: Any) -> Self:
        """Return a spec with some fields changed (not checked)."""
        return dataclasses.replace(self, **changes)

    @property
    def target_attachment(self) -> bytes | None:
        """The attachment, if the chosen data set is the one that needs it."""
        return self.attachment if self._needs_attachment else None

    @property
    def _needs_attachment(self) -> bool:
        return self.target_settings.get("data") == catalogue.own_data()

    def _file_facts(self) -> dict[str, Any] | None:
        """Return what the JSON says of the user's file, once the attachment is known to be that file."""
        if not self._needs_attachment:
            return None
        if self.attachment is None:
            raise BnnvizError(_missing_file(self.file), "data")
        from bnnviz.data.tables.user_table import facts_of  # brings NumPy, which a spec without a file can do without

        facts = facts_of(self.attachment)
        if self.file is not None and self.file != facts:
            raise BnnvizError(
                f"The file {facts['name']} is not the one that this spec was made with: open that one.", "data"
            )
        return facts

    @property
    def known_dim(self) -> int:
        """Dimensions of the target as far as its settings tell, at least; 0 where they do not tell."""
        item, chosen = catalogue.find("targets", self.target), self.target_settings
        if item["dim"] is not None:
            return item["dim"]
        if "hidden" not in chosen:
            return int(chosen.get("size", 0))
        data = next((entry for entry in catalogue.load()["data"] if entry["name"] == chosen.get("data")), {})
        outputs = max(1, data.get("classes", 0))
        inputs = self.file["inputs"] if self._needs_attachment and self.file is not None else data.get("inputs", 1)
        try:
            widths = [inputs, *(int(width) for width in chosen["hidden"].split("-") if width), outputs]
        except ValueError:
            return 0  # what the hidden layers are, the target itself will refuse
        return sum((a + 1) * b for a, b in zip(widths, widths[1:], strict=False))

    def _items(self) -> dict[str, dict[str, Any]]:
        """Return the catalogue's entries of target and sampler, by the field with their settings."""
        return {place: catalogue.find(f"{noun}s", getattr(self, noun)) for place, noun in _OWNERS.items()}

    @property
    def _run_settings(self) -> dict[str, Any]:
        return {setting["name"]: getattr(self, setting["name"]) for setting in catalogue.load()["run"]}

    def changed(self) -> dict[str, Any]:
        """Return the run's settings that are not the defaults."""
        return url.differing(catalogue.load()["run"], self._run_settings)

    # --- links, scripts and commands

    def shareable(self) -> str:
        """Return why it cannot be shared as a link or a script; an empty text if it can."""
        if self._needs_attachment:
            return (
                "This run is on data of your own, which no link can hold; share the file and load it on the other page."
            )
        if self.start is not None and not RECORDING.fullmatch(self.start["recording"] or ""):
            return (
                "This run starts from points that no link can hold: record the run that they are from under a name,"
                " and start from that."
            )
        if self.attachment is not None:
            return (
                "This run has a network or a function of your own, which no link can hold; share the script that made"
                " it."
            )
        return ""

    def to_query(self) -> dict[str, str]:
        """Return a checked spec as a link's parameters: target, sampler, and what differs from the defaults.

        Returns
        -------
        dict of str
            Texts by name, not yet quoted; `bnnviz.specs.url.query_text` joins them.
        """
        query = {"target": self.target, "sampler": self.sampler}
        for place, item in self._items().items():
            query |= url.write_query(item["settings"], getattr(self, place), f"{_OWNERS[place][0]}.")
        return query | url.write_query(_live_run(), self._run_settings) | self._start_words()

    def read_query(self, query: url.Query) -> tuple[Self, list[str]]:
        """Read a link; whatever it holds, there is a spec to run.

        Parameters
        ----------
        query : str or mapping
            What stands after the question mark; or texts, bytes or lists of them by name.

        Returns
        -------
        spec : Spec
            Checked, within the limits of links: this one, changed as the link says it, or begun with the defaults if
            the link names a target.
        sentences : list of str
            One for each thing that was clamped or left out.
        """
        link, opening = url.Link(query), self.checked()
        spec = _read_names(link, opening)
        if spec is None:
            return opening, link.sentences
        items = spec._items()
        changes: dict[str, Any] = {
            place: link.take_values(item, getattr(spec, place), f"{_OWNERS[place][0]}.")
            for place, item in items.items()
        }
        run = {"title": "The run", "settings": catalogue.load()["run"]}
        limits = {"chains": url.MOST_CHAINS, "draws": url.MOST_DRAWS}
        changes |= link.take_values(run, spec._run_settings, limits=limits) | _read_start(link)
        link.refuse_rest({_OWNERS[place][0]: item for place, item in items.items()})
        return _within_limits(_with_rows(spec.replace(**changes), link).checked(), link), link.sentences

    def as_python(self) -> str:
        """Return a complete script that repeats the run from its beginning; a live one for `url.BATCH_DRAWS` draws."""
        values = {place: url.script_values(item, getattr(self, place)) for place, item in self._items().items()}
        return url.python_call(
            "run = bnnviz.sample",
            [self.target, self.sampler],
            {**values, **self._script_run(), "start": self.start or {}},
            ["print(run)", 'print("mean", run.draws.mean(axis=(0, 1)))', 'print("sd", run.draws.std(axis=(0, 1)))'],
        )

    def as_command(self) -> str:
        """Return a line for the shell that repeats the run from its beginning, as `as_python`."""
        assigned = {
            f"{_OWNERS[place]}.{name}": value
            for place, item in self._items().items()
            for name, value in url.script_values(item, getattr(self, place)).items()
        }
        run = self._script_run()
        assigned |= {f"run.{name}": value for name, value in run.items() if name not in _OPTIONS}
        options = {name: value for name, value in run.items() if name in _OPTIONS} | self._start_words()
        return url.command(["sample", "--target", self.target, "--sampler", self.sampler], assigned, options)

    def _start_words(self) -> dict[str, str]:
        """Return where chains set out from, as a link's parameters and a command's options say it."""
        found = {name: (self.start or {}).get(key) for name, key in _START_WORDS.items()}
        return {name: text for name, text in found.items() if text is not None and text != POINTS[0]}

    def _script_run(self) -> dict[str, Any]:
        """Return the run's settings as a script says them."""
        spec = self.replace(draws=self.draws or url.BATCH_DRAWS)
        changed = spec.changed()
        return {name: value for name, value in spec._run_settings.items() if name in _ALWAYS or name in changed}


def _checked_start(start: Any) -> dict[str, Any] | None:
    """Return where chains set out from, every key filled in; whether there is such a recording is not asked."""
    if start is None or start == {}:
        return None
    if not isinstance(start, dict) or "recording" not in start:
        raise BnnvizError(
            f"A start is an object with the keys {', '.join(_START)}, the first of which it needs, not"
            f" {str(start)[:60]!r}; a sampler's setting of that name is one of its settings.",
            "start",
        )
    for key in start:
        if key not in _START:
            raise BnnvizError(f"A start has no key {str(key)[:60]!r}; its keys are {', '.join(_START)}.", "start")
    recording, points, digest = start["recording"], start.get("points", POINTS[0]), start.get("sha256")
    if recording is not None and not (isinstance(recording, str) and 0 < len(recording) <= _LONGEST_PATH):
        raise BnnvizError(f"The recording of a start is its name, a text, not {str(recording)[:60]!r}.", "start")
    if points not in POINTS:
        raise BnnvizError(f"The points of a start are {' or '.join(POINTS)}, not {str(points)[:60]!r}.", "start")
    if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        raise BnnvizError(
            f"The sha256 of a start is the first 12 digits of a checksum, not {str(digest)[:60]!r}; leave it out to"
            " take what the recording holds now.",
            "start",
        )
    return {"recording": recording, "points": points, "sha256": digest}


def _missing_file(file: Any) -> str:
    if not isinstance(file, dict):
        return (
            "This spec's data is a file of yours, and none is open: open one on the page, or give --data FILE.csv"
            " --target-column NAME on the command line."
        )
    name = str(file.get("name", "without a name"))[:100]
    return f"This spec's data came from a file ({name}) that a link cannot carry; open the file again."


def _filled(noun: str, name: Any, given: Any) -> dict[str, Any]:
    if not isinstance(name, str):
        raise BnnvizError(f"The {noun} is given by its name, a text, not {name!r}.", noun)
    if not isinstance(given, dict):
        raise BnnvizError(f"The settings of the {noun} are a JSON object of names and values.", "settings")
    item = catalogue.find(f"{noun}s", name)
    return settings.fill(item["settings"], given, item["title"])


def _live_run() -> list[dict[str, Any]]:
    """Return the run's settings of a link that says nothing of them: a live run has no end."""
    return [setting | ({"default": None} if setting["name"] == "draws" else {}) for setting in catalogue.load()["run"]]


def _read_names(link: url.Link, spec: Spec) -> Spec | None:
    """Return the target and sampler that a link names, with their defaults; None if there is none such."""
    target, sampler = link.take("target"), link.take("sampler")
    for kind, name in (("targets", target), ("samplers", sampler)):
        known = [item["name"] for item in catalogue.load()[kind]]
        if name is not None and name not in known:
            link.note(
                f"The link names a {kind[:-1]} {url.short(name)}, which is not one of {', '.join(known)}; the opening"
                " run was taken."
            )
            return None
    if target is not None:
        defaults = {setting["name"]: setting["default"] for setting in _live_run()}
        spec = spec.replace(target=target, target_settings={}, settings={}, start=None, start_points=None, **defaults)
    if sampler is not None:
        spec = spec.replace(sampler=sampler, settings={})
    return spec.checked()


def _read_start(link: url.Link) -> dict[str, Any]:
    """Return where chains set out from, if the link says it; whether there is such a recording is not asked."""
    given = {key: text for name, key in _START_WORDS.items() if (text := link.take(name))}
    if not given:
        return {}
    try:
        if not RECORDING.fullmatch(given.get("recording", "")):
            raise BnnvizError(f"start = {url.short(given.get('recording', ''))} is not the name of a recording.")
        return {"start": _checked_start(given), "start_points": None}
    except BnnvizError as error:
        link.note(f"{error.sentence.rstrip('.')}; the start was left out.")
        return {}


def _with_rows(spec: Spec, link: url.Link) -> Spec:
    """Return the spec on the target's usual data where the link names a file, which it cannot carry."""
    if not spec._needs_attachment or spec.attachment is not None:
        return spec
    kept = {name: value for name, value in spec.target_settings.items() if name != "data"}
    described = catalogue.find("targets", spec.target)["settings"]
    usual = next(setting["default"] for setting in described if setting["name"] == "data")
    link.note(f"The link's data is a file, which no link can carry: open that file on this page; {usual} was taken.")
    return spec.replace(target_settings=kept, file=None)


def _within_limits(spec: Spec, link: url.Link) -> Spec:
    """Return the spec with fewer weights, chains or draws where a page could not hold them."""
    dim = spec.known_dim
    if dim > url.MOST_NUMBERS:
        kept = {n: v for n, v in spec.target_settings.items() if n not in ("hidden", "size")}
        link.note(
            f"The link asks for {dim:,} dimensions, more than the {url.MOST_NUMBERS:,} a link may ask for; the default"
            " size was taken."
        )
        spec = spec.replace(target_settings=kept).checked()
        dim = spec.known_dim
    chains = max(1, min(spec.chains, url.MOST_NUMBERS // max(dim, 1)))
    draws = None if spec.draws is None else min(spec.draws, max(1, url.MOST_KEPT // (chains * max(dim, 1))))
    if chains < spec.chains:
        link.note(f"chains = {spec.chains} in {dim:,} dimensions is more than a link may ask for; {chains} was taken.")
    if draws != spec.draws:
        link.note(
            f"draws = {spec.draws} of {chains} chains in {dim:,} dimensions is more than a link may ask for; {draws}"
            " was taken."
        )
    return spec.replace(chains=chains, draws=draws)
