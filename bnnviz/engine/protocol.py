"""Name what the host, the frames and the recordings share, without importing torch or the run."""

from __future__ import annotations

from typing import Any

LoggedChange = tuple[int, dict[str, Any]]
#: A `bnnviz.engine.run.run.Run`, or a `ViewedRun` where a view is needed; their modules import those that use this.
AnyRun = Any
#: Parts that move with every frame and state no number; all others are of one step, and wait for each other.
MOVING = frozenset({"path", "envelope", "events", "timeline"})
