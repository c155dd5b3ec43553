"""Every public name has an entry in the reference, with an example that runs; results are in their functions'."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from bnnviz import plots
from docs.site import reference

ENTRIES = [entry for entry in reference.entries() if entry.same_as is None]
#: What takes some seconds in an example.
_RUNS = ("bnnviz.sample(", "bnnviz.wells(", "bnnviz.race(", ".fit(", "bnnviz.search_", "bnnviz.replay(")


def case(entry: reference.Entry) -> object:
    """Return an entry; where its example samples, its test is a slow one."""
    return pytest.param(entry, marks=[pytest.mark.slow] * any(call in entry.text for call in _RUNS), id=entry.path)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("entry", [case(entry) for entry in ENTRIES])
def test_the_example_runs(entry: reference.Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    plots.use("bokeh", "matplotlib")
    test = doctest.DocTestParser().get_doctest(entry.text, {}, entry.path, None, 0)
    is_result = isinstance(entry.value, type) and issubclass(entry.value, tuple)
    assert is_result or any(doctest.SKIP not in example.options for example in test.examples), "no example runs"
    try:
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0
    finally:
        plots.use("bokeh", "matplotlib")
