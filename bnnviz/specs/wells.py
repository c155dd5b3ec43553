"""Specify the double well, which consists only of settings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import param

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.specs import url
from bnnviz.specs.run import VERSION, Spec, read_json

#: The target, for a sampler of functionals and for one of points.
TARGET, FUNCTIONAL, POINT = "double_well", "func_hmc", "hmc"
RUNS = 400  # chains of each sampler


class WellsSettings(param.Parameterized):
    """Settings of the page; both samplers share step size, leapfrog steps and momentum."""

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
    entropy = settings.Boolean(True, doc="Subtract the entropy from the energy; without it FuncHMC becomes HMC.")
    first_sd = settings.Number(
        1.0,
        bounds=(0.01, 10.0),
        scale="log",
        label="First functional: sd",
        doc="FuncHMC starts from N(0, sd^2), HMC from a draw of it.",
    )
    step_size = settings.Number(0.2, bounds=(0.001, 2.0), scale="log", doc="Leapfrog step size of both samplers.")
    num_leapfrog_steps = settings.Integer(
        10,
        bounds=(1, 200),
        scale="log",
        label="Leapfrog steps",
        doc="Leapfrog steps of a move; not given in the paper.",
    )
    momentum_persistence = settings.Number(
        0.5, bounds=(0.0, 0.99), step=0.05, doc="Fraction of the velocity that is kept between transitions."
    )
    draws_each = settings.Integer(100, bounds=(1, 1000), scale="log", doc="Draws from each functional.")
    seed = settings.Integer(0, bounds=(0, 2**31 - 1), doc="Seed of all random numbers.")


@dataclass(frozen=True)
class WellsSpec:
    """Specification of the Wells page, with the settings of `WellsSettings`."""

    #: Class that executes it, ``module:name``.
    factory: ClassVar[str] = "bnnviz.engine.wells:Wells"
    #: Its name in error messages.
    owner: ClassVar[str] = "The double well"
    attachment: ClassVar[None] = None

    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def described(cls) -> list[dict[str, Any]]:
        """Return the settings as plain JSON, in the form of the catalogue."""
        return settings.describe(WellsSettings)

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

    @property
    def entries(self) -> tuple[Spec, Spec]:
        """The runs of both samplers; nothing is tuned, as the step size is given."""
        values = self.settings
        both = ("step_size", "num_leapfrog_steps", "momentum_persistence")
        shared = {name: values[name] for name in both} | {"metric": "unit"}
        functional = {name: values[name] for name in ("form", "terms", "entropy", "first_sd", "draws_each")}
        run = {"target": TARGET, "target_settings": {"reading": values["reading"]}, "chains": RUNS, "draws": None}
        run |= {"warmup": 0, "seed": values["seed"], "device": "cpu", "dtype": "float64"}
        func = Spec(sampler=FUNCTIONAL, settings=shared | functional, **run)
        return func, Spec(sampler=POINT, settings=shared | {"jitter": False}, **run)

    def names(self) -> list[str]:
        """Return a label for each sampler."""
        return ["FuncHMC", "HMC"]

    def differing(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults."""
        return url.differing(self.described(), self.checked().settings)

    def shareable(self) -> str:
        """Return an empty text, since it can always be shared."""
        return ""

    def to_query(self) -> dict[str, str]:
        """Return values other than the defaults as a link's parameters."""
        return url.write_query(self.described(), self.checked().settings)

    def read_query(self, query: url.Query) -> tuple[Self, list[str]]:
        """Read a link; any content gives a valid spec: see `bnnviz.specs.run.Spec.read_query`."""
        link, described = url.Link(query), self.described()
        values = link.take_values({"title": self.owner, "settings": described}, self.checked().settings)
        link.refuse_rest()
        try:
            return self.replace(settings=values).checked(), link.sentences
        except BnnvizError as error:  # the values are valid, but not together
            link.note(f"{error.sentence} It was left out of the link.")
            own = {setting["name"]: setting["default"] for setting in described}
            return self.replace(settings=values | {error.field: own[error.field]}).checked(), link.sentences

    def as_python(self) -> str:
        """Return a complete script that repeats the experiment."""
        then = ["for name, figures in wells.figures().items():", "    print(name, figures)"]
        return url.python_call("wells = bnnviz.wells", [], self.differing(), then)

    def as_command(self) -> str:
        """Return a shell command that repeats it."""
        return url.command(["wells"], self.differing())
