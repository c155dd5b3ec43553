"""Share what the demonstrations have in common: a comparison on one CPU with parts of frames by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch

from bnnviz.engine.comparison import SamplerComparison


class Demo(SamplerComparison):
    """Base of the demonstrations."""

    #: The parts of its frames.
    parts: ClassVar[tuple[str, ...]]

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.device = torch.device("cpu")
        self.seconds = 0.0
        self.notes: list[str] = []
        self.error: str | None = None
        self.wait_for_compile = False
        self._seq = 0

    @contextmanager
    def _worked(self) -> Iterator[None]:
        """Count the seconds of what is done inside."""
        begun = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - begun

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the wanted ones of `parts`."""
        self._seq += 1
        makers = {"status": self._status, **self._makers()}
        return {"seq": self._seq} | {name: makers[name]() for name in want if name in makers}

    def _makers(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Return what makes each part but the status; empty before there is anything to show."""
        raise NotImplementedError

    def _status(self) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "device": "cpu",
            "kernel": "eager",
            "step": self.steps,
            "gradients": self.gradients,
            "elapsed": self.seconds,
            "progress": self.progress,
            "message": "",
        }
