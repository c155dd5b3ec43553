"""Predict new rows with a run of a network, or with a recording of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bnnviz.api.draws import WithDraws
from bnnviz.api.seeds import Seed, number
from bnnviz.data import UserTable
from bnnviz.data.tables import arrays, source
from bnnviz.data.tables.encoder import Imputed
from bnnviz.data.tables.new_rows import NewRows, check_lacking, read_rows
from bnnviz.engine.evaluation import predictive_distribution as predicting
from bnnviz.engine.evaluation.predictive_distribution import QUANTILES, PredictiveDistribution, conformalised
from bnnviz.errors import BnnvizError, suggests
from bnnviz.targets import BNN

if TYPE_CHECKING:
    from bnnviz.engine.evaluation.relevance import Relevance


class WithPredictions(WithDraws):
    """Predictions of rows, from the draws of a network and its file."""

    def table(self) -> UserTable | None:
        """Return the table that the network was trained on, or None without a user file."""
        raise NotImplementedError

    @torch.inference_mode(False)
    @suggests
    def predict(
        self,
        x: Any,
        quantiles: Sequence[float] = QUANTILES,
        *,
        draws: int | None = None,
        conformal: bool = False,
    ) -> PredictiveDistribution:
        """Predict rows, in the units of the data.

        Parameters
        ----------
        x : array_like, shape (rows, inputs), DataFrame, path or the result of `rows`
            Inputs in the units of the network's data. For a run on a table, a frame or a file with the table's columns,
            in any order. Other columns are ignored. Missing values are filled as in training, and ``notes`` of the
            result lists them. Frames are matched by column name for other data with names, too.
        quantiles : sequence of float
            Probabilities of the quantiles of an observation.
        draws : int, optional
            Number of evenly thinned draws to use. The default is all draws, or fewer if there are many rows.
        conformal : bool, default False
            Whether to correct quantiles of a regression by the held-out rows, so that intervals cover new rows like
            these with at least their probability, whatever the model (Romano, Patterson and Candès 2019,
            https://arxiv.org/abs/1905.03222).

        Returns
        -------
        PredictiveDistribution
            ``mean``, ``sd``, its parts ``epistemic_sd`` and ``aleatoric_sd``, ``quantiles``; or ``probabilities``,
            ``classes``, ``entropy`` and ``mutual_information``; and ``far``. ``to_frame()`` converts it to a frame.

        Raises
        ------
        BnnvizError
            If there are no draws of a network, or the rows do not fit it.
        """
        given = self.network_draws()
        rows, notes = self._inputs(given.target, x)
        found = replace(predicting.predict(given, rows, quantiles, draws=draws), notes=notes)
        return conformalised(given, found, draws) if conformal else found

    @torch.inference_mode(False)
    @suggests
    def functions(self, x: Any) -> np.ndarray:
        """Return each draw's function at rows, without noise: for its trace, R-hat and ESS.

        Parameters
        ----------
        x
            As in `predict`.

        Returns
        -------
        ndarray, shape (chains, draws, rows) or (chains, draws, rows, columns)
            The mean of an observation in the target's unit, or the probability of each class.

        Raises
        ------
        BnnvizError
            As in `predict`.

        Examples
        --------
        >>> import bnnviz
        >>> from bnnviz import plots
        >>> network = {"data": "toy_c", "hidden": "5"}
        >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=20, warmup=10, chains=2)
        >>> f = run.functions([[0.5], [1.0]])
        >>> f.shape
        (2, 20, 2)
        >>> plots.trace({"f(0.5)": f[..., 0]})
        :Overlay...
        """
        given = self.network_draws()
        return predicting.functions(given, self._inputs(given.target, x)[0])

    @torch.inference_mode(False)
    @suggests
    def predictive(self, x: Any, draws: int = 1000, seed: Seed = 0) -> np.ndarray:
        """Draw observations at rows from the posterior predictive distribution.

        Parameters
        ----------
        x
            As in `predict`.
        draws : int
        seed : int, numpy.random.Generator, torch.Generator or None

        Returns
        -------
        ndarray, shape (draws, rows)
            In the target's unit, or class indices.

        Raises
        ------
        BnnvizError
            As in `predict`.
        """
        given = self.network_draws()
        return predicting.predictive_draws(given, self._inputs(given.target, x)[0], draws, number(seed))

    @torch.inference_mode(False)
    def relevance(self) -> Relevance:
        """Return how much each column of a network's table matters.

        Returns
        -------
        Relevance
            ``names``, the total ``effect`` of each column with its interval ``low`` to ``high`` and its ``direction``
            (rises, falls or mixed), and the learned ``scale`` of its weights. `bnnviz.plots.relevance` plots it.

        Raises
        ------
        BnnvizError
            If there are no draws of a network, or its inputs are not a table of numbers.
        """
        from bnnviz.engine.evaluation.relevance import relevance

        return relevance(self.network_draws())

    @torch.inference_mode(False)
    def ensemble(self, draws: int = 50) -> torch.export.ExportedProgram:
        """Export draws as one program of PyTorch that predicts rows like `predict`, without bnnviz.

        ``torch.export.save(program, path)`` writes it. ``torch.export.load(path).module()`` reads it wherever PyTorch
        is installed. The module takes rows (rows, inputs) in the units of the data and returns a dict of tensors with
        the names of a `PredictiveDistribution`, without quantiles.

        Parameters
        ----------
        draws : int
            Maximum number of draws, evenly thinned, or resampled by their weights.

        Raises
        ------
        BnnvizError
            If there are no draws of a network, its data are images, or PyTorch cannot export it.
        """
        from bnnviz.engine.evaluation.exported_ensemble import exported

        return exported(self.network_draws(), draws)

    def rows(self, source: Any, **options: Any) -> NewRows:
        """Read rows to predict from a CSV file or a data frame.

        Parameters
        ----------
        source : path, bytes or DataFrame

        Raises
        ------
        BnnvizError
            If the run did not use a user file, or the columns do not fit.
        """
        return _rows(source, self.table(), **options)

    def _inputs(self, target: BNN, x: Any) -> tuple[np.ndarray | Imputed, np.ndarray | None]:
        """Return rows in the form of the network's data, and the notes on each."""
        if isinstance(x, NewRows):
            return x.x, x.row_notes
        return encoded(x, target, self.table())


def table_of(attachment: bytes | None, target: Any) -> UserTable | None:
    """Return the packed table of a spec, or that of a caller's own network; None without one."""
    if attachment is not None:
        return UserTable.unpack(attachment)
    return target.table if isinstance(target, BNN) else None


def encoded(x: Any, target: BNN, table: UserTable | None) -> tuple[np.ndarray | Imputed, np.ndarray | None]:
    """Return rows in the form of a network's data, and the notes on each; columns of frames are matched by name."""
    x = x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else x
    if table is not None or isinstance(x, str | bytes) or hasattr(x, "__fspath__"):
        found = _rows(x, table)
        return found.x, found.row_notes
    if not source.is_frame(x):
        return np.asarray(x), None
    frame, names = source.frame_of(x), target.input_names
    check_lacking(list(frame), names, "the frame")
    return arrays.numbers("rows", frame[list(names)] if names else frame), None


def _rows(given: Any, table: UserTable | None, **options: Any) -> NewRows:
    if table is None:
        raise BnnvizError("This run did not use a CSV file. Pass the rows to predict as an array.", "x")
    return read_rows(given, table, **options)
