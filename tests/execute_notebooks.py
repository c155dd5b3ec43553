"""Execute the notebooks and keep their outputs: ``make notebooks``, or some of them with ``WHAT='02 05'``.

Each is executed from its first cell to its last in a kernel of its own, on one thread, in an empty folder, without a
network and without data sets but those that come with bnnviz. So the outputs are the same on the same versions of the
packages. No times, no widgets and no places of this machine are kept; a live view is kept as a picture of the figures
that it shows when the notebook has ended. A cell that fails or that warns is an error.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_SECONDS = 60  # of CPU time that a notebook may take
MOST_BYTES = 1_500_000
WIDGET = "application/vnd.jupyter.widget-view+json"
#: Places of a machine, which no output may name.
PLACES = re.compile(r"(?<![\w.:/])/(?:tmp|home|root|usr|var|work|mnt|opt|Users)/\w")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def executed(path: Path) -> Any:
    """Execute a notebook and return it with the outputs that are kept."""
    # Imported here: they take seconds, which every process that runs tests would spend.
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "here"
        place.mkdir()
        resources = {"metadata": {"path": str(place)}}
        client = NotebookClient(notebook, timeout=5 * MOST_SECONDS, resources=resources, record_timing=False)
        # Else it depends on the moment how many outputs a cell has that prints.
        client.coalesce_streams = True
        client.extra_arguments = ["--IPKernelApp.log_level=ERROR"]
        with client.setup_kernel(env=_environment(Path(folder))):
            for number, cell in enumerate(list(notebook.cells)):
                client.execute_cell(cell, number, execution_count=None)
            _keep_pictures(client, notebook)
    for cell in notebook.cells:
        _clean(cell)
    notebook.metadata = {key: notebook.metadata[key] for key in ("kernelspec", "language_info")}
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a kernel: one thread, nothing of the user's, no network."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("BNNVIZ_", "JUPYTER", "IPYTHON"))}
    own = {
        "HOME": "",
        "BNNVIZ_HOME": "bnnviz",
        "XDG_CACHE_HOME": "cache",
        "IPYTHONDIR": "ipython",
        "MPLCONFIGDIR": "mpl",
    }
    found = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "offline"), kept.get("PYTHONPATH", "")]
    return (
        kept
        | _ONE_THREAD
        | {key: str(folder / name) for key, name in own.items()}
        | {"PYTHONPATH": os.pathsep.join(filter(None, found)), "PYTHONHASHSEED": "0"}
    )


def _keep_pictures(client: Any, notebook: Any) -> None:
    """Put a picture in the place of each widget, as its figures are at the end."""
    import nbformat

    widgets = [out for cell in notebook.cells for out in cell.get("outputs", []) if WIDGET in out.get("data", {})]
    if not widgets:
        return
    models = [out.data[WIDGET]["model_id"] for out in widgets]
    cell = nbformat.v4.new_code_cell(f"import live_stills; live_stills.show({models!r})")
    notebook.cells.append(cell)
    client.execute_cell(cell, len(notebook.cells) - 1)
    notebook.cells.pop()
    stills = [out.data["image/png"] for out in cell.outputs if "image/png" in out.get("data", {})]
    for out, still in zip(widgets, stills, strict=True):
        out.data = {"image/png": still, "text/plain": out.data["text/plain"]}


def _clean(cell: Any) -> None:
    """Drop what is not the same in every execution, and refuse what must not be kept."""
    cell.metadata = {}
    if cell.cell_type != "code":
        return
    for out in cell.outputs:
        if out.output_type == "error" or out.get("name") == "stderr":
            raise SystemExit(f"The cell {cell.id} says: {''.join(out.get('traceback', out.get('text', '')))}")
        out.pop("metadata", None)
        if out.output_type != "stream":
            out.metadata = {}
    reported = json.dumps([out for out in cell.outputs if "image/png" not in out.get("data", {})])
    if named := PLACES.search(reported):
        raise SystemExit(
            f"The cell {cell.id} names a place of this machine: {reported[named.start() : named.start() + 80]}"
        )


def main(names: list[str]) -> None:
    """Execute notebooks in place, all or those whose names begin so, and print their sizes; skip those that fail."""
    import nbformat
    from nbclient.exceptions import CellControlSignal

    failed = []
    for path in NOTEBOOKS:
        if names and not path.name.startswith(tuple(names)):
            continue
        try:
            notebook = executed(path)
        except (CellControlSignal, SystemExit) as error:
            failed.append(path.name)
            sys.stderr.write(f"{path.name}: {error}\n")
            continue
        nbformat.write(notebook, path)
        sys.stdout.write(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB\n")
        sys.stdout.flush()
        if path.stat().st_size > MOST_BYTES:
            failed.append(path.name)
            sys.stderr.write(f"{path.name} is larger than {MOST_BYTES / 1e6:g} MB.\n")
    if failed:
        raise SystemExit(f"Not as it should be: {', '.join(failed)}.")


if __name__ == "__main__":
    main(sys.argv[1:])
