"""Define the sidebar of a run: target, sampler, presets and run settings from the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import panel as pn
import panel_material_ui as pmui

from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.controls.controls import CHANGED, Controls
from bnnviz_app.components.widgets import ReaderChoice, Text, WideColumn, WideRow, icon_button
from bnnviz_app.theme import EXPLAINED_ABOVE, styles

_DATA = "data"
_CUSTOM = "as set below"
# A description that came later would change the number of hooks of its React component, which fails then.
_NO_PRESET = "Settings that belong together; these are of no preset."
_STYLES = styles(__file__)
_IN_TOOLS = {"sizing_mode": "stretch_width", "margin": (8, 4, 4, 14)}
#: A select over the stage has its height before the browser has made it.
IN_BAR = {"width": 188, "margin": (9, 4, 3, 4), "size": "small", "min_height": 44}
_SELECT = {"sizing_mode": "stretch_width", "margin": (9, 14, 3, 14), "size": "small"}


class CatalogueChoice:
    """Choose a target or a sampler, a preset of it, and its settings."""

    def __init__(
        self,
        items: list[dict[str, Any]],
        label: str,
        titles: dict[str, str],
        on_pick: Callable[[], None],
        on_change: Callable[[dict[str, Any]], None],
        first: str,
        apart: bool = False,
    ) -> None:
        self._apart = apart
        self._items = {item["name"]: item for item in items}
        self._titles, self._on_pick, self._on_change = titles, on_pick, on_change
        options = {item["title"]: item["name"] for item in items}
        #: The choice, and the setting that matters most: both have their place outside of the settings.
        self.select = pmui.Select(label=label, options=options, value=first, theme_config=EXPLAINED_ABOVE, **IN_BAR)
        self.foremost = pn.Column(width=190, min_height=52)
        self._preset = pmui.Select(label="Preset", options=[_CUSTOM], description=_NO_PRESET, **_SELECT)
        self._pick = ReaderChoice((self.select,), lambda event: self._picked())
        self._preset_pick = ReaderChoice((self._preset,), lambda event: self._preset_picked(event.new))
        self._under = WideColumn()
        self.root = WideColumn(self._under)
        self._build()

    @property
    def name(self) -> str:
        """The picked entry's name."""
        return self.select.value

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The picked entry's settings in the catalogue."""
        return self._items[self.name]["settings"]

    def show(self, name: str, settings: dict[str, Any]) -> None:
        """Show an entry and its settings without reporting them."""
        if name != self.name:
            with self._pick.setting():
                self.select.value = name
            self._build()
        self.controls.set(settings)
        self._name_preset()

    def note(self, sentences: list[str]) -> None:
        """Show notes next to the choice of data, or remove them if empty."""
        if _DATA in self.controls:
            self.controls[_DATA].say(" ".join(sentences), failed=False)

    def _build(self) -> None:
        item = self._items[self.name]
        self.select.description = item["doc"]
        self.controls = Controls(item["settings"], self._changed, self._titles, apart=self._apart)
        self.foremost[:] = self.controls.foremost
        self._under[:] = [self.controls.root]
        presets = {_CUSTOM: _CUSTOM, **{p["title"]: p["name"] for p in item["presets"]}}
        # The browser has it from when there are presets on.
        if len(presets) > 1 and self._preset not in self.root:
            self.root.insert(0, self._preset)
        shown = {"description": _NO_PRESET, "visible": len(presets) > 1}
        with self._preset_pick.setting():
            self._preset.param.update(options=presets, value=_CUSTOM, **shown)

    def _picked(self) -> None:
        self._build()
        self._on_pick()

    def _preset_picked(self, name: str) -> None:
        if name == _CUSTOM:
            return
        item = self._items[self.name]
        preset = next(p for p in item["presets"] if p["name"] == name)
        defaults = {s["name"]: s["default"] for s in item["settings"]}
        self.controls.set({**defaults, **preset["settings"]})
        self._preset.description = preset["doc"]
        self._on_change(self.controls.values())

    def _changed(self, changed: dict[str, Any]) -> None:
        self._name_preset()
        self._on_change(changed)

    def _name_preset(self) -> None:
        """Show the most specific preset that matches the settings."""
        values = self.controls.values()
        fits = [
            p
            for p in self._items[self.name]["presets"]
            if all(values.get(name) == value for name, value in p["settings"].items())
        ]
        best = max(fits, key=lambda p: len(p["settings"]), default=None)
        name, doc = (best["name"], best["doc"]) if best else (_CUSTOM, _NO_PRESET)
        with self._preset_pick.setting():
            self._preset.param.update(value=name, description=doc)


class SpecSidebar(PageComponent):
    """Choose a target, its data and the settings of the run; subclasses define the kind of run."""

    shared: ClassVar[tuple[str, ...]]  # settings of the run that are chosen here

    def __init__(
        self,
        catalogue: dict[str, Any],
        on_spec: Callable[[Any], None],
        spec: Any,
        settings: Sequence[dict[str, Any]] = (),
    ) -> None:
        self._on_spec = on_spec
        self.spec = spec  # the last one that was run
        self._before: list[Any] = []  # specs, for undo
        self.search = pmui.TextInput(
            label="Search", placeholder=f"{CHANGED.strip()} marks a changed setting", size="small", **_IN_TOOLS
        )
        self.search.param.watch(lambda event: self._seek(event.new), "value_input")
        self.undo = icon_button("undo", "Undo the last change", self._go_back, margin=(8, 8, 0, 0), disabled=True)
        self.tools = WideRow(self.search, self.undo)
        self._titles = {data["name"]: data["title"] for data in catalogue["data"]}
        self.target = CatalogueChoice(
            catalogue["targets"], "Target", self._titles, self._renew, self._target_changed, first_run(spec).target
        )
        run = {setting["name"]: setting for setting in catalogue["run"]}
        # Which devices there are only the backend knows; until then there is the default.
        self._devices = [run["device"]["default"]]
        run["device"] = {**run["device"], "type": "choice", "choices": self._devices}
        self._run = Controls([*settings, *(run[name] for name in self.shared)], lambda changed: self._renew())
        self._attached = {data["name"] for data in catalogue["data"] if data["attached"]}
        self.bar: list[Any] = [self.target.select]

    def show(self, spec: Any) -> None:
        """Show a spec in the controls."""
        self.spec, first = spec, first_run(spec)
        self.target.show(first.target, first.target_settings)
        # A spec may name a device that is not offered here; a control without it would choose another.
        self._run["device"].offer([*self._devices, first.device])
        self._run.set({name: getattr(first, name) for name in self.shared})

    def reset(self, scene: dict[str, Any]) -> None:
        """Show the remarks on the data next to their control."""
        self.target.note(scene["remarks"])

    def devices(self, names: list[str]) -> None:
        """Offer these devices."""
        self._devices = [*self._devices[:1], *names]
        self._run["device"].offer(self._devices)

    def error(self, error: BnnvizError) -> bool:
        """Show an error next to its control; return False if no control here matches."""
        for controls in self._all_controls():
            if error.field in controls:
                controls.error(error.field, error.message.text)
                return True
        return False

    def _all_controls(self) -> list[Any]:
        return [self.target.controls, self._run]

    def _target_changed(self, changed: dict[str, Any]) -> None:
        self._renew()

    def _renew(self) -> None:
        """Run the controls' spec, unless it runs already."""
        for controls in self._all_controls():
            controls.clear()
        try:
            spec = self._chosen().checked()
        except BnnvizError as error:
            self.error(error)
            return
        if spec != self.spec:  # a corrected typing error restarts nothing
            self._keep()
            self.spec = spec
            self._on_spec(spec)

    def _keep(self) -> None:
        """Keep the spec that is about to be changed."""
        self._before.append(self.spec)
        self.undo.disabled = False

    def _go_back(self) -> None:
        """Undo the last change."""
        spec = self._before.pop()
        self.undo.disabled = not self._before
        now = self.spec
        self.show(spec)
        self._return_to(spec, now)

    def _return_to(self, spec: Any, now: Any) -> None:
        """Run a spec again instead of the current one."""
        self._on_spec(spec)

    def _seek(self, text: str) -> None:
        for controls in self._all_controls():
            controls.seek(text)

    def _chosen(self) -> Any:
        """Return the spec that the controls show, not checked."""
        raise NotImplementedError


class Sidebar(SpecSidebar):
    """Choose everything that makes a spec."""

    shared = ("chains", "seed", "device", "kernel")

    def __init__(
        self,
        catalogue: dict[str, Any],
        on_spec: Callable[[Spec], None],
        on_live: Callable[[dict[str, Any]], None],
        spec: Spec,
    ) -> None:
        super().__init__(catalogue, on_spec, spec)
        self._on_live = on_live
        self.sampler = CatalogueChoice(
            catalogue["samplers"], "Sampler", self._titles, self._renew, self._sampler_changed, spec.sampler, apart=True
        )
        self.bar += [self.sampler.select, self.sampler.foremost]
        sampler, run = (section("SAMPLER"), self.sampler.root), (section("RUN"), self._run.root)
        self.root = column(self.tools, section("TARGET"), self.target.root, *sampler, *run)
        self.show(spec)

    def show(self, spec: Spec) -> None:
        """Show a spec in the controls; another run does not start from the points of this one."""
        super().show(spec.replace(start=None, start_points=None))
        self._remark()
        self.sampler.show(spec.sampler, spec.settings)

    def hold(self, points: list[list[float]] | None) -> None:
        """Keep these points for the next spec; None goes back to the data's own with a new run."""
        self.spec = self.spec.replace(target_settings={**self.spec.target_settings, **self._point_settings(points)})
        self._remark()
        if points is None:
            self._on_spec(self.spec)

    def apply(self, settings: dict[str, Any]) -> None:
        """Take over settings of the sampler, as a remedy offers them."""
        self.sampler.controls.set(settings)
        self._sampler_changed(settings)

    def _all_controls(self) -> list[Any]:
        return [self.sampler.controls, *super()._all_controls()]

    def _remark(self) -> None:
        """Mark the name of data whose points were redrawn."""
        if _DATA in self.target.controls:
            redrawn = self.spec.target_settings.get("points") is not None
            self.target.controls[_DATA].remark("points redrawn" if redrawn else "")

    def _target_changed(self, changed: dict[str, Any]) -> None:
        if _DATA in changed:
            self.spec = self.spec.replace(target_settings={})
        self._renew()

    def _point_settings(self, points: list[list[float]] | None) -> dict[str, Any]:
        """Return the points under the name that the target has for them; they have no control."""
        return {s["name"]: points for s in self.target.settings if s["type"] == "points"}

    def _sampler_changed(self, changed: dict[str, Any]) -> None:
        if not self.sampler.controls.live(set(changed)):
            self._renew()
            return
        self.sampler.controls.clear()
        changed = {name: value for name, value in changed.items() if self.spec.settings[name] != value}
        try:
            spec = self.spec.replace(settings={**self.spec.settings, **changed}).checked()
        except BnnvizError as error:
            self.error(error)
            return
        if changed:
            self._keep()
            self.spec = spec
            self._on_live(changed)

    def _return_to(self, spec: Spec, now: Spec) -> None:
        changed = {name: value for name, value in spec.settings.items() if now.settings.get(name) != value}
        if spec == now.replace(settings=spec.settings) and self.sampler.controls.live(set(changed)):
            self._on_live(changed)
        else:
            self._on_spec(spec)

    def _chosen(self) -> Spec:
        # The points stay as long as the data are the same.
        points = self.spec.target_settings.get("points") if self.target.name == self.spec.target else None
        settings = self.target.controls.values() | self._point_settings(points)
        if settings.get("data") not in self._attached:
            self.spec = self.spec.replace(file=None, attachment=None)
        return self.spec.replace(
            target=self.target.name,
            target_settings=settings,
            sampler=self.sampler.name,
            settings=self.sampler.controls.values(),
            **self._run.values(),
        )


def first_run(spec: Any) -> Spec:
    """Return the run that represents a spec: of a race the first."""
    return spec if isinstance(spec, Spec) else spec.entries[0]


def section(title: str) -> Text:
    """Return a heading."""
    return Text(f"<h2>{title}</h2>", margin=(10, 14, 0, 14), stylesheets=[_STYLES["section"]])


def column(*objects: Any) -> WideColumn:
    """Stack the contents of the sidebar."""
    return WideColumn(*objects, margin=(2, 0, 16, 0), css_classes=["area-sidebar"])
