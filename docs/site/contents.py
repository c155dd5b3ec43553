"""List the pages of the documentation in the order in which they are read."""

from __future__ import annotations

from pathlib import Path

from bnnviz.lessons import content

ROOT = Path(__file__).resolve().parents[2]
#: Where files that have no page are looked at.
HOST = "https://github.com/bnnviz/bnnviz/blob/main"

#: Documents outside of `docs/` that have a page, and its name.
ROOT_PAGES = {
    "ARCHITECTURE.md": "architecture/overview.md",
    "CONTRIBUTING.md": "contributing/guide.md",
    "CHANGELOG.md": "changelog.md",
}

#: Links that lead to a page of another text.
INSTEAD = {"README.md": "index.md", "README.md#samplers": "reference/samplers.md"}

#: Children of pages by names of staged pages; ``*`` means all pages of a folder, and missing pages are skipped.
BELOW: dict[str, list[str]] = {
    "index": [
        "concepts/index",
        "How-to <manual/index>",
        "notebooks/*",
        "gallery/index",
        "reference/index",
        "architecture/index",
        "contributing/guide",
        "security",
        "changelog",
    ],
    "concepts/index": [f"concepts/{name}" for name in content.load()],
    "manual/index": [
        *(f"manual/{name}" for name in ("tables", "networks", "likelihoods", "densities", "warnings", "summary")),
        "contributing/add_a_sampler",
        "contributing/add_a_figure",
        *(f"manual/{name}" for name in ("other_packages", "compare", "figures", "recordings", "clusters", "classes")),
        *(f"manual/{name}" for name in ("python", "command_line", "dashboard")),
    ],
    "reference/index": [
        "reference/api",
        "reference/samplers",
        "reference/targets",
        "reference/data_sets",
        "reference/run_settings",
        "reference/commands",
        "papers",
        "corrigendum",
        "glossary",
    ],
    "architecture/index": [
        "architecture/overview",
        *(f"architecture/{name}" for name in ("live_path", "samplers", "recordings", "correctness", "performance")),
    ],
}


def toctree(entries: list[str], folder: Path) -> str:
    """Return the directive that lists pages; of those without an asterisk the ones that a folder has."""
    kept = [entry for entry in entries if _is_staged(entry, folder)]
    lines = "\n".join(entry.replace("<", "</") if "<" in entry else f"/{entry}" for entry in kept)
    return f"\n\n```{{toctree}}\n:hidden:\n:glob:\n\n{lines}\n```\n"


def _is_staged(entry: str, folder: Path) -> bool:
    name = entry.rpartition("<")[2].rstrip(">")
    found = [path for ending in (".md", ".rst", ".ipynb") for path in folder.glob(f"{name}{ending}")]
    return any("*" not in name or path.stem != "index" for path in found)
