"""Declare settings: parameters with bounds, unit, scale and doc, and describe them as plain JSON.

Samplers, targets and runs declare their settings as ``param`` parameters of these classes; the
catalogue, the dashboard's controls and the command line are generated from the declarations.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from reprlib import repr as short_repr
from typing import Any

import param

from bnnviz.errors import BnnvizError, meant_by

_EXTRAS = ("unit", "scale", "when", "live", "hidden", "empty")
MOST_POINTS = 200  # maximum in a link
_POINT_LIMIT = 1e6
_POINT_FORM = "[x, y] or [x1, x2, class]"


class _Extras:
    """Attributes for controls in addition to ``param``'s; ``empty`` describes the meaning of no value."""

    __slots__ = ()

    def __init__(
        self,
        default: Any,
        *,
        unit: str = "",
        scale: str = "linear",
        when: dict[str, list | dict[str, float]] | None = None,
        live: bool = False,
        hidden: list | None = None,
        empty: str = "automatic",
        **kwargs: Any,
    ) -> None:
        super().__init__(default=default, **kwargs)
        self.unit, self.scale, self.when = unit, scale, when
        self.live, self.hidden, self.empty = live, hidden, empty


class Number(_Extras, param.Number):
    """A real number; ``bounds`` may contain None for an open side."""

    __slots__ = _EXTRAS


class Integer(_Extras, param.Integer):
    """An integer."""

    __slots__ = _EXTRAS


class Boolean(_Extras, param.Boolean):
    """A switch."""

    __slots__ = _EXTRAS


class Choice(_Extras, param.Selector):
    """One of a few named options (``objects``); menus do not show the ``hidden`` ones."""

    __slots__ = _EXTRAS


class Text(_Extras, param.String):
    """A short text with a specific format, such as layer sizes."""

    __slots__ = _EXTRAS


class Points(_Extras, param.Parameter):
    """Data points given individually: rows [x, y] or [x1, x2, class]; None if not given."""

    __slots__ = _EXTRAS


_TYPES = {
    Number: "number",
    Integer: "integer",
    Boolean: "boolean",
    Choice: "choice",
    Text: "text",
    Points: "points",
}


def declared(cls: type[param.Parameterized]) -> dict[str, param.Parameter]:
    """Return the settings that a class declares, in the order of declaration, parents first."""
    return {name: parameter for name, parameter in cls.param.objects("existing").items() if type(parameter) in _TYPES}


def describe(cls: type[param.Parameterized]) -> list[dict[str, Any]]:
    """Describe a class's settings as plain JSON, one dict each (see ARCHITECTURE, catalogue)."""
    return [_describe(name, parameter) for name, parameter in declared(cls).items()]


def _describe(name: str, parameter: param.Parameter) -> dict[str, Any]:
    kind = _TYPES[type(parameter)]
    bounds = list(parameter.bounds) if getattr(parameter, "bounds", None) else None
    return {
        "name": name,
        "label": parameter.label,
        "type": kind,
        "default": parameter.default,
        "bounds": bounds,
        "unit": parameter.unit,
        "scale": parameter.scale,
        "step": getattr(parameter, "step", None),
        "choices": list(parameter.objects) if kind == "choice" else None,
        "doc": " ".join((parameter.doc or "").split()),
        "optional": bool(parameter.allow_None) and kind in ("number", "integer"),
        "when": parameter.when,
        "live": parameter.live,
        "hidden": parameter.hidden,
        "empty": parameter.empty,
    }


def check(setting: dict[str, Any], value: Any, owner: str) -> Any:
    """Check one value against its described setting and return it in the setting's type."""
    name, kind = setting["name"], setting["type"]
    if kind == "boolean":
        if not isinstance(value, bool):
            raise BnnvizError(f"{owner}: {name} is a switch; give true or false, not {short_repr(value)}.", name)
        return value
    if kind == "choice":
        if value not in setting["choices"]:
            options = ", ".join(str(choice) for choice in setting["choices"])
            raise BnnvizError(f"{owner}: {name} cannot be {short_repr(value)}; choose one of {options}.", name)
        return value
    if kind == "text":
        if not isinstance(value, str):
            raise BnnvizError(f"{owner}: {name} must be a text, not {short_repr(value)}.", name)
        if len(value) > 200:
            raise BnnvizError(f"{owner}: {name} is longer than 200 characters; shorten it.", name)
        return value
    if kind == "points":
        return _check_points(name, value, owner)
    return _check_number(setting, value, owner)


def _check_points(name: str, value: Any, owner: str) -> list[list[float]] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise BnnvizError(f"{owner}: {name} must be a list of rows {_POINT_FORM}, not {short_repr(value)}.", name)
    if len(value) > MOST_POINTS:
        raise BnnvizError(f"{owner}: {name} has {len(value)} rows; give at most {MOST_POINTS}.", name)
    for number, row in enumerate(value, 1):
        place = f"{owner}: row {number} of {name}"
        if not isinstance(row, list | tuple) or len(row) not in (2, 3):
            raise BnnvizError(f"{place} must be {_POINT_FORM}, not {short_repr(row)}.", name)
        for item in row:
            if isinstance(item, bool) or not isinstance(item, int | float) or not abs(item) <= _POINT_LIMIT:
                reach = f"{-_POINT_LIMIT:g} to {_POINT_LIMIT:g}"
                raise BnnvizError(f"{place} has {short_repr(item)}; give numbers from {reach}.", name)
    if len({len(row) for row in value}) > 1:
        raise BnnvizError(
            f"{owner}: some rows of {name} have 2 numbers and some 3; give all rows as {_POINT_FORM}.", name
        )
    return [[float(item) for item in row] for row in value]


def _check_number(setting: dict[str, Any], value: Any, owner: str) -> float | int | None:
    name, whole = setting["name"], setting["type"] == "integer"
    if value is None and setting["optional"]:
        return None
    noun = "a whole number" if whole else "a number"
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise BnnvizError(f"{owner}: {name} must be {noun}, not {short_repr(value)}.", name)
    if whole and value != int(value):
        raise BnnvizError(f"{owner}: {name} must be a whole number, not {short_repr(value)}.", name)
    low, high = setting["bounds"] or (None, None)
    if (low is not None and value < low) or (high is not None and value > high):
        raise BnnvizError(f"{owner}: {name} = {value:g} is out of range; give {bounds_text(low, high)}.", name)
    return int(value) if whole else float(value)


def bounds_text(low: float | None, high: float | None) -> str:
    """Describe bounds in words; one of them may be open (None)."""
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"a value from {low:g} to {high:g}"


#: Settings of a run in addition to those of its target and sampler.
OF_RUNS = frozenset({"chains", "draws", "warmup", "seed", "device", "dtype", "kernel"})


def refuse(given: Iterable[str], known: Iterable[str], owner: str) -> None:
    """Raise for a name that is no setting."""
    for name in given:
        if name not in known:
            meant = meant_by("keyword", name, known)
            hint = f"its settings are {', '.join(known) or 'none'}." if meant is None else f"did you mean {meant!r}?"
            hint = f"{name} is a setting of the run." if name in OF_RUNS else hint
            raise BnnvizError(f"{owner} has no setting {name!r}; {hint}", name)


def fill(settings: list[dict[str, Any]], given: dict[str, Any], owner: str) -> dict[str, Any]:
    """Check the given values, add the defaults of the others, and return them in declared order."""
    known = {setting["name"]: setting for setting in settings}
    refuse(given, known, owner)
    return {
        name: check(setting, given[name], owner) if name in given else setting["default"]
        for name, setting in known.items()
    }
