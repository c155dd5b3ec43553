"""Compare functionals with points on the double well, drawn one by one."""

from __future__ import annotations

from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.numerals import count
from bnnviz.specs.wells import WellsSpec
from bnnviz_app.components.controls.controls import Controls
from bnnviz_app.components.controls.sidebar import column, section
from bnnviz_app.components.run.transport import Cell, StepTransport
from bnnviz_app.pages.base import RunPage

_TITLES = {
    "figure": "figure: modes at ±1",
    "text": "text: modes at ±2.2",
    "mean_field": "N(mu, sd²)",
    "hermite": "sum of Hermite polynomials",
}
# Columns: the functionals and their results. The energy extends up to the ratio: its five lines need the height.
_GRID = """
"caption caption" auto
"wells pooled" minmax(0, 1fr)
"wells ratio" minmax(0, .75fr)
"ledger ratio" minmax(0, .25fr)
"ledger table" minmax(152px, .92fr)
/ minmax(0, 15fr) minmax(0, 11fr)
"""


class DoubleWellTransport(StepTransport):
    """Show buttons for the double well; its line of figures counts moves."""

    def _figures(self, status: dict[str, Any]) -> list[Cell]:
        return [
            (110, "step", f"{count(status['step'])} of {count(status['moves'])}", "moves"),
            (150, "gradients", count(status["gradients"]), "gradients"),
        ]


class DoubleWellPage(RunPage):
    """Compare functionals with points; the page has no controls except settings."""

    name = "wells"
    parts, grid = ("wells", "ledger", "pooled", "ratio"), _GRID
    transport_class = DoubleWellTransport
    speed = "2"  # slow enough to see each functional

    @classmethod
    def opening(cls) -> WellsSpec:
        """Return the spec that the page opens on."""
        return WellsSpec().checked()

    def show_spec(self, spec: WellsSpec) -> None:
        """Show the settings that run."""
        self.controls.set(spec.settings)
        self._readdress()

    def show_devices(self, names: list[str]) -> None:
        """Take no notice: so little work needs no device."""

    def _controls(self, spec: WellsSpec) -> Any:
        self.controls = Controls(spec.described(), self._renew, _TITLES)
        self.controls.set(spec.settings)
        return column(section("WELLS"), self.controls.root)

    def _above(self) -> list[Any]:
        return [self._bar()]

    def _beside(self, error: BnnvizError) -> None:
        if error.field in self.controls:
            self.controls.error(error.field, error.message.text)

    def _renew(self, changed: dict[str, Any]) -> None:
        """Begin the controls' run."""
        self.controls.clear()
        try:
            spec = WellsSpec(self.controls.values()).checked()
        except BnnvizError as error:
            self.show_error(error)
            return
        if spec != self.session.spec:
            self.session.begin(spec)


build = DoubleWellPage.build
