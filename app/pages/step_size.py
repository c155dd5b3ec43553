"""The step-size microscope: how wrong samplers with a step size are in the end, and the density at one size."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from bnnviz.specs import catalogue, step_size_url
from bnnviz.specs.demo import PlainSpec
from bnnviz.specs.step_size import ScopeSpec
from bnnviz_app.components.controls.controls import Controls, number_text
from bnnviz_app.components.controls.sidebar import section
from bnnviz_app.components.run.transport import clock, count, phase
from bnnviz_app.pages.base import PlainPage, PlainTransport, opened

_TITLES = {"normal": "N(0, 1)", "narrow": "narrow, 2 coordinates", "two_wells": "double well"}
_WORDS = {
    "step size": "how far a move goes; without an accept step a larger one gives a law that is more wrong",
    "error": "how much the variance of the draws differs from the target's, as a share of that one",
    "slope": "of the error against the step size, both logarithmic: 1 is in proportion, 2 with the square; fitted to"
    " small step sizes whose errors are clear",
    "known": "the law of a sampler on a Gaussian in closed form",
    "limit of stability": "the step size from which on chains run away",
}
_GRID = """
"caption caption" auto
"errors cell" minmax(0, 11fr)
"errors table" minmax(0, 7fr)
/ minmax(0, 11fr) minmax(0, 6fr)
"""


class MicroscopeTransport(PlainTransport):
    """Buttons for the microscope; its line counts the moves of every cell."""

    def _cells(self, status: dict[str, Any]) -> list[tuple[int, str, str, str]]:
        return [
            (44, "device", html.escape(status["device"]), ""),
            (120, "phase", html.escape(phase(status)), ""),
            (220, "step", count(status["step"]), f"moves of each of {count(status['chains'])} chains at each size"),
            (150, "gradients", count(status["gradients"]), "gradients"),
            self._frames(),
            (84, "elapsed", clock(status["elapsed"]), "elapsed"),
        ]


class _StepSize:
    """A slider over the step sizes of one sampler."""

    def __init__(self, sizes: int, place: int, doc: str, on_change: Callable[[dict[str, Any]], None]) -> None:
        self._on_change, self._silent = on_change, False
        self.root = pmui.DiscreteSlider(
            label="Step size",
            options={str(k): k for k in range(1, sizes + 1)},
            value=place,
            description=doc,
            sizing_mode="stretch_width",
            margin=(3, 14),
            size="small",
        )
        self.root.param.watch(self._chosen, "value")

    def offer(self, sizes: list[float], place: int) -> None:
        """Offer these step sizes, and show the one at a place from 1."""
        self._silent = True
        self.root.param.update(options={number_text(size): k for k, size in enumerate(sizes, start=1)}, value=place)
        self._silent = False

    def _chosen(self, event: Any) -> None:
        if not self._silent:
            self._on_change({"place": event.new})


class MicroscopePage(PlainPage):
    """The page of one session."""

    name, heading = "microscope", "MICROSCOPE"
    spec, codes = ScopeSpec, step_size_url
    titles, words = _TITLES, _WORDS
    parts, grid = ("errors", "cell"), _GRID
    transport_class = MicroscopeTransport

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Show a new run, and offer its step sizes."""
        self._sizes = {sampler["name"]: list(sampler["size"]) for sampler in scene["samplers"]}
        self._offer()
        super().show_scene(scene)

    def _controls(self, spec: PlainSpec) -> list[Any]:
        self._sizes: dict[str, list[float]] = {}
        described = {setting["name"]: setting for setting in spec.described()}
        titles = {name: catalogue.find("samplers", name)["title"] for name in described["sampler"]["choices"]}
        self.chosen = Controls([described.pop("sampler")], self._look, titles)
        self.chosen.set(spec.settings)
        place = described.pop("place")
        self.step_size = _StepSize(spec.settings["sizes"], spec.settings["place"], place["doc"], self._look)
        self.controls = Controls(list(described.values()), self._renew, self.titles)
        self.controls.set(spec.settings)
        density = [section("DENSITY"), self.chosen.root, self.step_size.root]
        return [*density, section(self.heading), self.controls.root]

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


def build(dark: bool) -> PlainPage:
    """Build the page for the current session and begin its loop."""
    return opened(MicroscopePage, dark)
