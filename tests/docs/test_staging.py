"""Documents are staged with links that hold, each has its place among the pages, and replays have specs that run."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

from docs.site import staging
from docs.site.contents import BELOW, HOST

FROM = Path("docs/manual/python.md")


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("networks.md", "networks.md"),
        ("densities.md#named-parameters", "densities.md#named-parameters"),
        ("../../ARCHITECTURE.md#words", "../architecture/overview.md#words"),
        ("../architecture/README.md", "../architecture/index.md"),
        ("../architecture", "../architecture/index.md"),
        ("../../README.md", "../index.md"),
        ("../../README.md#samplers", "../reference/samplers.md"),
        ("../../notebooks/02_thinning.ipynb", "../notebooks/02_thinning.ipynb"),
        ("../../bnnviz/errors.py", f"{HOST}/bnnviz/errors.py"),
        ("../../LICENSE", f"{HOST}/LICENSE"),
        ("https://example.org/a.md#b", "https://example.org/a.md#b"),
        ("#here", "#here"),
    ],
)
def test_a_link_holds_where_its_document_is_staged(link: str, becomes: str) -> None:
    assert (
        staging.relinked(f"See [it]({link}), and [it]({link}).", FROM) == f"See [it]({becomes}), and [it]({becomes})."
    )


def test_every_document_has_its_place_among_the_pages() -> None:
    listed = {name.rpartition("<")[2].strip("/>") for entries in BELOW.values() for name in entries} | {"index"}
    pages = {staging.page_of(path) for path in staging.documents() if path.suffix in (".md", ".ipynb")}
    names = {str(Path(page).with_suffix("")) for page in pages}
    assert not [name for name in sorted(names) if not any(fnmatch(name, each) for each in listed)]
