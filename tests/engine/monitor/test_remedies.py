"""Every warning that somebody can act on names an option, and the option is one of Python and of the command line."""

from __future__ import annotations

import ast
import inspect
import shlex
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import remedies
from bnnviz.cli import sample as cli_sample
from bnnviz.cli.main import app
from bnnviz.cli.output import say
from bnnviz.engine.monitor import approximation, gradients, move_warnings, run_warnings
from bnnviz.specs.run import Spec

MODULES = (approximation, gradients, move_warnings, run_warnings)
GOOD = {"rhat_max": 1.005, "ess_min": 900.0, "widening": {"share": 0.01, "se": 0.02}}
WEIGHTED = {"pareto_k": 0.5, "weight_ess_share": 0.4}
#: What a caller has to mend in a function of their own, or to wait for.
NO_OPTION = ("U differs from one call", "U of one chain depends", "U changes otherwise", "There are no draws yet")
OF_NETWORK = {"data": "toy_c", "hidden": "2"}


def made(target: Any, sampler: str, draws: int = 30, **given: Any) -> Any:
    """Return a run with a few draws, whose attributes may be replaced."""
    options = {"draws": draws, "warmup": 0, "chains": 2, "seed": 1} | given
    return bnnviz.sample(target, sampler, **options)._run


def like(run: Any, **other: Any) -> Any:
    """Return what warnings read of a run, some of it replaced."""
    names = ("spec", "sampler", "target", "store", "alive", "phase", "error", "notes", "draws", "minutes", "own_target")
    kept = {name: getattr(run, name) for name in (*names, "sampler_stats", "sample_stats")}
    return SimpleNamespace(**kept | other)


def of_figures(run: Any) -> Iterator[str]:
    for found in (
        {"draws": 3},
        {"rhat_max": 1.2},
        {"ess_min": 20.0},
        {"ess_tail_min": 20.0, "ess_energy": 9.0},
        {"rhat_function_max": 1.3},
        {"widening": {"share": 0.4, "se": 0.05}},
        {"widening": {"share": -0.4, "se": 0.05}},
    ):
        yield from run_warnings.warnings(run, GOOD | found)


def of_moments(run: Any) -> Iterator[str]:
    known = like(run, target=SimpleNamespace(cov=lambda: np.diag([1.0, 4.0]), names=lambda: ["a", "b"]))
    for variance in (2.0, 6.0):
        cov = [[1.0, 0.3], [0.3, variance]]
        yield from run_warnings.warnings(known, GOOD | {"cov": cov, "cov_se": [[0.1, 0.1], [0.1, 0.2]]})


def of_weights(run: Any) -> Iterator[str]:
    for found in (
        {"pareto_k": 1.2, "weight_ess_share": 0.001},
        {"weight_ess_share": 0.001},
        {"widening": {"share": -0.2, "se": 0.02}},
    ):
        yield from run_warnings.warnings(run, WEIGHTED | found)
    known = like(run, target=SimpleNamespace(cov=lambda: np.diag([1.0, 4.0]), names=lambda: ["a", "b"]))
    yield from run_warnings.warnings(known, WEIGHTED | {"cov": [[1.0, 0], [0, 2.0]], "variance_se": [0.05, 0.2]})


def of_the_run(run: Any) -> Iterator[str]:
    yield from run_warnings.of_run(like(run, alive=np.array([True, False])))
    yield from run_warnings.of_run(like(run, draws=np.zeros((2, 0, 2))))
    yield from run_warnings.of_run(run)


def of_moves(run: Any) -> Iterator[str]:
    shape = (2, 200)
    energy = np.cumsum(np.random.default_rng(0).normal(size=shape), axis=1)
    stats = {"diverging": np.ones(shape), "energy": energy}
    stats |= {"reached_max_treedepth": np.ones(shape)} if hasattr(run.sampler, "max_depth") else {}
    still = torch.zeros(2, 200, run.target.dim, dtype=run.dtype)
    yield from move_warnings.of_moves(
        like(run, sample_stats=stats, store=SimpleNamespace(view=lambda alive: still), dtype=run.dtype)
    )


def half_line(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x.square() / 2, torch.inf).sum(-1)


def of_approximation(run: Any) -> Iterator[str]:
    found = {"pareto_k": 0.9, "total_variation": 0.6, "infinite_share": 0.2}
    yield from approximation.of_approximation(run, found)


def of_functions() -> Iterator[tuple[Any, str]]:
    """Yield what is said of functions that are no potential."""
    large = made(lambda x: x.square().sum(-1) / 2 + 1e8, "hmc", dim=2, dtype="float32")
    jumps = made(lambda x: x.square().sum(-1) / 2 + (x[:, 0] > 0), "sgld", dim=2)
    bent = made(lambda x: (x.detach() * x).sum(-1) / 2, "hmc", dim=2)
    random = made(lambda x: x.square().sum(-1) / 2 + torch.rand_like(x[:, 0]), "hmc", dim=2)
    mean = made(lambda x: (x - x.mean(0) / 2).square().sum(-1) / 2, "hmc", dim=2)
    for run in (large, jumps, bent, random, mean):
        yield from ((run, sentence) for sentence in gradients.of_gradient(run))


def of_densities() -> Iterator[tuple[Any, str]]:
    for run in (
        *(made("gaussian", name) for name in ("hmc", "nuts", "bps", "sghmc")),
        made("gaussian", "zigzag", settings={"bound": "interpolated"}),
        made("gaussian", "sgld", settings={"step_size": 0.01}),
        made("gaussian", "parallel_tempering"),
    ):
        told = (of_figures, of_moments, of_the_run, *((of_moves,) if run.spec.sampler in ("hmc", "nuts") else ()))
        yield from ((run, sentence) for one in told for sentence in one(run))
    beyond = made(half_line, "hmc", dim=1, draws=200)
    yield from ((beyond, sentence) for sentence in move_warnings._of_divergences(beyond, np.ones((2, 200))))
    events = made("gaussian", "bps", settings={"samples": "events"})
    yield from ((events, sentence) for sentence in run_warnings.of_run(events))
    for bound in ("grid", "interpolated"):
        late = made("gaussian", "bps", settings={"bound": bound})
        figures = dict.fromkeys(("proposals", "excess", "violation_share", "bounces", "mean_rate"), 1.0)
        figures = late.sampler_stats.summary() | figures | {"proposals": 1000, "excess": 0.2}
        late = like(late, sampler_stats=SimpleNamespace(summary=lambda figures=figures: figures))
        yield from ((late, sentence) for sentence in run_warnings.of_run(late))


def of_others() -> Iterator[tuple[Any, str]]:
    """Yield what is said of networks, weights, and approximations."""
    network = made("network", "hmc", target_settings=OF_NETWORK, settings={"start": "random"})
    chosen = like(network, minutes=2.0)
    for run in (network, chosen):
        yield from ((run, sentence) for sentence in (*of_figures(run), *of_the_run(run)))
    yield from ((network, sentence) for sentence in of_moves(network))
    lost = made("network", "map", target_settings=OF_NETWORK, settings={"steps": 3}, draws=1)
    yield from ((lost, sentence) for sentence in run_warnings.of_run(lost))
    weighed = made("gaussian", "pmcnet")
    yield from ((weighed, sentence) for sentence in of_weights(weighed))
    none = {"last_weighed": 100, "last_weight_ess": 0}
    for figures in (none, none | {"last_weight_ess": 1.5}):
        run = like(weighed, sampler_stats=SimpleNamespace(summary=lambda figures=figures: figures))
        yield from ((run, sentence) for sentence in run_warnings.of_run(run))
    for target in ("gaussian", lambda x: x.square().sum(-1)):
        laplace = made(target, "laplace", **({} if isinstance(target, str) else {"dim": 2}))
        yield from ((laplace, sentence) for sentence in of_approximation(laplace))


@pytest.fixture(scope="module")
def told() -> list[tuple[Any, str]]:
    """Return all warnings, each with the run that it is of."""
    return [*of_densities(), *of_others(), *of_functions()]


def phrases(module: ModuleType) -> Iterator[str]:
    """Yield the longest constant part of each sentence that a module's functions yield."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.JoinedStr | ast.Constant):
            parts = getattr(node.value, "values", [node.value])
            yield max((part.value for part in parts if isinstance(part, ast.Constant)), key=len)


def test_the_walk_meets_every_sentence(told: list[tuple[Any, str]]) -> None:
    said = "\n".join(sentence for _, sentence in told)
    missed = [phrase for module in MODULES for phrase in phrases(module) if phrase not in said]
    assert missed == []


def test_every_warning_names_an_option(told: list[tuple[Any, str]]) -> None:
    without = {sentence for _, sentence in told if "`" not in sentence and not sentence.startswith(NO_OPTION)}
    assert without == set()


def options(sentence: str) -> Iterator[dict[str, Any]]:
    """Yield the values of the options that a sentence names."""
    found: list[dict[str, Any]] = []
    remedies.rewritten(sentence, lambda values: found.append(values) or "")
    yield from found


def test_python_takes_every_option(told: list[tuple[Any, str]]) -> None:
    known = set(inspect.signature(bnnviz.start).parameters)
    for run, sentence in told:
        for values in options(sentence):
            assert set(values) <= known, sentence
            spec = {name: value for name, value in values.items() if name != "minutes"}
            kept = run.spec.settings if "sampler" not in spec or spec["sampler"] == run.spec.sampler else {}
            spec["settings"] = {**kept, **spec.get("settings", {})}
            spec["target_settings"] = {**run.spec.target_settings, **spec.get("target_settings", {})}
            run.spec.replace(**spec).checked(own_target=run.own_target)


def test_the_command_line_takes_every_option(
    told: list[tuple[Any, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    asked: list[Spec] = []
    monkeypatch.setattr(cli_sample, "_sample", lambda spec, *others: asked.append(spec) or 0)
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{i},{i * i / 7:.3f}\n" for i in range(40)))
    tried = set()
    for run, sentence in told:
        if run.own_target:
            continue
        say(sentence)
        printed = capsys.readouterr().err
        for values in options(sentence):
            if (key := (run.spec.sampler, str(values))) in tried:
                continue
            tried.add(key)
            say(remedies.option(**values))
            words = shlex.split(capsys.readouterr().err.removeprefix("bnnviz: "))
            assert " ".join(words) in printed.replace("'", "") and "`" not in printed
            of_table = ["--data", str(table), "--target-column", "y"]
            named = [] if "--sampler" in words else ["--sampler", run.spec.sampler]
            named = of_table if "--minutes" in words else ["--target", run.spec.target, *named]
            app(args=["sample", *named, *words], prog_name="bnnviz", standalone_mode=False)
            assert len(asked) == 1, sentence
            spec = asked.pop()
            given = {**values, **values.get("settings", {}), **values.get("target_settings", {})}
            kept = {**spec.to_json(), **spec.settings, **spec.target_settings}
            for name in set(given) - {"minutes", "settings", "target_settings"}:
                assert kept[name] == given[name], sentence


def test_no_option_is_beyond_its_bounds() -> None:
    far = made("gaussian", "nuts", settings={"wanted": 0.97, "max_depth": 12})
    named = [values for sentence in of_moves(far) for values in options(sentence)]
    assert {"settings": {"wanted": 0.99}} in named and not any("max_depth" in str(values) for values in named)
    weighed = made("gaussian", "pmcnet", settings={"draws_each": 8000}, draws=8000)
    named = [values for sentence in of_weights(weighed) for values in options(sentence)]
    assert {"settings": {"draws_each": 10_000}} in named


def test_a_page_says_it_without_options(told: list[tuple[Any, str]]) -> None:
    for _, sentence in told:
        shown = remedies.without_options(sentence)
        assert list(options(shown)) == [] and " ." not in shown and " ," not in shown


def test_the_command_that_takes_the_options_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    say("make more draws (`minutes=8.0`).", command="bnnviz sample ...")
    assert capsys.readouterr().err == "bnnviz: make more draws (bnnviz sample ... --minutes 8).\n"


@pytest.mark.parametrize("text", ["`a b`", "`x`", "`1=2`", "`f(x)`", '`parameters={"s": bnnviz.positive()}`'])
def test_what_is_no_option_stays_as_it_is(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"The column {text} is odd (see {text}).")
    assert capsys.readouterr().err == f"bnnviz: The column {text} is odd (see {text}).\n"
    assert remedies.without_options(f"Odd (see {text}).") == f"Odd (see {text})."


def test_what_a_shell_would_read_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    say(remedies.option(leave_out=["a b", "$(c)"], missing=[], settings={"start": "x y"}))
    assert capsys.readouterr().err == (
        "bnnviz: --leave-out 'a b' --leave-out '$(c)' --missing none --set start='x y'\n"
    )
