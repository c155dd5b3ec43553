"""The promises that the files of the project make to each other: layers, versions, packaging, names."""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import distributions
from pathlib import Path

import grimp
import pytest
import yaml
from core_only import CORE, PROJECT, ROOT, run_with
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import bnnviz
from bnnviz.specs import catalogue

EXTRAS = PROJECT["optional-dependencies"]

CORE_ONLY = """
import bnnviz, bnnviz.data, bnnviz.engine.run, bnnviz.models, bnnviz.samplers, bnnviz.targets
run = bnnviz.sample("gaussian", "bps", draws=20, chains=2)
assert tuple(run.draws.shape) == (2, 20, 2), run.draws.shape
"""

# For the page's modules: main.py is not among them, because it builds a page when it is
# imported; the process that the server really is in is looked at in test_cli.py.
NO_TORCH = """
import importlib, pkgutil, sys
import bnnviz, bnnviz.views, bnnviz_app
for module in ["cli.main", "engine.cluster.backend", "specs.catalogue", "specs.race", "specs.run"]:
    module = f"bnnviz.{module}"
    importlib.import_module(module)
for found in pkgutil.walk_packages(bnnviz.views.__path__, "bnnviz.views."):
    importlib.import_module(found.name)
for found in pkgutil.walk_packages(bnnviz_app.__path__, "bnnviz_app."):
    if found.name != "bnnviz_app.main":
        importlib.import_module(found.name)
for slow in ["torch", "scipy.stats", "scipy.linalg"]:
    assert slow not in sys.modules, f"{slow} was imported"
"""


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)


def expand(extra: str) -> list[str]:
    """Return an extra's requirements with the project's own extras in it replaced by theirs."""
    found: list[str] = []
    for line in EXTRAS[extra]:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            found += [inner for name in sorted(requirement.extras) for inner in expand(name)]
        else:
            found.append(line)
    return found


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9A-Za-z.]+", line) for line in lines), "name==public version only"
    assert lines == sorted(set(lines), key=lambda line: line.partition("==")[0])
    return dict(line.split("==") for line in lines)


# --- layers, at run time


@pytest.mark.slow
def test_core_samples_with_its_four_dependencies_only() -> None:
    assert sorted(CORE) == ["numpy", "param", "scipy", "torch"]
    result = run_with(CORE_ONLY)
    assert result.returncode == 0, result.stderr


def test_page_views_and_command_line_load_no_torch() -> None:
    result = run_python(NO_TORCH)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("package", ["bnnviz", "bnnviz_app"])
def test_no_module_imports_itself_through_others(package: str) -> None:
    """Imports in functions and those for types alone count too: who needs a type of above needs a protocol."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail("These modules import each other: " + ", ".join(error.args[1]))


# --- versions


def test_the_public_names_are_those_that_editors_see() -> None:
    tree = ast.parse((ROOT / "bnnviz" / "__init__.py").read_text())
    shown = next(node for node in tree.body if isinstance(node, ast.If))
    aliases = [alias for node in shown.body for alias in node.names]
    assert sorted(alias.asname or alias.name for alias in aliases) == sorted({*bnnviz.__all__} - {"__version__"})
    assert all(getattr(bnnviz, alias.asname or alias.name).__name__ == alias.name for alias in aliases)


def test_constraints_pin_every_requirement_within_its_bounds() -> None:
    pinned = pins()
    assert pinned["torch"] == "2.13.0"
    for line in [*PROJECT["dependencies"], *expand("all"), *expand("test")]:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        assert name in pinned, f"{name} has no pin"
        assert requirement.specifier.contains(pinned[name]), f"{name}=={pinned[name]} is not {requirement.specifier}"


def test_the_oldest_python_takes_every_pin() -> None:
    """A pin that asked for 3.11.5 had pip search for ever on the 3.11.2 of Debian 12."""
    oldest = min(spec.version for spec in SpecifierSet(PROJECT["requires-python"]) if spec.operator == ">=")
    for dist in distributions():
        asked = dist.metadata.get("Requires-Python")
        if asked and dist.version == pins().get(canonicalize_name(dist.name)):
            assert SpecifierSet(asked).contains(f"{oldest}.0"), f"{dist.name}=={dist.version} needs Python {asked}"


def test_all_holds_every_extra_but_the_tests_the_texts_the_peers_models_of_others_and_the_compiler() -> None:
    apart = ("all", "test", "docs", "bench", "shading", "pyro", "stan")
    others = {line for extra in EXTRAS if extra not in apart for line in expand(extra)}
    assert set(expand("all")) == others


def test_environment_file_equals_pyproject() -> None:
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    conda = [entry for entry in entries if isinstance(entry, str)]
    pip = next(entry["pip"] for entry in entries if isinstance(entry, dict))
    assert f"python{PROJECT['requires-python']}" in conda
    assert pip[0] == "-c constraints.txt"
    assert pip[-1] == "-e ."
    assert sorted(pip[1:-1]) == sorted({*PROJECT["dependencies"], *expand("all")})


def test_makefile_asks_for_the_same_pythons_as_pyproject() -> None:
    assert PROJECT["requires-python"] == ">=3.11,<3.14"
    assert "(3, 11) <= sys.version_info[:2] <= (3, 13)" in (ROOT / "Makefile").read_text()


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_makefile_serves_on_the_port_asked_for_and_on_this_machine_only() -> None:
    environment = {**os.environ, "HOST": "0.0.0.0"}
    command = ["make", "-n", "serve", "PORT=5123"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "bnnviz serve --address 127.0.0.1 --port 5123" in result.stdout


# --- packaging


def sources(folder: str, package: str) -> set[str]:
    """Return the files of a folder as a wheel has them, where the folder is a package of this name."""
    files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {f"{package}/{path.relative_to(ROOT / folder).as_posix()}" for path in files}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of a copy of the repository, without what an earlier build has left."""
    folder = tmp_path_factory.mktemp("wheel")
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("bnnviz", "app"):
        shutil.copytree(ROOT / name, folder / "tree" / name, ignore=ignore)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "tree")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", "..", "."]
    subprocess.run(command, cwd=folder / "tree", check=True, capture_output=True, timeout=120)
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.slow
def test_wheel_installs_bnnviz_and_bnnviz_app_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "bnnviz",
        "bnnviz_app",
        f"bnnviz-{bnnviz.__version__}.dist-info",
    }
    held = {name for name in names if ".dist-info/" not in name}
    assert held == sources("bnnviz", "bnnviz") | sources("app", "bnnviz_app")
    # What a build leaves out without a word: data files, by their endings.
    for ending in (".js", ".css", ".json"):
        assert [name for name in held if name.endswith(ending)], ending


@pytest.mark.slow
def test_dashboard_is_found_in_a_wheel_that_lies_anywhere(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = "from bnnviz.cli.serve import find_app; print(find_app())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == tmp_path / "site" / "bnnviz_app"


def test_no_module_is_imported_by_a_bare_name() -> None:
    bare = {path.stem for path in (ROOT / "app").glob("*.py")} - {"__init__"} | {"pages", "app"}
    for path in [*(ROOT / "app").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named = bare & {name.partition(".")[0] for name in names}
            assert not named, f"{path.relative_to(ROOT)} imports {', '.join(sorted(named))}"


def test_every_file_with_a_browser_in_it_is_read_by_the_stages_for_browsers() -> None:
    listed = re.search(r"^BROWSER := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1).split()
    mark = "pytest.mark." + "browser"
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if mark in path.read_text(encoding="utf-8")]
    found = {"tests/browser", *(str(path.relative_to(ROOT)) for path in marked)}
    assert set(listed) == found


# --- the house rule


def string_constants(path: Path) -> set[str]:
    """Return the strings of a file that stand for something: docstrings and messages are longer."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.parametrize("place", ["bnnviz/engine", "bnnviz/views", "bnnviz/cli", "app"])
def test_nothing_above_the_registries_names_a_sampler_a_target_or_a_data_set(place: str) -> None:
    listed = catalogue.load()
    names = {entry["name"] for kind in ("samplers", "targets", "data") for entry in listed[kind]}
    path = ROOT / place
    for file in [path] if path.is_file() else path.rglob("*.py"):
        named = names & string_constants(file)
        assert not named, f"{file.relative_to(ROOT)} names {', '.join(sorted(named))}"


# --- documents

#: A path, a dotted name of a module, and one of a class, a method or a function.
PATH = re.compile(r"[\w.-]*/[\w./-]*")
MODULE = re.compile(r"bnnviz(\.[a-z_0-9]+){2,}")
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\(\w*\))?")

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
#: Of these, every path, module and name of a class or function must be there; the changelog tells of old ones.
OF_THE_CODE = [path for path in DOCUMENTS if path.name != "CHANGELOG.md" and "manual" not in path.parts]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_between_documents_resolve(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (document.parent / target).exists()]
    assert not missing


@functools.cache
def words_of_the_code() -> frozenset[str]:
    """Return every word in the code of the package, the dashboard and the tests."""
    files = [file for folder in ("bnnviz", "app", "tests", "docs/site") for file in (ROOT / folder).rglob("*")]
    text = [file.read_text(encoding="utf-8") for file in files if file.suffix in (".py", ".js", ".json", ".css")]
    text += [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "Makefile")]
    return frozenset(re.findall(r"\w+", "\n".join(text))) | {file.stem for file in files}


@functools.cache
def classes_of_the_code() -> list[ast.ClassDef]:
    """Return every class of the package and the dashboard."""
    files = [file for folder in ("bnnviz", "app") for file in (ROOT / folder).rglob("*.py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    return [node for node in nodes if isinstance(node, ast.ClassDef)]


def has_attribute(name: str, attribute: str) -> bool:
    """Tell whether a class of this name, or a base of one, defines or sets an attribute."""
    for cls in (cls for cls in classes_of_the_code() if cls.name == name):
        for node in ast.walk(cls):
            methods = node.name if isinstance(node, ast.FunctionDef) else None
            fields = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
            own = node.attr if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self" else None
            if attribute in (methods, fields, own):
                return True
        bases = [ast.unparse(base).rpartition(".")[2] for base in cls.bases]
        if any(has_attribute(base, attribute) for base in bases if base != name):
            return True
    return False


@functools.cache
def folders_of_the_code() -> frozenset[str]:
    """Return the name of every folder of the package and the dashboard."""
    return frozenset(path.name for folder in ("bnnviz", "app") for path in (ROOT / folder).rglob("*") if path.is_dir())


def is_there(path: str) -> bool:
    """Tell whether a document's path, or the dotted name of a module or of something in it, is true."""
    if MODULE.fullmatch(path):
        module = path.replace(".", "/")
        return any((ROOT / place).exists() for place in (module, f"{module}.py", f"{module.rpartition('/')[0]}.py"))
    return (ROOT / path).exists() or path.rstrip("/") in folders_of_the_code()


@pytest.mark.parametrize("document", OF_THE_CODE, ids=named)
def test_paths_and_names_in_documents_are_those_of_the_code(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    spans = set(re.findall(r"`([^`\n]+)`", re.sub(r"Save this as `.*?`", "", text)))
    paths = {span for span in spans if PATH.fullmatch(span) or MODULE.fullmatch(span)}
    assert not sorted(path for path in paths if not is_there(path))
    names = {word for span in spans - paths if NAME.fullmatch(span) for word in re.findall(r"\w+", span)}
    assert not sorted(names - words_of_the_code())
    known = {cls.name for cls in classes_of_the_code()}
    pairs = [span.split("(")[0].split(".") for span in spans - paths if re.fullmatch(r"[A-Z]\w*\.\w+(\(\w*\))?", span)]
    assert not sorted(".".join(pair) for pair in pairs if pair[0] in known and not has_attribute(*pair))


def test_every_class_has_a_name_of_its_own() -> None:
    """A sampler's ``State`` and ``Info`` are named by their module; an underscore makes no other name."""
    names = [cls.name.strip("_") for cls in classes_of_the_code()]
    assert sorted({name for name in names if names.count(name) > 1} - {"State", "Info"}) == []


def test_the_layers_of_the_architecture_are_those_that_are_checked() -> None:
    drawn = re.findall(r"^ (bnnviz/\S+(?: \| bnnviz/\S+)*)", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    drawn = [[Path(entry).stem for entry in line.split(" | ")] for line in drawn]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [
        contract["layers"] for contract in contracts if contract["type"] == "layers" and "exhaustive" in contract
    ]
    assert drawn == [line.split(" | ") for line in layers if line != "__main__"]


def test_the_readme_lists_every_sampler() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(entry["name"] for entry in catalogue.load()["samplers"])


def test_changelog_speaks_of_this_version() -> None:
    assert f"## {bnnviz.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_citation_has_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == bnnviz.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Homepage"]


def test_pre_commit_has_the_ruff_of_the_constraints() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["rev"] == f"v{pins()['ruff']}"
    assert [hook["id"] for hook in repository["hooks"]] == ["ruff-check", "ruff-format"]


def test_the_workflow_runs_make_on_every_python_that_is_supported() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    quick, browser = workflow["jobs"]["quick"], workflow["jobs"]["browser"]
    supported = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert quick["strategy"]["matrix"]["python"] == supported
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for job in (quick, browser):
        (command,) = [step["run"] for step in job["steps"] if "run" in step]
        assert command.split()[:1] == ["make"] and command.split()[1] in targets
