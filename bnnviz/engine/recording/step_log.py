"""Log each step of the first chain of a run, for its recording."""

from __future__ import annotations

import numpy as np
import torch

from bnnviz.engine.recording.arrays import MOST_STEPS
from bnnviz.samplers.observers import StepBatch


class StepLog:
    """Collect the info of a run's steps for the first chain; ``names`` are the logged tensors, known after a step."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.most = most
        self.names: list[str] = []
        self._pieces: list[tuple[int, torch.Tensor]] = []

    def __call__(self, step_batch: StepBatch) -> None:
        """Log a block of steps."""
        room = self.most - step_batch.first_step
        if room <= 0 or not step_batch.infos:
            return
        first = step_batch.infos[0]
        each = first.failed.shape  # (chains,)
        if not self.names:
            self.names = [name for name in first._fields if getattr(getattr(first, name), "shape", None) == each]
        told = torch.stack([step_batch.column(name)[:room, 0].float() for name in self.names], dim=1)
        self._pieces.append((step_batch.first_step, told))

    def take(self) -> tuple[int, np.ndarray] | None:
        """Return the first step and the float32 values (steps, names) since the last call; None without new steps."""
        pieces, self._pieces = self._pieces, []
        if not pieces:
            return None
        return pieces[0][0], torch.cat([told for _, told in pieces]).cpu().numpy()
