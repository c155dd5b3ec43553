"""What a spec is that has nothing but settings: plain JSON, checked, with every default filled in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import param

from bnnviz import settings
from bnnviz.errors import BnnvizError

VERSION = 1


@dataclass(frozen=True)
class PlainSpec:
    """Base of the specs that are a list of settings; a class says which, and what executes it.

    Parameters
    ----------
    settings : dict
        Values by name; `checked` fills in the others.
    """

    #: What executes it, ``module:name``.
    factory: ClassVar[str]
    #: What error messages call it.
    owner: ClassVar[str]
    declared: ClassVar[type[param.Parameterized]]
    attachment: ClassVar[None] = None

    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def described(cls) -> list[dict[str, Any]]:
        """Return the settings as plain JSON, as a catalogue has them."""
        return settings.describe(cls.declared)

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"version": VERSION, **self.settings}

    @classmethod
    def from_json(cls, value: dict[str, Any] | str) -> Self:
        """Make one from a JSON object or text, checked, with every default filled in.

        Raises
        ------
        BnnvizError
            If a name is unknown or a value does not fit; ``field`` names the setting.
        """
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except json.JSONDecodeError as error:
                raise BnnvizError(f"{cls.owner}: this is no JSON ({error}); check its commas and quotes.") from None
        if not isinstance(value, dict):
            raise BnnvizError(f"{cls.owner}: give a JSON object of names and values.", "settings")
        given = dict(value)
        version = given.pop("version", VERSION)
        if version != VERSION:
            sentence = f"{cls.owner}: the version is {version!r}, and this bnnviz reads version {VERSION}."
            raise BnnvizError(sentence, "version")
        return cls(given).checked()

    def checked(self) -> Self:
        """Return the same with its names and values checked and every default filled in.

        Raises
        ------
        BnnvizError
            If a name is unknown or a value does not fit.
        """
        return replace(self, settings=settings.fill(self.described(), self.settings, self.owner))

    def replace(self, **changes: Any) -> Self:
        """Return the same with some fields changed (not checked)."""
        return replace(self, **changes)
