"""The spec: what to run, as plain JSON (share link, record header, command line and cluster job)."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

from bnnviz import catalogue, settings
from bnnviz.errors import BnnvizError

VERSION = 1
_RUN = ("chains", "draws", "warmup", "seed", "device", "dtype")


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
    attachment : bytes or None
        A pickled callable or module that the target needs; not part of the JSON, and a spec that
        has one cannot be shared as a link.
    """

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
    attachment: bytes | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as a JSON object."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "attachment"}
        return {"version": VERSION, **json.loads(json.dumps(fields))}

    @classmethod
    def from_json(cls, value: dict[str, Any] | str) -> Spec:
        """Make a spec from a JSON object or text, checked, with every default filled in.

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
        names = [f.name for f in dataclasses.fields(cls) if f.name != "attachment"]
        for name in given:
            if name not in names:
                raise BnnvizError(f"A spec has no key {name!r}; its keys are {', '.join(names)}.", name)
        return cls(**given).checked()

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
        return self.replace(
            target_settings=target_settings,
            settings=_filled("samplers", self.sampler, self.settings),
            **run,
        )

    def replace(self, **changes: Any) -> Spec:
        """Return a spec with some fields changed (not checked)."""
        return dataclasses.replace(self, **changes)


def _filled(kind: str, name: Any, given: Any) -> dict[str, Any]:
    noun = kind[:-1]
    if not isinstance(name, str):
        raise BnnvizError(f"The {noun} is given by its name, a text, not {name!r}.", noun)
    if not isinstance(given, dict):
        raise BnnvizError(f"The settings of the {noun} are a JSON object of names and values.", "settings")
    item = catalogue.find(kind, name)
    return settings.fill(item["settings"], given, item["title"])
