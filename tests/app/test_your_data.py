"""Your data in the Lab without a browser: what begins, what is asked, the form, and what it says."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from bnnviz import data
from bnnviz.engine.automatic.plan import CHAINS, _candidates
from bnnviz.engine.automatic.tables import DEFAULTS, units
from bnnviz.specs.run import Spec
from bnnviz.specs.upload import fields_of, read_texts
from bnnviz_app.access.roles import OWNER, STUDENT
from bnnviz_app.address import Visit
from bnnviz_app.components.tables import opening
from bnnviz_app.components.tables.answer import answer_html
from bnnviz_app.components.tables.opening import TableChoices, look
from bnnviz_app.pages.lab import LabPage

KIND = ["new", "old", "old"]
ROWS = [f"{i / 7:.3f},{KIND[i % 3]},visit {i},{-999 if i == 4 else i % 9 + 0.5},{i * i / 50:.3f}" for i in range(60)]
FILE = "\n".join(["size,kind,day,depth,price", *ROWS]).encode()


# --- what begins


def test_what_begins_is_what_sample_has_for_a_table() -> None:
    preset = opening._PRESET
    assert {name: preset["spec"]["target_settings"][name] for name in DEFAULTS} == DEFAULTS
    assert preset["spec"]["chains"] == CHAINS and preset["spec"]["draws"] is None
    for rows in (5, 199, 200, 100_000):
        assert opening._by_rows(preset["hidden"], rows)["value"] == str(units(rows))
    candidates = [cls.registered for cls in _candidates()]
    few, many = (opening._by_rows(preset["samplers"], rows)["value"] for rows in (100, 100_000))
    assert few["sampler"] == candidates[0] and many["sampler"] in candidates[1:]
    found = look(FILE, "houses.csv", TableChoices("price", missing=("-999",), leave_out=("day",)), OWNER)
    spec, notes, why = found.opened
    assert spec.target_settings["hidden"] == "20" and spec.file["rows"] == 60 and spec.draws is None
    assert why.startswith("HMC") and any("1 of 60 rows" in note for note in notes)
    assert Spec.from_json(spec.to_json(), spec.attachment) == spec


def test_a_students_network_is_as_small_as_the_class_asks() -> None:
    rows = [",".join(f"{(7 * i + k) % 13}.5" for i in range(260)) for k in range(30)]
    wide = "\n".join([",".join(f"x{i}" for i in range(260)), *rows]).encode()
    hidden = [look(wide, "wide.csv", None, role).opened.spec.target_settings["hidden"] for role in (OWNER, STUDENT)]
    assert hidden == ["20", "5"]  # eight chains of it have 20,000 numbers at most


# --- the dialog


def test_a_link_opens_it_and_play_begins_the_run(no_server) -> None:
    opening_spec = LabPage.opening()
    page = LabPage(False, Visit(opening_spec, flags={"your_data": "1"}))
    assert page.data._dialog.is_open
    spec = look(FILE, "houses.csv", TableChoices("price", missing=(), leave_out=("day",)), OWNER).opened.spec
    page._begin_own(spec, ["HMC was chosen."])
    assert page.session.playing and page.session.spec == spec and page.controls.target.name == spec.target
    assert page.controls._chosen().checked() == spec
    assert page.verdict.root.visible is False
    page._arrange({"status", "verdict", "row"})
    assert page.verdict.root.visible and page.question not in page._fed() or not page.question.needs
    page.close()


# --- the form


@pytest.fixture(scope="module")
def table() -> data.UserTable:
    return data.read_table(FILE, "price", leave_out=("day",), missing=("-999",))


def test_fields_begin_at_medians_and_at_the_commonest_level(table: data.UserTable) -> None:
    size, kind, depth = fields_of(table)
    assert float(size.value) == pytest.approx(np.median(table.x[:, 0]), rel=1e-5) and size.levels == ()
    assert kind.levels == ("new", "old") and kind.value == "old" and depth.hint == "0.5 to 8.5"
    three = data.read_table(FILE.replace(b",new,", b",mid,", 3), "price", leave_out=("day",), missing=())
    assert fields_of(three)[1].value == "old" and fields_of(three)[1].levels == ("mid", "new", "old")


def test_texts_are_numbers_with_either_mark_and_levels_that_are_known(table: data.UserTable) -> None:
    good = {"size": "1", "kind": "new", "depth": "2"}
    row, wrong = read_texts({"size": " 1,5 ", "kind": "new", "depth": "−2.25"}, table)
    assert row.tolist() == [1.5, -2.25, 0, 1, 0] and not wrong
    for text in ("", "x", "nan", "inf", "1e99", "1_000", "9" * 80):
        assert list(read_texts(good | {"depth": text}, table)[1]) == ["depth"], text
    assert list(read_texts(good | {"kind": "<b>"}, table)[1]) == ["kind"]
    # Nobody knows what a comma before three digits is, unless the file has shown it.
    unknown = dataclasses.replace(table, decimal=None)
    assert "depth" in read_texts(good | {"depth": "1,234"}, unknown)[1]
    assert read_texts(good | {"depth": "1,234"}, dataclasses.replace(table, decimal=","))[0][1] == 1.234


def test_the_answer_has_every_part_and_no_markup_of_the_table() -> None:
    part = {
        "mean": 5.634,
        "sd": 0.512,
        "epistemic_sd": 0.1,
        "aleatoric_sd": 0.502,
        "draws": 2400,
        "far": True,
        "note": "",
        "quantiles": {0.05: 4.8, 0.25: 5.3, 0.5: 5.63, 0.75: 6.0, 0.95: 6.5},
        "probabilities": None,
    }
    text = answer_html(part, "<i>q", (3.0, 8.0))
    for words in (
        "&lt;i&gt;q: 5.63 (4.80 to 6.50)",
        "0.51",
        "0.10",
        "0.50",
        "5.30 to 6.00",
        "4.80 to 6.50",
        "Far from",
        "2,400 draws",
    ):
        assert words in text, words
    of_classes = part | {
        "probabilities": np.array([0.2, 0.8]),
        "classes": ["no", "<yes>"],
        "entropy": 0.5,
        "mutual_information": 0.125,
        "far": False,
    }
    text = answer_html(of_classes, "kind", (0.0, 1.0))
    assert "kind: &lt;yes&gt;, probability 0.80" in text and "0.375 nats" in text and "Near the training" in text
    assert not re.search("<yes>", text)
