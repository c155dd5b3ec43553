"""Ready-made networks: plain ``torch.nn.Module`` objects.

Torch is loaded when a network is first asked for, so that a process without torch can read
layer widths (`bnnviz.models.layers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bnnviz.models.layers import ACTIVATIONS, parse_hidden

if TYPE_CHECKING:
    from bnnviz.models.perceptron import mlp

__all__ = ["ACTIVATIONS", "mlp", "parse_hidden"]


def __getattr__(name: str) -> Any:
    if name == "mlp":
        from bnnviz.models.perceptron import mlp

        return mlp
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
