"""Record the changes of the views at each replay frame, compactly and exact to a fraction of a pixel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from bokeh.core.serialization import Serializer
from bokeh.document import Document
from bokeh.document.events import ColumnDataChangedEvent, ModelChangedEvent

from bnnviz.engine.recording.replay_frames import ReplayFrames, parts
from bnnviz.figures.legend import legend_html
from bnnviz.figures.listing import figures_for
from bnnviz.figures.live.canvas import Sheet
from bnnviz.figures.live.view import View

_FINE = 1 / 8000  # of an axis is not seen: an eighth of a pixel
_LEVELS, _NAN = 32767, -32768
_DESCRIPTION = "html_attributes"  # kept with the headings: writing it paints a figure again

Key = tuple[str, str]


class Series(NamedTuple):
    """Store the distinct values of one attribute and the frames where it changes: any frame is shown alone."""

    at: list[int]
    values: list[Any]

    def note(self, frame: int, value: Any) -> None:
        """Take the value at a frame, which is that frame's last."""
        if self.at and self.at[-1] == frame:
            self.values[-1] = value
        elif not self.at or value != self.values[-1]:
            self.at.append(frame)
            self.values.append(value)

    def plain(self) -> dict[str, list]:
        """Return it as JSON has it, each value once."""
        known: dict[str, int] = {}
        found: list[Any] = []
        order = []
        for value in self.values:
            mark = repr(value)
            if mark not in known:
                known[mark] = len(found)
                found.append(value)
            order.append(known[mark])
        return {"at": self.at, "of": order, "values": found}


#: Of which axis the numbers of a column are.
_AXES = {"x": 0, "dx": 0, "y": 1, "dy": 1, "low": 1, "high": 1}


@dataclass(frozen=True)
class Kept:
    """A sheet at one frame: the column names of each mark, and all numbers."""

    names: list[list[str]]
    packed: np.ndarray

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and np.array_equal(self.packed, other.packed, equal_nan=True)

    def shape(self) -> list[list[int]]:
        """Return for each mark its number of points and of columns."""
        return [[int(count), len(names)] for count, names in zip(self.packed, self.names, strict=False)]

    def columns(self) -> list[tuple[str, np.ndarray]]:
        """Return the columns of all marks with their names."""
        found, at = [], len(self.names)
        for (count, _), names in zip(self.shape(), self.names, strict=True):
            for name in names:
                found.append((name, self.packed[at : at + count]))
                at += count
        return found


class ReplayTimeline:
    """Feed replay frames to their figures, and record the changes."""

    def __init__(self, replay_frames: ReplayFrames) -> None:
        self.replay_frames = replay_frames
        self.views: list[View] = [
            View(figure, replay_frames.scene)
            for figure in figures_for({**replay_frames.scene, "emits": parts(replay_frames.scene)})
        ]
        self._doc = Document()
        for view in self.views:
            view.root.toolbar.active_scroll = None  # the wheel scrolls the page until the user activates the zoom tool
            self._doc.add_root(view.root)
        self._owners = {sheet.model.id: (view.name, sheet) for view in self.views for sheet in view.canvas.sheets}
        self._blank = {name: _kept(sheet) for name, (_, sheet) in self._owners.items()}
        self._models = {model.id: model for model in self._doc.models}
        self._serializer = Serializer(references=set(self._doc.models), deferred=False)
        self._changed: set[Key] = set()
        self._doc.on_change(self._receive)
        # Each new set of glyphs would make the document look for its models, which stay the same.
        with self._doc.models.freeze():
            for dark in (True, False):
                for view in self.views:
                    view.theme(dark)
            # Values that depend on the theme; a figure without marks yet has no colours that change.
            self._themed = self._taken() | {(view.canvas.model.id, "tags") for view in self.views}
            self.document = self._doc.to_json(deferred=False)
            self._first = {
                (model.id, name): value
                for model in self._doc.models
                for name, value in model.properties_with_values(include_defaults=True, include_undefined=False).items()
            }
            self._light: dict[Key, Series] = {}
            self._dark: dict[Key, Series] = {}
            self._columns: dict[str, Series] = {}
            self.words = {view.name: Series([], []) for view in self.views}
            self.legends = {view.name: (Series([], []), Series([], [])) for view in self.views}
            self._spans: dict[str, list[tuple[float, float]]] = {view.name: [] for view in self.views}
            labels: dict[str, set[str]] = {view.name: set() for view in self.views}
            for number, frame in enumerate(replay_frames.frames):
                self._take(number, frame)
                for view in self.views:
                    labels[view.name] |= {mark.label for mark in view.drawing.marks if not mark.empty}
        for name, both in self.legends.items():
            for series in both:  # without marks that no frame has
                shown = ([entry[label] for label in entry if label in labels[name]] for entry in series.values)
                series.values[:] = [legend_html(entries) for entries in shown]

    def _receive(self, event: Any) -> None:
        if isinstance(event, ColumnDataChangedEvent | ModelChangedEvent) and event.attr != _DESCRIPTION:
            self._changed.add((event.model.id, event.attr))

    def _taken(self) -> set[Key]:
        """Return what has changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def _take(self, number: int, frame: dict[str, Any]) -> None:
        before = self.replay_frames.frames[max(number - 1, 0)]
        for view in self.views:
            if frame["status"]["generation"] != before["status"]["generation"] and view.figure.of_draws:
                view.reset(self.replay_frames.scene)
            view.update(frame)
        changed = self._taken()
        for view in self.views:
            self.words[view.name].note(number, [view.title, view.note, view.description])
        self._keep(changed - self._themed, number, self._light)
        reported = any(self.legends[view.name][0].values[-1:] != [view.legend_entries()] for view in self.views)
        if not number or reported or changed & self._themed:
            for dark, kept in ((True, self._dark), (False, self._light)):
                for view in self.views:
                    view.theme(dark)
                    self.legends[view.name][dark].note(number, view.legend_entries())
                self._keep(self._themed, number, kept)
            self._changed.clear()
        for view in self.views:
            ranges = view.root.x_range, view.root.y_range
            self._spans[view.name].append(tuple(float(abs(each.end - each.start)) for each in ranges))

    def _keep(self, keys: set[Key], number: int, kept: dict[Key, Series]) -> None:
        # In the order in which their models were made, so that the same frames have one page.
        for key in sorted(keys, key=lambda key: (len(key[0]), key)):
            name, attr = key
            if name in self._owners and attr == "data":
                series = self._columns.setdefault(name, Series([0], [self._blank[name]]))
                series.note(number, _kept(self._owners[name][1]))
            elif name in self._models:
                if key not in kept:
                    kept[key] = Series([0], [self._plain(self._first[key])])
                kept[key].note(number, self._plain(getattr(self._models[name], attr)))

    def _plain(self, value: Any) -> Any:
        return self._serializer.serialize(value).content

    def values(self) -> Iterator[dict[str, Any]]:
        """Yield model, attribute, the light value and a differing dark value for each key except columns."""
        for key, series in self._light.items():
            dark = self._dark.get(key)
            if len(series.values) == 1 and (dark is None or dark.values == series.values) and key not in self._themed:
                continue
            yield {"model": key[0], "attr": key[1], "light": series.plain(), "dark": dark and dark.plain()}

    def columns(self) -> tuple[list[dict[str, Any]], bytes]:
        """Return where the columns of each sheet are, and the bytes that they are in."""
        out, index = bytearray(), []
        for name, (at, kept) in self._columns.items():
            spans = np.array(self._spans[self._owners[name][0]])
            # The smallest range of each axis as long as each of the values is shown.
            shown = [spans[first:last].min(0) for first, last in zip(at, [*at[1:], len(spans)], strict=True)]
            frames = [each.columns() for each in kept]
            most = max((len(columns) for columns in frames), default=0)
            pieces = []
            for i in range(most):
                held = [columns[i] if i < len(columns) else ("", np.empty(0, np.float32)) for columns in frames]
                fine = [_fine(name, span) for span, (name, _) in zip(shown, held, strict=True)]
                pieces.append(_packed([values for _, values in held], fine, out))
            shapes = [each.shape() for each in kept]
            index.append({"model": name, "at": at, "shapes": shapes, "columns": pieces})
        return index, bytes(out)


def _kept(sheet: Sheet) -> Kept:
    return Kept(sheet.names, sheet.packed)


def _fine(name: str, span: np.ndarray) -> float:
    """Return a difference in a column that is not seen where the axes have these ranges; ids are exact."""
    if name.startswith("id_"):
        return 0.0
    if name in _AXES:
        return _FINE * span[_AXES[name]]
    return _FINE * span.min() if name == "at" else _FINE


def _packed(columns: list[np.ndarray], fine: list[float], out: bytearray) -> list[Any]:
    """Append a column to the bytes, as integers of 16 bits where these are fine enough; return its code and place."""
    values = np.concatenate(columns)
    known = values[~np.isnan(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    finest = min((each for each, own in zip(fine, columns, strict=True) if not np.isnan(own).all()), default=np.inf)
    out.extend(b"\0" * (-len(out) % 4))
    place = len(out)
    scale, offset = (high - low) / (2 * _LEVELS) or 1.0, (low + high) / 2
    if high - low <= 2 * _LEVELS and np.array_equal(known, np.rint(known)):  # integers stay exact
        scale, offset = 1.0, float(np.rint(offset))
    elif not np.isfinite(scale) or scale / 2 > finest:
        out.extend(values.astype("<f4").tobytes())
        return ["f", 1.0, 0.0, place]
    codes = np.rint((np.where(np.isnan(values), offset, values).astype(np.float64) - offset) / scale)
    out.extend(np.where(np.isnan(values), _NAN, codes).astype("<i2").tobytes())
    return ["q", scale, offset, place]
