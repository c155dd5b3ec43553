"""Take the steps of a sampler in C++ around a part of them that is evaluated operation by operation, or C++ too.

Nothing is traced, so that it holds for every density, whatever it does; what the density raises the step raises.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bnnviz.engine.compilation.compiled_kernel import CompiledKernel
from bnnviz.engine.compilation.native_library import library_of
from bnnviz.engine.compilation.native_step import EagerPartLoop, NativePartLoop, fits
from bnnviz.engine.compilation.tracing import form_of, moving_part
from bnnviz.samplers import Sampler
from bnnviz.samplers.random import seeded
from bnnviz.samplers.tree import flat
from bnnviz.targets import Target


class _Flat(Target):
    """Stand in for a target where nothing is asked but the types and shapes of what a step returns."""

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U (chains,) = 0 and its gradient (chains, dim)."""
        return torch.zeros_like(x[:, 0]), torch.zeros_like(x)


def eager_kernel(sampler: Sampler, state: Any) -> CompiledKernel | None:
    """Return what takes the steps of a sampler in C++; None where they have none, or where there is no compiler.

    So it is too where the state has other types than the C++ reads, as where U is in float64 and all else in float32.
    """
    # A class that derives from another one may take other steps than that one's C++.
    native = sampler.native_step() if "native_step" in vars(type(sampler)) else None
    if native is None or state.x.device.type != "cpu":
        return None
    stand_in = copy.copy(sampler)
    stand_in.target = _Flat()
    form = form_of(stand_in, state)
    same = _types(stand_in.resume(seeded(0), state)) == _types(state)
    library = library_of(native.source) if same and fits(native, form) else None
    if library is None:
        return None
    learnt = sampler.adaptation_inputs(state.adaptation)
    whole = native.scale(learnt) is not None and sampler.target.native_gradient(state.x) is not None
    loop = partial(NativePartLoop, library, sampler.target) if whole else partial(EagerPartLoop, library)
    kernel = CompiledKernel(sampler, form, None, partial(loop, native, form, learnt))
    kernel.is_native = whole
    return kernel


def _types(state: Any) -> list[tuple[torch.dtype, torch.Size]]:
    return [(part.dtype, part.shape) for part in flat(moving_part(state))]
