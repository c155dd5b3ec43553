"""The notebooks: outputs are kept, show what the texts say, and say the same when they are executed again."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from execute_notebooks import MOST_BYTES, MOST_SECONDS, NOTEBOOKS, PLACES, WIDGET, executed, kernels_cpu

Cells = dict[str, Any]
PNG = "image/png"

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def kept(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook as they are kept."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def text_of(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def code(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [cell for cell in cells if cell["cell_type"] == "code"]


def said(cell: Any) -> str:
    """Return what a cell has printed."""
    return "".join(text_of(out["text"]) for out in cell["outputs"] if out["output_type"] == "stream")


def shown(cell: Any) -> str:
    """Return the value that a cell ends in, as text."""
    return next(text_of(out["data"]["text/plain"]) for out in cell["outputs"] if "data" in out)


def numbers(text: str) -> list[float]:
    """Return the numbers in a text, percents as shares of 100."""
    return [float(found.replace(",", "")) for found in re.findall(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?", text)]


def pictures(cells: Cells) -> list[str]:
    return [name for name, cell in cells.items() if any(PNG in out.get("data", {}) for out in cell.get("outputs", []))]


# --- what is kept


@each_notebook
def test_every_cell_that_shows_something_has_its_output(path):
    for cell in code(kept(path)):
        if shows(text_of(cell["source"])):
            assert cell["outputs"], f"{path.stem}: the cell {cell['id']} shows nothing; execute it with make notebooks"


def shows(source: str) -> bool:
    """Return whether a cell prints, draws or ends in a value."""
    body = ast.parse(source).body
    outside = [node for node in body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    calls = [node.func for top in outside for node in ast.walk(top) if isinstance(node, ast.Call)]
    names = {call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls}
    ends = bool(body) and isinstance(body[-1], ast.Expr) and not source.rstrip().endswith(";")
    return ends or bool({"print", "show"} & names)


@each_notebook
def test_it_was_executed_from_the_first_cell_to_the_last(path):
    cells = code(kept(path))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))


@each_notebook
def test_outputs_are_for_everybody(path):
    assert path.stat().st_size < MOST_BYTES
    for cell in code(kept(path)):
        for out in cell["outputs"]:
            assert out["output_type"] != "error" and out.get("name") != "stderr", cell["id"]
            data = out.get("data", {})
            # What needs a script or a kernel shows nothing on a code host.
            assert WIDGET not in data and not any("javascript" in kind or "bokeh" in kind for kind in data), cell["id"]
            assert set(data) <= {"text/plain", "text/html", PNG}, cell["id"]
            told = json.dumps(out if PNG not in data else data.get("text/plain", ""))
            assert not PLACES.search(told), cell["id"]


@each_notebook
def test_its_text_is_of_a_tutorial(path):
    cells = kept(path)
    markdown = [text_of(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    heads = [line for text in markdown for line in text.splitlines() if line.startswith("# ")]
    assert len(heads) == 1 and markdown[0].startswith(heads[0])
    assert "you will know" in markdown[0]
    assert (
        sum("question" in line.lower() for text in markdown for line in text.splitlines() if line.startswith("#")) == 1
    )
    assert any(text.startswith("**Answer.**") for text in markdown)
    assert not re.search(r"<[a-z]+[ >]", "".join(markdown))


@each_notebook
def test_each_figure_in_the_text_is_computed(path):
    """A number with decimals in a sentence is in the code or in the output of a cell."""
    cells = kept(path)
    computed = " ".join(text_of(cell["source"]) + json.dumps(cell["outputs"]) for cell in code(cells))
    known = {figure.lstrip("0") for figure in re.findall(r"\d*\.\d+", computed)}
    for cell in cells:
        if cell["cell_type"] != "markdown":
            continue
        prose = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\]\([^)]*\)", "", text_of(cell["source"]), flags=re.DOTALL)
        told = {figure.lstrip("0") for figure in re.findall(r"(?<![\w.])\d*\.\d+", prose)}
        assert told <= known, f"{path.stem}: {cell['id']} has {sorted(told - known)}"


# --- what the texts say


RHATS = ("rhat_max", "rhat_function_max")


def first_look(cells: Cells) -> None:
    assert {"banana", "fit", "still", "band"} <= set(pictures(cells))
    assert int(shown(cells["step"])) == int(shown(cells["pause"])) + 1
    sds = [numbers(line)[-1] for line in said(cells["predict"]).splitlines()]
    assert min(sds[0], sds[2], sds[4]) > 2 * max(sds[1], sds[3])
    weights, functions = (float(re.search(rf"'{name}': ([\d.]+)", shown(cells["summary"]))[1]) for name in RHATS)
    assert functions < weights
    gap, data = (numbers(line) for line in said(cells["answer"]).splitlines())
    assert gap[0] == pytest.approx(gap[1], rel=0.3) and gap[1] > 2 * data[1]


def thinning(cells: Cells) -> None:
    assert pictures(cells) == ["why", "rate", "steps", "law", "eq11", "clip", "events"]
    mean, variance, integral = numbers(said(cells["why"]).splitlines()[0])
    assert mean == pytest.approx(integral, rel=0.01) and variance == pytest.approx(integral, rel=0.03)
    assert abs(numbers(said(cells["why"]).splitlines()[1])[-1]) < 0.03
    _, few, right, *_, area = numbers(said(cells["low"]))
    assert right - few == pytest.approx(area, abs=0.05)
    # Two proposals are rejected under lines above the rate, and the third is accepted.
    assert [line.split()[-1] for line in said(cells["algorithm"]).splitlines()] == [
        "look", "rejected", "rejected", "accepted",
    ]  # fmt: skip
    assert "After a bounce: 100% of the events come after time 2, exactly 0.0%" in said(cells["law"])
    assert "0% lie after 1.0" in said(cells["eq11"])
    variances = [float(line.split("variance")[1].split()[0]) for line in said(cells["clip"]).splitlines()]
    points, line, horizon, grid = variances
    assert points > 5 > line > 2 > 1.5 > horizon
    assert grid == pytest.approx(1, abs=0.15)
    events, path, weighted = (float(part.split()[-1]) for part in said(cells["events"]).split(","))
    assert events == pytest.approx(1.327, abs=0.05)
    assert path == pytest.approx(1, abs=0.03)
    assert weighted == pytest.approx(1, abs=0.03)
    rows = [numbers(line) for line in said(cells["answer"]).splitlines()]
    assert all(row[1] > 5 > row[2] > 2 for row in rows)


def functionals(cells: Cells) -> None:
    assert {"picture", "live"} <= set(pictures(cells))
    functional, point = (numbers(line)[-1] for line in said(cells["wells"]).splitlines())
    assert 100 > functional > point > 0  # both cover in some of the runs and not in others
    first, after = numbers(said(cells["start"]).splitlines()[0])
    assert first == pytest.approx(after, abs=0.04)
    ten, _, many = [numbers(line)[1:] for line in said(cells["long"]).splitlines()]
    assert ten[0] < ten[1] and many[1] < 0.5 * ten[1]
    assert many[1] - many[0] < 0.05
    plain, weighted = numbers(said(cells["weights"]))
    assert plain == pytest.approx(2, abs=0.15)
    assert weighted == pytest.approx(1, abs=0.1)
    lines = said(cells["metric"]).splitlines()
    moves = [float(line[40:].split()[0]) for line in lines]
    literal, none, drift, inverse = moves
    assert literal / none == pytest.approx(9, rel=0.03) and none / inverse == pytest.approx(9, rel=0.05)
    assert drift == pytest.approx((none * inverse) ** 0.5, rel=0.05)
    for line in lines:
        # Euler's step of 0.05 of the stiffest direction widens it by 1 / (1 - 0.025).
        spread = numbers(line.split("[")[1])
        assert all(0.9 < value < 1.13 for value in spread[:2]), line
    one, two = (numbers(line)[-1] for line in said(cells["fokker"]).splitlines()[:2])
    assert one < 1e-3 < 0.05 < two
    right, hot = (numbers(line)[1] for line in said(cells["fokker"]).splitlines()[2:])
    assert right == pytest.approx(1, abs=0.05) and hot > 1.5
    corrected, paper = (numbers(line)[0] for line in said(cells["law"]).splitlines())
    assert corrected == pytest.approx(1, abs=0.2)
    assert paper < 0.6
    _, distances, covered = (numbers(line) for line in said(cells["answer"]).splitlines())
    assert distances[1] < distances[0]
    assert covered[1] > covered[0]


def races(cells: Cells) -> None:
    assert {"live", "curves"} <= set(pictures(cells))
    assert any("text/html" in out.get("data", {}) for name in ("table", "bias") for out in cells[name]["outputs"])
    assert "SGLD (step_size 3) diverged and is not ranked" in said(cells["bias"])
    for line in said(cells["floor"]).splitlines():
        _, theory, race, error = numbers(line)
        assert abs(race - theory) < 3 * error
    assert race > 10 * error
    assert "nan" in said(cells["poor"]) and "spent all on tuning" in said(cells["poor"])
    assert said(cells["luck"]).count("is first") == 8
    assert "nan" not in said(cells["luck"]) + said(cells["answer"])
    for line in said(cells["answer"]).splitlines()[:2]:
        least, most, mean = numbers(line.split("errors")[1])
        assert 0 < least < mean < most
        assert most > 1.5 * least


def pmcnet(cells: Cells) -> None:
    assert {"live", "weights"} <= set(pictures(cells))
    found, exact = (float(part.split()[0]) for part in said(cells["integral"]).split(": ")[1].split("exactly "))
    assert found == pytest.approx(exact, abs=0.02)
    whole, *_ = said(cells["banana"]).splitlines()
    narrow, k_hat, stein = (float(whole.split(mark)[1].split()[0]) for mark in ("variances [", "k-hat ", "Stein ["))
    assert narrow < 0.9 and k_hat < 0.7 and stein < 0.9  # Stein's identity sees what k-hat does not
    assert "'accuracy': 0.9155, 'auc': 0.9796" in said(cells["start"])
    assert all(float(line.split(": ")[1].split()[0]) < 20 for line in said(cells["collapse"]).splitlines())
    lines = said(cells["published"]).splitlines()
    spread = {line[:32].strip(): float(line.split("(")[1].split(")")[0]) for line in lines}
    assert spread["T = 3, weights ignored"] > 0.01 > 0.5 * spread["T = 3, by their weights"]
    _, share, of_rows, rows = numbers(said(cells["rows"]))
    assert share == pytest.approx(1 / 3, abs=0.05) and of_rows < 1 and rows == 71
    assert "HMC" in said(cells["posterior"])
    assert all(numbers(line)[-1] < 30 for line in said(cells["answer"]).splitlines())


def uncertainty(cells: Cells) -> None:
    assert pictures(cells) == ["picture"]
    told = [float(line.split("AUROC ")[1].split()[0]) for line in said(cells["judged"]).splitlines()]
    assert 0.8 < told[0] < told[1]  # the posterior tells letters better than the mode does
    alone, together = (float(line.split("(")[1].split()[0]) for line in said(cells["parts"]).splitlines())
    assert together > alone > 1
    attacker, others = said(cells["attack"]).splitlines()
    accuracy = [
        [float(part.split("accuracy ")[1].split(",")[0]) for part in line.split(";")] for line in (attacker, others)
    ]
    assert all(right > wrong for wrong, right in zip(*accuracy, strict=True))
    assert accuracy[0][-1] < 0.1 < accuracy[1][-1] < accuracy[1][0]
    assert float(said(cells["chains"]).split("worth: ")[1].split()[0]) < 50
    _, everything, _, few = numbers(said(cells["chains"]).splitlines()[-1])
    assert few == pytest.approx(everything, rel=0.15)


def recordings(cells: Cells) -> None:
    assert pictures(cells) == ["overlay"]
    assert {"header.json", "progress.json"} <= {line.strip() for line in said(cells["record"]).splitlines()}
    stopped, same = said(cells["resume"]).splitlines()
    assert 150 < int(stopped.split()[2]) < 240  # a third of 600 draws and 50 of warm-up
    assert same == "the same draws: True"
    warm, cold = (float(line.split("draw ")[1].split(";")[0]) for line in said(cells["start"]).splitlines())
    assert warm == pytest.approx(1, abs=0.3)
    assert cold < 0.1
    steps = said(cells["steps"]).splitlines()
    counts = {line.split(":")[0]: int(line.split(": ")[1].replace(",", "")) for line in steps[1:-1]}
    # The chance of acceptance is that of the proposals: bounces of bounces and rejections.
    share = counts["bounce"] / (counts["bounce"] + counts["rejected"])
    assert float(steps[-1].split()[-4]) == pytest.approx(share, abs=0.05)
    assert "smallest ESS" in said(cells["arviz"])
    assert said(cells["torch"]).startswith("80 networks with")
    assert 0 < float(said(cells["page"]).split(": ")[1].split()[0]) < 6
    assert said(cells["answer"]).count("True") == 2


def boomerang(cells: Cells) -> None:
    assert pictures(cells) == ["flow", "paths", "bands", "curves"]
    bps, own = (numbers(line) for line in said(cells["gaussian"]).splitlines())
    assert own[0] < 0.05 * bps[0]
    for line in said(cells["line"]).splitlines():
        mean, sd, true_mean, true_sd = numbers(line[17:])
        assert mean == pytest.approx(true_mean, abs=0.25 * true_sd)
        assert sd == pytest.approx(true_sd, rel=0.1)
    posterior, *_, prior, _ = [numbers(line[17:])[3] for line in said(cells["line"]).splitlines()]
    assert prior < 0.85 * posterior
    plain, scaled, paper = said(cells["sigma"]).splitlines()
    narrow = {line: numbers(line.split("[")[1])[1] for line in (plain, scaled, paper)}
    assert narrow[plain] == pytest.approx(0.01, rel=0.15) and narrow[scaled] == pytest.approx(0.01, rel=0.15)
    assert narrow[paper] < 0.005
    cost = {line: float(line.split(", ")[-1].split()[0]) for line in (plain, scaled)}
    assert cost[scaled] < cost[plain]
    first, ratio = said(cells["answer"]).splitlines()
    assert "'the banana': 'Boomerang'" not in first
    assert numbers(ratio)[0] > 2


def minibatches(cells: Cells) -> None:
    assert pictures(cells) == ["held-picture", "orbit-picture", "rate"]
    right, wrong, posterior = said(cells["factor"]).splitlines()
    mean, error, truth = numbers(right.split("gradient")[1])
    assert abs(mean - truth) < 3 * error
    mean, error, truth = numbers(wrong.split("gradient")[1])
    assert abs(mean - truth) > 10 * error
    assert numbers(posterior)[-1] == pytest.approx(10**0.5, rel=0.1)
    for line in said(cells["held"]).splitlines():
        _, fresh, fresh_se, held, _, truth = numbers(line)
        assert truth == 0.5 and abs(fresh - truth) < 4 * fresh_se
        assert held > 0.6
    whole, plain, control = (numbers(line[26:]) for line in said(cells["cost"]).splitlines())
    assert whole[0] > 0.9 and plain[0] < control[0] < 0.5
    assert all(each[-1] < 4 for each in (whole, plain, control))  # of three means, in their standard errors
    assert control[3] > 100 > plain[3]  # a mode has to be searched
    for line in said(cells["answer"]).splitlines():
        assert apart(line) < -2.5 and float(line.split(": ")[1].split()[0]) < 1
    first, more_refreshed, slower = (numbers(line)[2:4] for line in said(cells["velocity"]).splitlines())
    assert abs(log_ratio(first, slower)) < 3 < log_ratio(more_refreshed, first)
    assert said(cells["orbit"]).count("\n") == 2
    variances = numbers(said(cells["orbit"]).splitlines()[1])
    assert variances[0] == pytest.approx(variances[4], rel=0.1)
    few, right, many = (numbers(line.split("takes")[1]) for line in said(cells["rate"]).splitlines())
    assert log_ratio(few[:2], right[:2]) > 3 and log_ratio(many[:2], right[:2]) > 3  # of the energy
    assert log_ratio(right[2:], few[2:]) > 3 and log_ratio(many[2:], right[2:]) > 3  # of a coordinate


def apart(line: str) -> float:
    """Return how many standard errors a line says that something is from 0."""
    return float(re.search(r"([-+][\d.]+) standard errors from 0", line)[1])


def log_ratio(one: list[float], other: list[float]) -> float:
    """Return the logarithm of the ratio of two values (value, standard error) in its standard errors."""
    error = math.hypot(one[1] / one[0], other[1] / other[0])
    return math.log(one[0] / other[0]) / error


def own_table(cells: Cells) -> None:
    assert pictures(cells) == ["picture", "trace"]
    assert said(cells["table"]).startswith("300 rows, inputs: cement, slag")
    assert said(cells["sample"]).startswith("sampler ")
    assert said(cells["again"]).startswith("usable")
    inside, known = re.match(r"(\d+) of (\d+) observations", said(cells["picture"])).groups()
    assert int(inside) >= 8 and known == "12"
    assert said(cells["picture"]).splitlines()[1].endswith("12]")
    like, unlike = (numbers(part)[0] for part in said(cells["answer"]).split("would remove: ")[1].splitlines())
    assert unlike > like


CHECKS: dict[str, Callable[[Cells], None]] = {
    "01_first_look": first_look,
    "02_thinning": thinning,
    "03_functional": functionals,
    "04_race": races,
    "05_pmcnet": pmcnet,
    "06_uncertainty": uncertainty,
    "07_recordings": recordings,
    "08_boomerang": boomerang,
    "09_minibatches": minibatches,
    "10_own_table": own_table,
}


def test_every_notebook_is_checked():
    assert [path.stem for path in NOTEBOOKS] == list(CHECKS)


@each_notebook
def test_what_is_kept_shows_what_the_text_says(path):
    CHECKS[path.stem]({cell["id"]: cell for cell in kept(path)})


@pytest.mark.slow
@pytest.mark.timeout(600)
@each_notebook
def test_executed_again_it_shows_the_same(path):
    before = kernels_cpu()
    cells = executed(path).cells
    spent = kernels_cpu() - before
    CHECKS[path.stem]({cell.id: cell for cell in cells})
    assert 1 < spent < MOST_SECONDS
