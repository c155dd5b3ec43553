"""Race samplers on images, and query their draws for the uncertainty of predictions."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy
import torch
from torch import Tensor

from bnnviz import data as datasets
from bnnviz import diagnostics, optional
from bnnviz.data import ImageSet
from bnnviz.engine.evaluation.attack import EPS, attack
from bnnviz.engine.evaluation.metrics import probabilities_at
from bnnviz.engine.evaluation.predictions import DrawTable, evenly
from bnnviz.engine.evaluation.uncertainty import scaled_pixels
from bnnviz.engine.race.errors import unmeasured
from bnnviz.engine.race.race import Race
from bnnviz.errors import BnnvizError
from bnnviz.specs.race import ImageRaceSpec, RaceSpec
from bnnviz.targets import Target

OOD_ROWS = 250  # out-of-distribution rows
WALLS = ("hardest", "attacked")
ANGLES = tuple(range(-180, 181, 30))  # degrees
_DRAWS = 32  # that predict
_PIECE = 256  # rows at once
_LOOK_S = 0.03  # at once
_ASK_S, _AT_ONCE_S = 0.3, 2.0  # seconds of all samplers for new rows: during a race, and after its end
_HARDEST = 28  # images on the wall
_ATTACKED_ROWS, _ATTACKED_DRAWS = 100, 8
_ATTACK_GROWTH = 2  # factor of the draws until they are attacked again
_ATTACKED = tuple(f"{figure}{end}" for figure in ("accuracy", "entropy") for end in ("", "_low", "_high"))
_SCORES = ("nll", "accuracy", "ece")
_UNRELIABLE = diagnostics.Reliability(
    np.linspace(0, 1, 11), np.zeros(10), *(np.full(10, np.nan) for _ in range(4)), math.nan
)


class CoursePoint(NamedTuple):
    """Predictive performance of a sampler after the given seconds of work."""

    seconds: float
    nll: float
    accuracy: float
    ece: float


class Predictions:
    """Predict by the draws of one sampler: rows of the test set, rows out of distribution, and an image."""

    def __init__(self, entry: Any, images: ImageSet) -> None:
        self.entry, self._images = entry, images
        self.tables: dict[str, DrawTable] = {}  # probabilities (draws, rows, classes) by the name of the rows
        self.course: list[CoursePoint] = []
        self.attacks: list[dict[str, Any]] = []  # results of the last attack, one per strength
        self.attacked = 0  # draws when it began
        self._changes = 0  # of the predictions
        self._found: dict[str, tuple[int, Any]] = {}

    def ask(self, name: str, rows: np.ndarray) -> None:
        """Predict other rows (rows, ...)."""
        target = self.entry.target
        pieces = torch.as_tensor(rows, dtype=target.dtype, device=target.device).split(_PIECE)

        def evaluate(theta: Tensor) -> np.ndarray:
            return np.concatenate([probabilities_at(target, theta, x) for x in pieces], 1).astype(np.float32)

        self.tables[name] = DrawTable(self.entry, evaluate)
        self._changes += 1

    def missing(self, name: str) -> int:
        """Return the number of draws that have not predicted rows."""
        return len(self.tables[name].missing(_DRAWS))

    def look(self, name: str, seconds: float) -> None:
        """Predict rows by missing draws, at least one; note the scores of the test rows when none is missing."""
        end = time.perf_counter() + seconds
        while self.missing(name):
            self.tables[name].fill(_DRAWS, 1)
            self._changes += 1
            if time.perf_counter() >= end:
                break
        if name == "test" and not self.missing(name) and (found := self.scores()):
            self.course.append(CoursePoint(self.entry.seconds, **found))

    def _once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return a result for the present predictions, computed once."""
        if self._found.get(name, (-1, None))[0] != self._changes:
            self._found[name] = self._changes, compute()
        return self._found[name][1]

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the probabilities (draws, rows, classes) at the rows of a name; none if there are no such rows."""
        return self._once(name, lambda: self.tables[name].rows) if name in self.tables else np.empty(0)

    def scores(self) -> dict[str, float]:
        """Return accuracy, nll and ece of the mean over the draws; nothing without draws."""
        return self._once("scores", self._scores) if len(self["test"]) else {}

    def _scores(self) -> dict[str, float]:
        mean, y = self["test"].mean(0, dtype=float), self._images.y_test
        mean /= mean.sum(1, keepdims=True)
        ece = diagnostics.calibration_error(mean, y, diagnostics.PAPER_BINS)  # as in the diagram
        found = diagnostics.class_metrics(mean, y).values | {"ece": ece}
        return {name: found[name] for name in _SCORES}

    def entropy(self, name: str) -> np.ndarray:
        """Return the predictive entropies (rows,) at rows, in nats; none without draws."""
        return diagnostics.predictive_entropy(self[name]) if len(self[name]) else np.empty(0)

    def detection(self) -> diagnostics.Detection:
        """Return the metrics of out-of-distribution detection; nan if unknown or without scikit-learn."""
        return self._once("detection", self._detection)

    def _detection(self) -> diagnostics.Detection:
        inside, outside = self.entropy("test"), self.entropy("ood")
        if len(inside) and len(outside) and optional.has("sklearn"):
            return diagnostics.detection(inside, outside, resamples=100)
        return diagnostics.Detection(*[math.nan] * 6)

    @property
    def attack_due(self) -> bool:
        """Whether there are draws not yet attacked, or twice as many as at the last attack."""
        known = len(self.tables["test"].keys)
        unfinished = 0 < len(self.attacks) < len(EPS)
        return known >= 2 and (unfinished or known >= max(2, _ATTACK_GROWTH * self.attacked))

    def attack(self) -> None:
        """Attack some draws at one strength."""
        table = self.tables["test"]
        if len(self.attacks) in (0, len(EPS)):
            self.attacked, self.attacks = len(table.keys), []
        theta = table.draws([table.keys[i] for i in evenly(len(table.keys), _ATTACKED_DRAWS)])
        rows = min(_ATTACKED_ROWS, len(self._images.y_test))
        self.attacks.append(attack(self.entry.target, theta, eps=[EPS[len(self.attacks)]], rows=rows))


class Images:
    """Measure a race by predictions; after the budgets the race continues until all draws have predicted."""

    errors: ClassVar[bool] = False
    ranked_by: ClassVar[str] = "nll"
    pictures: ClassVar[tuple[str, ...]] = ()
    share: ClassVar[float] = 0.3  # of the sampling time
    scores: ClassVar[list[str]] = [*_SCORES, "auroc"]
    columns: ClassVar[list[str]] = ["rhat", "ess", "ess_per_s", "ess_per_million", *scores]
    reference_status: ClassVar[None] = None  # a reference run is too slow for this many weights
    meaning: ClassVar[str] = ""

    def __init__(self, race: Race, target: Target | None, measured: bool) -> None:
        data = getattr(race.entries[0].target, "data_set", None)
        if not isinstance(data, ImageSet):
            raise BnnvizError("This race requires a target with images.", "target")
        self._race, self.images = race, data
        self.predictions = [Predictions(entry, data) for entry in race.entries]
        self.wall, self.ood = WALLS[0], _first_ood(data)
        #: The source of the image: ``index`` of a test image, ``attacked`` or ``drawn``.
        self.source: dict[str, Any] = {"index": 0}
        self._pixels, self._truth, self._angle = data.x_test[0], int(data.y_test[0]), 0.0
        self._number = 0  # counts the displayed images
        self._ask("test", data.scaled("test")[0])
        if self.ood is not None:
            self._ask_outside()
        self._ask_image()

    # driving

    @property
    def busy(self) -> bool:
        """Whether draws have not predicted all rows, or an attack is due."""
        return any(each.attack_due or any(map(each.missing, each.tables)) for each in self.predictions)

    def advance(self, seconds: float) -> int:
        """Predict by some draws of the sampler with most missing ones, or attack; return the number of steps."""
        missing = {(each, name): each.missing(name) for each in self.predictions for name in each.tables}
        each, name = max(missing, key=missing.__getitem__)
        if missing[each, name]:
            each.look(name, _LOOK_S)
        else:
            next(each for each in self.predictions if each.attack_due).attack()
        return 1

    def _ask(self, name: str, rows: np.ndarray) -> None:
        """Predict other rows (rows, ...) by all samplers; an ended race is not advanced any more, so at once."""
        seconds = (_AT_ONCE_S if self._race.finished else _ASK_S) / len(self.predictions)
        for each in self.predictions:
            each.ask(name, rows)
            each.look(name, seconds)

    def _ask_outside(self) -> None:
        self._ask("ood", self.ood.scaled_like(self.images).scaled("test")[0])

    def _ask_image(self) -> None:
        """Ask about the image, and its rotations by `ANGLES`."""
        images = np.stack([_turned(self._pixels, angle) for angle in (self._angle, *ANGLES)])
        self._ask("image", scaled_pixels(images, self.images))

    def watch(
        self, ood: str | None = None, image: dict[str, Any] | None = None, wall: str | None = None, **what: Any
    ) -> dict[str, Any]:
        """Choose the views (`ImageRace.watch`); return the choices that are left."""
        if ood is not None:
            self.ood = _chosen(ood, self.images)
            self._ask_outside()
        if wall is not None:
            if wall not in WALLS:
                raise BnnvizError(f"There is no wall {wall!r}; choose one of {', '.join(WALLS)}.", "wall")
            self.wall = wall
        if image is not None:
            self._show(image)
        return what

    def _show(self, image: dict[str, Any]) -> None:
        """Show another image, or another angle."""
        unknown = set(image) - {"index", "pixels", "attacked", "angle"}
        if unknown:
            raise BnnvizError(f"An image is index, pixels or attacked, and angle, not {sorted(unknown)[0]}.", "image")
        angle = image.get("angle", self._angle)
        if isinstance(angle, bool) or not isinstance(angle, int | float) or not abs(angle) <= ANGLES[-1]:
            raise BnnvizError(f"The angle is from -180 to 180 degrees, not {angle!r}.", "angle")
        if "attacked" in image:
            number, tiles = image["attacked"], self._adversarial()
            if not _is_index(number, len(tiles)):
                raise BnnvizError(f"There is no attacked image {number!r}; there are {len(tiles)} now.", "image")
            self._pixels, self._truth = tiles[number][:2]
            self.source = {"attacked": number}
        elif "pixels" in image:
            self._pixels, self._truth = _pixels(image["pixels"], self.images.shape), None
            self.source = {"drawn": True}
        elif "index" in image:
            index, count = image["index"], len(self.images.y_test)
            if not _is_index(index, count):
                raise BnnvizError(f"There is no test image {index!r}; choose 0 to {count - 1}.", "image")
            self._pixels, self._truth = self.images.x_test[index], int(self.images.y_test[index])
            self.source = {"index": index}
        self._angle, self._number = float(angle), self._number + 1
        self._ask_image()

    def save(self) -> dict[str, Any]:
        """Return the course of the scores; predictions of the draws are made again."""
        return {"course": [[tuple(point) for point in each.course] for each in self.predictions]}

    def load(self, saved: dict[str, Any]) -> None:
        """Restore the course of the scores."""
        for each, points in zip(self.predictions, saved["course"], strict=True):
            each.course = [CoursePoint(*point) for point in points]

    # figures

    def figures(self, number: int) -> dict[str, float]:
        """Return scores, ESS and R-hat of a sampler."""
        each = self.predictions[number]
        mixing = each.entry.mixing() if each.entry.store.common(each.entry.alive) else {}
        return mixing | each.scores() | {"auroc": each.detection().auroc}

    def standing(self, rows: list[dict[str, Any]]) -> str:
        """Describe the best predictions and the best out-of-distribution detection."""
        ranked = [row for row in rows if row["rank"] is not None]
        if not ranked:
            return unmeasured(rows)
        first = ranked[0]
        best = f"{first['name']} predicts best (NLL {first['nll']:.3f}, accuracy {100 * first['accuracy']:.1f}%)"
        detecting = [row for row in ranked if math.isfinite(row["auroc"])]
        if not detecting or self.ood is None:
            return f"{best}."
        sharp = max(detecting, key=lambda row: row["auroc"])
        who = "and" if sharp is first else f"and {sharp['name']}"
        return f"{best}, {who} detects {self.ood.title} best (AUROC {sharp['auroc']:.3f})."

    # views

    def scene(self) -> dict[str, Any]:
        """Return the static view data beside that of the race: shape, classes and counts of the images."""
        images = self.images
        return {
            "entries": [{"spec": entry.spec.to_json()} for entry in self._race.entries],
            "title": f"Uncertainty on {images.title}",
            "remarks": [*images.remarks(), *(() if self.ood is None else self.ood.remarks())],
            "classes": list(images.class_names),
            "shape": list(images.shape),
            "tests": len(images.y_test),
            "ood_sets": [each["name"] for each in _candidates(images)],
            "ood": None if self.ood is None else self.ood.name,
        }

    @property
    def parts(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Builders of parts of frames."""
        return {
            "course": lambda: {"entries": self._each(_course)},
            "wall": self._wall,
            "digit": self._digit,
            "turned": self._turned_part,
            "entropy": self._entropy,
            "reliability": lambda: {"entries": self._each(self._reliability)},
            "attack": self._attack,
            "attack_entropy": self._attack,
        }

    def _each(self, of: Callable[[Predictions], dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the name of each sampler with its own columns."""
        named = zip(self._race.names, self.predictions, strict=True)
        return [{"name": name} | of(each) for name, each in named]

    def _wall(self) -> dict[str, Any]:
        """Return the images of the wall: the hardest, or the adversarial ones with the class predicted by others."""
        if self.wall == WALLS[0]:
            return {"kind": self.wall, "tiles": self._hardest()}
        tiles = [
            self._tile(number, pixels, truth, [taken], f"changed by {eps:g}, probability {chance:.2f}")
            for number, (pixels, truth, taken, chance, eps) in enumerate(self._adversarial())
        ]
        return {"kind": self.wall, "tiles": tiles}

    def _tile(self, number: int, pixels: np.ndarray, truth: int, guesses: Iterable[int], figure: str) -> dict[str, Any]:
        names = self.images.class_names
        return {
            "index": number,
            "pixels": _packed(pixels),
            "truth": names[truth],
            "guesses": [names[guess] for guess in guesses],
            "wrong": any(guess != truth for guess in guesses),
            "figure": figure,
        }

    def _adversarial(self) -> list[tuple[np.ndarray, int, int, float, float]]:
        """Return pixels, class, predicted class and its probability, and strength, of the first attacked sampler."""
        found = []
        for each in next((each.attacks for each in self.predictions if each.attacks), []):
            few, (eps,) = each["examples"], each["eps"]
            pixels = np.clip(np.round(255 * few["inputs"][0]), 0, 255).astype(np.uint8)
            columns = pixels, few["observed"].tolist(), few["predicted"][0].tolist(), few["chance"][0].tolist()
            found += [(*row, eps) for row in zip(*columns, strict=True)]
        return found

    def _hardest(self) -> list[dict[str, Any]]:
        """Return the test images with the highest uncertainty, hardest first."""
        known, images = [each for each in self.predictions if len(each["test"])], self.images
        if not known:
            return []
        mean = np.mean([each.entropy("test") for each in known], axis=0)
        order = np.argsort(-mean)[:_HARDEST]
        guesses = np.stack([each["test"][:, order].mean(0).argmax(-1) for each in known], axis=1)
        return [
            self._tile(int(i), images.x_test[i], images.y_test[i], guess, f"entropy {mean[i]:.2f}")
            for i, guess in zip(order, guesses, strict=True)
        ]

    def _digit(self) -> dict[str, Any]:
        unknown = dict.fromkeys(("mean", "low", "high"), np.full(self.images.classes, np.nan))

        def intervals(each: Predictions) -> dict[str, Any]:
            found = each["image"]
            parts = diagnostics.class_intervals(found[:, :1])._asdict() if len(found) else {}
            return unknown | {name: part[0] for name, part in parts.items()}

        return {
            "classes": list(self.images.class_names),
            "observed": self._truth,
            "angle": self._angle,
            "pixels": _packed(_turned(self._pixels, self._angle)),
            "number": self._number,
            "entries": self._each(intervals),
            **self.source,
        }

    def _turned_part(self) -> dict[str, Any]:
        unknown = np.full(len(ANGLES), np.nan)
        entries = self._each(lambda each: {"entropy": each.entropy("image")[1:] if len(each["image"]) else unknown})
        return {"angles": np.array(ANGLES, float), "angle": self._angle, "entries": entries}

    def _entropy(self) -> dict[str, Any]:
        def columns(each: Predictions) -> dict[str, Any]:
            found = (each.entropy(name) for name in ("test", "ood"))
            inside, outside = (diagnostics.score_ecdf(part) if len(part) else None for part in found)
            auroc = each.detection().auroc if math.isfinite(each.detection().auroc) else None
            return {"inside": inside and inside._asdict(), "outside": outside and outside._asdict(), "auroc": auroc}

        return {
            "kind": "ecdf",
            "unit": "nats",
            "top": math.log(self.images.classes),
            "inside": f"{self.images.title}, test",
            "outside": "" if self.ood is None else self.ood.title,
            "entries": self._each(columns),
        }

    def _reliability(self, each: Predictions) -> dict[str, Any]:
        found = each["test"]
        known = diagnostics.reliability(found.mean(0), self.images.y_test) if len(found) else _UNRELIABLE
        return known._asdict()

    def _attack(self) -> dict[str, Any]:
        def columns(each: Predictions) -> dict[str, Any]:
            found = {figure: [done[figure][0] for done in each.attacks] or [math.nan] for figure in _ATTACKED}
            return {"eps": [done["eps"][0] for done in each.attacks] or [0.0], **found}

        top = math.log(self.images.classes)
        return {"label": "change of each pixel (of 1)", "unit": "nats", "top": top, "entries": self._each(columns)}


class ImageRace(Race):
    """Run a race on images, driven like a `Race`, which measures predictions (`Images`)."""

    spec_class: ClassVar[type[RaceSpec]] = ImageRaceSpec
    measure_class: ClassVar[type[Images]] = Images

    def watch(self, **what: Any) -> None:
        """Choose the views as in `ViewedRun.watch`, and the image to query (`Images._show`); None changes nothing."""
        super().watch(**self.measure.watch(**what))


def _is_index(value: Any, count: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count


def _course(each: Predictions) -> dict[str, np.ndarray]:
    return {name: np.array([getattr(point, name) for point in each.course]) for name in CoursePoint._fields}


def _candidates(images: ImageSet) -> list[dict[str, Any]]:
    """Return the other registered image sets of the same shape."""
    described = [datasets.describe(name) for name in datasets.names()]
    same = [each for each in described if each["shape"] == list(images.shape) and each["name"] != images.name]
    # Sets unsuitable for training can serve as out-of-distribution data.
    return sorted(same, key=lambda each: each["trainable"])


def _chosen(name: str, images: ImageSet) -> ImageSet:
    if name not in [each["name"] for each in _candidates(images)]:
        known = ", ".join(each["name"] for each in _candidates(images)) or "none"
        raise BnnvizError(f"There are no images of {name!r} of the same shape; choose one of: {known}.", "ood")
    found = datasets.load(name)
    return found.chosen(test=min(OOD_ROWS, len(found.y_test)))


def _first_ood(images: ImageSet) -> ImageSet | None:
    """Return the first other installed data set; None if unavailable."""
    for each in _candidates(images):
        try:
            return _chosen(each["name"], images)
        except BnnvizError:
            # Skip sets that are not installed, as the user did not request one.
            continue
    return None


def _turned(pixels: np.ndarray, angle: float) -> np.ndarray:
    return pixels if angle == 0 else scipy.ndimage.rotate(pixels, angle, axes=(2, 1), reshape=False, order=1)


def _pixels(given: Any, shape: tuple[int, int, int]) -> np.ndarray:
    """Return the user's image as bytes (channels, height, width)."""
    try:
        pixels = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        pixels = np.empty(0)
    if pixels.ndim == 2:
        pixels = np.broadcast_to(pixels, (shape[0], *pixels.shape))
    if pixels.shape != shape or not np.isfinite(pixels).all():
        raise BnnvizError(f"An image has {shape[1]} rows of {shape[2]} numbers, in {shape[0]} channels.", "image")
    return np.clip(pixels, 0, 255).astype(np.uint8)


def _packed(pixels: np.ndarray) -> dict[str, Any]:
    """Return the bytes of an image (channels, height, width) for the page."""
    channels, height, width = pixels.shape
    data = base64.b64encode(np.ascontiguousarray(pixels).tobytes()).decode()
    return {"channels": channels, "height": height, "width": width, "data": data}
