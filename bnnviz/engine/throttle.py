"""Limit repeated work to a fraction of the time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Throttle:
    """Repeat work ``max(min(cost / share, most), least)`` seconds after it was last done; it is due at first."""

    def __init__(
        self,
        share: float = math.inf,
        *,
        least: float = 0.0,
        most: float = math.inf,
        clock: Callable[[], float] = lambda: time.perf_counter(),
    ) -> None:
        self.share, self.least, self.most, self.cost = share, least, most, 0.0
        self._clock, self._done = clock, -math.inf

    @property
    def wait(self) -> float:
        """Seconds from the last work to the next."""
        return max(min(self.cost / self.share, self.most), self.least)

    @property
    def due(self) -> bool:
        """Whether it is time to do the work again."""
        return self._clock() - self._done >= self.wait

    def spent(self, cost: float = 0.0) -> None:
        """Record that the work has just been done."""
        self.cost, self._done = cost, self._clock()

    def expire(self) -> None:
        """Make the work due at once."""
        self._done = -math.inf
