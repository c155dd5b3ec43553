"""Register the samplers by family, each under a unique name.

Modules in a family's folder are found automatically.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

from bnnviz.errors import no_attribute
from bnnviz.samplers.base import REGISTRY, Sampler, Traits

_found = (module.name for module in pkgutil.walk_packages(__path__, f"{__name__}.") if not module.ispkg)
# The order of menus, by the last part of their names.
for _module in sorted(_found, key=lambda name: name.rpartition(".")[2]):
    import_module(_module)

_CLASSES = {sampler.__name__: sampler for sampler in REGISTRY}

__all__ = ["REGISTRY", "Sampler", "Traits"]


def __getattr__(name: str) -> Any:
    """Return a registered sampler by the name of its class: ``samplers.BPS``."""
    if name not in _CLASSES:
        raise no_attribute(f"module {__name__!r}", name, __dir__())
    return _CLASSES[name]


def __dir__() -> list[str]:
    return sorted([*__all__, *_CLASSES])
