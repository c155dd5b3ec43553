"""Image data sets: the published formats read back from tiny files, what is refused, and the true sets' numbers."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from bnnviz import data
from bnnviz.data import files, registry
from bnnviz.data.forms import read_part
from bnnviz.data.images import ImageSet
from bnnviz.errors import BnnvizError


def bytes_of(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def made(rows: int = 40, classes: int = 4, shape: tuple[int, ...] = (2, 5, 6), **options) -> ImageSet:
    y = np.arange(rows) % classes
    names = tuple(f"class {i}" for i in range(classes))
    given = {
        "x_train": bytes_of(rows, *shape),
        "y_train": y,
        "x_test": bytes_of(20, *shape, seed=1),
        "y_test": y[:20],
        "class_names": names,
    }
    return ImageSet(name="made", title="Made", doc="Made.", **{**given, **options})


# --- an image set


def test_images_are_kept_as_bytes_and_scaled_by_channel():
    images = made(mean=(0.2, 0.5), sd=(0.5, 0.25))
    assert images.x_train.dtype == np.uint8
    assert (images.shape, images.inputs, images.classes, images.positive) == ((2, 5, 6), (2, 5, 6), 4, 1)
    x, y = images.scaled("train")
    assert (x.dtype, y.dtype) == (np.float32, np.int64)
    raw = images.x_train / 255.0
    np.testing.assert_allclose(x[:, 0], (raw[:, 0] - 0.2) / 0.5, atol=1e-6)
    np.testing.assert_allclose(x[:, 1], (raw[:, 1] - 0.5) / 0.25, atol=1e-6)


def test_the_scale_is_that_of_the_training_rows_unless_reported():
    images = made()
    raw = images.x_train / 255.0
    np.testing.assert_allclose(images.mean, raw.mean(axis=(0, 2, 3)))
    np.testing.assert_allclose(images.sd, raw.std(axis=(0, 2, 3)))
    fewer = images.chosen(train=4).with_training(images.x_train[:8], images.y_train[:8])
    assert (fewer.mean, fewer.sd) == (images.mean, images.sd)
    other = made(mean=(0.0, 0.0), sd=(1.0, 1.0))
    assert other.scaled_like(images).mean == images.mean
    with pytest.raises(BnnvizError, match="choose sets of one shape"):
        made(shape=(1, 5, 6)).scaled_like(images)


def test_chosen_rows_have_equal_shares_and_are_the_same_each_time():
    rng = np.random.default_rng(3)
    y = rng.permutation(np.repeat(np.arange(4), [3, 20, 30, 47]))
    images = made(rows=100, y_train=y)
    assert np.bincount(images.chosen(train=40).y_train).tolist() == [3, 13, 12, 12]
    assert np.bincount(images.chosen(test=10).y_test).tolist() == [3, 3, 2, 2]
    again, other = images.chosen(40, 10), images.chosen(40, 10, seed=1)
    assert np.array_equal(images.chosen(40, 10).x_train, again.x_train)
    assert not np.array_equal(other.x_train, again.x_train)
    kept = [next(i for i, x in enumerate(images.x_train) if np.array_equal(x, image)) for image in again.x_train]
    assert kept == sorted(set(kept))
    assert np.array_equal(images.y_train[kept], again.y_train)
    more = images.chosen(60).x_train
    assert all(any(np.array_equal(image, x) for x in more) for image in again.x_train)
    assert len(images.chosen(train=1000).y_train) == 100
    assert len(images.chosen(train=0).y_train) == 0


def test_rotation_is_counter_clockwise_and_black_outside():
    corner = np.zeros((2, 1, 9, 9), np.uint8)
    corner[:, 0, 1, 4] = 200  # above the centre
    images = made(shape=(1, 9, 9), x_test=corner, y_test=[0, 1])
    quarter = images.rotated(90.0)
    assert quarter.x_test[0, 0, 4, 1] == 200  # to the left of it
    assert quarter.x_test[0].sum() == 200
    each = images.rotated(np.array([0.0, 180.0]))
    assert (each.x_test[0, 0, 1, 4], each.x_test[1, 0, 7, 4]) == (200, 200)
    full = replace(images, x_test=np.full((2, 1, 9, 9), 100, np.uint8)).rotated(45.0).x_test
    assert (full[0, 0, 4, 4], full[0, 0, 0, 0]) == (100, 0)
    tilted = images.rotated(10.0).x_test[0, 0]  # bilinear: between its neighbours, and nothing is made up
    assert 0 < tilted.max() < 200
    for wrong in (np.nan, [1.0, 2.0, 3.0]):
        with pytest.raises(BnnvizError, match="one finite angle"):
            images.rotated(wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"x_train": np.zeros((40, 2, 5, 6))}, "give bytes of shape"),
        ({"x_train": np.zeros((40, 1, 5, 6), np.uint8)}, "give bytes of shape"),
        ({"x_train": np.zeros((40, 60), np.uint8)}, "give bytes of shape"),
        ({"y_train": np.zeros(39, int)}, "give a label for each"),
        ({"y_train": np.full(40, 4)}, "from 0 to 3"),
        ({"y_train": np.full(40, 0.5)}, "from 0 to 3"),
        ({"x_test": np.zeros((0, 2, 5, 6), np.uint8), "y_test": np.zeros(0, int)}, "0 images and 0 labels"),
        ({"class_names": ("one",)}, "has 1 classes"),
        ({"mean": (0.1,), "sd": (0.2,)}, "has 2 channels"),
        ({"mean": (0.1, 0.1), "sd": (0.2, 0.0)}, "positive sd"),
    ],
)
def test_images_that_are_none_are_refused(wrong, says):
    with pytest.raises(BnnvizError, match=says):
        made(**wrong)


# --- files of the true formats, made here


@pytest.fixture
def folder(monkeypatch, tmp_path) -> Path:
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv(files.VARIABLE, str(tmp_path / "shared"))
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


def put(folder: Path, name: str, form: int, contents: list[bytes]):
    """Put files in the places of a form, and return the set's entry with their checksums."""
    entry = registry._entries[name]
    old = entry.forms[form]
    new = []
    for file, content in zip(old.files, contents, strict=True):
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        new.append(replace(file, checksum=f"md5:{hashlib.md5(content).hexdigest()}"))
    return replace(entry, forms=tuple(replace(old, files=tuple(new)) if f is old else f for f in entry.forms))


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array)
            archive.writestr(f"{name}.npy", member.getvalue())
    return stream.getvalue()


class Python2Pickler(pickle._Pickler):
    """Writes byte strings as Python 2 wrote its texts, in protocol 2."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_text(self, value: bytes) -> None:
        self.write(pickle.BINSTRING + struct.pack("<i", len(value)) + value)
        self.memoize(value)

    dispatch[bytes] = save_text


def python2(value: object) -> bytes:
    stream = io.BytesIO()
    Python2Pickler(stream, 2).dump(value)
    return stream.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def tar(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            facts = tarfile.TarInfo(name)
            facts.size = len(content)
            archive.addfile(facts, io.BytesIO(content))
    return stream.getvalue()


def cifar10(images: np.ndarray, labels: np.ndarray) -> dict[str, bytes]:
    """Return six batches of equally many images (rows, 3, 32, 32)."""
    found = {}
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    for name, x, y in zip(names, np.split(images, 6), np.split(labels, 6), strict=True):
        batch = {b"data": x.reshape(len(x), -1), b"labels": y.tolist(), b"batch_label": name.encode()}
        found[f"cifar-10-batches-py/{name}"] = python2(batch)
    return found


def mat(x: np.ndarray, y: np.ndarray) -> bytes:
    stream = io.BytesIO()
    savemat(stream, {"X": x.transpose(2, 3, 1, 0), "y": y[:, None]}, do_compression=True)
    return stream.getvalue()


def picture(image: np.ndarray, kind: str = "PPM") -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0)).save(stream, kind)
    return stream.getvalue()


def signs(kind: str = "ppm") -> tuple[np.ndarray, list[dict[str, bytes]]]:
    """Return images (5, 3, 32, 32) and the files in GTSRB's three archives; the last two are the test pictures."""
    images = bytes_of(5, 3, 32, 32)
    pictures = [picture(image, kind.upper()) for image in images]
    header = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\r\n"
    names = [f"0000{c}/0000{t}_00000.{kind}" for c, t in ((0, 0), (0, 1), (7, 0))]
    root = "GTSRB/Final_Training/Images"
    train = {f"{root}/{name}": content for name, content in zip(names, pictures, strict=False)}
    for label in (0, 7):
        rows = [f"{name[6:]};32;32;5;5;27;27;{label}\r\n" for name in names if name.startswith(f"0000{label}")]
        train[f"{root}/0000{label}/GT-0000{label}.csv"] = (header + "".join(rows)).encode()
    test = {f"GTSRB/Final_Test/Images/0000{i}.{kind}": pictures[3 + i] for i in range(2)}
    labels = header + f"00000.{kind};32;32;5;5;27;27;42\r\n00001.{kind};32;32;5;5;27;27;3\r\n"
    return images, [train, test, {"GT-final_test.csv": labels.encode()}]


def zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def four_idx(packed: bool = True) -> tuple[list[np.ndarray], list[bytes]]:
    arrays = [bytes_of(30, 28, 28), bytes_of(30) % 10, bytes_of(20, 28, 28, seed=1), bytes_of(20, seed=1) % 10]
    return arrays, [gzip.compress(idx(array)) if packed else idx(array) for array in arrays]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_idx_files_are_read(name, packed, folder):
    arrays, contents = four_idx(packed)
    loaded = put(folder, name, 0, contents).load(0)
    for part, x, y in (("train", *arrays[:2]), ("test", *arrays[2:])):
        assert np.array_equal(getattr(loaded, f"x_{part}")[:, 0], x)
        assert np.array_equal(getattr(loaded, f"y_{part}"), y)
    assert loaded.remarks() == []


def test_rotated_digits_are_upright_in_training_and_turned_by_known_angles_in_the_test(folder):
    arrays, contents = four_idx()
    loaded = put(folder, "rotated_mnist", 0, contents).load(0)
    assert np.array_equal(loaded.x_train[:, 0], arrays[0])
    upright = put(folder, "mnist", 0, contents).load(0)
    angles = np.random.default_rng(7).uniform(-45.0, 45.0, 20)
    assert np.array_equal(loaded.x_test, upright.rotated(angles).x_test)
    assert not np.array_equal(loaded.x_test, upright.x_test)


def test_cifar_archives_are_read(folder):
    images, labels = bytes_of(12, 3, 32, 32), np.arange(12) % 10
    loaded = put(folder, "cifar10", 0, [tar(cifar10(images, labels))]).load(0)
    assert np.array_equal(np.concatenate([loaded.x_train, loaded.x_test]), images)
    assert np.array_equal(np.concatenate([loaded.y_train, loaded.y_test]), labels)
    fine = np.arange(12) + 88
    members = {}
    for name, rows in (("train", slice(0, 8)), ("test", slice(8, 12))):
        batch = {b"data": images[rows].reshape(-1, 3072), b"fine_labels": fine[rows].tolist(), b"coarse_labels": [0]}
        members[f"cifar-100-python/{name}"] = python2(batch)
    loaded = put(folder, "cifar100", 0, [tar(members)]).load(0)
    assert np.array_equal(loaded.x_test, images[8:])
    assert loaded.y_train.tolist() == list(range(88, 96))
    assert loaded.class_names[99] == "worm"


def test_svhn_is_read_and_its_ten_is_a_zero(folder):
    x, y = bytes_of(10, 3, 32, 32), np.arange(1, 11, dtype=np.uint8)
    contents = [mat(x, y), mat(x[:4], y[6:])]
    loaded = put(folder, "svhn", 0, contents).load(0)
    assert np.array_equal(loaded.x_train, x)
    assert loaded.y_train.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert loaded.y_test.tolist() == [7, 8, 9, 0]
    assert loaded.mean == pytest.approx((x / 255).mean(axis=(0, 2, 3)))
    grey = put(folder, "svhn_grey", 0, contents).load(0)
    assert grey.shape == (1, 32, 32)
    luma = np.tensordot([0.299, 0.587, 0.114], x.astype(float), axes=(0, 1))
    assert np.abs(grey.x_train[:, 0] - luma).max() <= 0.5 + 1e-9


@pytest.mark.parametrize("kind", ["ppm", "png"])
def test_traffic_signs_are_read(kind, folder):
    images, members = signs(kind)
    loaded = put(folder, "gtsrb", 0, [zipped(held) for held in members]).load(0)
    assert np.array_equal(loaded.x_train, images[:3])
    assert np.array_equal(loaded.x_test, images[3:])
    assert (loaded.y_train.tolist(), loaded.y_test.tolist()) == ([0, 0, 7], [42, 3])
    assert loaded.classes == 43


# --- what is refused


class Evil:
    def __reduce__(self):
        return os.system, ("touch evil",)


def refused(folder: Path, name: str, form: int, contents: list[bytes]) -> str:
    with pytest.raises(BnnvizError) as caught:
        put(folder, name, form, contents).load(0)
    assert caught.value.field == "data"
    assert "\n" not in caught.value.sentence
    return caught.value.sentence


@pytest.mark.parametrize(
    "value",
    [Evil(), {b"data": Evil(), b"labels": [0]}, print, np.float64(1.0), np.dtype, type, {1, 2}.__class__],
    ids=["call", "call inside", "builtin", "numpy scalar", "dtype class", "type", "set class"],
)
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickles_that_name_anything_else_are_refused(value, protocol, folder, monkeypatch):
    monkeypatch.chdir(folder)
    content = pickle.dumps(value, protocol)
    batch = tar(dict.fromkeys(cifar10(bytes_of(12, 3, 32, 32), np.arange(12) % 10), content))
    assert "data_batch_1" in refused(folder, "cifar10", 0, [batch])
    assert not Path("evil").exists()


def test_npz_files_with_pickles_or_without_an_array_are_refused(tmp_path):
    place = tmp_path / "part.npz"
    np.savez(place, x_test=np.array([Evil()], dtype=object))
    with pytest.raises(BnnvizError, match="allow_pickle=False"):
        read_part(place)
    place.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(BnnvizError, match=".npz file"):
        read_part(place)
    place.write_bytes(npz(x_test=bytes_of(3, 2, 2)))
    with pytest.raises(BnnvizError, match="y_test"):
        read_part(place)


# --- the true sets

TRUE = {  # rows, first class counts, and the published mean and sd of the training images where these are all there
    "mnist": (
        *(60_000, 10_000),
        [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        (0.1307, 0.3081),
    ),
    "fashion_mnist": (10_000, 10_000, [942, 1027, 1016, 1019, 974, 989, 1021, 1022, 990, 1000], [1000] * 10, None),
    "notmnist": (0, 10_000, [], [1000] * 10, None),
    "cifar10": (4_000, 1_000, [400] * 10, [100] * 10, None),
    "cifar100": (0, 1_000, [], [10] * 100, None),
    "gtsrb": (860, 430, [20] * 43, [10] * 43, None),
}


@pytest.mark.data
@pytest.mark.parametrize("name", TRUE)
def test_true_sets_have_their_published_numbers(name):
    loaded = data.load(name)
    train, test, counts, test_counts, moments = TRUE[name]
    if len(loaded.y_train) != train:
        pytest.skip("the folder holds another form of this set")
    assert len(loaded.y_test) == test
    assert np.bincount(loaded.y_train, minlength=len(counts)).tolist() == counts
    assert np.bincount(loaded.y_test).tolist() == test_counts
    assert (data.remark(name) != "") == (name in ("fashion_mnist", "cifar10", "cifar100", "gtsrb"))
    facts = data.describe(name)
    assert loaded.shape == tuple(facts["shape"])
    assert loaded.classes == facts["classes"]
    if moments is not None:
        counts, level = np.bincount(loaded.x_train.ravel(), minlength=256), np.arange(256) / 255
        mean = np.average(level, weights=counts)
        sd = np.sqrt(np.average((level - mean) ** 2, weights=counts))
        assert (mean, sd) == pytest.approx(moments, abs=5e-5)
