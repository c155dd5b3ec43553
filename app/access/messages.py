"""Accept only those changes from a browser that the page's controls can make.

Bokeh lets a browser patch every property of every model of its page, make models, and replace the document. This module
accepts a patch only for:

- the value of a widget, and other state of its script: open, active, folded;
- a property that the script of one of our components sets;
- the size and the ranges of a figure;
- the data of a source that the server listens to;
- an event that the server has subscribed to.

Compressed parts of a message are unpacked first, up to a limit, so that a small message cannot fill the memory.

A value must be valid for its control: within its bounds, one of its options, of its type; and the control must be
enabled. Everything else is refused and logged, and the rest of the message is processed.
"""

from __future__ import annotations

import base64
import binascii
import logging
import math
import re
import zlib
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from bokeh.core.serialization import Deserializer
from bokeh.document import Document
from bokeh.document.models import DocumentModelManager
from bokeh.events import Event
from bokeh.model import DataModel, Model
from bokeh.models import ColumnDataSource, DataRange1d, Plot, Range1d, Toolbar
from panel.custom import ReactiveESM
from panel.models.browser import BrowserInfo
from panel.models.location import Location
from panel_material_ui import MaterialComponent

log = logging.getLogger(__name__)

#: Properties that the scripts of Material UI's components set.
_OF_MATERIAL = frozenset(
    {"value", "value_input", "value_throttled", "active", "open", "collapsed", "expanded", "dark_theme"}
    | {"dropdown_open", "scroll_position", "sidebar_open", "sidebar_width", "contextbar_open", "contextbar_width"}
)
_SIZES = frozenset({"inner_width", "inner_height", "outer_width", "outer_height"})
_OF_RANGES = frozenset({"start", "end"})
_OF_DOCUMENT = frozenset({"document_ready", "client_reconnected"})
_SET_BY_SCRIPT = re.compile(r"\bmodel\.(\w+)\s*=(?!=)")
_DECODED = {name.removeprefix("_decode_") for name in vars(Deserializer) if name.startswith("_decode_")}
# The types that a page sends: no models, no parts of arrays.
_PLAIN_TYPES = frozenset(_DECODED - {"object", "object_ref", "ref", "set", "slice", "symbol"})
_EVENT_TYPES = _PLAIN_TYPES | {"event", "ref"}
_DTYPES = frozenset({"bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"})
_MOST_PARTS, _MOST_DEPTH = 200_000, 24
MOST_UNPACKED = 64 << 20  # bytes
_GZIP = 31  # zlib's code for a gzip header and the largest window
_LONGEST = 120  # letters of a name in the log
#: Exceptions that a malformed message raises.
MALFORMED = (TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError, MemoryError)


# Properties that Bokeh's scripts set for their own use: ignored without a warning.
_FOR_ITSELF = ((Toolbar, "stylesheets"),)


class RefusedPatch(Exception):
    """Report why a part of a message is refused."""


def keep_allowed(document: Document, message: Any) -> None:
    """Keep only the allowed changes in a message."""
    content = message.content
    events = content.get("events") if isinstance(content, dict) else None
    if not isinstance(events, list):
        log.warning("A message without events is refused.")
        message.content = {"events": []}
        return
    kept, models = [], document.models
    for event in events:
        try:
            if _is_for_itself(event, models):
                continue
            _check_event(event, models, message.buffers)
        except RefusedPatch as refusal:
            log.warning("A browser's message is refused: %s.", refusal)
        except MALFORMED as error:
            log.warning("A browser's message is refused: it is malformed (%s).", type(error).__name__)
        else:
            kept.append(event)
    content["events"] = kept


def _is_for_itself(event: Any, models: DocumentModelManager) -> bool:
    if event["kind"] != "ModelChanged":
        return False
    model = models.get_by_id(event["model"]["id"])
    return any(isinstance(model, kind) and event["attr"] == attr for kind, attr in _FOR_ITSELF)


def _check_event(event: Any, models: DocumentModelManager, buffers: Any) -> None:
    kind = event["kind"]
    if kind == "MessageSent":
        _check_message(event, models, buffers)
        return
    names = {"ModelChanged": ("attr", "new"), "ColumnDataChanged": ("attr", "data")}.get(kind)
    if names is None:
        raise RefusedPatch(f"a browser makes no {_short(kind)}")
    attr, new = (event[name] for name in names)
    model = _named_model(event, models)
    if not isinstance(attr, str) or not event.keys() <= {"kind", "model", *names, "cols"} or not _are_names(event):
        raise RefusedPatch("it is malformed")
    if not any(attr in allowed for allowed in _allowed(model, attr)):
        raise RefusedPatch(f"a browser does not change {_short(attr)} of {type(model).__name__}")
    _check_value(model, attr, _plain(new, buffers))


def _named_model(owner: dict[str, Any], models: DocumentModelManager) -> Model:
    """Return the model of the page that a part of a message names, and leave nothing but its id there.

    BokehJS writes a model whole where it came to the page after the browser had loaded it.
    """
    name = owner["model"]["id"]
    model = models.get_by_id(name)
    if model is None:
        raise RefusedPatch("the page has no such model")
    owner["model"] = {"id": name}
    return model


def _are_names(event: dict[str, Any]) -> bool:
    columns = event.get("cols") or []
    return isinstance(columns, list) and all(isinstance(name, str) for name in columns)


def _allowed(model: Model, attr: str) -> Iterator[frozenset[str]]:
    """Yield the properties of a model that a browser may change."""
    if isinstance(model, Plot):
        yield _SIZES
    elif isinstance(model, Range1d | DataRange1d):
        yield _OF_RANGES
    elif isinstance(model, BrowserInfo | Location):
        yield frozenset(model.properties())
    elif isinstance(model, ColumnDataSource):
        yield frozenset({"data"} if model._callbacks.get("data") else ())
    elif isinstance(model, DataModel):
        for owner in _owners(model._callbacks.get(attr, ())):
            yield _of_component(type(owner))


@cache
def _of_component(kind: type) -> frozenset[str]:
    """Return the properties that the script of a component sets."""
    if issubclass(kind, MaterialComponent):
        return _OF_MATERIAL
    if not issubclass(kind, ReactiveESM) or kind._esm is None:
        return frozenset()
    script = kind._esm
    if isinstance(script, Path) or script.endswith(".js"):
        found = kind._esm_path(compiled=False)
        script = "" if found is None else found.read_text(encoding="utf-8")
    return frozenset(_SET_BY_SCRIPT.findall(script))


def _owners(callbacks: Any) -> list[Any]:
    """Return the components of Panel that listen to a model: their callbacks are partial calls of their methods."""
    functions = [each.func if isinstance(each, partial) else each for each in callbacks]
    return [owner for owner in (getattr(each, "__self__", None) for each in functions) if owner is not None]


# --- values


def _plain(value: Any, buffers: Any) -> Any:
    """Return a value that a browser sent, once it is known to hold numbers, texts and arrays, and no models."""
    _look_through(value, _PLAIN_TYPES)
    return Deserializer([]).decode(value, list(buffers))


def _look_through(value: Any, types: frozenset[str]) -> None:
    """Refuse a value of any other type before deserialising it."""
    level, count = [value], 0
    for _ in range(_MOST_DEPTH):
        inner: list[Any] = []
        for part in level:
            count += 1
            if isinstance(part, dict):
                kind = part.get("type")
                if kind is None and "id" in part and types is _PLAIN_TYPES:
                    raise RefusedPatch("it names a model as a value")
                if kind is not None and kind not in types:
                    raise RefusedPatch(f"a value is not a {_short(kind)}")
                if kind == "ndarray" and part.get("dtype") not in _DTYPES:
                    raise RefusedPatch("an array of another type")
                if kind == "bytes" and isinstance(part["data"], str):
                    _check_packed(part["data"])
                if kind == "number" and not _is_finite(part["value"]):
                    raise RefusedPatch("a number that is not finite")
                inner += [each for name, each in part.items() if not (kind == "bytes" and name == "data")]
            elif isinstance(part, list):
                inner += part
            elif isinstance(part, str):
                part.encode()  # half of a pair of surrogates cannot be sent to a page again
            elif isinstance(part, float) and not _is_finite(part):
                raise RefusedPatch("a number that is not finite")
        if count + len(inner) > _MOST_PARTS:
            raise RefusedPatch("a value of too many parts")
        level = inner
        if not level:
            return
    raise RefusedPatch("a value that is nested too deeply")


def _check_packed(text: str) -> None:
    """Refuse packed bytes that are damaged or become too many."""
    stream = zlib.decompressobj(_GZIP)
    try:
        stream.decompress(base64.b64decode(text), MOST_UNPACKED)
    except (binascii.Error, ValueError, zlib.error):
        raise RefusedPatch("packed bytes that are damaged") from None
    if not stream.eof:
        raise RefusedPatch("packed bytes that become too many")


def _check_value(model: Model, attr: str, value: Any) -> None:
    model.lookup(attr).property.prepare_value(model, attr, value)
    for owner in _owners(model._callbacks.get(attr, ())):
        if getattr(owner, "disabled", False) and attr.startswith(("value", "active")):
            raise RefusedPatch(f"{type(owner).__name__} is disabled")
        if isinstance(owner, ReactiveESM):
            _check_param(owner, attr, value)


def _check_param(owner: Any, attr: str, value: Any) -> None:
    """Refuse an invalid value of a component; Panel validates only after notifying others."""
    name = type(owner).__name__
    low, high = getattr(owner, "start", None), getattr(owner, "end", None)
    bounded = attr.startswith("value") and _is_number(low) and _is_number(high)
    if bounded and not (_is_number(value) and low <= value <= high):
        raise RefusedPatch(f"a value of {name} out of bounds")
    longest = getattr(owner, "max_length", None)
    if longest is not None and isinstance(value, str) and len(value) > longest:
        raise RefusedPatch(f"a text of {name} that is too long")
    for parameter, found in owner._process_property_change({attr: value}).items():
        if parameter in owner.param:
            owner.param[parameter]._validate(found)
    options = getattr(owner, "options", None)
    if attr == "value" and options and "options" in owner.param and getattr(owner, "restrict", True) is not False:
        _check_option(owner, value)


def _check_option(owner: Any, value: Any) -> None:
    found = owner._process_property_change({"value": value})["value"]
    known = list(owner.options.values() if isinstance(owner.options, dict) else owner.options)
    if found is not None and not any(found is each or found == each for each in known):
        raise RefusedPatch(f"{type(owner).__name__} has no such option")


def _is_finite(value: Any) -> bool:
    return math.isfinite(float(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- events


def _check_message(event: dict[str, Any], models: DocumentModelManager, buffers: Any) -> None:
    """Refuse everything but events that the server has subscribed to."""
    if event.get("msg_type") != "bokeh_event" or not event.keys() <= {"kind", "msg_type", "msg_data"}:
        raise RefusedPatch("a browser sends events only")
    reported = event["msg_data"]
    name = reported["name"]
    if name in _OF_DOCUMENT:
        return
    _leave_id(reported["values"])
    _look_through(reported, _EVENT_TYPES)
    made = Deserializer(list(models)).decode(reported, list(buffers))
    model = getattr(made, "model", None)
    if not isinstance(made, Event) or not isinstance(model, Model):
        raise RefusedPatch(f"an event {_short(name)} of nothing on the page")
    if models.get_by_id(model.id) is not model or name not in model.subscribed_events:
        raise RefusedPatch(f"no subscription to {_short(name)} of {type(model).__name__}")
    for owner in _owners(model._event_callbacks.get(name, ())):
        if getattr(owner, "disabled", False):
            raise RefusedPatch(f"{type(owner).__name__} is disabled")


def _leave_id(values: dict[str, Any]) -> None:
    """Leave of the model that an event names nothing but its id; see `_named_model`."""
    if values.get("type") == "map":
        for entry in values.get("entries", ()):
            if entry[0] == "model":
                entry[1] = {"id": entry[1]["id"]}
    elif "model" in values:
        values["model"] = {"id": values["model"]["id"]}


def _short(value: Any) -> str:
    return ascii(value)[:_LONGEST]
