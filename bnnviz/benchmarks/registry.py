"""Find suites by name: every module of `bnnviz.benchmarks.suites` holds one, a `Suite` called ``SUITE``."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from bnnviz import optional
from bnnviz.benchmarks import suites
from bnnviz.benchmarks.suite import Suite
from bnnviz.errors import BnnvizError


def names() -> list[str]:
    """Return the names of all suites."""
    return sorted(module.name for module in pkgutil.iter_modules(suites.__path__))


def find(name: str) -> Suite:
    """Return a suite by its name.

    Raises
    ------
    BnnvizError
        If there is no such suite, or a package is missing that it needs.
    """
    if name not in names():
        raise BnnvizError(f"There is no benchmark {name!r}; choose one of {', '.join(names())}.", "suite")
    try:
        return import_module(f"{suites.__name__}.{name}").SUITE
    except ModuleNotFoundError as error:
        if error.name.startswith("bnnviz"):
            raise
        needs = f"The benchmark {name} needs"
        plain = BnnvizError(f"{needs} {error.name}; install it with: pip install {error.name}.")
        raise (optional.explain(error, needs) or plain) from None
