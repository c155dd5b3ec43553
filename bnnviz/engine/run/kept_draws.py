"""Keep the draws of a run, their weights and integrals along the paths, and compute results from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from bnnviz import diagnostics
from bnnviz.engine.monitor.importance import resampled
from bnnviz.engine.run.draw_store import LIVE_CAPACITY, DrawStore
from bnnviz.samplers.observers import Draws, StepBatch

_PATH_MARKS = 64  # maximum number of draws per chain with integrals along the path
STORES = ("store", "logs", "path", "draw_stats")


class KeptDraws:
    """The part of a run that keeps its draws; other attributes are those of `Run`."""

    def begin_draws(self) -> None:
        """Create empty stores for draws, log weights, and integrals along the path of each chain."""
        chains, dim = self.spec.chains, self.target.dim
        kept = (self.draw_limit, self.dropped, self.device)
        self.store = DrawStore(chains, dim, *kept, self.dtype, self.capacity)
        columns = 1 if self.sampler.traits.weighted else 0
        # As many as all draws: the store of draws may keep fewer than its capacity.
        self.logs = DrawStore(chains, columns, *kept, torch.float64, self.store.buffer.shape[1])
        columns = len(self.sampler.sample_stats())
        self.draw_stats = DrawStore(chains, columns, *kept, torch.float64, self.store.buffer.shape[1])
        columns = 1 + 2 * dim if self.sampler.integrates(chains, dim) else 0
        self.path = DrawStore(chains, columns, None, self.dropped, self.device, torch.float64, _PATH_MARKS)

    @property
    def dropped(self) -> int:
        """Discarded draws per chain: none before a warm-up that counts moves, or for a single point per chain."""
        if self.draw_limit != self.spec.draws:
            return 0
        ahead = self.phase in ("start", "tuning") and self.spec.start_points is None
        return 0 if ahead and self.sampler.traits.warms_up_by_moves else self.spec.warmup

    @property
    def draw_limit(self) -> int | None:
        """Maximum draws per chain: as in the spec, or one for an endless run with a single point."""
        endless = self.spec.draws is None
        return 1 if endless and self.sampler.traits.one_point else self.spec.draws

    @property
    def capacity(self) -> int:
        """Kept draws per chain of an endless run."""
        return LIVE_CAPACITY

    def _last_draws(self, rows: Draws) -> np.ndarray:
        """Return the step of a block after which each chain has its last draw, (chains,), or -1."""
        ends = torch.full((len(self.alive),), -1, device=rows.chain.device)
        if rows.step is not None and self.store.limit is not None:
            last = rows.index == self.store.skip + self.store.limit - self.store.offset - 1
            ends[rows.chain[last]] = rows.step[last]
        return ends.cpu().numpy()

    def last_draw(self, rows: Draws) -> int | None:
        """Return the step of a block after which all living chains have their last draw; None if some lack draws."""
        ends = self._last_draws(rows)[self.alive & ~self.store.full()]
        return int(ends.max()) if ends.size and ends.min() >= 0 else None

    def counted(self, step_batch: StepBatch, rows: Draws | None) -> Iterator[tuple[StepBatch, np.ndarray]]:
        """Yield parts of a block, each with the chains (chains,) that still lack draws.

        The cost of a run thus does not depend on the size of its blocks.
        """
        counted = self.alive & ~self.store.full()
        ends = np.full(len(counted), -1) if rows is None else self._last_draws(rows)
        begun = 0
        for end in [*np.unique(ends[counted & (ends >= 0)] + 1).tolist(), len(step_batch.infos)]:
            if end > begun and counted.any():
                yield step_batch.part(begun, end), counted
            counted = counted & ~((ends >= 0) & (ends < end))
            begun = end

    def collect(self, rows: Draws) -> None:
        """Keep the draws of a block of steps."""
        self.store.add(rows)
        if rows.log_weight is not None:
            self.logs.add(rows._replace(x=rows.log_weight[:, None]))
        if rows.path is not None:
            self.path.add(rows._replace(x=rows.path))
        if rows.stats is not None:
            self.draw_stats.add(rows._replace(x=rows.stats))

    def refill(
        self, draws: np.ndarray, log_weights: np.ndarray | None, stats: dict[str, np.ndarray] | None = None
    ) -> None:
        """Restore draws (chains, draws, dim), weights and statistics (chains, draws) missing in a checkpoint."""
        self.store.fill(torch.as_tensor(draws)[:, : int(self.store.counts.max())])
        if log_weights is not None:
            self.logs.fill(torch.as_tensor(log_weights)[:, : int(self.logs.counts.max()), None])
        most, unknown = int(self.draw_stats.counts.max()), np.full(draws.shape[:2], np.nan)
        columns = [(stats or {}).get(name, unknown)[:, :most] for name in self.sampler.sample_stats()]
        if columns:
            self.draw_stats.fill(torch.as_tensor(np.stack(columns, axis=2)))

    @property
    def draws(self) -> np.ndarray:
        """Kept draws of the living chains, (chains, draws, dim)."""
        return self.store.view(self.alive).cpu().numpy()

    def event_weights(self, every: int = 1) -> np.ndarray | None:
        """Return weights (chains, draws) that correct the bias of draws at events; None for unbiased draws."""
        draws = self.store.view(self.alive)[:, ::every]
        if not self.sampler.weighs or not draws.shape[1]:
            return None
        weights = self.sampler.event_weights(draws.flatten(0, 1), self.draw_collector)
        return weights.view(draws.shape[:2]).cpu().numpy()

    @property
    def log_weights(self) -> np.ndarray | None:
        """Log weights (chains, draws) of the draws; None for unweighted draws."""
        if not self.sampler.traits.weighted:
            return None
        return self.logs.view(self.alive)[..., 0].cpu().numpy()

    @property
    def correcting_log_weights(self) -> np.ndarray | None:
        """The log weights of the draws, or those that correct the bias of draws at events; None for equal ones."""
        weights = None if self.sampler.traits.weighted else self.event_weights()
        if weights is None:
            return self.log_weights
        with np.errstate(divide="ignore"):
            return np.log(weights)

    @property
    def sample_stats(self) -> dict[str, np.ndarray]:
        """Sample statistics of the living chains' draws by name, (chains, draws) each; nan if unknown."""
        kept = self.draw_stats.view(self.alive).cpu().numpy()
        return {name: kept[..., k] for k, name in enumerate(self.sampler.sample_stats())}

    def resampled(self, count: int) -> torch.Tensor:
        """Return systematically resampled draws (count, dim); (0, dim) without draws or weights."""
        return resampled(self.store.view(self.alive).flatten(0, 1), self.log_weights.ravel(), count)

    def path_moments(self) -> diagnostics.PathMoments | None:
        """Return mean and variance from the integrals along the whole path, up to the same path time in all chains.

        None if the sampler has no path, the path is not integrated (more than 4,096 chains x dimensions), or it is
        short.
        """
        return diagnostics.path_moments(self.path.view(self.alive).cpu().numpy())
