"""Sort changes of a run's settings into those of the sampler and of the target, and reject others."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import param

from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec

OF_TARGET = "target."


class Change(NamedTuple):
    """New values of settings of the sampler and of the target, by name."""

    sampler: dict[str, Any]
    target: dict[str, Any]

    @classmethod
    def of(cls, settings: dict[str, Any], sampler: param.Parameterized, target: param.Parameterized) -> Self:
        """Return the change to settings by name, with ``target.`` before those of the target."""
        of_target = {name.removeprefix(OF_TARGET): v for name, v in settings.items() if name.startswith(OF_TARGET)}
        of_sampler = {name: value for name, value in settings.items() if not name.startswith(OF_TARGET)}
        for owner, values in ((sampler, of_sampler), (target, of_target)):
            for name in values:
                if name in owner.param and not getattr(owner.param[name], "live", False):
                    raise BnnvizError(f"{name} cannot change during a run; start a new run with it.", name)
        return cls(of_sampler, of_target)

    def applied(self, spec: Spec) -> Spec:
        """Return an unchecked spec with the new values."""
        return spec.replace(
            settings={**spec.settings, **self.sampler}, target_settings={**spec.target_settings, **self.target}
        )
