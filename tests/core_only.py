"""Python code for a process of its own in which nothing can be imported but what named distributions need."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = [Requirement(line).name for line in PROJECT["dependencies"]]

# Lets through the standard library, bnnviz, and the distributions with all that they need themselves, and nothing else
# that happens to be installed.
_HOOK = """
import importlib.metadata as metadata, sys
from importlib.machinery import PathFinder
from packaging.requirements import Requirement

allowed, queue = set(), {allowed!r}
while queue:
    name = queue.pop().lower().replace("_", "-")
    if name not in allowed:
        allowed.add(name)
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for requirement in map(Requirement, requires):
            if requirement.marker is None or requirement.marker.evaluate({{"extra": ""}}):
                queue.append(requirement.name)

owners = metadata.packages_distributions()

class Only(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in owners and top not in ("bnnviz", "bnnviz_app"):
            if not any(owner.lower().replace("_", "-") in allowed for owner in owners[top]):
                return None
        return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Only
for module in [name for name in sys.modules if name.partition(".")[0] == "packaging"]:
    del sys.modules[module]
"""


def run_with(
    code: str, *, more: tuple[str, ...] = (), home: Path | None = None, timeout: float = 170
) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has the core's distributions and ``more``, with BNNVIZ_HOME at ``home``."""
    environment = os.environ if home is None else {**os.environ, "BNNVIZ_HOME": str(home)}
    command = [sys.executable, "-c", _HOOK.format(allowed=[*CORE, *more]) + code]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)
