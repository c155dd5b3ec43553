"""The corrigendum has the records' tables, links that open what they say, settings that there are, and right sums."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import torch

from bnnviz.experiments import EXPERIMENTS, editions, published
from bnnviz.experiments.audit import corrigendum
from bnnviz.samplers.pdmp.thinning import first_arrival
from bnnviz.specs import catalogue, url
from bnnviz_app import address
from bnnviz_app.learn import lessons
from bnnviz_app.pages.lab import LabPage
from bnnviz_app.pages.race import RacePage

TEXT = corrigendum.PLACE.read_text(encoding="utf-8")
LINKS = sorted(set(re.findall(r"\]\(http://[^/]+/app\?([^)]+)\)", TEXT)))
OPENINGS = {"lab": LabPage, "race": RacePage}


def test_its_tables_are_those_of_the_records() -> None:
    assert corrigendum.filled(TEXT) == TEXT, "write it with: python -m bnnviz.experiments.audit.corrigendum"


def test_a_table_follows_every_mark() -> None:
    marks = re.findall(r"<!-- (?:record|editions): .*? -->\n\n(\|?)", TEXT)
    assert len(marks) >= 10 and all(marks) and TEXT.count("<!-- end -->") == len(marks)


@pytest.mark.parametrize("link", LINKS)
def test_a_link_opens_what_it_says(link: str) -> None:
    asked = {name: [text.encode() for text in texts] for name, texts in parse_qs(urlsplit(f"?{link}").query).items()}
    page = asked["page"][0].decode()
    if page == "learn":
        assert 1 <= int(asked["step"][0]) <= len(lessons.load()[asked["lesson"][0].decode()].steps) + 1
        return
    if page == "papers":
        assert set(asked["open"][0].decode().split(",")) <= set(EXPERIMENTS)
        assert asked["edition"][0].decode() in editions.EDITIONS
        return
    visit = address.read(asked, OPENINGS[page].opening())
    assert not visit.sentences
    if page == "race":
        lanes = visit.spec.checked().lanes
        assert len(asked["lanes"][0].split(b",")) == len(lanes)
        assert all(a.to_query() != b.to_query() for a, b in zip(lanes, lanes[1:], strict=False))
        held = {f"{i}.{key}": value for i, lane in enumerate(lanes, 1) for key, value in lane.settings.items()}
    else:
        lanes, held = (visit.spec.checked(),), {}
    held |= {f"t.{key}": value for key, value in lanes[0].target_settings.items()}
    for name, texts in asked.items():
        if "." in name:
            assert url.write_value(held[name]) == texts[0].decode(), name


def test_a_card_links_the_sections_that_have_its_figures() -> None:
    found: dict[str, list[str]] = {}
    for section in re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        for name in re.findall(r"<!-- (?:record|editions): ([\w-]+)", section):
            known = found.setdefault(name, [])
            known += [] if heading in known else [heading]
    assert {name: list(headings) for name, headings in editions.SECTIONS.items()} == found


def test_a_link_to_a_section_is_that_of_the_page_itself() -> None:
    headings = re.findall(r"^#+ (.*)$", TEXT, flags=re.MULTILINE)
    urls = {editions.section_url(heading) for heading in headings}
    (page,) = {url.partition("#")[0] for url in urls}
    own = set(re.findall(r"\]\((#[^)]+)\)", TEXT))
    assert len(own) > 1 and {page + place for place in own} <= urls
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert page == f"{project['urls']['Documentation']}/{corrigendum.PLACE.stem}.html"


def test_every_setting_it_names_is_there_with_that_choice() -> None:
    listing = catalogue.load()
    choices: dict[str, list] = {}
    for item in (*listing["samplers"], *listing["targets"]):
        for setting in item["settings"]:
            choices.setdefault(setting["name"], []).append(setting["choices"])
    named = re.findall(r"`(\w+)=(\"?)([\w.-]+)\"?`", TEXT)
    assert len(named) > 20
    for name, quoted, value in named:
        assert name in choices, name
        assert not quoted or any(value in (each or ()) for each in choices[name]), f"{name}={value}"


def test_the_time_of_equation_11() -> None:
    a, b, mass = 2.0, 1.0, 2.0
    right = (-b + math.sqrt(b**2 + 2 * a * mass)) / a
    published = (-b + math.sqrt(b**2 + 2 * a * b * 0.0 * -mass)) / a
    ours = first_arrival(*(torch.tensor([value], dtype=torch.float64) for value in (0.0, a, b, mass)))
    assert (right, published) == (1.0, 0.0) and ours.item() == pytest.approx(right)


def test_the_variance_at_events() -> None:
    x = np.linspace(-12, 12, 200_001)
    weight = np.exp(-(x**2) / 2) * (0.1 + np.abs(x) / math.sqrt(2 * math.pi))
    at_events = (x**2 * weight).sum() / weight.sum()
    assert at_events == pytest.approx((0.1 + 2 / math.pi) / (0.1 + 1 / math.pi), rel=1e-6)
    assert f"which is {at_events:.2f} for a refresh rate" in TEXT


def test_the_numbers_of_small_cases() -> None:
    hessian = np.array([[1, -2], [-2, 5]])
    assert np.linalg.eigvalsh(hessian).min() > 0 and hessian.sum(1).tolist() == [-1, 3]
    z = np.linspace(-5, 5, 100_001)
    least = (z / (1 + np.exp(-z))).min()
    assert f"{least:.2f}" == "-0.28" and f"{math.log(9 * 99) + least:.1f}" == "6.5"
    well = np.linspace(-4, 4, 80_001)
    for quartic, mode, barrier in ((0.2, 5**0.5, 5), (1, 1, 1)):
        energy = -2 * well**2 + quartic * well**4
        assert abs(well[energy.argmin()]) == pytest.approx(mode, abs=1e-3) and -energy.min() == pytest.approx(barrier)


def test_the_first_edition_interchanges_two_columns() -> None:
    first, corrected = (published.read(name, "cifar100") for name in ("first/pdmp-table2", "pdmp-table2"))
    off = {case: first[case]["ece_printed"] / corrected[case]["nll"] - 1 for case in first}
    assert {case for case in off if abs(off[case]) > 0.05} == {"BPS"}
