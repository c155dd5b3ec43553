"""Time the gradient of networks on images beside that of plain PyTorch on the same batch.

One chain, whose gradient is a flat vector with the prior's term, and several at once with a batch each: one after
another on a CPU, together (`torch.func.vmap`) on a GPU. Plain PyTorch is the module, its cross entropy and
``backward()``; both are measured in turns, so that a machine's moods strike them alike, and figures are medians. On a
CPU time is that of one thread, on a GPU that of the clock, its queue emptied before and after.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch import nn

from bnnviz.benchmarks.chains import one_thread
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell
from bnnviz.models import image_network
from bnnviz.targets import BNN

BATCH, CLASSES, LEAST = 100, 10, 5
SHAPES = {"lenet5": (1, 28, 28), "lenet5_swish": (1, 28, 28), "resnet20": (3, 32, 32)}
#: A gradient may take so many times as long as plain PyTorch's on a CPU; what has no goal stands for itself.
GOALS = {"lenet5": 1.15, "lenet5_swish": 1.15}
CHAINS = {"cpu": (1, 4), "cuda": (1, 16, 64)}


def target_of(name: str) -> BNN:
    """Return the posterior of a network on as many random images as a batch has."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((BATCH, *SHAPES[name]), dtype=np.float32)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = image_network(name, SHAPES[name], CLASSES)
    return BNN(module, (images, rng.integers(CLASSES, size=BATCH)), "categorical")


def _case(name: str, seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure plain PyTorch, and our gradient with each number of chains."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    target = target_of(name).to(device, torch.float32)
    with one_thread():
        for chains in CHAINS[device.type]:
            tell(f"{name}, {BATCH} images a chain, {chains} on {device.type}.")
            plain, ours = medians([plain_gradient(target), gradients(target, chains)], seconds, device)
            each = ours / chains
            more = {"chains": chains, "device": device.type, "peer": "plain PyTorch", "ratio": each / plain}
            if chains == 1:
                yield Row(f"{name}_plain", 1e3 * plain, "ms", more={"device": device.type})
            more["note"] = f"{each / plain:.3g} times plain PyTorch ({1e3 * plain:.3g} ms)"
            yield Row(f"{name}_{chains}", 1e3 * each, "ms", more=more)
            if chains == 1 and device.type == "cpu" and name in GOALS:
                yield Row(f"{name}_ratio", each / plain, "", Goal("<=", GOALS[name]), {"peer": "plain PyTorch"})


def plain_gradient(target: BNN) -> Callable[[], object]:
    """Return what takes one gradient of the target's module by PyTorch alone, on all of its rows."""
    module, x, y = target.module, target.x, target.y

    def take() -> object:
        module.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(module(x), y, reduction="sum").backward()
        return module

    return take


def gradients(target: BNN, chains: int) -> Callable[[], object]:
    """Return what takes a gradient of every chain, each on a batch of its own."""
    rng = torch.Generator(target.device).manual_seed(0)
    theta = target.initial(chains, rng)
    rows = torch.arange(len(target.y), device=target.device).expand(chains, -1)
    batch = target.batch(rows)
    return lambda: batch.gradient(theta)


def medians(calls: list[Callable[[], object]], seconds: float, device: torch.device) -> list[float]:
    """Return the median seconds of calls, which take turns for so long, and `LEAST` times at least."""
    for call in calls:
        call()
    used: list[list[float]] = []
    end = time.perf_counter() + seconds
    while len(used) < LEAST or time.perf_counter() < end:
        used.append([_timed(call, device) for call in calls])
    return [float(median) for median in np.median(used, axis=0)]


def _timed(call: Callable[[], object], device: torch.device) -> float:
    if device.type == "cpu":
        begun = time.process_time()
        call()
        return time.process_time() - begun
    torch.cuda.synchronize(device)
    begun = time.perf_counter()
    call()
    torch.cuda.synchronize(device)
    return time.perf_counter() - begun


_CASES: dict[str, Case] = {name: partial(_case, name) for name in SHAPES}
SUITE = Suite("images", "Gradients of networks on images beside plain PyTorch's.", _CASES)
