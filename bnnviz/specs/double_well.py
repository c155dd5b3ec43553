"""The spec of the Wells: FuncHMC beside HMC on the double well, as plain JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import param

from bnnviz import settings
from bnnviz.specs.demo import PlainSpec

#: What is sampled, by a sampler of functionals and by one of points.
TARGET, FUNCTIONAL, POINT = "double_well", "func_hmc", "hmc"


class WellsSettings(param.Parameterized):
    """What can be chosen; both samplers have the step size, the leaps and the momentum in common."""

    reading = settings.Choice(
        "figure",
        objects=["figure", "text"],
        label="Double well",
        doc="figure: modes at +-1, barrier 1, as on the axis of the paper's figure. text: modes at +-2.236, barrier 5,"
        " as its text has it.",
    )
    moves = settings.Integer(10, bounds=(1, 2000), scale="log", doc="Moves of both samplers; the paper shows 10.")
    form = settings.Choice(
        "mean_field",
        objects=["mean_field", "hermite"],
        label="Functional",
        doc="mean_field: N(mu, sd^2). hermite: a sum of Hermite polynomials of a normal.",
    )
    terms = settings.Integer(
        4, bounds=(2, 8), when={"form": ["hermite"]}, doc="Polynomials; from 4 on a functional may have two modes."
    )
    entropy = settings.Boolean(True, doc="Take the entropy from the energy; without it FuncHMC becomes HMC.")
    first_sd = settings.Number(
        1.0,
        bounds=(0.01, 10.0),
        scale="log",
        label="First functional: sd",
        doc="FuncHMC begins with N(0, sd^2), HMC with a draw of it.",
    )
    step_size = settings.Number(0.2, bounds=(0.001, 2.0), scale="log", doc="Size of a leapfrog step, of both.")
    leaps = settings.Integer(10, bounds=(1, 200), scale="log", doc="Leapfrog steps of a move; the paper does not say.")
    momentum = settings.Number(0.5, bounds=(0.0, 0.99), step=0.05, doc="Share of the velocity that a move keeps.")
    draws_each = settings.Integer(100, bounds=(1, 1000), scale="log", doc="Draws that are made of each functional.")
    seed = settings.Integer(0, bounds=(0, 2**31 - 1), doc="Of all random numbers.")


@dataclass(frozen=True)
class WellsSpec(PlainSpec):
    """What is shown on the Wells page; its settings are those of `WellsSettings`."""

    factory: ClassVar[str] = "bnnviz.engine.demos.double_well:DoubleWellDemo"
    owner: ClassVar[str] = "The wells"
    declared: ClassVar[type[param.Parameterized]] = WellsSettings


def described() -> list[dict[str, Any]]:
    """Return the settings as plain JSON, as a catalogue has them."""
    return WellsSpec.described()
