"""The left side: what to run. Target, sampler, presets and run settings, all from the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz_app.components.controls.controls import Controls
from bnnviz_app.components.controls.upload import Upload

_DATA = "data"
RUN = ("chains", "seed", "device", "kernel")
_CUSTOM = "as set below"
# A description that came later would change the number of hooks of its React component, which fails then.
_NO_PRESET = "Settings that belong together; these are of no preset."
_SECTION = """
:host {font-size: 12px; font-weight: 600; letter-spacing: .06em; color: var(--mui-palette-text-secondary)}
h2 {font: inherit; margin: 0}
"""
_SELECT = {"sizing_mode": "stretch_width", "margin": (9, 14, 3, 14), "size": "small"}


class Part:
    """A target or a sampler: which one, which preset, and its settings.

    Parameters
    ----------
    items : list of dict
        The catalogue's entries.
    label : str
        What they are.
    titles : dict
        What to call choices of settings.
    on_pick : callable
        Called without arguments when another entry has been picked.
    on_change : callable
        Called with the settings that were changed.
    first : str
        The entry to begin with.
    """

    def __init__(
        self,
        items: list[dict[str, Any]],
        label: str,
        titles: dict[str, str],
        on_pick: Callable[[], None],
        on_change: Callable[[dict[str, Any]], None],
        first: str,
    ) -> None:
        self._items = {item["name"]: item for item in items}
        self._titles, self._on_pick, self._on_change = titles, on_pick, on_change
        self._silent = False
        self._select = pmui.Select(label=label, options={i["title"]: i["name"] for i in items}, value=first, **_SELECT)
        self._preset = pmui.Select(label="Preset", options=[_CUSTOM], description=_NO_PRESET, **_SELECT)
        self._select.param.watch(self._picked, "value")
        self._preset.param.watch(self._preset_picked, "value")
        self._under = pn.Column(sizing_mode="stretch_width", margin=0)
        self.root = pn.Column(self._select, self._under, sizing_mode="stretch_width", margin=0)
        self._build()

    @property
    def name(self) -> str:
        """The picked entry's name."""
        return self._select.value

    @property
    def settings(self) -> list[dict[str, Any]]:
        """What the picked entry's settings are, from the catalogue."""
        return self._items[self.name]["settings"]

    def show(self, name: str, settings: dict[str, Any]) -> None:
        """Show an entry and its settings without reporting them."""
        if name != self.name:
            self._silent = True
            self._select.value = name
            self._silent = False
            self._build()
        self.controls.set(settings)
        self._name_preset()

    def note(self, sentences: list[str]) -> None:
        """Say beside the choice of data what is to be known of them; no sentences take it back."""
        if _DATA in self.controls:
            self.controls.note(_DATA, " ".join(sentences))

    def _build(self) -> None:
        item = self._items[self.name]
        self._select.description = item["doc"]
        self.controls = Controls(item["settings"], self._changed, self._titles)
        self._under[:] = [self.controls.root]
        presets = {_CUSTOM: _CUSTOM, **{p["title"]: p["name"] for p in item["presets"]}}
        self._silent = True
        # The browser has it from when there are presets on.
        if len(presets) > 1 and self._preset not in self.root:
            self.root.insert(1, self._preset)
        self._preset.param.update(options=presets, value=_CUSTOM, description=_NO_PRESET, visible=len(presets) > 1)
        self._silent = False

    def _picked(self, event: Any) -> None:
        if not self._silent:
            self._build()
            self._on_pick()

    def _preset_picked(self, event: Any) -> None:
        if self._silent or event.new == _CUSTOM:
            return
        item = self._items[self.name]
        preset = next(p for p in item["presets"] if p["name"] == event.new)
        defaults = {s["name"]: s["default"] for s in item["settings"]}
        self.controls.set({**defaults, **preset["settings"]})
        self._preset.description = preset["doc"]
        self._on_change(self.controls.values())

    def _changed(self, changed: dict[str, Any]) -> None:
        self._name_preset()
        self._on_change(changed)

    def _name_preset(self) -> None:
        """Name the preset that the settings agree with, the most particular one."""
        values = self.controls.values()
        fits = [
            p
            for p in self._items[self.name]["presets"]
            if all(values.get(name) == value for name, value in p["settings"].items())
        ]
        best = max(fits, key=lambda p: len(p["settings"]), default=None)
        self._silent = True
        self._preset.param.update(
            value=best["name"] if best else _CUSTOM, description=best["doc"] if best else _NO_PRESET
        )
        self._silent = False


class Sidebar:
    """Everything that makes a spec.

    Parameters
    ----------
    catalogue : dict
        From `bnnviz.specs.catalogue.load`.
    on_spec : callable
        Called with a checked spec that needs a new run.
    on_live : callable
        Called with settings of the sampler that the running one may take over.
    spec : Spec
        What to show first.
    """

    def __init__(
        self,
        catalogue: dict[str, Any],
        on_spec: Callable[[Spec], None],
        on_live: Callable[[dict[str, Any]], None],
        spec: Spec,
    ) -> None:
        self._on_spec, self._on_live = on_spec, on_live
        titles = {data["name"]: data["title"] for data in catalogue["data"]}
        self._target = Part(catalogue["targets"], "Target", titles, self._renew, self._target_changed, spec.target)
        self._sampler = Part(catalogue["samplers"], "Sampler", titles, self._renew, self._sampler_changed, spec.sampler)
        run = {setting["name"]: setting for setting in catalogue["run"]}
        # Which devices there are only the backend knows; until then there is the default.
        self._devices = [run["device"]["default"]]
        run["device"] = {**run["device"], "type": "choice", "choices": self._devices}
        self._run = Controls([run[name] for name in RUN], lambda changed: self._renew())
        self._dims = {item["name"]: item["dim"] for item in catalogue["targets"]}
        self._attached = {data["name"] for data in catalogue["data"] if data["attached"]}
        self._upload = Upload(lambda: self._spec, self._open)
        self.root = pn.Column(
            section("TARGET"),
            self._target.root,
            self._upload.root,
            section("SAMPLER"),
            self._sampler.root,
            section("RUN"),
            self._run.root,
            sizing_mode="stretch_width",
            margin=(2, 0, 16, 0),
            css_classes=["tour-sidebar"],
        )
        self.show(spec)

    def _open(self, spec: Spec) -> None:
        """Run a network on a file of the user's."""
        self.show(spec)
        self._on_spec(spec)

    def show(self, spec: Spec) -> None:
        """Show a spec in the controls."""
        self._spec = spec
        self._target.show(spec.target, spec.target_settings)
        self._remark()
        self._sampler.show(spec.sampler, spec.settings)
        # A spec may name a device that is not offered here; a control without it would choose another.
        self._run.offer("device", [*self._devices, spec.device])
        self._run.set({name: getattr(spec, name) for name in RUN})

    def hold(self, points: list[list[float]] | None) -> None:
        """Keep these points for the next spec; None goes back to the data's own with a new run."""
        self._spec = self._spec.replace(target_settings={**self._spec.target_settings, **self._point_settings(points)})
        self._remark()
        if points is None:
            self._on_spec(self._spec)

    def _remark(self) -> None:
        """Say beside the data's name when their points are not their own any more."""
        if "data" in self._target.controls:
            drawn = self._spec.target_settings.get("points") is not None
            self._target.controls.remark("data", "points redrawn" if drawn else "")

    def apply(self, settings: dict[str, Any]) -> None:
        """Take over settings of the sampler, as a remedy offers them."""
        self._sampler.controls.set(settings)
        self._sampler_changed(settings)

    def devices(self, names: list[str]) -> None:
        """Offer these devices."""
        self._devices = [*self._devices[:1], *names]
        self._run.offer("device", self._devices)

    def note(self, sentences: list[str]) -> None:
        """Say beside the choice of data what is to be known of them."""
        self._target.note(sentences)

    def take_back(self, spec: Spec) -> None:
        """Note that this spec runs on: what the controls show could not be run."""
        self._spec = spec

    def error(self, error: BnnvizError) -> bool:
        """Say what is wrong beside its control; False when no control here is meant."""
        for controls in (self._sampler.controls, self._target.controls, self._run):
            if error.field in controls:
                controls.error(error.field, error.sentence)
                return True
        return False

    def _target_changed(self, changed: dict[str, Any]) -> None:
        if "data" in changed:
            self._spec = self._spec.replace(target_settings={})
        self._renew()

    def _point_settings(self, points: list[list[float]] | None) -> dict[str, Any]:
        """Return the points under the name that the target has for them; they have no control."""
        return {s["name"]: points for s in self._target.settings if s["type"] == "points"}

    def _sampler_changed(self, changed: dict[str, Any]) -> None:
        if self._sampler.controls.live(set(changed)):
            self._sampler.controls.clear()
            self._spec = self._spec.replace(settings={**self._spec.settings, **changed})
            self._on_live(changed)
        else:
            self._renew()

    def _target_settings(self) -> dict[str, Any]:
        """Return the controls' values, and the points as long as the data are the same."""
        settings = self._target.controls.values()
        same = self._target.name == self._spec.target
        points = self._spec.target_settings.get("points") if same else None
        return settings | self._point_settings(points)

    def _renew(self) -> None:
        for controls in (self._sampler.controls, self._target.controls, self._run):
            controls.clear()
        settings = self._target_settings()
        if settings.get("data") not in self._attached:
            self._spec = self._spec.replace(file=None, attachment=None)
        spec = self._spec.replace(
            target=self._target.name,
            target_settings=settings,
            sampler=self._sampler.name,
            settings=self._sampler.controls.values(),
            **self._run.values(),
        )
        if not self._keeps_start(spec):
            spec = spec.replace(start=None, start_points=None)
        try:
            spec = spec.checked()
        except BnnvizError as error:
            self.error(error)
            return
        if spec != self._spec:  # what was mistyped and put right harms no run
            self._spec = spec
            self._on_spec(spec)

    def _keeps_start(self, spec: Spec) -> bool:
        """Return whether points of a recording are still points of the target, as far as the catalogue knows."""
        before = self._spec
        if spec.target != before.target:
            return False
        return self._dims[spec.target] is not None or spec.target_settings == before.target_settings


def section(title: str) -> pn.pane.HTML:
    """Return a heading."""
    return pn.pane.HTML(f"<h2>{title}</h2>", margin=(10, 14, 0, 14), stylesheets=[_SECTION])
