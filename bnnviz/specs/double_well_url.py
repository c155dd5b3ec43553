"""The Wells as a link, as Python and as a command."""

from __future__ import annotations

from bnnviz.specs import url
from bnnviz.specs.demo_url import differing, from_query, shareable, to_query
from bnnviz.specs.double_well import WellsSpec

__all__ = ["as_command", "as_python", "from_query", "shareable", "to_query"]


def as_python(wells: WellsSpec) -> str:
    """Return a complete script that repeats what is seen."""
    values = ", ".join(f"{name}={value!r}" for name, value in differing(wells).items())
    return "\n".join(
        [
            "import bnnviz",
            "",
            f"wells = bnnviz.wells({values})",
            "for name, figures in wells.figures().items():",
            "    print(name, figures)",
            "",
        ]
    )


def as_command(wells: WellsSpec) -> str:
    """Return a line for the shell that repeats it."""
    values = [f"--set {name}={url.write_value(value)}" for name, value in differing(wells).items()]
    return " ".join(["bnnviz", "wells", *values])
