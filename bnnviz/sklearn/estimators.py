"""Bayesian neural networks as estimators of scikit-learn.

Examples
--------
>>> from bnnviz.sklearn import BNNRegressor
>>> import numpy as np
>>> x = np.linspace(-2, 2, 40)[:, None]
>>> model = BNNRegressor(hidden=8, draws=50, warmup=50, chains=2, random_state=0).fit(x, np.sin(x[:, 0]))
>>> mean, sd = model.predict(x, return_std=True)
>>> mean.shape, sd.shape
((40,), (40,))
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from bnnviz import diagnostics
from bnnviz.data import DataSet
from bnnviz.engine.drive import drive
from bnnviz.engine.evaluation import predictive_distribution as predicting
from bnnviz.engine.evaluation.metrics import NetworkDraws
from bnnviz.engine.evaluation.predictions import evenly
from bnnviz.engine.evaluation.predictive_distribution import PredictiveDistribution
from bnnviz.engine.run.run import Run
from bnnviz.models import mlp
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN

_SLICE_S = 0.2
_ROWS = 50  # at which the chains' predictions are compared
_MIXED = 1.05  # R-hat of predictions


class _Estimator(BaseEstimator):
    """What regressor and classifier have in common: `fit` samples the posterior, and `predict_distribution` asks it."""

    task: ClassVar[str]

    def __init__(
        self,
        hidden: int | Sequence[int] = 20,
        activation: str = "tanh",
        sampler: str = "nuts",
        settings: Mapping[str, Any] | None = None,
        draws: int = 250,
        warmup: int = 250,
        chains: int = 4,
        prior_sd: float = 1.0,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.sampler = sampler
        self.settings = settings
        self.draws = draws
        self.warmup = warmup
        self.chains = chains
        self.prior_sd = prior_sd
        self.device = device
        self.random_state = random_state

    def predict_distribution(self, X: Any, quantiles: Sequence[float] = predicting.QUANTILES) -> PredictiveDistribution:
        """Return all that the draws say of rows: `PredictiveDistribution`.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        quantiles : sequence of float
            Probabilities of the quantiles of an observation; of a regression.
        """
        check_is_fitted(self, "posterior_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return predicting.predict(self.posterior_, X, quantiles)

    def _sample(self, x: np.ndarray, y: np.ndarray, names: Sequence[str], **likelihood: Any) -> Self:
        """Sample the posterior of the weights, and keep its draws."""
        rows = {"x_train": x, "y_train": y, "x_test": x[:1], "y_test": y[:1]}
        data = DataSet(name="table", title="Table", doc="", task=self.task, class_names=tuple(names), **rows)
        widths = (self.hidden,) if isinstance(self.hidden, int | np.integer) else tuple(self.hidden)
        outputs = len(names) if len(names) > 2 else 1
        module = mlp(x.shape[1], [int(width) for width in widths], outputs, self.activation)
        target = BNN(module, data, prior_sd=self.prior_sd, **likelihood)
        spec = Spec(
            target=target.title,
            sampler=self.sampler,
            settings=dict(self.settings or {}),
            draws=int(self.draws),
            warmup=int(self.warmup),
            chains=int(self.chains),
            device=self.device,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        run = Run(spec.checked(own_target=True), target=target)
        drive(run, _SLICE_S)
        return self._keep(run)

    def _keep(self, run: Run) -> Self:
        draws = run.store.view(run.alive)
        theta = draws.flatten(0, 1)
        self.posterior_ = NetworkDraws(run.target, theta, run.log_weights, len(draws))
        self.n_draws_ = len(theta)
        self.rhat_ = self._rhat(draws)
        if not self.rhat_ <= _MIXED:
            warnings.warn(
                f"The chains disagree on what they predict (R-hat {self.rhat_:.2f}, good below {_MIXED}): raise warmup"
                " or draws.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _rhat(self, draws: torch.Tensor) -> float:
        """Return the largest R-hat of the outputs at some training rows."""
        target = self.posterior_.target
        rows = target.x[evenly(len(target.x), _ROWS)]
        outputs = target.outputs(draws.flatten(0, 1), rows).unflatten(0, draws.shape[:2]).flatten(2)
        values = outputs.double().cpu().numpy()
        return float(np.nanmax([diagnostics.rhat(values[..., i]) for i in range(values.shape[-1])]))


class BNNRegressor(RegressorMixin, _Estimator):
    """Predict numbers by a Bayesian neural network.

    Inputs and target are standardised within. The prior of every weight is normal, the sd of the observation noise is
    one more unknown.

    Parameters
    ----------
    hidden : int or sequence of int, default 20
        Units of each hidden layer.
    activation : {"tanh", "relu", "softplus", "silu"}, default "tanh"
    sampler : str, default "nuts"
        A sampler of `bnnviz list samplers`.
    settings : dict, optional
        Settings of the sampler by name.
    draws, warmup, chains : int
        Draws of each chain that are kept, moves (or draws) of its warm-up, and chains.
    prior_sd : float, default 1.0
        Standard deviation of the normal prior of every weight.
    device : str, default "auto"
    random_state : int, RandomState or None

    Attributes
    ----------
    posterior_ : NetworkDraws
        Network and draws.
    rhat_ : float
        The largest R-hat of the outputs at 50 training rows at most.
    n_draws_, n_features_in_ : int
    """

    task = "regression"

    def fit(self, X: Any, y: Any) -> Self:
        """Sample the posterior of the weights.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        y : array_like, shape (rows,)
        """
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64, ensure_min_samples=2)
        return self._sample(X, np.asarray(y, dtype=np.float64), (), noise="learnt")

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the mean of an observation at each row, and with ``return_std`` its standard deviation too.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        return_std : bool
        """
        found = self.predict_distribution(X, ())
        return (found.mean, found.sd) if return_std else found.mean

    def predict_interval(self, X: Any, coverage: float = 0.95) -> np.ndarray:
        """Return an interval (rows, 2) that holds an observation with a probability, as much of it on either side.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        coverage : float, default 0.95
        """
        tail = (1 - coverage) / 2
        found = self.predict_distribution(X, (tail, 1 - tail))
        return np.column_stack([found.quantiles[tail], found.quantiles[1 - tail]])


class BNNClassifier(ClassifierMixin, _Estimator):
    """Predict classes by a Bayesian neural network; parameters as of `BNNRegressor`.

    Attributes
    ----------
    classes_ : ndarray
    posterior_ : NetworkDraws or None
        Network and draws; None where all training rows are of one class.
    rhat_ : float
    n_draws_, n_features_in_ : int
    """

    task = "classification"

    def fit(self, X: Any, y: Any) -> Self:
        """Sample the posterior of the weights.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        y : array_like, shape (rows,)
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) == 1:
            self.posterior_ = None
            return self
        likelihood = "bernoulli" if len(self.classes_) == 2 else "categorical"
        return self._sample(X, labels.astype(np.float64), [str(name) for name in self.classes_], likelihood=likelihood)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class at each row, (rows, classes).

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        """
        check_is_fitted(self, "classes_")
        if self.posterior_ is None:
            return np.ones((len(validate_data(self, X, reset=False)), 1))
        return self.predict_distribution(X).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        """
        check_is_fitted(self, "classes_")
        return self.classes_[self.predict_proba(X).argmax(1)]
