"""Run ``bnnviz sweep``: many runs on a cluster, each into a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bnnviz import optional
from bnnviz.cli.options import Insecure, Json, Scheduler, examples, read_text
from bnnviz.cli.output import FAILED, INTERRUPTED, console, failure, print_rows, raise_interrupt, say, short
from bnnviz.errors import BnnvizError

#: The figures that the table shows if any run has them.
_COLUMNS = {
    "ess_min": "ESS",
    "weight_ess": "weight ESS",
    "rhat_max": "R-hat",
    "rmse": "RMSE",
    "nll": "NLL",
    "accuracy": "accuracy",
    "grad_evals": "gradients",
}

app = typer.Typer()


@app.command(
    epilog=examples(
        "bnnviz sweep sweep.yaml --out runs",
        "bnnviz sweep sweep.yaml --out runs --workers 4 --json",
        "bnnviz sweep sweep.yaml --out runs --scheduler tls://head:8786",
    )
)
def sweep(
    runs: Annotated[str, typer.Argument(metavar="SWEEP.yaml", help="Base and grid, as YAML or JSON; - reads stdin.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where each run becomes a recording.")],
    scheduler: Scheduler = None,
    insecure: Insecure = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Worker processes on this machine; default: one for each GPU, or each core but one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run all combinations of settings on the workers of a cluster, each into a recording.

    The same command skips finished runs and resumes the others. The exit code is 1 if a run failed.
    """
    from bnnviz.engine import sweep as sweeps
    from bnnviz.engine.cluster import local_cluster
    from bnnviz.engine.recording import reader

    specs = sweeps.specs_of(_loaded(read_text(runs, "sweep", "a YAML file")))
    reader.check_zarr()
    errors: dict[str, str] = {}
    raise_interrupt()
    try:
        with local_cluster.connected(scheduler, workers, insecure=insecure) as client:
            for done, (name, error) in enumerate(sweeps.run_sweep(client, specs, out), 1):
                console(stderr=True).print(f"{done}: {name} {error or ''}", highlight=False, markup=False)
                errors |= {} if error is None else {name: error}
    except KeyboardInterrupt:
        say("stopped; the same command resumes the sweep.")
        raise typer.Exit(INTERRUPTED) from None
    rows = [sweeps.row(name, spec, out) for name, spec in specs.items()]
    rows = [row | {"state": "failed", "error": errors[row["name"]]} if row["name"] in errors else row for row in rows]
    shown = {key: head for key, head in _COLUMNS.items() if any(row["figures"].get(key) is not None for row in rows)}
    print_rows(rows, as_json, ("run", "", *shown.values(), "seconds"), (_cells(row, shown) for row in rows))
    raise typer.Exit(FAILED if any(row["state"] != "done" for row in rows) else 0)


def _loaded(text: str) -> Any:
    yaml = optional.require("yaml", "Sweeps need")
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
        raise BnnvizError(f"The sweep is neither YAML nor JSON ({' '.join(str(error).split())}).", "sweep") from None


def _cells(row: dict[str, Any], shown: dict[str, str]) -> tuple[Any, ...]:
    state = failure("failed") if row["state"] == "failed" else row["state"].replace("done", "")
    return row["name"], state, *(short(row["figures"].get(key)) for key in shown), short(row["seconds"])
