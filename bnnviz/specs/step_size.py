"""The spec of the step-size microscope, as plain JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import param

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue
from bnnviz.specs.demo import PlainSpec

FEWEST = 4  # step sizes
#: The registered target and its settings, for each choice.
TARGETS: dict[str, tuple[str, dict[str, Any]]] = {
    "normal": ("gaussian", {"size": 1}),
    "narrow": ("gaussian", {"size": 2, "correlation": 0.0, "spread": 0.1}),
    "two_wells": ("double_well", {}),
}


def with_a_step_size() -> list[str]:
    """Return the names of the samplers whose step size has a schedule: they have no accept step that mends it."""
    named = {item["name"]: {setting["name"] for setting in item["settings"]} for item in catalogue.load()["samplers"]}
    # The plainest first: it has the fewest settings.
    found = [name for name, names in named.items() if {"step_size", "decay"} <= names]
    return sorted(found, key=lambda name: len(named[name]))


_SAMPLERS = with_a_step_size()


class ScopeSettings(param.Parameterized):
    """What can be chosen; whose density is shown may change while the microscope works."""

    target = settings.Choice(
        "normal",
        objects=list(TARGETS),
        doc="Each has a known variance. normal: N(0, 1). narrow: a Gaussian of two coordinates, sd 1 and"
        " 0.1, looked at along the narrow one. two_wells: two modes, at +-1, so that no curve is known.",
    )
    sizes = settings.Integer(8, bounds=(FEWEST, 12), doc="Step sizes of each sampler, up to the largest stable one.")
    chains = settings.Integer(512, bounds=(16, 2048), scale="log", doc="Chains of each sampler at each step size.")
    seed = settings.Integer(0, bounds=(0, 2**31 - 1), doc="Of all random numbers.")
    sampler = settings.Choice(_SAMPLERS[0], objects=_SAMPLERS, live=True, doc="Whose density is shown.")
    place = settings.Integer(
        FEWEST, bounds=(1, 12), live=True, label="Step size", doc="Which of its step sizes, from the smallest, 1."
    )


@dataclass(frozen=True)
class ScopeSpec(PlainSpec):
    """What is shown on the page of the microscope; its settings are those of `ScopeSettings`."""

    factory: ClassVar[str] = "bnnviz.engine.demos.step_size:StepSizeDemo"
    owner: ClassVar[str] = "The microscope"
    declared: ClassVar[type[param.Parameterized]] = ScopeSettings

    def checked(self) -> Self:
        """Return the same with its names and values checked and every default filled in.

        Raises
        ------
        BnnvizError
            If a name is unknown, a value does not fit, or there are fewer step sizes than the place that is chosen.
        """
        spec = super().checked()
        place, sizes = spec.settings["place"], spec.settings["sizes"]
        if place > sizes:
            sentence = f"There are {sizes} step sizes and no number {place}; choose one of 1 to {sizes}."
            raise BnnvizError(sentence, "place")
        return spec
