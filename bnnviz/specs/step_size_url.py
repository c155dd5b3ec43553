"""The step-size microscope as a link and as Python; the command line has none."""

from __future__ import annotations

from bnnviz.specs.demo_url import differing, from_query, shareable, to_query
from bnnviz.specs.step_size import ScopeSpec

__all__ = ["as_command", "as_python", "from_query", "shareable", "to_query"]
SECONDS = 20.0  # that the script works


def as_python(scope: ScopeSpec) -> str:
    """Return a complete script that repeats what is seen, for some seconds."""
    return "\n".join(
        [
            "from bnnviz.engine.demos.step_size import StepSizeDemo",
            "from bnnviz.specs.step_size import ScopeSpec",
            "",
            f"scope = StepSizeDemo(ScopeSpec({differing(scope)!r}))",
            f"scope.advance({SECONDS:g})  # seconds; errors become smaller for as long as one waits",
            "for name, figures in scope.figures().items():",
            "    print(name, figures)",
            "",
        ]
    )


def as_command(scope: ScopeSpec) -> str:
    """Return an empty text: there is no command."""
    return ""
