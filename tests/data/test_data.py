"""Data sets: the registry, the toys' formulas, files and checksums, Gal's splits."""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from bnnviz import data
from bnnviz.data import files, forms, registry
from bnnviz.data.files import DataFile
from bnnviz.data.sets import toys
from bnnviz.data.sets.uci import TextTable
from bnnviz.data.splits import split_rows
from bnnviz.errors import BnnvizError

UCI = {  # rows, inputs, published mean of the target
    "boston": (506, 13, 22.53),
    "yacht": (308, 6, 10.50),
    "concrete": (1030, 8, 35.82),
    "energy": (768, 8, 22.31),
    "naval": (11934, 16, 0.975),
    "protein": (45730, 9, 7.75),
}
CLASSES = {  # rows, inputs, class counts of the UCI documentation
    "ionosphere": (351, 33, {"b": 126, "g": 225}),
    "glass": (214, 9, {"1": 70, "2": 76, "3": 17, "5": 13, "6": 9, "7": 29}),
    "wine": (178, 13, {"1": 59, "2": 71, "3": 48}),
}


# --- the toys -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rows", "shift", "spans", "test_interval", "curve"),
    [
        (
            "toy_a",
            500,
            -0.25,
            [(0, 0.5, 500)],
            (-0.45, 0.55),
            lambda x: x + 0.3 * np.sin(2 * np.pi * x) + 0.3 * np.sin(4 * np.pi * x),
        ),
        ("toy_b", 500, -0.5, [(0, 0.6, 250), (0.8, 1, 250)], (-1.0, 1.0), lambda x: x + np.sin(4 * x) + np.sin(13 * x)),
        ("toy_c", 28, 0.0, [(-0.45, 0.45, 28)], (-0.6, 0.6), lambda x: x * np.sin(4 * np.pi * x)),
    ],
)
def test_toys_follow_their_formulas(name, rows, shift, spans, test_interval, curve):
    toy = data.load(name)
    assert toy.x_train.shape == (rows, 1)
    assert toy.y_train.shape == (rows,)
    assert toy.x_train.dtype == toy.y_train.dtype == toy.x_test.dtype == toy.y_test.dtype == np.float64
    before = toy.x_train[:, 0] - shift
    for low, high, count in spans:
        assert ((before >= low - 1e-12) & (before <= high + 1e-12)).sum() == count
    assert toy.test_interval == pytest.approx(test_interval)
    assert (toy.x_test.min(), toy.x_test.max()) == pytest.approx(test_interval)
    for x, y in ((toy.x_train, toy.y_train), (toy.x_test, toy.y_test)):
        clean = curve(x[:, 0] - shift)
        np.testing.assert_allclose(toy.truth(x), clean, atol=1e-12)
        # Noise inside the sines: the residual is the noise times the slope, to first order.
        slope = 1.0 if name == "toy_c" else (curve(x[:, 0] - shift + 1e-6) - clean) / 1e-6
        noise = (y - clean) / slope
        steep = np.abs(slope * np.ones_like(clean)) > 0.5
        assert np.median(np.abs(noise[steep])) == pytest.approx(0.6745 * toys.NOISE_SD, rel=0.35)


# --- the data set itself --------------------------------------------------------------------------


def test_standardiser_uses_training_rows_and_goes_back():
    rng = np.random.default_rng(0)
    x, y = rng.normal(3, 2, (50, 3)), rng.normal(-7, 4, 50)
    known = made(x, y, 100 * x[:5], 100 * y[:5]).standardiser
    np.testing.assert_allclose(known.x(x).mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(known.x(x).std(axis=0), 1)
    np.testing.assert_allclose([known.y(y).mean(), known.y(y).std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(known.y_back(known.y(y)), y)
    np.testing.assert_allclose(known.y_back(np.ones((2, 4))), np.full((2, 4), y.mean() + y.std()))


def test_standardiser_guards_constant_columns():
    x = np.column_stack([np.full(30, 0.1), np.arange(30.0)])
    assert x[:, 0].std() > 0  # rounding alone: a division by it would blow up a test row
    known = made(x, np.full(30, 0.1), x[:2] + 1, np.ones(2)).standardiser
    np.testing.assert_allclose(known.x(x[:2] + 1)[:, 0], 1)
    assert known.y(np.array([0.1]))[0] == pytest.approx(0)
    assert known.y_scale == 1


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (np.zeros(3), np.zeros(3), "have the shapes"),
        (np.zeros((3, 1)), np.zeros((3, 1)), "have the shapes"),
        (np.zeros((3, 1)), np.zeros(4), "have the shapes"),
        (np.zeros((0, 1)), np.zeros(0), "have the shapes"),
        (np.array([[np.nan]]), np.zeros(1), "missing or infinite"),
        (np.zeros((1, 1)), np.array([np.inf]), "missing or infinite"),
        (np.array([["a"]]), np.zeros(1), "numeric arrays"),
        (np.zeros((3, 0)), np.zeros(3), "have the shapes"),
    ],
)
def test_bad_tables_are_refused(x, y, sentence):
    good = np.zeros((2, 1)), np.zeros(2)
    with pytest.raises(BnnvizError, match=f"train rows of the data set mine .*{sentence}"):
        made(x, y, *good)
    with pytest.raises(BnnvizError, match=f"test rows of the data set mine .*{sentence}"):
        made(*good, x, y)


def test_other_training_rows_keep_the_scale():
    x, y = np.arange(10.0)[:, None], 3 * np.arange(10.0)
    known = made(x, y, x, y)
    fewer = known.with_training(x[:2], y[:2])
    assert fewer.standardiser is known.standardiser
    assert fewer.x_train.shape == (2, 1)
    assert fewer.with_training(np.zeros((0, 1)), np.zeros(0)).x_train.shape == (0, 1)
    with pytest.raises(BnnvizError, match="have the shapes"):
        known.with_training(np.zeros((0, 1)), np.zeros(1))


def made(x_train, y_train, x_test, y_test, task="regression", **options) -> data.DataSet:
    return data.DataSet(
        name="mine",
        title="Mine",
        doc="",
        task=task,
        x_train=x_train,
        y_train=y_train,
        x_test=x_test,
        y_test=y_test,
        **options,
    )


# --- Gal's splits and the real files --------------------------------------------------------------


# The test rows of all published splits, sorted, one after another as 16-bit numbers: their SHA-256.
SPLITS = {
    "boston": "4273163e3727a84572688ec6911762cf474eb4b3f5342ed220b028cd60b7d68c",
    "yacht": "1ce6e9b8e78b712cc9b71f9cef2b74c26fa8256c28d98ab6d5b30fabb9114e75",
    "concrete": "22cc12b0d159ffa4791e2567863985e9272dd2d488c07cbab332ab712384136d",
    "energy": "3332eec08bd6527a02cd86fdb67d5b31c57104d0cf744c10ca97b93170561948",
    "naval": "2ffb473ffe34608fd4ddc6bb0e3319c7b94a3c1b1be4c164068743ed8a01feb6",
    "protein": "2e601659ce473257479959ccf3ff5d552c2c5a738333e70d12b63afbbc456524",
}
LARGE = ("naval", "protein")  # which do not come with bnnviz


@pytest.mark.parametrize("name", UCI)
def test_splits_are_the_published_ones(name):
    rows, splits = UCI[name][0], data.describe(name)["splits"]
    test = b"".join(split_rows(rows, split)["test"].astype("<u2").tobytes() for split in range(splits))
    assert hashlib.sha256(test).hexdigest() == SPLITS[name]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.data) if name in LARGE else name for name in UCI]
)
def test_real_files_have_their_published_numbers(name):
    rows, inputs, mean = UCI[name]
    facts = data.describe(name)
    assert (facts["rows"], facts["inputs"]) == (rows, inputs)
    table = np.loadtxt(data.fetch(name)[0])
    # Naval's last column is a second target.
    assert table.shape == (rows, inputs + (2 if name == "naval" else 1))
    table = table[:, : inputs + 1]
    assert round(table[:, -1].mean() + 1e-9, 3 if name == "naval" else 2) == mean
    for split in range(facts["splits"]):
        test, loaded = split_rows(rows, split)["test"], data.load(name, split)
        np.testing.assert_array_equal(loaded.x_test, table[test, :-1])
        np.testing.assert_array_equal(loaded.y_test, table[test, -1])
        np.testing.assert_array_equal(loaded.y_train, np.delete(table[:, -1], test))
        np.testing.assert_array_equal(loaded.x_train, np.delete(table[:, :-1], test, axis=0))
    assert loaded.standardise
    constant = [8, 11] if name == "naval" else []
    np.testing.assert_allclose(np.delete(loaded.standardiser.x(loaded.x_train), constant, axis=1).std(axis=0), 1)
    np.testing.assert_allclose(loaded.standardiser.x(loaded.x_test)[:, constant], 0, atol=1e-9)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_counted_from_0_and_keep_their_names(name):
    rows, inputs, counts = CLASSES[name]
    facts = data.describe(name)
    assert (facts["rows"], facts["inputs"], facts["classes"]) == (rows, inputs, len(counts))
    for split in range(facts["splits"]):
        loaded = data.load(name, split)
        assert loaded.x_test.shape == (rows - round(0.9 * rows), inputs)
        assert loaded.class_names == tuple(counts)
        labels = np.concatenate([loaded.y_train, loaded.y_test]).astype(int)
        assert np.bincount(labels).tolist() == list(counts.values())
        # Every class is among the training rows, and every feature says something.
        assert set(loaded.y_train) == set(range(len(counts)))
        np.testing.assert_allclose(loaded.standardiser.x(loaded.x_train).std(axis=0), 1)


# --- files from a folder and from a server --------------------------------------------------------

TEXT = b"\n".join(b"%d %d %d" % (row, row * row, 3 * row) for row in range(20)) + b"\n"
SHA256 = hashlib.sha256(TEXT).hexdigest()
WHERE = "uci_regression/tiny.txt"


@pytest.fixture
def register(monkeypatch):
    """Register a tiny set for the length of a test."""
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))

    def add(url: str, sha256: str = SHA256) -> None:
        data.register(
            TextTable(
                name="tiny",
                title="Tiny",
                doc="Tiny.",
                inputs=2,
                rows=20,
                y_label="y",
                y_unit="m",
                files=(DataFile(WHERE, url, f"sha256:{sha256}"),),
            )
        )

    return add


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Point BNNVIZ_DATA at a folder with the right file, and give an empty cache."""
    place = tmp_path / "shared" / WHERE
    place.parent.mkdir(parents=True)
    place.write_bytes(TEXT)
    monkeypatch.setenv(files.VARIABLE, str(tmp_path / "shared"))
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    return place


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Unset BNNVIZ_DATA and give an empty cache."""
    monkeypatch.delenv(files.VARIABLE, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


class Handler(BaseHTTPRequestHandler):
    """Answers as the path says: with the file, or late, with half of it, or with another page."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        way = self.path.rpartition("/")[2]
        if way == "late":
            time.sleep(1.0)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(TEXT)))
        self.end_headers()
        # A page that asks for a password answers so, too.
        self.wfile.write({"half": TEXT[: len(TEXT) // 2], "wrong": b"x" * len(TEXT)}.get(way, TEXT))

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def server():
    """Serve the file; gives ``address(way)``, of which one is refused, and the list of paths asked for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, socket.socket() as unused:
        server.asked = []
        unused.bind(("127.0.0.1", 0))  # and does not listen
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        ports = {"refused": unused.getsockname()[1]}
        yield lambda way="file": f"http://127.0.0.1:{ports.get(way, server.server_port)}/{way}", server.asked
        server.shutdown()
        thread.join()


def assert_is_tiny(loaded: data.DataSet) -> None:
    assert sorted([*loaded.y_train, *loaded.y_test]) == [3.0 * row for row in range(20)]
    assert loaded.x_train.shape == (18, 2)
    assert (loaded.x_label, loaded.y_label, loaded.y_unit) == ("2 features", "y", "m")


def test_folder_is_read_without_network(folder, register):
    register("http://127.0.0.1:1/unused")
    assert data.fetch("tiny") == [folder.resolve()]
    assert_is_tiny(data.load("tiny", 3))


def test_a_file_that_is_not_in_the_folder_is_looked_for_in_the_cache_and_downloaded(folder, register, server, tmp_path):
    address, asked = server
    register(address())
    folder.unlink()
    assert not data.is_here("tiny")
    assert data.fetch("tiny") == [tmp_path / "cache" / WHERE]
    assert_is_tiny(data.load("tiny"))
    assert len(asked) == 1


def test_corrupt_download_in_cache_is_fetched_again(cache, register, server):
    address, asked = server
    register(address())
    data.fetch("tiny")[0].write_bytes(TEXT[:-5])
    assert_is_tiny(data.load("tiny"))
    assert (cache / WHERE).read_bytes() == TEXT
    assert len(asked) == 2


def test_download_with_a_wrong_checksum_is_not_kept(cache, register, server):
    register(server[0](), sha256=hashlib.sha256(b"something else").hexdigest())
    with pytest.raises(BnnvizError, match="set BNNVIZ_DATA to a folder") as caught:
        data.load("tiny")
    assert caught.value.field == "data"
    assert [place for place in cache.rglob("*") if place.is_file()] == []


FAILURES = {
    "refused": "ConnectionError",
    "late": "ReadTimeout|ConnectionError",
    "half": "ChunkedEncodingError|ConnectionError",
    "wrong": "checksum",
}


@pytest.mark.parametrize("way", FAILURES)
def test_a_download_that_fails_gets_a_sentence_and_leaves_nothing(way, cache, register, server, monkeypatch):
    monkeypatch.setattr(files, "_TIMEOUT_S", (0.3, 0.3))
    register(server[0](way))
    for call in (data.load, data.fetch):
        with pytest.raises(files.DownloadError, match=f"({FAILURES[way]}).*BNNVIZ_DATA") as caught:
            call("tiny")
        assert caught.value.field == "data"
        assert pickle.loads(pickle.dumps(caught.value)).sentence == caught.value.sentence
    assert not data.is_here("tiny")
    assert [place for place in cache.rglob("*") if place.is_file()] == []


@pytest.mark.parametrize("way", FAILURES)
def test_of_images_that_cannot_be_downloaded_a_part_stands_in(way, cache, server, monkeypatch):
    monkeypatch.setattr(files, "_TIMEOUT_S", (0.3, 0.3))
    monkeypatch.setattr(forms, "_failures", {})
    entry = registry._entries["mnist"]
    whole = tuple(dataclasses.replace(file, url=server[0](way)) for file in entry.forms[0].files)
    entry = dataclasses.replace(entry, forms=(dataclasses.replace(entry.forms[0], files=whole), *entry.forms[1:]))
    loaded = entry.load(0)
    assert (len(loaded.y_train), len(loaded.y_test), loaded.stands_in) == (1500, 500, True)
    (note,) = loaded.remarks()
    assert "bnnviz data fetch mnist" in note
    # Nobody waits for the same failure at once again; who asks for the whole set is told.
    monkeypatch.setattr(forms, "fetch", lambda file: pytest.fail("it was tried again"))
    assert entry.load(0).remarks() == [note]
    with pytest.raises(files.DownloadError, match="could not be downloaded|not the expected file"):
        files.fetch(entry.sources()[0])
