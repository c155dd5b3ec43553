"""The posterior of a network, with predictions from its prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from bnnviz import targets
from bnnviz.api.predict import encoded
from bnnviz.api.seeds import Seed, number
from bnnviz.engine.evaluation import predictive_distribution as predicting
from bnnviz.engine.evaluation.metrics import prior_draws
from bnnviz.engine.evaluation.predictive_distribution import QUANTILES, PredictiveDistribution
from bnnviz.errors import Suggesting, suggests


class BNN(targets.BNN, Suggesting):
    """Posterior distribution of the weights of a neural network.

    Parameters
    ----------
    module : torch.nn.Module
        Any module that maps inputs (rows, inputs) to outputs (rows, outputs), independently for each row. The module is
        copied and set to evaluation mode. Parameters with ``requires_grad=False`` are not sampled.
    data : tuple of arrays, str, bnnviz.data.DataSet or bnnviz.data.UserTable
        Inputs (rows, ...) and observations (rows,), or (rows, columns) for several outputs: real numbers, counts, 0 or
        1, or class numbers. Arrays are not standardised. Integer inputs are not converted if the module requires
        integers. Alternatively a data set of `bnnviz.data`, its name, or a table from `bnnviz.data.read_table`, which
        are standardised.
    likelihood : str, bnnviz.targets.Likelihood or callable
        ``gaussian`` (with a separate noise for each column), ``student_t``, ``log_normal``, ``heteroscedastic``
        (outputs are mean and log sd), ``poisson`` and ``negative_binomial`` (the output is the log mean), ``bernoulli``
        (a logit), ``categorical`` (one logit per class) or ``ordinal`` (one output, K - 1 cut points); an object of
        `bnnviz.targets.likelihoods` with its settings; or a function of outputs (rows, outputs) and observations that
        returns one log density per row, in torch. The default for numbers is ``gaussian``. Classes and binary
        observations have no default.
    prior_sd : float
        Standard deviation of the normal prior of the weights.
    noise_sd : float or sequence of float
        Standard deviation of the observation noise, or the scale of ``student_t`` and ``log_normal``. One value per
        column or one for all columns. The default is the standard deviation of the observations if the noise is
        learned, and 1 otherwise.
    noise : {"fixed", "learned"}, optional
        The default is learned for ``gaussian``, ``student_t`` and ``log_normal``, unless ``noise_sd`` is given. With
        ``learned``, the last coordinate determines the noise by ``log sd = log noise_sd + theta[-1] / prior_sd``, so
        that log sd ~ N(log noise_sd, 1). Each column of the observations has a separate noise.
    prior : {"equal", "fan_in", "learned"} or mapping of str to float, distribution or callable
        ``equal`` uses ``prior_sd`` for every weight. With ``fan_in`` the sd of a weight is ``prior_sd`` over the root
        of the number of inputs of its unit. Biases keep ``prior_sd``. With ``learned`` each weight matrix also has an
        unknown scale (in a multilayer perceptron, each input of at least ten hidden units), whose logarithm has sd 1,
        and the weights of logits have three times the sd. Matrices of fewer than ten weights have no scale. The
        coordinates of the scales follow the weights. States are then multiples of the weights
        (`bnnviz.targets.weight_priors`), which ``state_dict`` returns. A mapping gives priors by the name of a
        parameter (``"0.weight"``), of a layer (``"0"``) or a pattern (``"*.bias"``). The last match is used, and other
        weights have ``prior_sd``. A prior is a standard deviation; a ``Normal``, ``Laplace``, ``StudentT`` or
        ``Cauchy`` of ``torch.distributions``; a ``HalfCauchy``, the distribution of each weight's own scale
        (horseshoe); a continuous distribution of ``scipy.stats``; or a function that makes weights ``(..., *shape)`` of
        standard normal numbers of the same shape.
    sample : str or sequence of str, optional
        Names of the parameters or submodules to sample, such as ``["head"]``. ``last`` is the last submodule with
        parameters. Other parameters are fixed. The default is all parameters with ``requires_grad``.

    Raises
    ------
    BnnvizError
        If the data are incompatible with the module or the likelihood, or the module is not supported.

    Examples
    --------
    >>> import bnnviz
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    >>> x = torch.linspace(-1, 1, 20)[:, None]
    >>> bnnviz.BNN(net, (x, x[:, 0] ** 2), noise_sd=0.1)
    <BNN: 16 weights, 20 rows, gaussian likelihood, prior sd 1>
    """

    @torch.inference_mode(False)
    @suggests
    def prior_predictive(
        self, x: Any, draws: int = 1000, seed: Seed = 0, quantiles: Sequence[float] = QUANTILES
    ) -> PredictiveDistribution:
        """Predict rows with weights drawn from the prior, in the units of the data.

        `bnnviz.plots.prior_predictive` draws these predictions.

        Parameters
        ----------
        x : array_like, shape (rows, inputs), DataFrame or path
            As in `Run.predict`.
        draws : int
        seed : int, numpy.random.Generator, torch.Generator or None
        quantiles : sequence of float
            Probabilities of the quantiles of an observation.

        Returns
        -------
        PredictiveDistribution

        Raises
        ------
        BnnvizError
            If the rows do not fit the network.

        Examples
        --------
        >>> import bnnviz
        >>> import torch
        >>> net = torch.nn.Sequential(torch.nn.Linear(1, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
        >>> x = torch.linspace(-1, 1, 20)[:, None]
        >>> laplace = torch.distributions.Laplace(0.0, 1.0)
        >>> posterior = bnnviz.BNN(net, (x, x[:, 0]), noise_sd=0.1, prior={"*.weight": laplace})
        >>> posterior.prior_predictive(x).sd.shape
        (20,)
        """
        rows, notes = encoded(x, self, self.table)
        return replace(predicting.predict(prior_draws(self, draws, number(seed)), rows, quantiles), notes=notes)
