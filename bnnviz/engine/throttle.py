"""Say when something that takes time is due again, so that it takes no more than a share of the time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Throttle:
    """Say when work that is repeated is due: when so long has passed that its cost is a share of that.

    It is due at first. After work of a cost it is due again ``max(min(cost / share, most), least)`` seconds later.
    """

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
        """Seconds since the work was last done; inf where it has not been done yet."""
        return self._now() - self._done

    @property
    def left(self) -> float:
        """Seconds until the work is due; negative where it is."""
        return self.wait - self.passed

    @property
    def due(self) -> bool:
        """Whether it is time to do the work again."""
        return self.left <= 0

    def spent(self, cost: float = 0.0, *, least: float | None = None, most: float | None = None) -> None:
        """Note that the work has just been done."""
        self.cost, self._done = cost, self._now()
        self.least = self.least if least is None else least
        self.most = self.most if most is None else most

    def expire(self) -> None:
        """Let the work be due at once."""
        self._done = -math.inf

    def _now(self) -> float:
        return time.perf_counter() if self._clock is None else self._clock()
