"""Lessons as static files: every file is made, links are relative, and a page alone needs no other file."""

from __future__ import annotations

import html
import json
import re

import pytest

import bnnviz
from bnnviz.errors import BnnvizError
from bnnviz.lessons import content, films, site
from bnnviz.replays import player


def test_pages_link_files_that_there_are() -> None:
    names = set(site.names())
    index = site.file(site.INDEX).decode()
    linked = {target.partition("#")[0] for target in re.findall(r'href="([^"#][^"]*)"', index)}
    assert linked == {f"{name}.html" for name in content.load()} and linked <= names
    page = site.file("thinning.html").decode()
    assert re.findall(r'<script src="([^"]+)"', page) == [site.PLAYER, site.BOKEH]
    film = site.file(next(name for name in names if name.startswith("films/thinning-"))).decode()
    assert film.startswith("bnnviz_hold(")


@pytest.mark.parametrize("name", ["nothing.html", "films/thinning-flight-99.js", "films/thinning-nothing-0.js", "../x"])
def test_other_names_are_no_files(name: str) -> None:
    with pytest.raises(KeyError):
        site.file(name)


def test_a_page_alone_has_all_that_it_needs() -> None:
    shown = bnnviz.lesson("thinning", 3, language="de")
    source = re.search(r'srcdoc="([^"]*)"', shown._repr_html_())[1]
    assert "content-thinning-flight-0" in source and "script src" not in source
    assert content.find("thinning", "de").title in repr(shown)
    with pytest.raises(BnnvizError, match="step"):
        bnnviz.lesson("thinning", 99)
    with pytest.raises(BnnvizError, match="lesson"):
        bnnviz.lesson("nothing")


@pytest.mark.parametrize("name", content.load())
def test_texts_of_figures_are_in_the_catalogue(name: str) -> None:
    """Those that are the same in all languages excepted."""
    lesson, known = content.find(name), [text for text, _ in content.figure_texts("de")]
    patterns = [re.sub(r"\\\{\d\\\}", "(.+)", re.escape(text)) for text in known]
    pattern = re.compile("|".join([*patterns, r"ACF", r"ESS [\d.,]+", ""]))
    for film in lesson.films.values():
        packed, _ = player.pack(films.take(lesson, film, film.opening), film.views)
        shown = json.loads(packed)
        heads = [text for series in shown["words"].values() for words in series["values"] for text in words[:2]]
        legends = [markup for both in shown["legends"].values() for series in both for markup in series["values"]]
        marks = [html.unescape(text) for markup in legends for text in re.findall(">([^<]+)<", markup)]
        assert [text for text in {*heads, *marks} if not pattern.fullmatch(text)] == []
