"""Frames that pages open on, of runs recorded with ``python -m bnnviz_app.opening_frames [PAGE ...]``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from bnnviz.engine.frames import codec

_FOLDER = Path(__file__).parent / "presets"
_ITERATIONS = 200  # of a population, whose run has no end


def read(page: str, spec: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return scene and frame of the recorded run of a spec that a page opens on; None without one."""
    file = _FOLDER / f"{page}.npz"
    found = codec.unpack(file.read_bytes()) if file.is_file() else None
    return None if found is None or found["spec"] != spec.checked().to_json() else (found["scene"], found["frame"])


def record(page: str, spec: Any) -> None:
    """Execute the run of a spec, and store its last frame."""
    from bnnviz.engine.host import Host

    module, name = spec.factory.split(":")
    host = Host(getattr(importlib.import_module(module), name)(spec), playing=True)
    while host.run.phase == "start":
        host.advance(1.0)
    if page == "population":
        host.command("event", times=_ITERATIONS)
    while host.going:
        host.advance(1.0)
    scene = host.scene()
    frame = host.frame(["status", "caption", "table", *scene["emits"]])
    frame["status"] |= {"playing": False, "shared": 0}
    packed = codec.pack({"spec": spec.checked().to_json(), "scene": scene, "frame": frame})
    (_FOLDER / f"{page}.npz").write_bytes(packed)


if __name__ == "__main__":
    from bnnviz_app.pages.double_well import DoubleWellPage
    from bnnviz_app.pages.population import PopulationPage
    from bnnviz_app.pages.race import RacePage
    from bnnviz_app.pages.uncertainty import UncertaintyPage

    for each in (DoubleWellPage, PopulationPage, RacePage, UncertaintyPage):
        if each.name in (sys.argv[1:] or [each.name]):
            record(each.name, each.opening())
