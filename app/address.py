"""Read the browser's address, and keep it in step with the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.specs import url
from bnnviz_app.components.widgets import script

CARRIED = ("projector", "theme")  # flags that stay in the address and in the links to other pages


class Address(JSComponent):
    """Write the address from an invisible element, without adding to the browser's history."""

    query = param.String(doc="The query, without its question mark.")

    _esm = script(__file__, "address.js")

    def __init__(self, **params: Any) -> None:
        super().__init__(**{"width": 0, "height": 0, "sizing_mode": "fixed", **params})


@dataclass
class Visit:
    """The contents of an address."""

    spec: Any
    sentences: list[str] = field(default_factory=list)
    names: bool = False
    flags: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def on(self, flag: str) -> bool:
        """Return whether a flag is given and not 0."""
        return is_on(self.flags, flag)


def is_on(flags: Mapping[str, str], flag: str) -> bool:
    """Return whether a flag is given and not 0."""
    return flags.get(flag, "0") not in ("0", "", "no", "false")


def read(arguments: Mapping[str, Sequence[bytes]], opening: Any) -> Visit:
    """Read the address's arguments, as the server has them; whatever they are, there is a spec to run."""
    flags = {name: arguments[name][0].decode(errors="replace") for name in url.PAGE if arguments.get(name)}
    spec, sentences = opening.read_query(arguments)
    names = any(name not in url.PAGE and not name.startswith("bokeh-") for name in arguments)
    return Visit(spec, sentences, names, flags)


def named(arguments: Mapping[str, Sequence[bytes]], name: str) -> tuple[dict[str, str], list[str]]:
    """Return the flags that stay in an address, and the names that one of its parameters lists, with commas between."""
    given = {key: arguments[key][0].decode(errors="replace") for key in (*CARRIED, name) if arguments.get(key)}
    listed = given.pop(name, "")
    return given, [each.strip() for each in listed.split(",") if each.strip()]
