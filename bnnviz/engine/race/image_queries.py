"""Query the draws of a race about one image and its rotations, and about adversarial images."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy
import torch

from bnnviz import diagnostics
from bnnviz.engine.evaluation.attack import EPS, attack
from bnnviz.engine.evaluation.uncertainty import scaled_pixels
from bnnviz.engine.race.predictive_cache import probabilities
from bnnviz.errors import BnnvizError

ANGLES = tuple(range(-180, 181, 30))  # degrees
ATTACKED_ROWS, _ATTACKED_DRAWS = 100, 8
_MOST_ANGLE = 180.0
_DRAWS, _FEWEST, _ASK_S = 32, 4, 0.3  # draws per image query, their minimum, and seconds for all samplers
_ANSWER_AGE = 2.0  # seconds after which new draws are queried too
_ATTACK_GROWTH = 2  # factor of the draws until they are attacked again


class ImageQueries:
    """Query the draws of a race on images outside of the test rows."""

    def __init__(self, race: Any) -> None:
        self._race = race
        #: The source of the image: ``index`` of a test image, ``attacked`` or ``drawn``.
        self.source: dict[str, Any] = {"index": 0}
        self._pixels, self.truth = race.images.x_test[0], int(race.images.y_test[0])
        self.angle = 0.0
        self.number = 0  # counts the displayed images
        self._answers: dict[int, tuple[tuple[int, int], float, np.ndarray]] = {}
        self._attacks: dict[int, tuple[int, list[dict[str, Any]]]] = {}

    # one image

    def show(self, image: dict[str, Any]) -> None:
        """Show another image, or another angle (see `ImageRace.watch`)."""
        unknown = set(image) - {"index", "pixels", "attacked", "angle"}
        if unknown:
            raise BnnvizError(f"An image is index, pixels or attacked, and angle, not {sorted(unknown)[0]}.", "image")
        angle = image.get("angle", self.angle)
        if isinstance(angle, bool) or not isinstance(angle, int | float) or not abs(angle) <= _MOST_ANGLE:
            raise BnnvizError(f"The angle is from -180 to 180 degrees, not {angle!r}.", "angle")
        if "attacked" in image:
            number, tiles = image["attacked"], self.tiles()
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(tiles):
                raise BnnvizError(f"There is no attacked image {number!r}; there are {len(tiles)} now.", "image")
            self._pixels, self.truth = tiles[number]["pixels"], tiles[number]["truth"]
            self.source = {"attacked": number}
        elif "pixels" in image:
            pixels, self.truth = _pixels(image["pixels"], self._race.images.shape), None
            self._pixels, self.source = pixels, {"drawn": True}
        elif "index" in image:
            index, count = image["index"], len(self._race.images.y_test)
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
                raise BnnvizError(f"There is no test image {index!r}; choose 0 to {count - 1}.", "image")
            self._pixels, self.truth = self._race.images.x_test[index], int(self._race.images.y_test[index])
            self.source = {"index": index}
        self.angle = float(angle)
        self.number += 1

    def tiles(self) -> list[dict[str, Any]]:
        """Return adversarial images for one draw of the first attacked sampler, one per strength.

        Each has ``pixels`` (bytes), ``truth``, ``taken`` (class predicted by the other draws), ``chance`` and ``eps``.
        """
        done = next((done for _, done in self._attacks.values() if done), [])
        found = []
        for each in done:
            few = each["examples"]
            for inputs, truth, taken, probability in zip(
                few["inputs"][0], few["observed"], few["predicted"][0], few["chance"][0], strict=True
            ):
                pixels = np.clip(np.round(255 * inputs), 0, 255).astype(np.uint8)
                tile = {"pixels": pixels, "truth": int(truth), "taken": int(taken), "chance": float(probability)}
                found.append(tile | {"eps": each["eps"][0]})
        return found

    @property
    def turned(self) -> np.ndarray:
        """The rotated image, bytes (channels, height, width)."""
        return _turned(self._pixels, self.angle)

    def answer(self, number: int) -> np.ndarray:
        """Return a sampler's predictions of the image and its rotations by `ANGLES`: (draws, 1 + angles, classes)."""
        entry = self._race.entries[number]
        key, now = (self.number, entry.predictive_cache.version), time.perf_counter()
        held, at, found = self._answers.get(number, ((-1, -1), 0.0, np.empty((0, 0, 0))))
        if held != key and (held[0] != key[0] or now - at > _ANSWER_AGE):
            found = self._ask(entry)
            self._answers[number] = key, time.perf_counter(), found
        return found

    def _ask(self, entry: Any) -> np.ndarray:
        theta = entry.predictive_cache.draws(_DRAWS)
        if not len(theta):
            return np.empty((0, 1 + len(ANGLES), self._race.images.classes), np.float32)
        images = np.stack([self.turned, *(_turned(self._pixels, angle) for angle in ANGLES)])
        pixels = scaled_pixels(images, self._race.images)
        rows = torch.as_tensor(pixels, dtype=entry.target.dtype, device=entry.target.device)
        begun = time.perf_counter()
        found = [probabilities(entry.target, theta[:1], rows)]
        each = max(time.perf_counter() - begun, 1e-6)
        allowed = int(np.clip(_ASK_S / (each * len(self._race.entries)), _FEWEST, len(theta)))
        chosen = np.linspace(0, len(theta) - 1, allowed).astype(int)[1:]
        return np.stack(found + [probabilities(entry.target, theta[i : i + 1], rows) for i in chosen])

    # adversarial images

    @property
    def busy(self) -> bool:
        """Whether an attack is pending."""
        return self._due() is not None

    def look(self) -> bool:
        """Attack one sampler at one strength; return whether any work was left."""
        number = self._due()
        if number is None:
            return False
        entry = self._race.entries[number]
        made, done = self._attacks.get(number, (0, []))
        if len(done) >= len(EPS) or not done:
            made, done = entry.predictive_cache.asked, []
        theta = entry.predictive_cache.draws(_ATTACKED_DRAWS)
        rows = min(ATTACKED_ROWS, len(self._race.images.y_test))
        found = attack(entry.target, theta, eps=[EPS[len(done)]], rows=rows)
        self._attacks[number] = made, [*done, found]
        return True

    def attacked(self, number: int) -> list[dict[str, Any]]:
        """Return the attack results of a sampler so far, one per strength."""
        return self._attacks.get(number, (0, []))[1]

    def _due(self) -> int | None:
        """Return a sampler with draws not yet attacked or doubled since; None if there is no such sampler."""
        for number, entry in enumerate(self._race.entries):
            asked = entry.predictive_cache.asked
            made, done = self._attacks.get(number, (0, []))
            unfinished = 0 < len(done) < len(EPS)
            if asked >= 2 and (unfinished or asked >= max(2, _ATTACK_GROWTH * made)):
                return number
        return None

    def intervals(self, number: int) -> diagnostics.ClassIntervals | None:
        """Return mean and 95 % interval of each class's probability at the image; None without draws."""
        found = self.answer(number)
        return diagnostics.class_intervals(found[:, :1]) if len(found) else None


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
