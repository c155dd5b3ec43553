"""What bnnviz does if packages of an extra are missing: what needs none of them works, the rest names the extra."""

from __future__ import annotations

import json
import sys

import pytest
from core_only import run_with

from bnnviz import optional


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"zarr.*\[metrics\]"):
        optional.require("zarr", "Recordings need")


# --- from Python, with the core alone

BEGIN = """
import json, numpy as np, torch, bnnviz

said, found = {}, {}
def refused(name, call):
    try:
        call()
    except (ImportError, bnnviz.BnnvizError) as error:
        said[name] = str(error)
"""

ALONE = """
run = bnnviz.sample("banana", "bps", draws=50, warmup=20, chains=2)
refused("to_arviz", run.to_arviz)
refused("save", lambda: run.save("x.nc"))
refused("live", run.live)
refused("replay", lambda: bnnviz.replay(run, "x.html"))
refused("record", lambda: bnnviz.sample("banana", draws=5, record="x"))
found["summary"] = run.summary()
parts = ["trace", "acf", "marginal", "density", "trajectory", "table", "caption"]
found["frame"] = sorted(run.frame(parts))
found["weighted"] = bnnviz.sample("banana", "pmcnet", draws=2, chains=4).summary()
"""

LONGER = """
rng = np.random.default_rng(0)
x = rng.normal(size=(30, 2)).astype("float32")
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 3))
posterior = bnnviz.BNN(net, (x, (x > 0).sum(1)), likelihood="categorical")
run = bnnviz.sample(posterior, "hmc", draws=5, warmup=2, chains=2, settings={"mode_steps": 20})
found["measure"] = bnnviz.measure(run)
found["uncertainty"] = bnnviz.uncertainty(run, ood=x + 5)["summary"]
race = bnnviz.race("banana", ["bps", "hmc"], budget=20_000, chains=2, warmup=5)
refused("figure", lambda: race.figure("x.html"))
found["race"] = [row["error"] for row in race.table]
run = bnnviz.start("network", "bps", draws=None, settings={"mode_steps": 20}, paused=True,
                   target_settings={"data": "toy_a", "hidden": "3"})
run.step()
run.change(refresh_rate=0.5)
run.stop()
large = {"data": "naval", "hidden": "3"}
refused("download", lambda: bnnviz.sample("network", "bps", draws=5, target_settings=large))
"""
TOLD = "\nfrom bnnviz.files import to_json\nprint(json.dumps([to_json(said), to_json(found)]))"
NO_DATA = "import os; os.environ.pop('BNNVIZ_DATA', None); os.environ['XDG_CACHE_HOME'] = os.environ['BNNVIZ_HOME']\n"


@pytest.mark.slow
def test_what_needs_no_missing_package_works_and_the_rest_names_the_extra(tmp_path):
    result = run_with(BEGIN + ALONE + TOLD, home=tmp_path)
    assert result.returncode == 0, result.stderr
    statement, found = json.loads(result.stdout)
    extras = {"to_arviz": "metrics", "save": "metrics", "live": "notebook", "replay": "app", "record": "metrics"}
    assert statement.keys() == extras.keys()
    assert all(f"[{extra}]" in statement[name] for name, extra in extras.items())
    summary = found["summary"]
    assert all(summary[name] is None for name in ("ess_min", "ess_tail_min", "rhat_max"))
    assert "missing_package" in {warning["code"] for warning in summary["warnings"]}
    assert all(len(summary[name]) == 2 for name in ("mean", "mean_se", "cov", "cov_se"))
    assert {"trace", "acf", "table", "caption"} <= set(found["frame"])
    assert found["weighted"]["weight_ess"] > 0 and found["weighted"]["pareto_k"] is None


@pytest.mark.slow
def test_networks_races_and_live_runs_need_the_core_alone(tmp_path):
    result = run_with(NO_DATA + BEGIN + LONGER + TOLD, home=tmp_path)
    assert result.returncode == 0, result.stderr
    statement, found = json.loads(result.stdout)
    assert "[plots]" in statement["figure"] and "[data]" in statement["download"]
    averaged = found["measure"]["averaged"]
    assert {name for name, value in averaged.items() if value is not None} == {"accuracy", "nll", "ece", "brier"}
    assert found["uncertainty"]["ood"]["entropy"] > 0 and found["uncertainty"]["detection"] is None
    assert all(error > 0 for error in found["race"])


# --- from the command line

COMMANDS = {
    "sample --target banana --out x": "metrics",
    "sample --target banana --record x": "metrics",
    "resume x": "metrics",
    "export x --format npz": "metrics",
    "race bps hmc --target banana --figure r.html": "plots",
    "replay spec.json --html r.html": "app",
    "serve --no-show": "app",
}
DRIVE = """
import contextlib, io, json, os, sys
from bnnviz.cli.main import main
os.chdir(os.environ["BNNVIZ_HOME"])
open("spec.json", "w").write('{"base": {"target": "banana"}}')
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


@pytest.mark.slow
def test_a_command_that_lacks_a_package_exits_with_2_and_others_work(tmp_path):
    working = ["--version", "list samplers", "recordings list"]
    result = run_with(DRIVE % json.dumps([*COMMANDS, *working]), more=("typer", "rich"), home=tmp_path)
    assert result.returncode == 0, result.stderr
    answers = json.loads(result.stdout)
    for (line, extra), (code, statement) in zip(COMMANDS.items(), answers, strict=False):
        assert code == 2 and f"[{extra}]" in statement, line
    assert [code for code, _ in answers[len(COMMANDS) :]] == [0] * len(working)


def test_the_command_line_without_its_packages_is_one_line():
    code = "import runpy, sys; sys.modules.update(dict.fromkeys(('typer', 'rich')))\n"
    code += "sys.argv = ['bnnviz', 'sample']\nrunpy.run_module('bnnviz', run_name='__main__')"
    result = run_with(code, more=("typer", "rich"))
    assert (result.returncode, result.stdout) == (2, "") and "[cli]" in result.stderr
