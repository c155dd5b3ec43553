"""Copy the documents of the repository to where Sphinx reads them, with links that hold there.

A link between two documents becomes one between their pages; a link to another file of the repository leads to the
code host. So the documents read well on a code host, too, and nothing is written twice.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from docs.site.contents import BELOW, HOST, INSTEAD, ROOT, ROOT_PAGES, toctree

_LINK = re.compile(r"(?<=\]\()(?P<target>[^)#\s]+)(?P<place>#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^!\[(?P<alt>[^\]]*)\]\((?P<name>[^)\s]+)-light\.png\)$", re.MULTILINE)
_COPIED = (".png", ".svg", ".json", ".csv")


def page_of(path: Path) -> str | None:
    """Return the staged name of a document of the repository, or None if it has no page."""
    name = path.as_posix()
    if name in ROOT_PAGES:
        return ROOT_PAGES[name]
    if path.parts[0] == "notebooks" and path.suffix == ".ipynb":
        return name
    if path.parts[0] != "docs" or path.suffix not in (".md", *_COPIED):
        return None
    inside = path.relative_to("docs")
    return (inside.with_name("index.md") if inside.name == "README.md" else inside).as_posix()


def stage(folder: Path) -> None:
    """Copy all documents into a folder, and list the pages below each."""
    for path in documents():
        page = page_of(path)
        place = folder / page
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = relinked((ROOT / path).read_text(encoding="utf-8"), path)
            place.write_text(of_both_themes(text), encoding="utf-8")
        elif path.suffix == ".ipynb":
            place.write_text(_notebook(path), encoding="utf-8")
        else:
            shutil.copy(ROOT / path, place)
    _list_pages(folder)


def documents() -> list[Path]:
    """Return every file of the repository that is copied, from its root."""
    found = [Path(name) for name in ROOT_PAGES]
    for pattern in ("docs/**/*", "notebooks/*.ipynb"):
        found += [path.relative_to(ROOT) for path in sorted(ROOT.glob(pattern)) if path.is_file()]
    return [path for path in found if page_of(path) is not None and path.parts[:2] != ("docs", "site")]


def relinked(text: str, path: Path) -> str:
    """Return a document's text with links for its staged location."""
    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(lambda found: _link(found, path), part) for part in parts[::2]]
    return "".join(parts)


def of_both_themes(text: str) -> str:
    """Return a document's text with both pictures in place of a light one that is a separate paragraph."""
    return _PICTURE.sub(lambda found: "\n".join(_picture(found, theme) for theme in ("light", "dark")), text)


def _picture(found: re.Match[str], theme: str) -> str:
    return f"```{{image}} {found['name']}-{theme}.png\n:alt: {found['alt']}\n:class: only-{theme}\n```"


def _link(found: re.Match[str], path: Path) -> str:
    target, place = found["target"], found["place"] or ""
    if "://" in target or target.startswith("mailto:"):
        return target + place
    linked = Path(os.path.normpath(path.parent / target))
    instead = INSTEAD.get(f"{linked.as_posix()}{place}")
    page = instead or page_of(linked) or page_of(linked / "README.md")
    if page is None:
        return f"{HOST}/{linked.as_posix()}{place}"
    place = "" if instead else place
    return os.path.relpath(page, Path(page_of(path)).parent) + place


def _notebook(path: Path) -> str:
    notebook = json.loads((ROOT / path).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = relinked("".join(cell["source"]), path)
    return json.dumps(notebook)


def _list_pages(folder: Path) -> None:
    """Append to each page the list of those below it."""
    for name, entries in BELOW.items():
        page = folder / f"{name}.md"
        page.write_text(page.read_text(encoding="utf-8") + toctree(entries, folder), encoding="utf-8")
