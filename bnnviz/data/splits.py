"""How rows are divided into training and test rows."""

from __future__ import annotations

import numpy as np


def split_rows(rows: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Divide rows as the published splits of the UCI sets do.

    Parameters
    ----------
    rows : int
        Number of rows of the whole set.
    split : int
        Number of the split, from 0.

    Returns
    -------
    train, test : ndarray of int
        Sorted row numbers; a tenth of the rows are test rows.

    Notes
    -----
    One legacy generator with seed 1 per set draws one permutation per split, so the splits before the
    wanted one have to be drawn too.
    """
    generator = np.random.RandomState(1)
    for _ in range(split + 1):
        order = generator.choice(rows, rows, replace=False)
    first_test = round(0.9 * rows)
    return np.sort(order[:first_test]), np.sort(order[first_test:])
