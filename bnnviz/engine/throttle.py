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
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.share, self.least, self.most, self.cost = share, least, most, 0.0
        self._clock = clock
        self._done = -math.inf

    @property
    def wait(self) -> float:
        """Seconds from the last work to the next."""
        return max(min(self.cost / self.share, self.most), self.least)

    @property
    def passed(self) -> float:
        """Seconds since the work was last done; inf before the first time."""
        return self._now() - self._done

    @property
    def left(self) -> float:
        """Seconds until the work is due; negative if overdue."""
        return self.wait - self.passed

    @property
    def due(self) -> bool:
        """Whether it is time to do the work again."""
        return self.left <= 0

    def spent(self, cost: float = 0.0, *, least: float | None = None, most: float | None = None) -> None:
        """Record that the work has just been done."""
        self.cost, self._done = cost, self._now()
        self.least = self.least if least is None else least
        self.most = self.most if most is None else most

    def expire(self) -> None:
        """Make the work due at once."""
        self._done = -math.inf

    def _now(self) -> float:
        return time.perf_counter() if self._clock is None else self._clock()
