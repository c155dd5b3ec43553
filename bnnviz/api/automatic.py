"""Choose the sampler of a run by a pilot."""

from __future__ import annotations

from typing import Any

from bnnviz import targets
from bnnviz.data import UserTable
from bnnviz.engine.automatic.tables import DEFAULTS, is_table
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN

AUTO = "auto"


def of_table(target: Any, settings: dict[str, Any] | None) -> tuple[Any, dict[str, Any] | None, bytes | None]:
    """Return the name and settings of the network on a user's table, and the table for its spec.

    Open settings have the defaults of a pilot (`bnnviz.engine.automatic.tables.DEFAULTS`). A target other than a
    `UserTable` is returned unchanged.
    """
    if not isinstance(target, UserTable):
        return target, settings, None
    name = next(cls.registered for cls in targets.REGISTRY if is_table(cls))
    return name, {**DEFAULTS, **(settings or {}), "data": catalogue.own_data()}, target.pack()


def is_automatic(target: Any, sampler: Any, settings: Any, start: Any) -> bool:
    """Return whether to run a pilot: for a network on data without starting points; refuse settings then."""
    if sampler != AUTO or isinstance(target, Spec):
        return False
    named = isinstance(target, str) and target in targets.REGISTRY.names()
    network = isinstance(target, BNN) or (named and is_table(targets.REGISTRY.get(target)))
    if not network or start is not None:
        return False
    if settings:
        raise BnnvizError("settings require a sampler. Specify it by sampler=.", "settings")
    return True
