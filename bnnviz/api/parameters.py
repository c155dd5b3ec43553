"""Read the draws of a run by the names of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import optional
from bnnviz.engine.recording.arviz_groups import named_draws
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd


class WithParameters:
    """Access to draws by name, from a run and its lock."""

    _run: ViewedRun
    _lock: AbstractContextManager[Any]

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the kept draws of named parameters, ``(chains, draws, *shape)`` each, with their constraints.

        For a network these are the module's parameters and those of its likelihood, such as ``noise_sd``.

        Raises
        ------
        BnnvizError
            If the target has no named parameters.
        """
        with self._lock:
            run = self._run
            named = named_draws(run.target, run.draws)
        if not named:
            raise BnnvizError(
                "This run's target has no named parameters: give parameters= to sample, or read draws.", "parameters"
            )
        return named

    def parameter_summary(self, var_names: Sequence[str] | None = None, **options: Any) -> pd.DataFrame:
        """Return mean, sd, intervals, effective sample sizes, R-hat and Monte Carlo errors by name.

        Parameters
        ----------
        var_names : sequence of str, optional
            Names of the parameters, for a network those of its module too; all by default.
        options
            Further options of ``arviz_stats.summary``, such as ``ci_prob``.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        BnnvizError
            If there is no such name, there are no draws, or the draws are weighted.
        """
        with self._lock:
            run = self._run
            if run.sampler.traits.weighted:
                raise BnnvizError(
                    "The draws are weighted, so unweighted means are biased. Use summary() instead.", "sampler"
                )
            draws, target = run.draws, run.target
            values = named_draws(target, draws) or {name: draws[..., k] for k, name in enumerate(target.names())}
        if not draws.shape[1]:
            raise BnnvizError("There are no draws to summarise; sample some first.", "draws")
        unknown = [name for name in var_names or () if name not in values]
        if unknown:
            raise BnnvizError(f"There is no parameter {unknown[0]}; there are {', '.join(values)}.", "var_names")
        arviz_base = optional.require("arviz_base", "A summary of parameters needs")
        arviz_stats = optional.require("arviz_stats", "A summary of parameters needs")
        tree = arviz_base.from_dict({"posterior": values})
        return arviz_stats.summary(tree, var_names=var_names, **{"round_to": "none", **options})
