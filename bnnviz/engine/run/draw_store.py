"""Keep the draws of a run with their weights and integrals along the paths, and share them between checkpoints."""

from __future__ import annotations

import errno
import hashlib
import math
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics, memory, paths
from bnnviz.engine.run.device import free_memory
from bnnviz.errors import BnnvizError
from bnnviz.samplers.observers import Draws, StepBatch

LIVE_CAPACITY = 2000
_EARLY, _EARLY_OF_MANY, _MANY = 200, 16, 2000  # draws of the warm-up that are shown; fewer from so many coordinates
# Maximum numbers of draws without a limit: 400 MB. Many chains keep fewer draws, but never too few to thin.
_MOST_NUMBERS, _FEWEST = 100_000_000, 64
BLOCK = 8  # draws of each chain; a checkpoint has an incomplete block of its own
# Bytes of draws on a CPU from which on a file holds them, and maximum bytes before a flush.
_IN_MEMORY, _UNWRITTEN = 1 << 27, 1 << 26
_PATH_MARKS = 64  # maximum number of draws per chain with integrals along the path
STORES = ("store", "logs", "path", "draw_stats")


class BlockStore:
    """Keep blocks of draws by their content, each once."""

    def __init__(self) -> None:
        self._blocks: dict[str, Tensor] = {}
        self.asked: set[str] = set()

    def put(self, draws: Tensor, known: list[str], whole: int) -> list[str]:
        """Keep draws (chains, draws, dim), and return the names of their blocks."""
        names = []
        for place, first in enumerate(range(0, draws.shape[1], BLOCK)):
            name = known[place] if place < len(known) else None
            if name not in self._blocks:
                # Copy: a view would keep all draws in memory.
                block = draws[:, first : first + BLOCK].detach().cpu().contiguous().clone()
                digest = hashlib.blake2b(block.numpy(), digest_size=16)
                digest.update(f"{block.dtype} {tuple(block.shape)}".encode())
                name = digest.hexdigest()
                self._blocks.setdefault(name, block)
                if place == len(known) and first + BLOCK <= whole:
                    known.append(name)
            names.append(name)
        self.asked.update(names)
        return names

    def get(self, names: list[str]) -> Tensor | None:
        """Return the draws (chains, draws, dim) of these blocks; None without blocks."""
        return torch.cat([self._blocks[name] for name in names], dim=1) if names else None

    def keep(self, names: Iterable[str]) -> None:
        """Drop all other blocks."""
        self._blocks = {name: self._blocks[name] for name in names}

    def size(self, names: Iterable[str]) -> int:
        """Return the bytes of these blocks."""
        return sum(self._blocks[name].numel() * self._blocks[name].element_size() for name in names)


class DrawStore:
    """Keep draws up to a limit, or thin them without one; many draws of large networks in a file."""

    def __init__(
        self,
        chains: int,
        dim: int,
        limit: int | None,
        skip: int,
        device: torch.device,
        dtype: torch.dtype,
        capacity: int = LIVE_CAPACITY,
    ):
        self.limit, self.every = limit, 1
        room = max(_FEWEST, _MOST_NUMBERS // max(chains * dim, 1) // 2 * 2)
        capacity = min(capacity, room) if limit is None else limit
        self._room = Room((chains, capacity, dim), device, dtype)
        self.buffer = self._room.tensor
        self.pass_over(skip)
        self.offset = 0  # draws that were kept before those of index 0
        self.counts = np.zeros(chains, dtype=np.int64)
        self.made = np.zeros(chains, dtype=np.int64)
        self._blocks: list[str] = []  # names of the first draws' complete blocks in a block_store

    def pass_over(self, skip: int) -> None:
        """Discard the first ``skip`` draws of each chain; only the last few are shown, until there are others."""
        chains, _, dim = self.buffer.shape
        self.skip = skip
        self.early = self.buffer.new_zeros(chains, min(skip, _EARLY if dim < _MANY else _EARLY_OF_MANY), dim)

    def prolong(self, kept: int, limit: int) -> None:
        """Make room for more draws; the next draw of each chain, of index 0, follows the first ``kept``."""
        if self.limit is not None:
            old, self.limit = self.buffer[:, :kept], limit
            self._room = Room((old.shape[0], limit, old.shape[2]), old.device, old.dtype)
            self.buffer = self._room.tensor
            self.fill(old)
        self.pass_over(0)
        self.offset = kept
        self.counts, self.made = np.minimum(self.counts, -(-kept // self.every)), np.full_like(self.made, kept)

    def add(self, rows: Draws) -> None:
        """Add draws, except those of the warm-up, beyond the limit or between the kept ones."""
        if not len(rows.chain):
            return
        number = rows.index + self.offset
        chain, index, x = rows.chain, number - self.skip, rows.x
        np.maximum.at(self.made, chain.cpu().numpy(), (number + 1).cpu().numpy())
        while self.limit is None and int(index.max()) // self.every >= self.buffer.shape[1]:
            # There is no room for more: keep every second draw.
            half = self.buffer[:, ::2].clone()
            self.buffer.zero_()
            self.buffer[:, : half.shape[1]] = half
            self.counts = (self.counts + 1) // 2
            self._blocks = []
            self.every *= 2
        early = number < self.skip
        if early.any():
            self.early[chain[early], number[early] % self.early.shape[1]] = x[early]
        keep = (index >= 0) & (index % self.every == 0)
        if self.limit is not None:
            keep &= index < self.limit
        chain, slot = chain[keep], index[keep] // self.every
        self.buffer[chain, slot] = x[keep]
        self._room.written(x[keep])
        np.maximum.at(self.counts, chain.cpu().numpy(), (slot + 1).cpu().numpy())

    def settling(self, alive: np.ndarray) -> Tensor:
        """Return the last draws of the warm-up of each living chain in their order, (chains, draws, dim)."""
        chosen = np.flatnonzero(alive if alive.any() else np.ones_like(alive))
        size, ends = self.early.shape[1], np.minimum(self.made[chosen], self.skip)
        count = min(size, int(ends.min()))
        places = (ends[:, None] - count + np.arange(count)) % max(size, 1)
        return self.early[chosen[:, None], places]

    def full(self) -> np.ndarray:
        """Return which chains (chains,) have all their draws."""
        return np.zeros(len(self.counts), bool) if self.limit is None else self.counts >= self.limit

    def common(self, alive: np.ndarray) -> int:
        """Return the number of common draws of all living chains."""
        return int(self.counts[alive].min()) if alive.any() else int(self.counts.min())

    def view(self, alive: np.ndarray) -> Tensor:
        """Return the kept draws of the living chains, (chains, draws, dim)."""
        chosen = alive if alive.any() else np.ones_like(alive)
        buffer = self.buffer if chosen.all() else self.buffer[torch.as_tensor(chosen, device=self.buffer.device)]
        return buffer[:, : self.common(alive)]

    def save(self, draws: bool = True, block_store: BlockStore | None = None) -> dict[str, Any]:
        """Return the state for a checkpoint: with the draws, with the names of their blocks, or without draws."""
        kept = self.buffer[:, : int(self.counts.max()) if draws else 0]
        return {
            "buffer": kept.clone()
            if block_store is None
            else block_store.put(kept, self._blocks, int(self.counts.min())),
            "counts": torch.as_tensor(self.counts),
            "made": torch.as_tensor(self.made),
            "every": self.every,
            "skip": self.skip,
            "offset": self.offset,
        }

    def load(self, saved: dict[str, Any], block_store: BlockStore | None = None) -> None:
        """Restore a saved state."""
        kept = saved["buffer"] if block_store is None else block_store.get(saved["buffer"])
        if kept is not None:
            self.fill(kept)
        self.counts, self.made = saved["counts"].numpy().copy(), saved["made"].numpy().copy()
        self.every, self.offset = saved["every"], saved["offset"]

    def fill(self, kept: Tensor) -> None:
        """Insert the first draws (chains, draws, dim)."""
        self._blocks = []
        self.buffer[:, : kept.shape[1]] = kept.to(self.buffer.device)
        self._room.written(kept)


class Room:
    """A tensor of zeros; a large one on a CPU is an unnamed file with its active pages in memory."""

    def __init__(self, shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> None:
        size = math.prod(shape) * dtype.itemsize
        if device.type != "cpu":
            memory.check(size, "The draws", "keep fewer draws, or take the CPU", "draws", free_memory(device))
        self._map: mmap.mmap | None = None
        self._unwritten = 0
        if device.type != "cpu" or size <= _IN_MEMORY:
            self.tensor = torch.zeros(shape, device=device, dtype=dtype)
            return
        self._map = _mapped(size)
        self.tensor = torch.frombuffer(self._map, dtype=dtype).view(shape)

    def written(self, x: Tensor) -> None:
        """Count written bytes and release flushed pages from memory."""
        if self._map is None:
            return
        self._unwritten += x.numel() * x.element_size()
        if self._unwritten >= _UNWRITTEN:
            self._unwritten = 0
            self._map.flush()
            self._map.madvise(mmap.MADV_DONTNEED)


def _mapped(size: int) -> mmap.mmap:
    """Map an anonymous file of ``size`` bytes with reserved disk space."""
    folder = paths.draws()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if size > shutil.disk_usage(folder).free:  # some disks would be filled before they report it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with tempfile.TemporaryFile(dir=folder) as file:
            # Without reserved disk space a write to the map would end the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise BnnvizError(
            f"The draws take {size / 1e9:.1f} GB, which the folder {folder} cannot hold ({error.strerror}): keep fewer"
            " draws, or set BNNVIZ_HOME to a folder on a larger disk.",
            "draws",
        ) from error


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
        """Yield parts of a block with the chains that lack draws, so that costs do not depend on the blocks."""
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
        """Return mean and variance by integrals along the path, up to one path time in all chains; None if unknown."""
        return diagnostics.path_moments(self.path.view(self.alive).cpu().numpy())


def resampled(draws: Tensor, logs: np.ndarray, count: int) -> Tensor:
    """Return draws (count, dim) resampled systematically by their log weights (draws,); empty without weights."""
    if not np.isfinite(logs).any():
        return draws[:0]
    return draws[torch.as_tensor(diagnostics.systematic(logs, count), device=draws.device)]
