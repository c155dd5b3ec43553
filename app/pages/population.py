"""Show the proposals of an adaptive importance sampler, their weighted draws, and the weight ESS."""

from __future__ import annotations

from typing import Any, ClassVar

import panel_material_ui as pmui

from bnnviz.figures.live.view import View
from bnnviz.numerals import count
from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.controls.pickers import PlanePicker
from bnnviz_app.components.controls.sidebar import IN_BAR, Sidebar
from bnnviz_app.components.run.transport import Cell, StepTransport
from bnnviz_app.pages.base import RunPage, emitted, preset

_POPULATION = "population"  # the part that samplers with a population emit
_PLANE, _GAUGE, _TABLE = "population", "gauge", "table"
# Views of the draws, by priority.
_RIGHT = ("prediction", "roc", "confusion", "errors2", "history", "density")
_MOST_RIGHT = 3
_DRAWN = ("band", "area")  # predictions with a separate picture; others come last


class PopulationTransport(StepTransport):
    """Show buttons that step a phase or an iteration."""

    steps_events = True
    steps: ClassVar[dict[str, str]] = {"Next phase": "proposal", "Next iteration": "event"}

    def _figures(self, status: dict[str, Any]) -> list[Cell]:
        return [
            (84, "step", count(status["step"]), "phases"),
            (100, "events", count(status["events"]), "iterations"),
            (118, "ess", count(status["ess"]), "weight ESS"),
            (150, "gradients", count(status["gradients"]), "evaluations"),
        ]


class PopulationPage(RunPage):
    """Show a population."""

    name = "population"
    parts = (_PLANE, _GAUGE, *_RIGHT)
    transport_class = PopulationTransport
    speed = "10"

    @classmethod
    def opening(cls) -> Spec:
        """Return the spec that the page opens on."""
        return Spec.from_json(preset("population")[0]["spec"])

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Show a new run: its plane, and the cards that it feeds."""
        self._arrange(set(scene["emits"]), None if scene["data"] is None else scene["data"]["kind"])
        super().show_scene(scene)

    def _controls(self, spec: Spec) -> Any:
        self._emits: set[str] = set()
        self.plane = PlanePicker(lambda plane: self.session.watch(plane=plane))
        listing = catalogue.load()
        samplers = [item for item in listing["samplers"] if _POPULATION in item["emits"]]
        self.controls = Sidebar(listing | {"samplers": samplers}, self.session.begin, self.session.change, spec)
        self._examples = {example["name"]: example for example in preset("population")}
        self.example = pmui.Select(
            label="Example",
            options={"choose": "", **{example["title"]: name for name, example in self._examples.items()}},
            # Not empty at first, and another one later: its React component cannot grow one.
            description="Populations to begin with, and one to see break.",
            **IN_BAR,
        )
        self.example.param.watch(self._chosen, "value")
        return self.controls.root

    def _above(self) -> list[Any]:
        return [self._bar(self.example, *self.controls.bar)]

    def _build(self, visit: Any) -> None:
        super()._build(visit)
        self.components.append(self.plane)
        self._arrange(emitted(visit.spec), None)

    def _chosen(self, event: Any) -> None:
        """Run an example."""
        found = self._examples.get(event.new)
        if found is not None:
            self.example.description = found["doc"]
            spec = Spec.from_json(found["spec"])
            self.controls.show(spec)
            self.session.begin(spec)

    def _card(self, view: View) -> Card:
        plane = {"tools": [self.plane.kind], "below": [self.plane.coordinates, self.plane.note]}
        return Card(view, **plane if view.needs[0] == _PLANE else {})

    def _arrange(self, emits: set[str], kind: str | None) -> None:
        """Share the stage among the cards that a run feeds; its predictions are of this kind."""
        order = _RIGHT if kind in _DRAWN else (*_RIGHT[1:], _RIGHT[0])
        right = [part for part in order if part in emits][:_MOST_RIGHT]
        self._emits = emits - set(_RIGHT) | set(right)
        for card in self.cards:
            card.root.visible = card.needs <= self._emits
        self.stage.styles = {"grid-template": _grid(right)}

    def _fed(self) -> list[PageComponent]:
        known = self._emits | {"caption", "status", _TABLE}
        return [shown for shown in self.components if shown.needs <= known]


def _grid(right: list[str]) -> str:
    """Return the CSS grid: the plane on the left, views of the draws on the right, then gauge and table."""
    if not right:
        return f"""
"caption caption" auto
"{_PLANE} {_GAUGE}" minmax(0, 1fr)
"{_PLANE} {_TABLE}" minmax(0, 1fr)
/ minmax(0, 8fr) minmax(0, 5fr)
"""
    rows = [f'"{_PLANE} {_PLANE} {part}" minmax(0, 1fr)' for part in right[:2]]
    below = " ".join([_GAUGE, *right[2:], _TABLE]) if len(right) > 2 else f"{_GAUGE} {_GAUGE} {_TABLE}"
    lines = "\n".join(['"caption caption caption" auto', *rows, f'"{below}" minmax(0, 0.9fr)'])
    return f"\n{lines}\n/ minmax(0, 8fr) minmax(0, 6fr) minmax(0, 9fr)\n"


build = PopulationPage.build
