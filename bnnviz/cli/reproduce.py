"""Run ``bnnviz reproduce``: run a paper's experiment and compare our figures with the published ones."""

from __future__ import annotations

import os
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnnviz import optional
from bnnviz.cli.options import Insecure, Json, Scheduler, examples, figure_place
from bnnviz.cli.output import INTERRUPTED, console, print_json, progress, raise_interrupt, say, table, text
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from distributed import Client

    from bnnviz.experiments import Experiment

_Summaries = dict[str, list[dict[str, Any]]]  # of the runs of each case, by its name

app = typer.Typer()


@app.command(
    epilog=examples(
        "bnnviz reproduce pdmp-boston --repetitions 3",
        "bnnviz reproduce pdmp-boston --json",
        "bnnviz reproduce pdmp-table2 --data mnist --scheduler tls://head:8786",
        "bnnviz reproduce pdmp-sweeps --repetitions 1 --out sweeps.html",
        "bnnviz reproduce pdmp-fig3 --repetitions 1 --out fig3.html",
        "bnnviz reproduce pmcnet-fig4 --repetitions 1 --out roc.html",
    ),
)
def reproduce(
    experiment: Annotated[str, typer.Argument(help="Its name, from bnnviz list papers.")],
    repetitions: Annotated[int | None, typer.Option(min=1, help="Runs of each case; default: all of them.")] = None,
    data: Annotated[str | None, typer.Option(metavar="NAME", help="Which part, of a table of data sets.")] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="small|paper", help="Of a large experiment: minutes, or as published.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw a sweep or predictions here: .html for a browser, .pdf or .png to print."
        ),
    ] = None,
    scheduler: Scheduler = None,
    insecure: Insecure = False,
    as_json: Json = False,
) -> None:
    """Run a paper's experiment and compare our values with the printed ones."""
    from bnnviz import experiments
    from bnnviz.experiments import record

    found = experiments.find(experiment).at(data, scale)
    # Results are cached: missing figures would be cached as missing.
    optional.check(("arviz_stats", "sklearn"), "The figures of the papers' tables need")
    found.check()
    if out is not None and not found.has_figure:
        raise BnnvizError(f"{found.name} is a table and has no figure; leave out --out.", "out")
    out = figure_place(out, "out")
    done: _Summaries = {}
    begun = time.perf_counter()
    raise_interrupt()
    try:
        with _cluster(scheduler, insecure) as cluster:
            workers = _run(found, repetitions, cluster, done)
    except KeyboardInterrupt:
        kept = sum(map(len, done.values()))
        say(f"stopped; {kept} runs are kept, and the same command runs the others.")
        raise typer.Exit(INTERRUPTED) from None
    record.keep(found, done, time.perf_counter() - begun, workers)
    rows = [found.row(case, done[case.name]) for case in found.cases]
    if out is not None:
        _draw(found, rows, done, out)
    _print(found, rows, as_json)


# --- runs


def _run(experiment: Experiment, repetitions: int | None, cluster: Client | None, done: _Summaries) -> str | None:
    """Fill ``done`` with the runs' results; return their cluster, or None if this process ran them."""
    where = None if cluster is None else f"{len(cluster.nthreads())} workers of a Dask cluster"
    _announce(experiment, repetitions, cluster)
    with progress() as bar:
        task = bar.add_task("runs", total=experiment.runs(repetitions))
        for case, i, summary in experiment.reproduce(repetitions, cluster):
            bar.advance(task)
            done.setdefault(case.name, []).append(summary)
            known = summary.get("figures", summary)
            figures = ", ".join(f"{key} {text(known.get(key))}" for key in experiment.measures)
            print(f"{case.name}, run {i + 1}: {figures}", file=sys.stderr, flush=True)
    return where


def _cluster(scheduler: str | None, insecure: bool) -> AbstractContextManager[Client | None]:
    """Return the cluster of an address, or of ``BNNVIZ_SCHEDULER``; None: the runs are this process's."""
    if scheduler is None and not os.environ.get("BNNVIZ_SCHEDULER"):
        return nullcontext()
    from bnnviz.engine.cluster import local_cluster

    return local_cluster.connected(scheduler, insecure=insecure)


def _announce(experiment: Experiment, repetitions: int | None, cluster: Client | None) -> None:
    """Print how many runs there are, how many of them are kept, and about how long the others take."""
    runs, kept = experiment.runs(repetitions), experiment.kept(repetitions)
    text = f"{experiment.title}: {runs} runs" + (f", {kept} of them kept from before" if kept else "")
    if cluster is not None:
        text += f", {sum(cluster.nthreads().values())} at a time"
    elif experiment.minutes is not None:
        text += f"; about {experiment.minutes * (runs - kept) / experiment.runs():.0f} min on 2 cores"
    print(f"{experiment.doc}\n{text}.", file=sys.stderr, flush=True)


# --- tables


def _print(experiment: Experiment, rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    from bnnviz.experiments import render
    from bnnviz.experiments.table import results_of, summary

    found = results_of(experiment, rows)
    head, lines = render.grid(found)
    cells = [[each if isinstance(each, str) else render.cell(each) for each in line] for line in lines]
    console().print(table(*head, rows=cells))
    print(f"{summary(found)}. {render.KEY}")
    for message in sorted({row["error"] for row in rows if row.get("error")}):
        print(message)


# --- figure


def _draw(experiment: Experiment, rows: list[dict[str, Any]], done: _Summaries, out: Path) -> None:
    """Write the figure of an experiment: its pictures, its bands of predictions, or a sweep of its measures."""
    from bnnviz import plots
    from bnnviz.experiments import LABELS

    labels = {key: LABELS.get(key, key) for key in experiment.measures}
    figure = plots.sweep(rows, labels) if experiment.swept else plots.panels(experiment.panels(done))
    plots.save(figure, out, title=experiment.title)
