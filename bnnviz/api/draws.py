"""Read the draws of a run or a recording."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import optional
from bnnviz.engine.evaluation.metrics import NetworkDraws, network_draws
from bnnviz.engine.recording.arviz_groups import named_draws
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message

if TYPE_CHECKING:
    import pandas as pd


class WithDraws:
    """The draws of a run and their diagnostics, read under its lock."""

    _run: ViewedRun
    _lock: AbstractContextManager[Any]

    def network_draws(self) -> NetworkDraws:
        """Return the network and its draws so far.

        Raises
        ------
        BnnvizError
            If the target is not a network on data, there are no draws, or the recording is damaged.
        """
        with self._lock:
            return network_draws(self._run)

    def event_weights(self) -> np.ndarray | None:
        """Return normalised weights (chains, draws) that correct the bias of draws at events (``samples="events"``).

        The density of draws at events is proportional to pi(x) (refresh rate + mean rate at x). The weights are
        proportional to the reciprocal of this rate. They require a valid bound. The result is None for unweighted
        draws.
        """
        with self._lock:
            return self._run.event_weights()

    def verdict(self) -> Message | None:
        """Return a message on the quality of the predictions, or None for a density."""
        return self.summary().get("verdict")

    @property
    def stats(self) -> dict[str, Any]:
        """Counts and ratios of the kernel."""
        with self._lock:
            return self._run.stats

    def save(self, path: str | Path) -> Path:
        """Write draws and header to a NetCDF file that ArviZ can read and return its path."""
        with self._lock:
            return self._run.save(path)

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
