"""Define the sidebar of a race: target, two to six samplers with settings, and shared settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.specs.race import FEWEST, MOST, START, RaceSpec
from bnnviz.specs.run import Spec
from bnnviz_app.components.controls.controls import folded
from bnnviz_app.components.controls.sidebar import CatalogueChoice, SpecSidebar, column, section
from bnnviz_app.components.widgets import WideColumn, WideRow, button, icon_button
from bnnviz_app.theme import entry_colour

(BUDGET,) = RaceSpec.described()
_WIDE = {"width": None, "min_height": None, "sizing_mode": "stretch_width", "margin": (9, 0, 3, 8)}


class EntryControl:
    """Choose one sampler and its folded settings."""

    def __init__(
        self,
        items: list[dict[str, Any]],
        entry: Spec,
        on_change: Callable[[], None],
        on_remove: Callable[[EntryControl], None],
    ) -> None:
        self._on_change, self._entry = on_change, entry
        self._choice = CatalogueChoice(
            items, "Sampler", {}, self._picked, lambda changed: on_change(), first=entry.sampler
        )
        self._choice.select.param.update(**_WIDE)
        self._remove = icon_button("close", "Remove this sampler", lambda: on_remove(self), margin=(12, 4, 0, 0))
        self._fold = folded("Settings", lambda: [self._choice.root], gap=0)
        self._fold.margin = 0
        self.root = WideColumn(WideRow(self._choice.select, self._remove), self._fold, margin=(2, 8, 2, 12))
        self.show(entry)

    @property
    def entry(self) -> Spec:
        """The chosen sampler; settings without a control stay unchanged."""
        settings = self._entry.settings | self._choice.controls.values()
        return self._entry.replace(sampler=self._choice.name, settings=settings)

    def __contains__(self, name: str) -> bool:
        return name == "sampler" or name in self._choice.controls

    def show(self, entry: Spec) -> None:
        """Show the settings of the same sampler."""
        self._entry = entry
        self._choice.controls.set(entry.settings)

    def error(self, name: str, sentence: str) -> None:
        """Show an error of a setting, and unfold it."""
        self._fold.active = [0]
        if name in self._choice.controls:
            self._choice.controls.error(name, sentence)

    def clear(self) -> None:
        """Remove all errors."""
        self._choice.controls.clear()

    def rename(self, number: int, removable: bool) -> None:
        """Take another place and colour in the race."""
        self._choice.select.label = f"Sampler {number + 1}"
        self._remove.disabled = not removable
        self.root.styles = {"border-left": f"5px solid {entry_colour(number)}", "border-radius": "3px"}

    def _picked(self) -> None:
        self._entry = self._entry.replace(sampler=self._choice.name, settings={})
        self._on_change()


class RaceSidebar(SpecSidebar):
    """Choose everything that makes a race."""

    shared = ("chains", "seed", "device")

    def __init__(self, catalogue: dict[str, Any], on_spec: Callable[[RaceSpec], None], spec: RaceSpec) -> None:
        super().__init__(catalogue, on_spec, spec, [BUDGET])
        self._samplers = [_in_race(item) for item in catalogue["samplers"]]
        self._entries: list[EntryControl] = []
        self._column = WideColumn()
        self._add = button("Add a sampler", self._append, icon="add", margin=(2, 14))
        samplers, race = (section("SAMPLERS"), self._column, self._add), (section("RACE"), self._run.root)
        self.root = column(self.tools, section("TARGET"), self.target.root, *samplers, *race)
        self.show(spec)

    def show(self, spec: RaceSpec) -> None:
        """Show a race in the controls."""
        super().show(spec)
        self._run.set({"budget": spec.budget})
        if [control.entry.sampler for control in self._entries] == [entry.sampler for entry in spec.entries]:
            # An open menu and the focus stay.
            for control, entry in zip(self._entries, spec.entries, strict=True):
                control.show(entry)
            return
        self._entries = [self._control(entry) for entry in spec.entries]
        self._arrange()

    def error(self, error: BnnvizError) -> bool:
        """Show an error next to its control; return False if no control here matches."""
        number, dot, name = (error.field or "").partition(".")
        if dot and number.isdigit() and int(number) < len(self._entries) and name in self._entries[int(number)]:
            self._entries[int(number)].error(name, error.message.text)
            return True
        return super().error(error)

    def _control(self, entry: Spec) -> EntryControl:
        return EntryControl(self._samplers, entry, self._renew, self._take_out)

    def _arrange(self) -> None:
        self._column[:] = [entry.root for entry in self._entries]
        self._add.disabled = len(self._entries) >= MOST
        for number, entry in enumerate(self._entries):
            entry.rename(number, len(self._entries) > FEWEST)

    def _append(self) -> None:
        """Add a sampler that does not race yet."""
        racing = {entry.entry.sampler for entry in self._entries}
        name = next((item["name"] for item in self._samplers if item["name"] not in racing), self._samplers[0]["name"])
        entry = self.spec.entries[0].replace(sampler=name, settings={})
        self._entries.append(self._control(entry))
        self._arrange()
        self._renew()

    def _take_out(self, entry: EntryControl) -> None:
        if len(self._entries) > FEWEST:
            self._entries.remove(entry)
            self._arrange()
            self._renew()

    def _renew(self) -> None:
        for entry in self._entries:
            entry.clear()
        super()._renew()

    def _chosen(self) -> RaceSpec:
        settings, run = self.target.controls.values(), self._run.values()
        budget = run.pop("budget")
        shared = {"target": self.target.name, "target_settings": settings, **run}
        whole = int(budget) if isinstance(budget, float) and budget.is_integer() else budget
        return type(self.spec)(tuple(entry.entry for entry in self._entries), whole).replace(**shared)


def _in_race(item: dict[str, Any]) -> dict[str, Any]:
    """Return a sampler of the catalogue for a race, which has one start and no live settings."""
    settings = [setting | {"live": False} for setting in item["settings"] if setting["name"] not in START]
    return item | {"settings": settings, "presets": []}
