"""Specify the demonstrations, which have nothing but settings: the double well, and the step-size grid."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import param

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue, url
from bnnviz.specs.run import VERSION, read_json


@dataclass(frozen=True)
class PlainSpec:
    """Base of the specs that are a list of settings; a class says which, and what executes it."""

    #: What executes it, ``module:name``.
    factory: ClassVar[str]
    #: What error messages call it.
    owner: ClassVar[str]
    declared: ClassVar[type[param.Parameterized]]
    attachment: ClassVar[None] = None

    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def described(cls) -> list[dict[str, Any]]:
        """Return the settings as plain JSON, as a catalogue has them."""
        return settings.describe(cls.declared)

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"version": VERSION, **self.settings}

    @classmethod
    def from_json(cls, value: dict[str, Any] | str) -> Self:
        """Make one from a JSON object or text, checked, with every default filled in."""
        return cls(read_json(value, f"The spec of {cls.owner.lower()}")).checked()

    def checked(self) -> Self:
        """Return the same with its names and values checked and every default filled in."""
        return replace(self, settings=settings.fill(self.described(), self.settings, self.owner))

    def replace(self, **changes: Any) -> Self:
        """Return the same with some fields changed (not checked)."""
        return replace(self, **changes)

    def differing(self) -> dict[str, Any]:
        """Return the settings that are not the defaults."""
        return url.differing(self.described(), self.checked().settings)

    def shareable(self) -> str:
        """Return why it cannot be shared: it always can, an empty text."""
        return ""

    def to_query(self) -> dict[str, str]:
        """Return what differs from the defaults as a link's parameters."""
        return url.write_query(self.described(), self.checked().settings)

    def read_query(self, query: url.Query) -> tuple[Self, list[str]]:
        """Read a link; whatever it holds, there is something to run: see `bnnviz.specs.run.Spec.read_query`."""
        link, described = url.Link(query), self.described()
        values = link.take_values({"title": self.owner, "settings": described}, self.checked().settings)
        link.refuse_rest()
        try:
            return self.replace(settings=values).checked(), link.sentences
        except BnnvizError as error:  # each value fits, but not to the others
            link.note(f"{error.sentence} It was left out of the link.")
            own = {setting["name"]: setting["default"] for setting in described}
            return self.replace(settings=values | {error.field: own[error.field]}).checked(), link.sentences

    def as_python(self) -> str:
        """Return a complete script that repeats what is seen."""
        raise NotImplementedError

    def as_command(self) -> str:
        """Return a line for the shell that repeats it; an empty text where there is no command."""
        return ""


# --- the double well


#: What is sampled, by a sampler of functionals and by one of points.
TARGET, FUNCTIONAL, POINT = "double_well", "func_hmc", "hmc"


class DoubleWellSettings(param.Parameterized):
    """What can be chosen; both samplers have the step size, the leapfrog steps and the momentum in common."""

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
    num_leapfrog_steps = settings.Integer(
        10,
        bounds=(1, 200),
        scale="log",
        label="Leapfrog steps",
        doc="Leapfrog steps of a move; the paper does not say.",
    )
    momentum_persistence = settings.Number(
        0.5, bounds=(0.0, 0.99), step=0.05, doc="Share of the velocity that a move keeps."
    )
    draws_each = settings.Integer(100, bounds=(1, 1000), scale="log", doc="Draws that are made of each functional.")
    seed = settings.Integer(0, bounds=(0, 2**31 - 1), doc="Of all random numbers.")


@dataclass(frozen=True)
class DoubleWellSpec(PlainSpec):
    """What is shown on the Wells page; its settings are those of `DoubleWellSettings`."""

    factory: ClassVar[str] = "bnnviz.engine.demos.double_well:DoubleWellDemo"
    owner: ClassVar[str] = "The double well"
    declared: ClassVar[type[param.Parameterized]] = DoubleWellSettings

    def as_python(self) -> str:
        """Return a complete script that repeats what is seen."""
        then = ["for name, figures in wells.figures().items():", "    print(name, figures)"]
        return url.python_call("wells = bnnviz.wells", [], self.differing(), then)

    def as_command(self) -> str:
        """Return a line for the shell that repeats it."""
        return url.command(["wells"], self.differing())


# --- the step sizes


FEWEST = 4  # step sizes
SECONDS = 20.0  # that the script works
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


class StepSizeSettings(param.Parameterized):
    """What can be chosen; whose density is shown may change while the grid runs."""

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
class StepSizeSpec(PlainSpec):
    """What is shown on the page of the step-size grid; its settings are those of `StepSizeSettings`."""

    factory: ClassVar[str] = "bnnviz.engine.demos.step_size:StepSizeDemo"
    owner: ClassVar[str] = "The step-size grid"
    declared: ClassVar[type[param.Parameterized]] = StepSizeSettings

    def checked(self) -> Self:
        """Return the same with its names and values checked and every default filled in."""
        spec = super().checked()
        place, sizes = spec.settings["place"], spec.settings["sizes"]
        if place > sizes:
            sentence = f"There are {sizes} step sizes and no number {place}; choose one of 1 to {sizes}."
            raise BnnvizError(sentence, "place")
        return spec

    def as_python(self) -> str:
        """Return a complete script that repeats what is seen, for some seconds."""
        module, _, name = self.factory.partition(":")
        return "\n".join(
            [
                f"from {module} import {name}",
                f"from {type(self).__module__} import {type(self).__name__}",
                "",
                f"step_size = {name}({type(self).__name__}({self.differing()!r}))",
                f"step_size.advance({SECONDS:g})  # seconds; errors become smaller for as long as one waits",
                "for name, figures in step_size.figures().items():",
                "    print(name, figures)",
                "",
            ]
        )
