"""Build the scene, frames and status text of a race on images."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.race.image_queries import ANGLES
from bnnviz.engine.race.view import RaceView

_HARDEST = 28  # images on the wall
_ATTACKED = tuple(f"{figure}{end}" for figure in ("accuracy", "entropy") for end in ("", "_low", "_high"))
_UNRELIABLE = diagnostics.Reliability(
    np.linspace(0, 1, 11), np.zeros(10), *(np.full(10, np.nan) for _ in range(4)), math.nan
)


class ImageRaceView(RaceView):
    """Build the view of a race on images; it does not affect any draw."""

    pictures: ClassVar[tuple[str, ...]] = ()
    errors: ClassVar[bool] = False
    ranked_by: ClassVar[str] = "nll"

    def __init__(self, race: Any) -> None:
        super().__init__(race)
        self._detected: dict[int, tuple[Any, diagnostics.Detection]] = {}

    def _pictures(self) -> dict[str, Callable[[], dict[str, Any]]]:
        return {
            "course": self._course,
            "wall": self._wall,
            "digit": self._digit,
            "turned": self._turned,
            "entropy": self._entropy,
            "reliability": self._reliability,
            "attack": self._attack,
            "attack_entropy": self._attack,
        }

    def _scene(self) -> dict[str, Any]:
        """Return the samplers without their own scenes, and the images' shape, classes and counts."""
        race, images = self._race, self._race.images
        entries = [
            {"name": name, "spec": entry.spec.to_json()} for name, entry in zip(self._names, race.entries, strict=True)
        ]
        return {
            "title": f"Uncertainty on {images.title}",
            "target": race.entries[0].target.describe_value(),
            "remarks": [*images.remarks(), *(() if race.ood is None else race.ood.remarks())],
            "dim": race.entries[0].target.dim,
            "emits": list(self.parts),
            "pictures": [],
            "entries": entries,
            "names": self._names,
            "measured": "",
            "classes": list(images.class_names),
            "shape": list(images.shape),
            "tests": len(images.y_test),
            "ood_sets": race.ood_sets(),
            "ood": None if race.ood is None else race.ood.name,
        }

    # ---- parts --------------------------------------------------------------------------------------------

    def _row(self, number: int, entry: Any) -> dict[str, Any]:
        return super()._row(number, entry) | {"auroc": self.detected(number).auroc}

    def _scores(self) -> list[str]:
        return ["nll", "accuracy", "ece", "auroc"]

    def _course(self) -> dict[str, Any]:
        entries = []
        for name, entry in zip(self._names, self._race.entries, strict=True):
            columns = {each: np.array([getattr(m, each) for m in entry.course]) for each in ("accuracy", "nll", "ece")}
            entries.append({"name": name, "seconds": np.array([m.seconds for m in entry.course])} | columns)
        return {"entries": entries}

    def entropies(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a sampler's predictive entropies of test rows and of out-of-distribution rows, in nats."""
        inside, outside = self._race.probabilities(number)
        if not len(inside):
            return np.empty(0), np.empty(0)
        known = diagnostics.predictive_entropy(inside)
        return known, diagnostics.predictive_entropy(outside) if outside.size else np.empty(0)

    def detected(self, number: int) -> diagnostics.Detection:
        """Return the metrics of out-of-distribution detection; nan if unknown or without scikit-learn."""
        version = tuple((id(each), each.version) for each in self._race.entries[number].asked())
        held, found = self._detected.get(number, ((), diagnostics.Detection(*[math.nan] * 6)))
        if held != version:
            inside, outside = self.entropies(number)
            if len(inside) and len(outside) and diagnostics.has_learn():
                found = diagnostics.detection(inside, outside, resamples=100)
            self._detected[number] = version, found
        return found

    def _wall(self) -> dict[str, Any]:
        """Return the images of the wall: the hardest, or the adversarial ones."""
        kind = self._race.wall
        return {"kind": kind, "tiles": self._misleading() if kind == "attacked" else self._hardest()}

    def _misleading(self) -> list[dict[str, Any]]:
        names = self._race.images.class_names
        return [
            {
                "index": number,
                "pixels": _packed(tile["pixels"]),
                "truth": names[tile["truth"]],
                "guesses": [names[tile["taken"]]],
                "wrong": tile["truth"] != tile["taken"],
                "figure": f"changed by {tile['eps']:g}, probability {tile['chance']:.2f}",
            }
            for number, tile in enumerate(self._race.queries.tiles())
        ]

    def _hardest(self) -> list[dict[str, Any]]:
        """Return the test images with the highest uncertainty, hardest first."""
        images = self._race.images
        found = [self.entropies(number)[0] for number in range(len(self._race.entries))]
        known = [each for each in found if len(each)]
        if not known:
            return []
        mean = np.mean(known, axis=0)
        order = np.argsort(-mean)[:_HARDEST]
        each = [self._race.probabilities(number)[0] for number in range(len(self._race.entries))]
        guesses = np.stack([found[:, order].mean(0).argmax(-1) for found in each if len(found)], axis=1)
        return [
            {
                "index": int(i),
                "pixels": _packed(images.x_test[i]),
                "truth": images.class_names[images.y_test[i]],
                "guesses": [images.class_names[k] for k in guess],
                "wrong": any(k != images.y_test[i] for k in guess),
                "figure": f"entropy {mean[i]:.2f}",
            }
            for i, guess in zip(order, guesses, strict=True)
        ]

    def _digit(self) -> dict[str, Any]:
        queries, images = self._race.queries, self._race.images
        unknown, entries = np.full(images.classes, np.nan), []
        for number, name in enumerate(self._names):
            found = queries.intervals(number)
            columns = (unknown, unknown, unknown) if found is None else (found.mean[0], found.low[0], found.high[0])
            entries.append({"name": name, **dict(zip(("mean", "low", "high"), columns, strict=True))})
        return {
            "classes": list(images.class_names),
            "observed": queries.truth,
            "angle": queries.angle,
            "pixels": _packed(queries.turned),
            "number": queries.number,
            "entries": entries,
            **queries.source,
        }

    def _turned(self) -> dict[str, Any]:
        entries = []
        for number, name in enumerate(self._names):
            found = self._race.queries.answer(number)[:, 1:]
            entropy = diagnostics.predictive_entropy(found) if len(found) else np.full(len(ANGLES), np.nan)
            entries.append({"name": name, "entropy": entropy})
        return {"angles": np.array(ANGLES, float), "angle": self._race.queries.angle, "entries": entries}

    def _entropy(self) -> dict[str, Any]:
        images, ood = self._race.images, self._race.ood
        entries = []
        for number, name in enumerate(self._names):
            inside, outside = (diagnostics.score_ecdf(each) if len(each) else None for each in self.entropies(number))
            sides = {"inside": inside and inside._asdict(), "outside": outside and outside._asdict()}
            auroc = self.detected(number).auroc
            entries.append({"name": name, **sides, "auroc": auroc if math.isfinite(auroc) else None})
        return {
            "kind": "ecdf",
            "unit": "nats",
            "top": math.log(images.classes),
            "inside": f"{images.title}, test",
            "outside": "" if ood is None else ood.title,
            "entries": entries,
        }

    def _reliability(self) -> dict[str, Any]:
        observed, entries = self._race.images.y_test, []
        for number, name in enumerate(self._names):
            probabilities = self._race.probabilities(number)[0]
            found = diagnostics.reliability(probabilities.mean(0), observed) if len(probabilities) else _UNRELIABLE
            entries.append({"name": name, **found._asdict()})
        return {"entries": entries}

    def _attack(self) -> dict[str, Any]:
        entries = []
        for number, name in enumerate(self._names):
            done = self._race.queries.attacked(number)
            columns = {figure: [each[figure][0] for each in done] or [math.nan] for figure in _ATTACKED}
            entries.append({"name": name, "eps": [each["eps"][0] for each in done] or [0.0], **columns})
        top = math.log(self._race.images.classes)
        return {"label": "change of each pixel (of 1)", "unit": "nats", "top": top, "entries": entries}

    # ---- texts --------------------------------------------------------------------------------------------

    def _standing(self) -> str:
        """Describe the best predictions and the best out-of-distribution detection."""
        ranked = [row for row in self.table() if row["rank"] is not None]
        if not ranked:
            return self._unmeasured()
        first = ranked[0]
        best = f"{first['name']} predicts best (NLL {first['nll']:.3f}, accuracy {100 * first['accuracy']:.1f} %)"
        detecting = [row for row in ranked if math.isfinite(row["auroc"])]
        if not detecting or self._race.ood is None:
            return f"{best}."
        sharp = max(detecting, key=lambda row: row["auroc"])
        who = "and" if sharp is first else f"and {sharp['name']}"
        return f"{best}, {who} detects {self._race.ood.title} best (AUROC {sharp['auroc']:.3f})."

    def _silent(self, entry: Any) -> bool:
        return not entry.predictive_cache.asked and not entry.store.common(entry.alive)


def _packed(pixels: np.ndarray) -> dict[str, Any]:
    """Return the bytes of an image (channels, height, width) for the page."""
    channels, height, width = pixels.shape
    data = base64.b64encode(np.ascontiguousarray(pixels).tobytes()).decode()
    return {"channels": channels, "height": height, "width": width, "data": data}
