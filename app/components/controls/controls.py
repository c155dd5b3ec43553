"""Make controls from the catalogue: a setting's type, bounds, unit, scale and doc decide its widget."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from bnnviz.files import plain_json
from bnnviz_app.components.widgets import Message, ReaderChoice, WideColumn, set_changed
from bnnviz_app.theme import EXPLAINED_ABOVE

Setting = dict[str, Any]

_WIDE = {"sizing_mode": "stretch_width", "margin": (3, 14), "size": "small"}
_BOXED = {"margin": (9, 14, 3, 14)}  # a box's label is on its upper edge
CHANGED = " •"  # after the label of a setting that is not at its default
LONG = 200  # integers with a longer range have a text field instead of a slider
_FOLD = {
    "boxShadow": "none",
    "background": "none",
    "& .MuiAccordionSummary-root": {"minHeight": 0, "padding": "0 8px"},
    "& .MuiAccordionSummary-content": {"margin": "6px 0"},
    "& .MuiAccordionDetails-root": {"padding": 0},
    "& .MuiTypography-root": {"fontSize": "0.8125rem", "fontWeight": 400, "color": "text.secondary"},
}
_MANTISSAS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


def log_steps(low: float, high: float, *values: float) -> list[float]:
    """Return round values from `low` to `high`, evenly spread on a log scale, and the given ones."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = {float(f"{m}e{d}") for d in decades for m in _MANTISSAS}
    inside = {step for step in steps if low <= step <= high}
    return sorted(inside | {float(low), float(high)} | {float(value) for value in values})


def _repr(value: float) -> str:
    """Write a number so that reading it gives the same number."""
    return repr(int(value) if value == int(value) else value)


class LateColumn(WideColumn):
    """A column whose first element is made when the browser is to show it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        super().__init__()
        self._make, self._sent = make, False
        self.param.watch(lambda event: self._fill(), "visible")

    def _fill(self) -> None:
        if self._sent and self.visible and self._make is not None:
            make, self._make = self._make, None
            self.insert(0, make())

    def _get_model(self, *args: Any, **options: Any) -> Any:
        self._sent = True
        self._fill()
        return super()._get_model(*args, **options)


class SettingControl:
    """Set one setting by a widget, with a tooltip and lines for messages on its value."""

    def __init__(
        self, setting: Setting, on_change: Callable[[str, Any], None], titles: dict[str, str] | None = None
    ) -> None:
        self.setting, self.name = setting, setting["name"]
        self._on_change = on_change
        # Two settings may have a choice of one name: titles are for those of which every choice has one.
        known = (titles or {}).keys() >= set(setting.get("choices") or ())
        self._titles = titles if titles and known else {}
        # Made when they are first needed: every element costs the page's first paint some milliseconds.
        self._messages: dict[bool, Message] = {}
        self._widget: Any = None
        self._value = setting["default"]  # until there is a widget
        self._label, self._words = setting["label"], ""
        self.root = LateColumn(lambda: self.widget)

    @property
    def widget(self) -> Any:
        """The widget."""
        if self._widget is None:
            self._widget = self._make(self.setting["default"])
            self._label = self._widget.label
            slid = isinstance(self._widget, pmui.FloatSlider | pmui.IntSlider)
            self._choice = ReaderChoice((self._widget,), self._chosen, "value_throttled" if slid else "value")
            self._show(self._value)
        return self._widget

    def show(self, shown: bool) -> None:
        """Show or hide it."""
        self.root.visible = shown

    @property
    def value(self) -> Any:
        """The chosen value, in the setting's own type."""
        if self._widget is None:
            return self._value
        if not self._is_typed:
            return self.widget.value
        text = self.widget.value.strip()
        try:
            return None if text == "" else plain_json(text)
        except ValueError:
            # Other texts pass unchanged: the spec's check reports the error.
            return text

    @property
    def _is_typed(self) -> bool:
        """Whether this is a number that is typed as a text."""
        return isinstance(self.widget, pmui.TextInput) and self.setting["type"] in ("number", "integer")

    def set(self, value: Any) -> None:
        """Show a value without reporting it as a choice of the user."""
        if self._widget is None:
            self._value = value
        else:
            self._show(value)
        self.say("", failed=True)

    def _show(self, value: Any) -> None:
        with self._choice.setting():
            if isinstance(self.widget, pmui.DiscreteSlider) and value not in self.widget.values:
                self.widget.options = self._log_options(value)
            if self.setting["type"] == "choice" and value not in self.widget.values:
                # A choice that is not offered by default, such as the user's own file.
                self.widget.options = self._choices() | {self._titles.get(value, str(value)): value}
            self.widget.value = ("" if value is None else _repr(value)) if self._is_typed else value
        self._mark()

    def offer(self, choices: list[str]) -> None:
        """Offer other choices, keeping the chosen one."""
        self.setting = self.setting | {"choices": list(dict.fromkeys([*choices, self.value]))}
        if self._widget is not None:
            with self._choice.setting():
                self.widget.options = self._choices()

    def remark(self, words: str) -> None:
        """Add a few words to the label, or remove them if empty."""
        self._words = f" ({words})" if words else ""
        self._mark()

    def matches(self, text: str) -> bool:
        """Return whether a text is in the name, the label or the doc."""
        statement = f"{self.name} {self._label} {self.setting['doc']}"
        return text.casefold() in statement.casefold()

    def _mark(self) -> None:
        """Write the label, with a mark where the value is not the default."""
        if self._widget is None:
            return
        mark = "" if self.value == self.setting["default"] else CHANGED
        set_changed(self.widget, label=f"{self._label}{self._words}{mark}")

    def say(self, sentence: str, failed: bool) -> None:
        """Show an error or a note on the value, or remove it if empty."""
        if sentence and failed not in self._messages:
            self._messages[failed] = Message()
            self.root.append(self._messages[failed].root)
        if failed in self._messages:
            self._messages[failed].say(sentence, failed)

    def _chosen(self, event: Any) -> None:
        if event.new != event.old:
            self._mark()
            self._on_change(self.name, self.value)

    def _make(self, value: Any) -> Any:
        unit, kind = self.setting["unit"], self.setting["type"]
        label = f"{self.setting['label']} ({unit})" if unit else self.setting["label"]
        common = {**_WIDE, "label": label, "description": self.setting["doc"], "value": value}
        if kind == "boolean":
            return pmui.Switch(**common)
        if kind == "choice":
            return pmui.Select(options=self._choices(), **common | _BOXED)
        if kind == "text":
            return pmui.TextInput(**common | _BOXED)
        return self._number(common)

    def _choices(self) -> dict[str, Any]:
        hidden = self.setting.get("hidden") or ()
        shown = [choice for choice in self.setting["choices"] if choice not in hidden]
        return {self._titles.get(choice, str(choice)): choice for choice in shown}

    def _number(self, common: dict[str, Any]) -> Any:
        whole = self.setting["type"] == "integer"
        low, high = self.setting["bounds"] or (None, None)
        if self.setting.get("optional") or low is None or high is None or (whole and high - low > LONG):
            text = "" if common["value"] is None else _repr(common["value"])
            label = common["label"] + (f", empty: {self.setting['empty']}" if self.setting.get("optional") else "")
            return pmui.TextInput(**common | _BOXED | {"label": label, "value": text})
        if self.setting["scale"] == "log" and low > 0:
            return pmui.DiscreteSlider(options=self._log_options(common["value"]), **common)
        if whole:
            return pmui.IntSlider(start=low, end=high, step=int(self.setting["step"] or 1), **common)
        step = self.setting["step"] or _round_step((high - low) / 100)
        return pmui.FloatSlider(start=low, end=high, step=step, format="0.[0000]", **common)

    def _log_options(self, value: float) -> dict[str, float]:
        low, high = self.setting["bounds"]
        steps = log_steps(low, high, value, self.setting["default"])
        if self.setting["type"] == "integer":
            return {f"{step:,}": step for step in sorted({int(round(step)) for step in steps})}
        return {f"{step:.4g}": step for step in steps}


class Controls:
    """Show the controls of one list of settings; those whose `when` does not hold are hidden."""

    def __init__(
        self,
        settings: list[Setting],
        on_change: Callable[[dict[str, Any]], None],
        titles: dict[str, str] | None = None,
        apart: bool = False,
    ) -> None:
        self._report, self._sought = on_change, ""
        # The first live setting has its place over the stage if it stands `apart`, without its unit.
        first = next((s["name"] for s in settings if s["live"]), None) if apart else None
        # Points are drawn in a view; they have no widget.
        self._controls = {
            s["name"]: SettingControl(s | {"unit": ""} if s["name"] == first else s, self._changed, titles)
            for s in settings
            if s["type"] != "points"
        }
        live = [control.root for control in self._controls.values() if control.setting["live"]]
        self.foremost = live[:1] if apart else []
        for control in self._controls.values():
            if control.root in self.foremost:
                control.widget.theme_config = EXPLAINED_ABOVE
        live = live[len(self.foremost) :]
        rest = [control.root for control in self._controls.values() if not control.setting["live"]]
        # Fold the settings that begin a new run if there are live ones.
        self._fold = folded("More settings, each begins a new run", lambda: rest) if live and rest else None
        shown = live + rest if self._fold is None else [*live, self._fold]
        self.root = WideColumn(*shown)
        self._hide()

    def __contains__(self, name: str) -> bool:
        return name in self._controls

    def __getitem__(self, name: str) -> SettingControl:
        return self._controls[name]

    def seek(self, text: str) -> None:
        """Show only the settings that have a text in their name, label or doc, folded or not."""
        self._sought = text
        if self._fold is not None:
            self._fold.active = [0] if text else []
        self._hide()

    def values(self) -> dict[str, Any]:
        """Return the chosen values by name."""
        return {name: control.value for name, control in self._controls.items()}

    def set(self, values: dict[str, Any]) -> None:
        """Show values without reporting them."""
        for name, control in self._controls.items():
            if name in values:
                control.set(values[name])
        self._hide()

    def live(self, names: set[str]) -> bool:
        """Return whether all of these may change during the run."""
        return all(self._controls[name].setting["live"] for name in names)

    def error(self, name: str, sentence: str) -> None:
        """Show an error next to a control, and unfold it."""
        self._controls[name].say(sentence, failed=True)
        if sentence and self._fold is not None and not self._controls[name].setting["live"]:
            self._fold.active = [0]

    def clear(self) -> None:
        """Remove all errors."""
        for control in self._controls.values():
            control.say("", failed=True)

    def _changed(self, name: str, value: Any) -> None:
        self._hide()
        self._report({name: value})

    def _hide(self) -> None:
        for control in self._controls.values():
            when = control.setting["when"] or {}
            applies = all(_fits(self._controls[other].value, fits) for other, fits in when.items())
            control.show(applies and (control.root in self.foremost or control.matches(self._sought)))


def _fits(value: Any, fits: list[Any] | dict[str, float]) -> bool:
    """Return whether a value is in a list, or at least a minimum."""
    if isinstance(fits, dict):
        return isinstance(value, int | float) and value >= fits["least"]
    return value in fits


def folded(title: str, make: Callable[[], list[Any]], gap: int = 6) -> pmui.Accordion:
    """Fold something away."""
    inside = WideColumn()
    fold = pmui.Accordion(
        (title, inside), sizing_mode="stretch_width", margin=(4, gap), sx=_FOLD, title_variant="subtitle1"
    )

    def unfold(event: Any) -> None:
        if event.new and not inside:
            inside.extend(make())

    fold.param.watch(unfold, "active")
    return fold


def _round_step(step: float) -> float:
    """Return the power of ten, or two or five of them, next below a step."""
    power = 10.0 ** math.floor(math.log10(step))
    return max(m * power for m in (1, 2, 5) if m * power <= step * (1 + 1e-9))
