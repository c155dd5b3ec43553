"""Specify a run as plain JSON (share link, record header, command line and cluster job)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json
from bnnviz.specs import catalogue, url

VERSION = 1
#: Fields outside the JSON.
BYTES = ("attachment", "start_points")

#: Owners of settings by field; links use their initials.
_OWNERS = {"target_settings": "target", "settings": "sampler"}
#: Settings that scripts always include, since they determine the amount of work.
_ALWAYS = ("chains", "draws", "warmup", "seed")
#: Settings with an option of the command line.
_OPTIONS = ("chains", "draws", "seed", "device", "kernel")


def read_json(value: Any, owner: str, keys: tuple[str, ...] | None = None, version: int = VERSION) -> dict[str, Any]:
    """Return the content of a JSON object or text, after checking and removing its version."""
    if isinstance(value, str):
        try:
            value = plain_json(value)
        except ValueError as error:
            raise BnnvizError(
                f"{owner} must be a JSON object, but this is not JSON ({error}); check its commas."
            ) from None
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
    """Specification of a run.

    Parameters
    ----------
    target, sampler : str
        Registered names.
    target_settings, settings : dict
        Settings of the target and of the sampler that differ from the defaults, by name.
    chains : int
        Number of chains.
    draws : int or None
        Number of draws per chain, or None for an unlimited run.
    warmup : int
        Number of initial draws per chain to discard. For HMC and NUTS the number of warm-up iterations.
    seed : int
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    dtype : {"float32", "float64"}
    kernel : {"eager", "compiled"}
        Whether to execute a step operation by operation or to compile the whole step.
    file : dict or None
        Description of an uploaded file: name, sha256, rows, inputs, target and task. `checked` sets it from the
        attachment.
    start : str or None
        SHA-256 of ``start_points``, which `checked` sets. None for the initial positions that the sampler chooses.
    attachment : bytes or None
        Rows of the uploaded file, a packed `bnnviz.data.UserTable`. They are not part of the JSON, so the file must be
        opened again after loading a link.
    start_points : bytes or None
        Given initial positions, packed (`bnnviz.engine.run.start_points`). They are not part of the JSON.

    Examples
    --------
    >>> import bnnviz
    >>> spec = bnnviz.Spec(target="banana", sampler="hmc", chains=2, draws=100)
    >>> bnnviz.Spec.from_json(spec.to_json()).draws
    100
    """

    #: Class that executes it, ``module:name``.
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
    start: str | None = None
    attachment: bytes | None = field(default=None, repr=False, compare=False)
    start_points: bytes | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as a JSON object. ``start`` is omitted if None."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in BYTES}
        if self.start is None:
            del fields["start"]
        return {"version": VERSION, **json.loads(json.dumps(fields))}

    @classmethod
    def from_json(
        cls,
        value: dict[str, Any] | str,
        attachment: bytes | None = None,
        start_points: bytes | None = None,
        own_target: bool = False,
    ) -> Spec:
        """Create a validated spec with all defaults from a JSON object or string.

        Parameters
        ----------
        value : dict or str
        attachment, start_points : bytes or None, default None
            The rows of the user's file and the initial positions, which the JSON does not contain.
        own_target : bool, default False
            Whether the target is a custom object.

        Raises
        ------
        BnnvizError
            If a name is unknown or a value is invalid. ``field`` is the name of the setting.
        """
        names = tuple(f.name for f in dataclasses.fields(cls) if f.name not in BYTES)
        given = read_json(value, "A spec", names)
        return cls(**given, attachment=attachment, start_points=start_points).checked(own_target)

    def checked(self, own_target: bool = False) -> Spec:
        """Return a validated copy with all defaults.

        Parameters
        ----------
        own_target : bool, default False
            Whether the target is a custom object, whose name and settings are not validated.

        Raises
        ------
        BnnvizError
            If a name is unknown or a value is invalid.
        """
        run = settings.fill(catalogue.load()["run"], self._run_settings, "The run")
        for place, noun in _OWNERS.items():
            if noun != "target" or not own_target:
                run[place] = _filled(noun, getattr(self, noun), getattr(self, place))
        checked = self.replace(start=self._start_digest(), **run)
        return checked.replace(file=None if own_target else checked._file_facts())

    def replace(self, **changes: Any) -> Self:
        """Return a copy with changed fields, without validation."""
        return dataclasses.replace(self, **changes)

    def _start_digest(self) -> str | None:
        """Return the checksum of the initial positions, after checking them against it."""
        digest = None if self.start_points is None else hashlib.sha256(self.start_points).hexdigest()
        if self.start not in (None, digest):
            raise BnnvizError(
                "This spec starts from given points, which its JSON does not contain: give the points again.", "start"
            )
        return digest

    @property
    def target_attachment(self) -> bytes | None:
        """The attachment, if the chosen data set needs it."""
        return self.attachment if self._needs_attachment else None

    @property
    def _needs_attachment(self) -> bool:
        return self.target_settings.get("data") == catalogue.own_data()

    def _file_facts(self) -> dict[str, Any] | None:
        """Return the JSON description of the user's file, after checking the attachment against it."""
        if not self._needs_attachment:
            return None
        if self.attachment is None:
            raise BnnvizError(_missing_file(self.file), "data")
        from bnnviz.data.tables.user_table import facts_of  # imports NumPy, which specs without files do not need

        facts = facts_of(self.attachment)
        if self.file is not None and self.file != facts:
            raise BnnvizError(
                f"The file {facts['name']} differs from the one in this spec; open the original file.", "data"
            )
        return facts

    @property
    def known_dim(self) -> int:
        """Minimum dimension of the target according to its settings, or 0 if unknown."""
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
            return 0  # the target reports invalid hidden layers
        return sum((a + 1) * b for a, b in zip(widths, widths[1:], strict=False))

    def _items(self) -> dict[str, dict[str, Any]]:
        """Return the catalogue's entries of target and sampler by field."""
        return {place: catalogue.find(f"{noun}s", getattr(self, noun)) for place, noun in _OWNERS.items()}

    @property
    def _run_settings(self) -> dict[str, Any]:
        return {setting["name"]: getattr(self, setting["name"]) for setting in catalogue.load()["run"]}

    def changed(self) -> dict[str, Any]:
        """Return the settings of the run that differ from the defaults."""
        return url.differing(catalogue.load()["run"], self._run_settings)

    # --- links, scripts and commands

    def shareable(self) -> str:
        """Return the reason why the spec cannot be shared as a link or script, or empty if it can."""
        if self._needs_attachment:
            return (
                "This run uses your own data, which a link cannot contain; share the file and open it on another page."
            )
        if self.start is not None:
            return "This run starts from given points, which a link cannot contain."
        if self.attachment is not None:
            return (
                "This run has a custom network or function, which a link cannot contain; share the script that defines"
                " it."
            )
        return ""

    def to_query(self) -> dict[str, str]:
        """Return the URL parameters of a validated spec: target, sampler and changed values.

        Returns
        -------
        dict of str
            Unquoted values by name. `bnnviz.specs.url.query_text` joins them.
        """
        query = {"target": self.target, "sampler": self.sampler}
        for place, item in self._items().items():
            query |= url.write_query(item["settings"], getattr(self, place), f"{_OWNERS[place][0]}.")
        return query | url.write_query(_live_run(), self._run_settings)

    def read_query(self, query: url.Query) -> tuple[Self, list[str]]:
        """Create a valid spec from URL parameters.

        Parameters
        ----------
        query : str or mapping
            Query string, or a mapping of names to strings, bytes or lists of these.

        Returns
        -------
        spec : Spec
            The validated spec within the limits of links. The parameters modify this spec, or the defaults if they
            contain a target.
        sentences : list of str
            One message for each clamped or ignored value.
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
        changes |= link.take_values(run, spec._run_settings, limits=limits)
        link.refuse_rest({_OWNERS[place][0]: item for place, item in items.items()})
        return _within_limits(_with_rows(spec.replace(**changes), link).checked(), link), link.sentences

    def as_python(self) -> str:
        """Return a Python script that reproduces the run. An unlimited run has `url.BATCH_DRAWS` draws."""
        values = {place: url.script_values(item, getattr(self, place)) for place, item in self._items().items()}
        return url.python_call(
            "run = bnnviz.sample",
            [self.target, self.sampler],
            {**values, **self._script_run()},
            ["print(run)", 'print("mean", run.draws.mean(axis=(0, 1)))', 'print("sd", run.draws.std(axis=(0, 1)))'],
        )

    def as_command(self) -> str:
        """Return a shell command that reproduces the run, as in `as_python`."""
        assigned = {
            f"{_OWNERS[place]}.{name}": value
            for place, item in self._items().items()
            for name, value in url.script_values(item, getattr(self, place)).items()
        }
        run = self._script_run()
        assigned |= {f"run.{name}": value for name, value in run.items() if name not in _OPTIONS}
        options = {name: value for name, value in run.items() if name in _OPTIONS}
        return url.command(["sample", "--target", self.target, "--sampler", self.sampler], assigned, options)

    def _script_run(self) -> dict[str, Any]:
        """Return the run's settings for a script."""
        spec = self.replace(draws=self.draws or url.BATCH_DRAWS)
        changed = spec.changed()
        return {name: value for name, value in spec._run_settings.items() if name in _ALWAYS or name in changed}


def _missing_file(file: Any) -> str:
    if not isinstance(file, dict):
        return (
            "This spec's data is a file of yours, and none is open: open one on the page, or give --data FILE.csv"
            " --target-column NAME on the command line."
        )
    name = str(file.get("name", "without a name"))[:100]
    return f"This spec's data came from a file ({name}), which a link cannot contain; open the file again."


def _filled(noun: str, name: Any, given: Any) -> dict[str, Any]:
    if not isinstance(name, str):
        raise BnnvizError(f"The {noun} must be a name, not {name!r}.", noun)
    if not isinstance(given, dict):
        raise BnnvizError(f"The settings of the {noun} are a JSON object of names and values.", "settings")
    item = catalogue.find(f"{noun}s", name)
    return settings.fill(item["settings"], given, item["title"])


def _live_run() -> list[dict[str, Any]]:
    """Return the settings of a run for links, where a live run without an end is the default."""
    return [setting | ({"default": None} if setting["name"] == "draws" else {}) for setting in catalogue.load()["run"]]


def _read_names(link: url.Link, spec: Spec) -> Spec | None:
    """Return the target and sampler named in a link, with their defaults, or None if unknown or missing."""
    target, sampler = link.take("target"), link.take("sampler")
    for kind, name in (("targets", target), ("samplers", sampler)):
        known = [item["name"] for item in catalogue.load()[kind]]
        if name is not None and name not in known:
            link.note(
                f"The link names a {kind[:-1]} {url.short(name)}, which is not one of {', '.join(known)}; the opening"
                " run was used."
            )
            return None
    if target is not None:
        defaults = {setting["name"]: setting["default"] for setting in _live_run()}
        spec = spec.replace(target=target, target_settings={}, settings={}, start=None, start_points=None, **defaults)
    if sampler is not None:
        spec = spec.replace(sampler=sampler, settings={})
    return spec.checked()


def _with_rows(spec: Spec, link: url.Link) -> Spec:
    """Return the spec with the target's default data if the link names a file."""
    if not spec._needs_attachment or spec.attachment is not None:
        return spec
    kept = {name: value for name, value in spec.target_settings.items() if name != "data"}
    described = catalogue.find("targets", spec.target)["settings"]
    usual = next(setting["default"] for setting in described if setting["name"] == "data")
    link.note(f"The link's data is a file, which a link cannot contain: open it on this page; {usual} was used.")
    return spec.replace(target_settings=kept, file=None)


def _within_limits(spec: Spec, link: url.Link) -> Spec:
    """Return the spec with fewer weights, chains or draws if it exceeds the limits of a page."""
    dim = spec.known_dim
    if dim > url.MOST_NUMBERS:
        kept = {n: v for n, v in spec.target_settings.items() if n not in ("hidden", "size")}
        link.note(
            f"The link requests {dim:,} dimensions, more than the limit of {url.MOST_NUMBERS:,}; the default size was"
            " used.",
        )
        spec = spec.replace(target_settings=kept).checked()
        dim = spec.known_dim
    chains = max(1, min(spec.chains, url.MOST_NUMBERS // max(dim, 1)))
    draws = None if spec.draws is None else min(spec.draws, max(1, url.MOST_KEPT // (chains * max(dim, 1))))
    if chains < spec.chains:
        link.note(f"chains = {spec.chains} in {dim:,} dimensions exceeds the limit of a link; {chains} was used.")
    if draws != spec.draws:
        link.note(
            f"draws = {spec.draws} of {chains} chains in {dim:,} dimensions exceeds the limit of a link; {draws}"
            " was used."
        )
    return spec.replace(chains=chains, draws=draws)
