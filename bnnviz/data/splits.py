"""Divide rows into training and test rows."""

from __future__ import annotations

import numpy as np


def split_rows(rows: int, split: int) -> dict[str, np.ndarray]:
    """Return the sorted numbers of the rows "train" and "test", as in the published splits of the UCI sets."""
    generator = np.random.RandomState(1)
    for _ in range(split + 1):
        order = generator.choice(rows, rows, replace=False)
    first_test = round(0.9 * rows)
    return {"train": np.sort(order[:first_test]), "test": np.sort(order[first_test:])}


def divided(x: np.ndarray, y: np.ndarray, **rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the inputs (rows, inputs) and targets (rows,) of each part, as `DataSet` takes them."""
    return {f"x_{part}": x[which] for part, which in rows.items()} | {
        f"y_{part}": y[which] for part, which in rows.items()
    }
