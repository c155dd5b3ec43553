"""The packaging: dependencies of the core, import cycles, pinned versions, the wheel, links between documents."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from core_only import ROOT

import bnnviz

# main.py builds a page when it is imported.
NO_TORCH = """
import importlib, pkgutil, sys
import bnnviz, bnnviz.figures.live, bnnviz_app
for module in ["cli.main", "engine.cluster.backend", "specs.catalogue", "specs.race", "specs.run"]:
    importlib.import_module(f"bnnviz.{module}")
for package in (bnnviz.figures.live, bnnviz_app):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if found.name != "bnnviz_app.main":
            importlib.import_module(found.name)
for slow in ["torch", "scipy.stats", "scipy.linalg"]:
    assert slow not in sys.modules, f"{slow} was imported"
"""


def test_page_views_and_command_line_load_no_torch() -> None:
    result = subprocess.run([sys.executable, "-c", NO_TORCH], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("package", ["bnnviz", "bnnviz_app"])
def test_there_are_no_import_cycles(package: str) -> None:
    """Imports in functions count, and those for types only."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()


@pytest.mark.slow
def test_the_wheel_holds_all_files_and_the_dashboard_is_found_in_it(tmp_path: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("bnnviz", "app"):
        shutil.copytree(ROOT / name, tmp_path / "tree" / name, ignore=ignore)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / "tree")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", "..", "."]
    subprocess.run(command, cwd=tmp_path / "tree", check=True, capture_output=True, timeout=120)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        archive.extractall(tmp_path / "site")
    for folder, package in (("bnnviz", "bnnviz"), ("app", "bnnviz_app")):
        files = [path for path in (tmp_path / "tree" / folder).rglob("*") if path.is_file()]
        names = {f"{package}/{path.relative_to(tmp_path / 'tree' / folder).as_posix()}" for path in files}
        assert names == {name for name in held if name.startswith(f"{package}/")}
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-c", "from bnnviz.cli.serve import find_app; print(find_app())"]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == tmp_path / "site" / "bnnviz_app"


def test_all_public_names_are_found_and_listed() -> None:
    assert all(hasattr(bnnviz, name) for name in dir(bnnviz))
    assert {"sample", "start", "BNN", "race", "recording", "plots"} <= set(dir(bnnviz))
    assert not {"os", "Any", "annotations"} & set(dir(bnnviz))
