"""Write and read the catalogue: every sampler, target, data set and run setting as plain JSON.

The page runs without torch and reads the catalogue instead. It is generated from the registries by
``python -m bnnviz.specs.catalogue`` and shipped as ``catalogue.json``. A test compares both.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from importlib import resources
from reprlib import repr as short_repr
from typing import Any

from bnnviz import settings
from bnnviz.errors import BnnvizError, none_of

VERSION = 1
_FILE = "catalogue.json"
#: Titles of targets given by a caller, which are not in the catalogue, and their kinds.
OWN = {"Your network": "network", "Your function": "function"}


class RunSettings(settings.param.Parameterized):
    """The settings of a run that do not belong to the sampler or the target."""

    chains = settings.Integer(4, bounds=(1, 16_384), doc="Chains that advance together, one row of the state each.")
    draws = settings.Integer(
        1000,
        bounds=(1, 1_000_000),
        allow_None=True,
        doc="Draws kept per chain; empty: a live run without an end.",
    )
    warmup = settings.Integer(
        200,
        bounds=(0, 1_000_000),
        doc="Draws per chain that are discarded at the start; for samplers that warm up by moves, such as HMC and NUTS,"
        " the number of warm-up moves.",
    )
    seed = settings.Integer(0, bounds=(0, 2**31 - 1), doc="Seed of the run's random generator.")
    device = settings.Text("auto", doc="auto, cpu, cuda or cuda:N.")
    dtype = settings.Choice("float32", objects=["float32", "float64"], doc="Precision of states and gradients.")
    kernel = settings.Choice(
        "eager",
        objects=["eager", "compiled"],
        doc="How steps are computed. eager: operation by operation. compiled: the whole step as machine code, many"
        " times faster with few chains; it needs a C++ compiler, and the first compilation takes half a minute, during"
        " which a live run continues. On a GPU compiled captures the step as a CUDA graph, at once and without a"
        " compiler.",
    )


def generate() -> dict[str, Any]:
    """Generate the catalogue from the registries (imports torch)."""
    from bnnviz import data, samplers, targets

    return {
        "version": VERSION,
        "samplers": [_item(cls, cls.traits.emits) for cls in samplers.REGISTRY],
        "targets": [_item(cls, cls.emits) for cls in targets.REGISTRY],
        "data": [data.describe(name) for name in data.names()],
        "run": settings.describe(RunSettings),
    }


def _item(cls: type, emits: Iterable[str]) -> dict[str, Any]:
    return {
        "name": cls.registered,
        "title": cls.title,
        "doc": " ".join((cls.__doc__ or "").split("\n\n")[0].split()),
        "emits": sorted(emits),
        "dim": getattr(cls, "fixed_dim", None),
        "settings": settings.describe(cls),
        "presets": cls.presets,
    }


@functools.cache
def load() -> dict[str, Any]:
    """Return the shipped catalogue (no torch)."""
    return json.loads(resources.files("bnnviz.specs").joinpath(_FILE).read_text(encoding="utf-8"))


def find(kind: str, name: str) -> dict[str, Any]:
    """Return one entry of the catalogue."""
    noun = {"samplers": "sampler", "targets": "target", "data": "data set"}[kind]
    if not isinstance(name, str):  # a file may contain anything
        raise BnnvizError(f"The {noun} must be a name, not {short_repr(name)}.", noun)
    if kind == "targets" and name in OWN:
        raise BnnvizError(
            f"This run used a custom {OWN[name]}, which recordings cannot store. In Python, pass it again:"
            " bnnviz.recording(name, target=...) reads the recording, and bnnviz.resume(name, target=...) continues it."
            " Its draws are available without it.",
            "target",
        )
    entries = {item["name"]: item for item in load()[kind]}
    if name not in entries:
        raise none_of(noun, name, entries)
    return entries[name]


def own_data() -> str:
    """Return the name of the data set that represents a user's file."""
    return next(item["name"] for item in load()["data"] if item["attached"])


def write() -> None:
    """Write the shipped catalogue file."""
    text = json.dumps(generate(), indent=1, ensure_ascii=False) + "\n"
    with resources.as_file(resources.files("bnnviz.specs").joinpath(_FILE)) as path:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
