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


def test_what_a_browser_would_not_send_is_not_taken_either() -> None:
    """A message need not come from our page: pieces without end, a number that would become zeros."""
    from bnnviz_app.components.controls.upload import File

    statement: list[str] = []
    sent: list[dict] = []

    def piece(data: object, number: int = 1, of: int = 1) -> dict:
        named = {"status": "upload_event", "name": "a.csv", "mime_type": "text/csv"}
        return named | {"chunk": number, "total_chunks": of, "data": data}

    file = File(statement.append, "too large", "empty", max_file_size=1000)
    file._send_msg = sent.append
    for messages, sentence in (
        ([piece(bytes(400), i, 4) for i in range(1, 5)], "too large"),
        ([piece(10**12)], "too large"),
        ([piece(None)], "too large"),
        ([], "empty"),
    ):
        for message in messages:
            file._handle_msg(message)
        held = sum(len(part) for each in file._file_buffer.values() for part in each["chunks"].values())
        assert held <= 1000 and not file._buffer
        file._handle_msg({"status": "finished"})
        assert (statement.pop(), sent.pop()["status"], file.value) == (sentence, "error", None)
    file._handle_msg({"status": "initializing"})
    for i in (1, 2):
        file._handle_msg(piece(ROWS[:450] if i == 1 else ROWS[450:], i, 2))
    file._handle_msg({"status": "finished"})
    assert file.value == ROWS and statement == []
