"""Define a target by a model of Pyro, whose sites are named parameters.

Each latent site has the constraint of its distribution's support, and unconstrained coordinates by ``biject_to``, as
in Pyro's samplers (Bingham et al. 2019, https://jmlr.org/papers/v20/18-403.html). The density is the model's log joint
with all sites at given values.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from bnnviz import optional
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message
from bnnviz.targets.parameters import Parameter, ParameterDensity

log = logging.getLogger(__name__)

_AGREE = 1e-5  # relative


class PyroDensity(ParameterDensity):
    """The posterior of a model of Pyro given its data.

    Parameters
    ----------
    model : callable
        With ``pyro.sample`` sites; those with ``obs=`` are the data. All others must be continuous.
    *args, **kwargs
        Arguments of the model.

    Raises
    ------
    BnnvizError
        If Pyro is missing, a site is discrete, has no bijection, or changes from call to call.

    Examples
    --------
    >>> from bnnviz import optional, targets
    >>> def model(pyro):
    ...     pyro.sample("scale", pyro.distributions.HalfNormal(1.0))
    >>> if optional.has("pyro"):
    ...     import pyro
    ...     assert targets.PyroDensity(model, pyro).dim == 1
    """

    title = "Pyro model"

    def __init__(self, model: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        optional.require("pyro", "A Pyro model needs")
        self._model, self._args, self._kwargs = model, args, kwargs
        first, second = self._sites(0), self._sites(1)
        parameters = {name: _parameter(name, site) for name, site in first.items()}
        if not parameters:
            raise BnnvizError("The Pyro model has no latent sites: all of pyro.sample have obs=.", "target")
        if not _alike(first, second):
            raise BnnvizError(
                "The sites of the Pyro model, their shapes or their supports change from call to call, so there is no"
                " density in fixed parameters; remove branches and bounds that depend on other sites, and"
                " subsampling.",
                "target",
            )
        super().__init__(self._minus_log, parameters)
        self._maps = self._can_map()

    @property
    def _pyro(self) -> ModuleType:
        return optional.require("pyro", "A Pyro model needs")

    def _trace(self, values: Mapping[str, Tensor] | None) -> Any:
        poutine = self._pyro.poutine
        model = self._model if values is None else self._pyro.condition(self._model, data=dict(values))
        with self._pyro.validation_enabled(False):
            return poutine.trace(model).get_trace(*self._args, **self._kwargs)

    def _sites(self, seed: int) -> dict[str, dict[str, Any]]:
        """Return the latent sites of one call by name; the global random state is restored."""
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            trace = self._trace(None)
        return {
            name: site
            for name, site in trace.nodes.items()
            if site["type"] == "sample"
            and not site["is_observed"]
            and type(site["fn"]).__name__ != "_Subsample"
            and not site["infer"].get("_deterministic")
        }

    def _one(self, values: dict[str, Tensor]) -> Tensor:
        """Return minus the log joint at one value of each site."""
        return -self._trace(values).log_prob_sum()

    def _minus_log(self, given: dict[str, Tensor]) -> Tensor:
        if self._maps:
            return torch.func.vmap(self._one)(given)
        count = len(next(iter(given.values())))
        each = [self._one({name: values[k] for name, values in given.items()}) for k in range(count)]
        return torch.stack([one.reshape(()) for one in each])

    def _can_map(self) -> bool:
        """Return whether chains can be computed together."""
        free = torch.linspace(-0.5, 0.5, 3 * self.dim, dtype=torch.float32).reshape(3, self.dim)
        given = self.named_values(free)
        with torch.no_grad():
            single = torch.stack([self._one({n: v[k] for n, v in given.items()}).reshape(()) for k in range(3)])
            try:
                mapped = torch.func.vmap(self._one)(given)
            except Exception:  # not supported by vmap, such as a branch on a value
                log.debug("The Pyro model is computed for one chain after another.", exc_info=True)
                return False
        return mapped.shape == single.shape and torch.allclose(mapped, single, rtol=_AGREE, atol=_AGREE)

    def describe_value(self) -> str:
        """Return the model's name and its sites."""
        return f"{getattr(self._model, '__name__', 'Pyro model')} ({', '.join(self._parts)})"

    def remarks(self) -> list[Message]:
        """Return whether chains are computed one after another."""
        if self._maps:
            return []
        return [Message("one_by_one", what="Pyro model")]


def _parameter(name: str, site: dict[str, Any]) -> Parameter:
    support = site["fn"].support
    if support.is_discrete:
        raise BnnvizError(
            f"The site {name} of the Pyro model is discrete, but samplers need continuous variables; marginalise it.",
            "target",
        )
    try:
        return Parameter(support, tuple(site["value"].shape))
    except BnnvizError as error:
        raise BnnvizError(
            f"torch has no bijection to the support of the site {name}, {support}; use another distribution.",
            "target",
        ) from error


def _alike(first: dict[str, dict[str, Any]], second: dict[str, dict[str, Any]]) -> bool:
    if first.keys() != second.keys():
        return False
    pairs = [(first[name], second[name]) for name in first]
    return all(a["value"].shape == b["value"].shape and _same(a["fn"].support, b["fn"].support) for a, b in pairs)


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if hasattr(one, "__dict__") and vars(one):
        mine, theirs = vars(one), vars(other)
        return mine.keys() == theirs.keys() and all(_same(mine[name], theirs[name]) for name in mine)
    return True if hasattr(one, "__dict__") else one == other
