"""The example in each docstring of `bnnviz.plots` runs."""

from __future__ import annotations

import doctest
import inspect
import sys

import pytest

from bnnviz import plots
from bnnviz.figures.still import style

#: What takes long in an example.
_RUNS = ("bnnviz.sample", "bnnviz.wells")


def case(name: str) -> object:
    """Return a public function's name; where its example samples, its test is a slow one."""
    samples = any(call in inspect.getdoc(getattr(plots, name)) for call in _RUNS)
    return pytest.param(name, marks=[pytest.mark.slow] if samples else [])


@pytest.mark.parametrize("name", [case(name) for name in plots.__all__])
def test_the_example_runs(name: str) -> None:
    function = getattr(plots, name)
    style.use("bokeh", "matplotlib")
    try:
        (found,) = doctest.DocTestFinder(recurse=False).find(
            function, name, globs=vars(sys.modules[function.__module__])
        )
        assert found.examples
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found)
    finally:
        style.use("bokeh", "matplotlib")
    assert result.failed == 0
