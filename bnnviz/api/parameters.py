"""Read the draws of a run by the names of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from bnnviz.engine.evaluation.named_draws import named_draws
from bnnviz.engine.evaluation.parameter_table import ParameterTable, parameter_table
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError


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

    def parameter_summary(
        self, var_names: Sequence[str] | None = None, quantiles: Sequence[float] = (0.025, 0.5, 0.975)
    ) -> ParameterTable:
        """Return mean, sd, quantiles, effective sample sizes, R-hat and Monte Carlo errors by name, as ArviZ's table.

        Parameters
        ----------
        var_names : sequence of str, optional
            Names of the parameters, for a network those of its module too; all by default.
        quantiles : sequence of float
            Probabilities.

        Returns
        -------
        ParameterTable
            ``print`` shows it; ``table["tau"]`` is a row, ``to_frame()`` returns a pandas frame.

        Raises
        ------
        BnnvizError
            If there is no such name, there are no draws, the draws are weighted, or there are more than 5,000 rows.
        """
        with self._lock:
            run = self._run
            if run.sampler.traits.weighted:
                raise BnnvizError(
                    "The draws have weights, without which no mean of them is right: read summary() instead.", "sampler"
                )
            draws, target = run.draws, run.target
            values = named_draws(target, draws)
        if not values:
            values = {name: draws[..., k] for k, name in enumerate(target.names())}
        return parameter_table(values, quantiles, var_names)
