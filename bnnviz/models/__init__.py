"""Build ready-made networks: plain ``torch.nn.Module`` objects.

Torch is imported when a network is first requested, so that a process without torch can read
layer widths and names (`bnnviz.models.layers`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bnnviz.errors import no_attribute
from bnnviz.models.layers import ACTIVATIONS, IMAGE_NETWORKS, parse_hidden

if TYPE_CHECKING:
    from bnnviz.models.image_networks import image_network
    from bnnviz.models.perceptron import mlp

__all__ = ["ACTIVATIONS", "IMAGE_NETWORKS", "image_network", "mlp", "parse_hidden"]

_HOMES = {"image_network": "image_networks", "mlp": "perceptron"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise no_attribute(f"module {__name__!r}", name, __all__)
