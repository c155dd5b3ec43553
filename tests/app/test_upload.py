"""A file opened on the page becomes the data of a spec, or gets its sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bnnviz import BnnvizError
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs import upload
from bnnviz.specs.run import Spec

ROWS = b"a,b,kind\n" + b"".join(b"%d,%.2f,%s\n" % (i, i * i / 7, b"yes" if i % 3 else b"no") for i in range(40))


def spec(**changes) -> Spec:
    return Spec(**({"target": "network", "target_settings": {"hidden": "4"}, "draws": None} | changes)).checked()


def test_the_headings_are_the_columns_names() -> None:
    assert upload.headings(ROWS, "mine.csv") == ["a", "b", "kind"]
    assert upload.headings(b"1,2\n3,4\n", "bare.csv") == ["c1", "c2"]
    with pytest.raises(BnnvizError, match="empty"):
        upload.headings(b"", "nothing.csv")


@pytest.mark.parametrize(("column", "kind"), [("kind", "area"), ("b", "intervals")])
def test_a_file_takes_the_place_of_the_data_and_the_network_stays(column: str, kind: str) -> None:
    changed, notes = upload.attach(spec(), ROWS, "mine.csv", column)
    assert changed.target_settings["hidden"] == "4" and changed.file["name"] == "mine.csv"
    assert all(note.endswith(".") for note in notes)
    run = ViewedRun(changed)
    assert run.scene()["data"]["kind"] == kind


def test_another_target_gives_way_to_a_network() -> None:
    changed, _ = upload.attach(Spec(target="banana").checked(), ROWS, "mine.csv", "kind")
    assert changed.target == "network" and changed.attachment


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(BnnvizError, match="kind"):
        upload.attach(spec(), ROWS, "mine.csv", "kinds")


def test_reading_a_file_on_the_page_loads_no_torch() -> None:
    code = (
        "import sys; from bnnviz.specs import upload; from bnnviz.specs.run import Spec;"
        f"upload.attach(Spec(target='network').checked(), {ROWS!r}, 'mine.csv', 'kind');"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
