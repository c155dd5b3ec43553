"""Documents are staged with links that hold, each has its place among the pages, and replays have specs that run."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from bnnviz.specs.run import Spec
from docs.site import replays, staging
from docs.site.contents import BELOW, HOST, ROOT

FROM = Path("docs/manual/python.md")


def test_a_light_picture_has_a_dark_one_beside_it() -> None:
    staged = staging.of_both_themes("Look:\n\n![The Lab: a run](lab-light.png)\n\n![Other](lab.png)\n")
    for theme in ("light", "dark"):
        assert f"{{image}} lab-{theme}.png\n:alt: The Lab: a run\n:class: only-{theme}\n" in staged
    assert "![Other](lab.png)" in staged
    for path in staging.documents():
        if path.name.endswith("-light.png"):
            assert (ROOT / path).with_name(path.name.replace("-light", "-dark")).is_file()


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


def test_code_stays_as_it_is() -> None:
    code = "```python\nx = table[0](../../LICENSE)\n```"
    assert staging.relinked(code, FROM) == code


def test_every_document_has_its_place_among_the_pages() -> None:
    listed = {name.rpartition("<")[2].strip("/>") for entries in BELOW.values() for name in entries} | {"index"}
    pages = {staging.page_of(path) for path in staging.documents() if path.suffix in (".md", ".ipynb")}
    names = {str(Path(page).with_suffix("")) for page in pages}
    assert not [name for name in sorted(names) if not any(fnmatch(name, each) for each in listed)]


def test_every_concept_has_a_replay_with_a_spec_that_runs() -> None:
    marks = {}
    for page in (ROOT / "docs" / "concepts").glob("*.md"):
        marks |= dict.fromkeys(re.findall(r"<!-- replay: (\w+) -->", page.read_text(encoding="utf-8")), page.stem)
    assert set(marks) == set(replays.listed())
    assert {page.rpartition("/")[2] for page in BELOW["concepts/index"]} == set(marks.values())
    for wanted in replays.listed().values():
        Spec.from_json(wanted["spec"]).checked()


def test_the_workflow_publishes_what_make_builds() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "docs.yml").read_text())["jobs"]
    (command,) = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    assert command.startswith("make docs ")
    assert [step["with"]["path"] for step in jobs["build"]["steps"] if "pages" in step.get("uses", "")] == [
        "build/docs/html"
    ]
