"""Record the runs that pages open on: ``python tests/record_openings.py [PAGE ...]``."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from bnnviz.engine.frames import codec
from bnnviz.engine.host import Host
from bnnviz_app.opening_frames import FOLDER
from bnnviz_app.pages.lab import FIRST_DRAWS, LabPage
from bnnviz_app.pages.population import PopulationPage
from bnnviz_app.pages.race import RacePage
from bnnviz_app.pages.uncertainty import UncertaintyPage
from bnnviz_app.pages.wells import DoubleWellPage

ITERATIONS = 200  # of a population, whose run has no end
SHOWN = ["status", "caption", "table", "timeline", "prediction", "envelope"]  # of the Lab at its opening


def record(page: str, spec: Any) -> None:
    """Execute the run of a spec, and store its last frame, or that at which the Lab does not slow down yet."""
    module, name = spec.factory.split(":")
    host = Host(getattr(importlib.import_module(module), name)(spec), playing=True)
    while host.run.phase == "start":
        host.advance(1.0)
    if page == "population":
        host.command("event", times=ITERATIONS)
    while host.going and (page != "lab" or _draws(host) < FIRST_DRAWS - 1):
        host.advance(0.001 if page == "lab" else 1.0)
    scene = host.scene()
    frame = host.frame(SHOWN if page == "lab" else ["status", "caption", "table", *scene["emits"]])
    frame["status"] |= {"playing": page == "lab", "shared": 0}
    packed = codec.pack({"spec": spec.checked().to_json(), "scene": scene, "frame": frame})
    (FOLDER / f"{page}.npz").write_bytes(packed)


def _draws(host: Host) -> int:
    return host.run.store.common(host.run.alive)


if __name__ == "__main__":
    for each in (DoubleWellPage, LabPage, PopulationPage, RacePage, UncertaintyPage):
        if each.name in (sys.argv[1:] or [each.name]):
            record(each.name, each.opening())
