"""The spec: what to run, as plain JSON (share link, record header, command line and cluster job)."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue

VERSION = 1
#: What may name a recording.
RECORDING = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+=,@()-]{0,99}")
#: What chains may set out from, of a recording.
POINTS = ("last", "draws")
_RUN = ("chains", "draws", "warmup", "seed", "device", "dtype", "kernel")
_START = ("recording", "points", "sha256")
_LONGEST_PATH = 4096
_DIGEST = re.compile(r"[0-9a-f]{12}")
#: What the JSON does not hold.
BYTES = ("attachment", "start_points")


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
        Draws of each chain thrown away first.
    seed : int
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    dtype : {"float32", "float64"}
    kernel : {"eager", "compiled"}
        How a step is computed: operation by operation, or as machine code made of the whole step.
    file : dict or None
        What the JSON says of a file of the user's: name, sha256, rows, inputs, target and task.
        `checked` fills it in from the attachment.
    start : dict or None
        Where chains set out from instead of where the target and the sampler put them: ``recording``, its name or its
        folder (None for a run that was not recorded); ``points``, ``last`` (chain by chain the last draw) or ``draws``
        (chosen at random by the seed); ``sha256``, the first 12 digits of the checksum of what they are taken from,
        or None, which takes what is there (`bnnviz.engine.recording.warm_start`).
    attachment : bytes or None
        The rows of that file, a packed `bnnviz.data.OwnTable`; not part of the JSON, so that the
        file has to be opened again where the JSON comes from a link.
    start_points : bytes or None
        The points of ``start``, packed (`bnnviz.engine.run.start_points`); not part of the JSON. A run that has
        begun has them, so that it needs the recording no more.
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
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except json.JSONDecodeError as error:
                raise BnnvizError(f"The spec is not JSON ({error}); check its commas and quotes.") from None
        if not isinstance(value, dict):
            raise BnnvizError("A spec is a JSON object with the keys target and sampler.")
        given = dict(value)
        version = given.pop("version", VERSION)
        if version != VERSION:
            raise BnnvizError(f"The spec has version {version!r}; this bnnviz reads version {VERSION}.", "version")
        names = [f.name for f in dataclasses.fields(cls) if f.name not in BYTES]
        for name in given:
            if name not in names:
                raise BnnvizError(f"A spec has no key {name!r}; its keys are {', '.join(names)}.", name)
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
        run = settings.fill(catalogue.load()["run"], {name: getattr(self, name) for name in _RUN}, "The run")
        target_settings = self.target_settings
        if not own_target:
            target_settings = _filled("targets", self.target, target_settings)
        checked = self.replace(
            target_settings=target_settings,
            settings=_filled("samplers", self.sampler, self.settings),
            start=_checked_start(self.start),
            **run,
        )
        return checked.replace(file=None if own_target else checked._file_facts())

    @property
    def target_attachment(self) -> bytes | None:
        """The attachment, if the chosen data set is the one that needs it."""
        return self.attachment if self._needs_attachment else None

    @property
    def _needs_attachment(self) -> bool:
        chosen = self.target_settings.get("data")
        return any(item["attached"] for item in catalogue.load()["data"] if item["name"] == chosen)

    def _file_facts(self) -> dict[str, Any] | None:
        """Return what the JSON says of the user's file, once the attachment is known to be that file."""
        if not self._needs_attachment:
            return None
        if self.attachment is None:
            raise BnnvizError(_missing_file(self.file), "data")
        from bnnviz.data import OwnTable  # brings NumPy, which a spec without a file can do without

        facts = OwnTable.unpack(self.attachment).facts()
        if self.file is not None and self.file != facts:
            raise BnnvizError(
                f"The file {facts['name']} is not the one that this spec was made with: open that one.", "data"
            )
        return facts

    def replace(self, **changes: Any) -> Spec:
        """Return a spec with some fields changed (not checked)."""
        return dataclasses.replace(self, **changes)


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


def _filled(kind: str, name: Any, given: Any) -> dict[str, Any]:
    noun = kind[:-1]
    if not isinstance(name, str):
        raise BnnvizError(f"The {noun} is given by its name, a text, not {name!r}.", noun)
    if not isinstance(given, dict):
        raise BnnvizError(f"The settings of the {noun} are a JSON object of names and values.", "settings")
    item = catalogue.find(kind, name)
    return settings.fill(item["settings"], given, item["title"])
