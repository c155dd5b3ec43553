"""What bnnviz does where a package is missing: all that needs none, and one sentence else."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from core_only import CORE, PROJECT, ROOT, run_with
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bnnviz import optional
from bnnviz.errors import BnnvizError

EXTRAS = {
    extra: {canonicalize_name(Requirement(line).name) for line in lines} - {PROJECT["name"]}
    for extra, lines in PROJECT["optional-dependencies"].items()
}
#: Used by `bnnviz bench` alone, whose sentence names it.
BENCH_ONLY = {"psutil"}
ESS = "ESS and R-hat are missing: install arviz-stats (pip install 'bnnviz[metrics]')."
FIGURES = "Precision, recall, F1 and AUC are missing: install scikit-learn (pip install 'bnnviz[metrics]')."


# --- the table


def test_the_table_names_every_package_of_the_extras_and_an_extra_that_has_it():
    for package in optional.PACKAGES.values():
        assert package.name in EXTRAS[package.extra], f"{package.extra} does not install {package.name}"
    named = {package.name for package in optional.PACKAGES.values()}
    assert named == set().union(*(names for extra, names in EXTRAS.items() if extra not in ("test", "docs")))


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module)
    return {name.partition(".")[0] for name in found}


def test_whatever_is_imported_is_in_the_core_or_in_the_table():
    known = {*CORE, *optional.PACKAGES, *BENCH_ONLY, *sys.stdlib_module_names, "bnnviz"}
    for path in (ROOT / "bnnviz").rglob("*.py"):
        assert imported(path) <= known, f"{path.relative_to(ROOT)}: {imported(path) - known}"


def test_the_dashboard_installs_what_its_pages_use():
    lines = PROJECT["optional-dependencies"]["app"]
    inner = next(Requirement(line).extras for line in lines if Requirement(line).name == PROJECT["name"])
    assert inner == {"cli", "cluster", "data", "metrics", "plots"}


# --- the sentence


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    sentence = r"^Recordings need zarr; install it with: pip install 'bnnviz\[metrics\]'\.$"
    for ask in (optional.check, optional.require):
        with pytest.raises(BnnvizError, match=sentence) as caught:
            ask("zarr", "Recordings need", "record")
        assert caught.value.field == "record"
    with pytest.raises(BnnvizError, match=sentence), optional.needed("Recordings need"):
        import zarr.codecs  # noqa: F401
    with pytest.raises(BnnvizError, match=r"zarr.*'bnnviz\[cluster\]'"):
        optional.check("zarr", "Sweeps need", extra="cluster")


def test_a_package_that_is_there_and_broken_is_not_called_missing(tmp_path, monkeypatch):
    package = tmp_path / "pooch"
    package.mkdir()
    (package / "__init__.py").write_text("from pooch.core import nothing")
    (package / "core.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pooch"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(BnnvizError, match="pooch, which cannot be imported here .*install it again"):
        optional.require("pooch", "Downloads need")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pooch"]:
        del sys.modules[name]  # the broken one: the true one comes back


def test_an_error_of_our_own_is_not_explained_away():
    with pytest.raises(ModuleNotFoundError), optional.needed("A figure needs"):
        import bnnviz.no_such_module  # noqa: F401


# --- from Python, with the core alone

BEGIN = """
import json, numpy as np, torch, bnnviz
from bnnviz import BnnvizError

said, found = {}, {}
def refused(name, call):
    try:
        call()
    except BnnvizError as error:
        said[name] = error.sentence
"""

CLASSES = """
rng = np.random.default_rng(0)
x = rng.normal(size=(30, 2)).astype("float32")
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 3))
posterior = bnnviz.BNN(net, (x, (x > 0).sum(1)), likelihood="categorical")
run = bnnviz.sample(posterior, "hmc", draws=5, warmup=2, chains=2, settings={"mode_steps": 20})
"""

ALONE = """
run = bnnviz.sample("banana", "bps", draws=50, warmup=20, chains=2)
refused("to_arviz", run.to_arviz)
refused("save", lambda: run.save("x.nc"))
refused("live", run.live)
refused("replay", lambda: bnnviz.replay(run, "x.html"))
refused("record", lambda: bnnviz.sample("banana", draws=5, record="x"))
refused("saved", lambda: bnnviz.replay("x.nc", "x.html"))
found["summary"] = run.summary()
found["stats"] = run.stats
parts = ["trace", "acf", "marginal", "density", "trajectory", "table", "caption"]
found["frame"] = sorted(run.frame(parts))

run = bnnviz.sample("banana", "pmcnet", draws=2, chains=4)
found["weighted"] = run.summary()
"""

RACES = """
found["outputs"] = list(posterior.outputs(run.draws, torch.as_tensor(x)).shape)
found["classes"] = run.summary()
found["measure"] = bnnviz.measure(run)
found["uncertainty"] = bnnviz.uncertainty(run, ood=x + 5)["summary"]
found["attack"] = sorted(bnnviz.attack(run))
race = bnnviz.race("banana", ["bps", "hmc"], budget=20_000, chains=2, warmup=5)
refused("figure", lambda: race.figure("x.html"))
found["race"] = [race.said, race._repr_html_(), [row["error"] for row in race.table]]
found["wells"] = sorted(bnnviz.wells(moves=2).figures())
shrunk = {"mode_steps": 20}
network = {"data": "toy_a", "hidden": "3"}
run = bnnviz.sample("network", "boomerang", draws=5, warmup=2, settings=shrunk, target_settings=network)
found["network"] = [run.summary()["rmse"], bnnviz.measure(run)["averaged"]["rmse"]]
run = bnnviz.start("network", "bps", draws=None, settings=shrunk, target_settings=network, paused=True)
run.step()
run.change(refresh_rate=0.5)
found["started"] = run.frame(["prediction", "caption"])["caption"]["text"]
run.stop()
small = {"data": "boston", "hidden": "3"}  # which comes with bnnviz
run = bnnviz.sample("network", "bps", draws=5, chains=2, settings=shrunk, target_settings=small)
found["boston"] = list(run.draws.shape)
large = {"data": "naval", "hidden": "3"}
refused("download", lambda: bnnviz.sample("network", "bps", draws=5, target_settings=large))
"""
TOLD = "\nprint(json.dumps([said, found], default=lambda value: value.tolist()))"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What the public functions say, and what they come to, in a process that has the core alone."""
    result = run_with(BEGIN + ALONE + TOLD, home=tmp_path_factory.mktemp("home"))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_what_needs_a_missing_package_is_one_sentence(alone):
    said, _ = alone
    install = "install it with: pip install 'bnnviz[{}]'.".format
    assert said == {
        "to_arviz": f"Data trees need arviz-base; {install('metrics')}",
        "save": f"Saving a run needs arviz-base; {install('metrics')}",
        "live": f"Live figures need anywidget; {install('notebook')}",
        "replay": f"A replay needs bokeh; {install('app')}",
        "record": f"Recordings need zarr; {install('metrics')}",
        "saved": f"A replay needs bokeh; {install('app')}",
    }


def test_a_summary_has_all_that_needs_no_package_and_names_what_is_missing(alone):
    _, found = alone
    summary = found["summary"]
    assert summary["warnings"].count(ESS) == 1
    assert all(summary[name] is None for name in ("ess_min", "ess_tail_min", "rhat_max", "ess_pc1", "ess_energy"))
    assert all(len(summary[name]) == 2 for name in ("mean", "mean_se", "cov", "cov_se"))
    assert found["stats"]["events"] > 0
    assert {"trace", "acf", "table", "caption"} <= set(found["frame"])


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """As `alone`, of what takes longer."""
    begin = "import os; os.environ.pop('BNNVIZ_DATA', None); os.environ['XDG_CACHE_HOME'] = os.environ['BNNVIZ_HOME']\n"
    result = run_with(begin + BEGIN + CLASSES + RACES + TOLD, home=tmp_path_factory.mktemp("home"))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
def test_a_network_is_measured_but_for_what_scikit_learn_computes(longer):
    _, found = longer
    assert found["outputs"] == [10, 30, 3]
    warnings = found["classes"]["warnings"]
    assert (warnings.count(ESS), warnings.count(FIGURES)) == (1, 1)
    measured = found["measure"]
    assert found["classes"]["metrics"] == measured
    known = {name for name, value in measured["averaged"].items() if value is not None}
    assert known == {"accuracy", "nll", "ece", "brier"}
    assert set(measured["unknown"]) == set(measured["averaged"]) - known
    assert set(measured["unknown"].values()) == {FIGURES}
    assert sum(map(sum, measured["confusion"])) == 30


@pytest.mark.slow
def test_uncertainty_and_attacks_say_what_they_cannot_know(longer):
    _, found = longer
    summary = found["uncertainty"]
    assert summary["ood"]["entropy"] > 0
    assert summary["detection"] is None
    assert summary["function_ess"]["median"] is None
    assert "scikit-learn" in summary["unknown"]["detection"]
    assert "arviz-stats" in summary["unknown"]["function_ess"]
    assert "accuracy" in found["attack"]


def test_weighted_draws_are_summarised_without_the_tail_of_their_weights(alone):
    _, found = alone
    summary = found["weighted"]
    assert summary["weight_ess"] > 0
    assert summary["pareto_k"] is None
    assert (
        "The weights' Pareto k-hat is missing: install arviz-stats (pip install 'bnnviz[metrics]')."
        in (summary["warnings"])
    )


@pytest.mark.slow
def test_races_networks_and_live_runs_need_the_core_alone(longer):
    said, found = longer
    assert said["figure"] == "A figure needs holoviews; install it with: pip install 'bnnviz[plots]'."
    assert "pooch" in said["download"] and "bnnviz[data]" in said["download"]
    sentence, page, errors = found["race"]
    assert sentence and page is None and all(error > 0 for error in errors)
    assert {"func_hmc", "hmc"} <= set(found["wells"])
    assert found["network"][0] == found["network"][1]
    assert found["started"]


# --- from the command line

COMMANDS = {
    "sweep sweep.yaml --out runs": "Sweeps need pyyaml; install it with: pip install 'bnnviz[cluster]'.",
    "sample --target banana --out x": "Saving a run needs arviz-base; install it with: pip install 'bnnviz[metrics]'.",
    "sample --target banana --record x": "Recordings need zarr; install it with: pip install 'bnnviz[metrics]'.",
    "resume x": "Recordings need zarr; install it with: pip install 'bnnviz[metrics]'.",
    "export x --format npz": "Recordings need zarr; install it with: pip install 'bnnviz[metrics]'.",
    "race bps hmc --target banana --figure r.html": "A figure needs holoviews; install it with: pip install"
    " 'bnnviz[plots]'.",
    "reproduce pdmp-boston": "The figures of the papers' tables need arviz-stats; install it with: pip install"
    " 'bnnviz[metrics]'.",
    "replay spec.json --html r.html": "A replay needs bokeh; install it with: pip install 'bnnviz[app]'.",
    "replay x.nc --film f.npz": "Saved runs need h5py; install it with: pip install 'bnnviz[metrics]'.",
    "bench live": "The benchmark live needs psutil; install it with: pip install psutil.",
    "serve --no-show": "The dashboard needs panel; install it with: pip install 'bnnviz[app]'.",
}
DRIVE = """
import contextlib, io, json, os, sys
from bnnviz.cli.main import main
os.chdir(os.environ["BNNVIZ_HOME"])
for name in ("sweep.yaml", "spec.json", "x.nc"):
    open(name, "w").write('{"base": {"target": "banana"}}')
told = []
for line in json.loads(%r):
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(line.split())
    except SystemExit as ended:
        told.append([ended.code, err.getvalue()])
print(json.dumps(told))
"""


def test_a_command_that_lacks_a_package_says_so_and_exits_with_2(tmp_path):
    result = run_with(DRIVE % json.dumps(list(COMMANDS)), more=("typer", "rich"), home=tmp_path)
    assert result.returncode == 0, result.stderr
    for (line, sentence), (code, said) in zip(COMMANDS.items(), json.loads(result.stdout), strict=True):
        # What shows how far a command is may leave an empty line where there is no terminal.
        assert (code, said.strip()) == (2, f"bnnviz: {sentence}"), line


def test_a_command_without_packages_of_its_own_works(tmp_path):
    lines = ["--version", "list samplers", "list papers", "recordings list"]
    result = run_with(DRIVE % json.dumps(lines), more=("typer", "rich"), home=tmp_path)
    assert result.returncode == 0, result.stderr
    assert [code for code, _ in json.loads(result.stdout)] == [0] * len(lines)


def test_an_import_that_nobody_looked_at_before_is_explained_too(tmp_path):
    code = "import bnnviz.benchmarks\ndef find(suite):\n    import zarr\nbnnviz.benchmarks.find = find\n"
    result = run_with(code + DRIVE % '["bench live"]', more=("typer", "rich"), home=tmp_path)
    sentence = "bnnviz: This command needs zarr; install it with: pip install 'bnnviz[metrics]'.\n"
    assert json.loads(result.stdout) == [[2, sentence]], result.stderr


@pytest.mark.parametrize("missing", [("typer", "rich"), ("rich",)])
@pytest.mark.parametrize("module", ["bnnviz", "bnnviz.cli"])
@pytest.mark.parametrize("arguments", [["--help"], ["sample", "--target", "banana"]])
def test_the_command_line_without_its_packages_is_one_line(missing, module, arguments):
    code = f"import runpy, sys; sys.modules.update(dict.fromkeys({missing}))\n"
    code += f"sys.argv = ['bnnviz', *{arguments}]\nrunpy.run_module({module!r}, run_name='__main__')"
    result = run_with(code, more=("typer", "rich"))
    sentence = "bnnviz: The command line needs typer and rich; install them with: pip install 'bnnviz[cli]'.\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", sentence)
