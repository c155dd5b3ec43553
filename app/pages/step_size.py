"""Show how wrong samplers with a step size are in the end, and the density at one size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from bnnviz.specs import catalogue
from bnnviz.specs.demo import PlainSpec, StepSizeSpec
from bnnviz_app.components.controls.controls import Controls, number_text
from bnnviz_app.components.controls.sidebar import column, section
from bnnviz_app.components.run.transport import Cell, StepTransport, count
from bnnviz_app.components.widgets import ReaderChoice
from bnnviz_app.pages.base import RunPage, SettingsPage, open_run_page

_TITLES = {"normal": "N(0, 1)", "narrow": "narrow, 2 coordinates", "two_wells": "double well"}
_GRID = """
"caption caption" auto
"errors cell" minmax(0, 11fr)
"errors table" minmax(0, 7fr)
/ minmax(0, 11fr) minmax(0, 6fr)
"""


class StepSizeTransport(StepTransport):
    """Show buttons for the grid of step sizes; its line counts the moves at every size."""

    def _figures(self, status: dict[str, Any]) -> list[Cell]:
        return [
            (220, "step", count(status["step"]), f"moves of each of {count(status['chains'])} chains at each size"),
            (150, "gradients", count(status["gradients"]), "gradients"),
        ]


class _SizeSlider:
    """Choose among the step sizes of one sampler."""

    def __init__(self, sizes: int, place: int, doc: str, on_change: Callable[[dict[str, Any]], None]) -> None:
        self.root = pmui.DiscreteSlider(
            label="Step size",
            options={str(k): k for k in range(1, sizes + 1)},
            value=place,
            description=doc,
            sizing_mode="stretch_width",
            margin=(3, 14),
            size="small",
        )
        self._choice = ReaderChoice((self.root,), lambda event: on_change({"place": event.new}))

    def offer(self, sizes: list[float], place: int) -> None:
        """Offer these step sizes, and show the one at a place from 1."""
        options = {number_text(size): k for k, size in enumerate(sizes, start=1)}
        with self._choice.setting():
            self.root.param.update(options=options, value=place)


class StepSizePage(SettingsPage):
    """Show errors against step sizes, and one density."""

    name, heading = "microscope", "MICROSCOPE"
    spec = StepSizeSpec
    titles = _TITLES
    parts, grid = ("errors", "cell"), _GRID
    transport_class = StepSizeTransport

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Show a new run, and offer its step sizes."""
        self._sizes = {sampler["name"]: list(sampler["size"]) for sampler in scene["samplers"]}
        self._offer()
        super().show_scene(scene)

    def _controls(self, spec: PlainSpec) -> Any:
        self._sizes: dict[str, list[float]] = {}
        described = {setting["name"]: setting for setting in spec.described()}
        titles = {name: catalogue.find("samplers", name)["title"] for name in described["sampler"]["choices"]}
        self.chosen = Controls([described.pop("sampler")], self._look, titles)
        self.chosen.set(spec.settings)
        place = described.pop("place")
        self.step_size = _SizeSlider(spec.settings["sizes"], spec.settings["place"], place["doc"], self._look)
        self.controls = Controls(list(described.values()), self._renew, self.titles)
        self.controls.set(spec.settings)
        density = (section("DENSITY"), self.chosen.root, self.step_size.root)
        return column(*density, section(self.heading), self.controls.root)

    def _values(self) -> dict[str, Any]:
        values = {**self.controls.values(), **self.chosen.values()}
        # With fewer step sizes the chosen one may have gone: then it is the largest.
        return values | {"place": min(self.session.spec.settings["place"], values["sizes"])}

    def _look(self, changed: dict[str, Any]) -> None:
        """Look at the density of another sampler or step size; what runs goes on."""
        self.session.change(changed)
        self._offer()

    def _offer(self) -> None:
        settings = self.session.spec.settings
        if settings["sampler"] in self._sizes:
            self.step_size.offer(self._sizes[settings["sampler"]], settings["place"])


def build(dark: bool) -> RunPage:
    """Build the page for the current session and begin its loop."""
    return open_run_page(StepSizePage, dark)
