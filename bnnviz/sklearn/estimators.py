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
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bnnviz import diagnostics
from bnnviz.api.automatic import AUTO
from bnnviz.data import DataSet, Standardiser
from bnnviz.data.tables import source
from bnnviz.data.tables.columns import listed
from bnnviz.data.tables.encoder import Encoder, Imputed, framed
from bnnviz.data.tables.new_rows import frame_columns, matched
from bnnviz.engine.automatic.plan import MINUTES
from bnnviz.engine.automatic.tables import DEFAULTS, AutomaticRun, automatic, suggest, units
from bnnviz.engine.drive import drive
from bnnviz.engine.evaluation import predictive_distribution as predicting
from bnnviz.engine.evaluation.baselines import compared
from bnnviz.engine.evaluation.metrics import NetworkDraws, measure
from bnnviz.engine.evaluation.predictions import evenly
from bnnviz.engine.evaluation.predictive_distribution import PredictiveDistribution, conformalised
from bnnviz.engine.evaluation.relevance import Relevance, relevance
from bnnviz.engine.monitor.verdict import MIXED, verdict
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message, Remedy
from bnnviz.models import mlp
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN
from bnnviz.targets.bnn_network import family, in_unit_of, outputs_of
from bnnviz.targets.likelihoods import WITH_NOISE, Weighted

_SLICE_S = 0.2
_ROWS = 50  # at which the chains' predictions are compared
_TIMES = 4  # factor by which to raise insufficient draws or time
_COUNTS = {"draws": 250, "warmup": 250, "chains": 4}  # if the sampler is named


@dataclass(eq=False, repr=False)
class _Estimator(BaseEstimator):
    """Base class of regressor and classifier: `fit` samples the posterior, and `predict_distribution` evaluates it."""

    task: ClassVar[str]

    hidden: int | Sequence[int] | None = None
    activation: str = "tanh"
    sampler: str = AUTO
    minutes: float = MINUTES
    settings: Mapping[str, Any] | None = None
    draws: int | None = None
    warmup: int | None = None
    chains: int | None = None
    linear_path: bool = DEFAULTS["linear_path"]
    prior: str = DEFAULTS["prior"]
    prior_sd: float = 1.0
    device: str = "auto"
    random_state: Any = None
    likelihood: str = "auto"
    validation_fraction: float = 0.0

    def _fit_inputs(
        self, X: Any, y: Any, sample_weight: Any, **checks: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Validate inputs, observations and weights, and encode data frames."""
        self.encoder_ = None
        if source.is_frame(X):
            columns = frame_columns(X)
            if any(column.values.dtype == object or not column.present.all() for column in columns):
                self.encoder_ = Encoder({column.name: column.kind for column in columns})
                X = self.encoder_.fit_transform(framed({column.name: column.values for column in columns}))
        X, y = validate_data(self, X, y, dtype=np.float64, **checks)
        if sample_weight is None:
            return X, y, None
        return X, y, _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

    def _new_inputs(self, X: Any) -> np.ndarray | Imputed:
        """Validate rows to predict."""
        if self.encoder_ is not None:
            return self.encoder_.encode(matched(X, self.encoder_.kinds), {})[0]
        return validate_data(self, X, reset=False, dtype=np.float64)

    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """Return the log density (or probability) of an observation at each row, shape (rows,).

        Parameters
        ----------
        X : array_like or DataFrame, shape (rows, inputs)
        y : array_like, shape (rows,)
            Numbers, or classes by name.
        """
        check_is_fitted(self, "posterior_")
        return predicting.log_densities(self.posterior_, self._new_inputs(X), self._coded(y))

    def relevance(self) -> Relevance:
        """Return how much each column matters, as `bnnviz.Run.relevance`."""
        check_is_fitted(self, "posterior_")
        return relevance(self.posterior_)

    def _coded(self, y: Any) -> np.ndarray:
        return np.asarray(y, dtype=np.float64)

    def predict_distribution(self, X: Any, quantiles: Sequence[float] = predicting.QUANTILES) -> PredictiveDistribution:
        """Return the predictive distribution at the given rows as a `PredictiveDistribution`.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        """
        check_is_fitted(self, "posterior_")
        return predicting.predict(self.posterior_, self._new_inputs(X), quantiles)

    def _sample(self, x: np.ndarray, y: np.ndarray, names: Sequence[str], weights: np.ndarray | None) -> Self:
        """Sample the posterior of the weights, and keep its draws."""
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        fit, left_out = self._divided(len(x), rng)
        if weights is not None:
            fit = fit[weights[fit] > 0]
        shares = None if weights is None else weights[fit]
        rows = {"x_train": x[fit], "y_train": y[fit], "x_test": x[left_out], "y_test": y[left_out]}
        inputs = {"x_names": tuple(getattr(self, "feature_names_in_", ()))}
        if self.encoder_ is not None:
            inputs = {"x_names": self.encoder_.names, "x_columns": self.encoder_.columns}
        named = {"name": "table", "title": "Table", "doc": "", "task": self.task, "class_names": tuple(names)}
        data = DataSet(**named, **inputs, **rows)
        name = family(data, suggest(data, shares) if self.likelihood == "auto" and y.ndim == 1 else self.likelihood)
        if y.ndim > 1 and name != "gaussian":
            raise BnnvizError(f"A {name} likelihood has one output; choose gaussian for several.", "likelihood")
        if shares is not None:
            scale = Standardiser.fit(data.x_train, data.y_train, shares)
            data = replace(data, scale=scale if self.task == "regression" else replace(scale, y_mean=0.0, y_scale=1.0))
        data = in_unit_of(data, name)
        hidden = units(len(fit)) if self.hidden is None else self.hidden
        widths = (hidden,) if isinstance(hidden, int | np.integer) else tuple(hidden)
        outputs = outputs_of(data, name) if y.ndim == 1 else y.shape[1]
        module = mlp(x.shape[1], [int(width) for width in widths], outputs, self.activation, self.linear_path)
        prior = {"prior_sd": self.prior_sd, "prior": self.prior}
        noise = "learned" if name in WITH_NOISE else "fixed"
        target = sampled = BNN(module, data, name, noise_sd=1.0, noise=noise, **prior)
        if shares is not None:
            scaled_x, scaled_y = data.scaled("train")
            sampled = BNN(module, (scaled_x, np.column_stack([scaled_y, shares])), Weighted(target.likelihood), **prior)
        automatic = self._automatic(sampled, seed) if self.sampler == AUTO else None
        spec = self._spec(sampled, seed) if automatic is None else automatic.spec
        run = Run(spec.checked(own_target=True), target=sampled)
        if automatic is not None:
            automatic.attach(run)
            self.plan_ = automatic.plan
        drive(run, _SLICE_S)
        network = run.target if sampled is target else target.to(run.device, run.target.dtype)
        return self._keep(run, network, bool(self.validation_fraction))

    def _divided(self, rows: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows to fit, and those that are held out: one that is also fitted if none are asked for."""
        if not 0 <= self.validation_fraction < 1:
            raise BnnvizError(
                f"validation_fraction = {self.validation_fraction:g} must be at least 0 and below 1.",
                "validation_fraction",
            )
        if not self.validation_fraction:
            return np.arange(rows), np.arange(1)
        order, count = rng.permutation(rows), max(1, round(self.validation_fraction * rows))
        return np.sort(order[count:]), np.sort(order[:count])

    def _spec(self, target: BNN, seed: int) -> Spec:
        """Return the settings of a named sampler, or the request to the pilot that chooses one."""
        named = self.sampler != AUTO
        given = {name: int(getattr(self, name)) for name in _COUNTS if getattr(self, name) is not None}
        return Spec(
            target=target.title,
            sampler=self.sampler if named else Spec.sampler,
            settings=dict(self.settings or {}) if named else {},
            device=self.device,
            seed=seed,
            **(_COUNTS | given if named else given),
        )

    def _automatic(self, target: BNN, seed: int) -> AutomaticRun:
        if self.settings:
            raise BnnvizError("settings require a sampler. Specify it by sampler=.", "settings")
        given = {name for name in _COUNTS if getattr(self, name) is not None}
        return automatic(self._spec(target, seed), given, self.minutes, target)

    def _keep(self, run: Run, target: BNN, held_out: bool) -> Self:
        """Keep the draws, as weights of ``target``."""
        draws = run.store.view(run.alive)
        theta = draws.flatten(0, 1)
        self.posterior_ = NetworkDraws(target, theta, run.log_weights, len(draws))
        self.n_draws_ = len(theta)
        self.rhat_ = self._rhat(draws) if run.sampler.traits.converges else float("nan")
        if run.sampler.traits.converges and not self.rhat_ <= MIXED:
            found = f"have not converged (R-hat of predictions {self.rhat_:.2f}, should be below {MIXED})"
            short = f"have too few draws to judge convergence ({draws.shape[1]} each)"
            message = Message("remark", self._remedy(), text=f"The chains {short if np.isnan(self.rhat_) else found}.")
            warnings.warn(str(message), ConvergenceWarning, stacklevel=4)
        self.verdict_ = self._judged(run) if held_out else None
        return self

    def _judged(self, run: Run) -> Message | None:
        """Return the verdict by the held-out rows."""
        metrics = measure(*self.posterior_[:3])
        found = {"metrics": metrics, "rhat_function_max": None if np.isnan(self.rhat_) else self.rhat_}
        found |= compared(metrics["row_scores"], self.posterior_.target.data_set)
        return verdict(found, True, run.sampler.traits.converges, [self._remedy()])

    def _remedy(self) -> Remedy:
        """Return which parameters to raise."""
        if self.sampler == AUTO and self.draws is None:
            return Remedy("allow more time", {"minutes": _TIMES * self.minutes})
        counts = {name: getattr(self, name) or _COUNTS[name] for name in ("draws", "warmup")}
        return Remedy("make more draws", {name: _TIMES * int(count) for name, count in counts.items()})

    def _rhat(self, draws: torch.Tensor) -> float:
        """Return the largest R-hat of the outputs at some training rows; nan with too few draws."""
        target = self.posterior_.target
        rows = target.x[evenly(len(target.x), _ROWS)]
        outputs = target.outputs(draws.flatten(0, 1), rows).unflatten(0, draws.shape[:2]).flatten(2)
        values = outputs.double().cpu().numpy()
        found = np.array([diagnostics.rhat(values[..., i]) for i in range(values.shape[-1])])
        known = found[~np.isnan(found)]
        return float(known.max()) if len(known) else float("nan")


class BNNRegressor(RegressorMixin, _Estimator):
    """Bayesian neural network regressor.

    Inputs and target are standardised internally. The weights have normal priors, and the standard deviation of the
    observation noise is learned.

    By default, fitting takes 15 seconds of computing time, or less if the predictions converge earlier. A DataFrame may
    contain text, dates and missing values. Text columns are one-hot encoded, missing values are replaced by the median
    and indicated by an additional column, and new rows are matched by column name. A DataFrame with only numbers is
    validated as in scikit-learn.

    Parameters
    ----------
    hidden : int or sequence of int, optional
        Number of units of each hidden layer. The default is one layer with a size that depends on the number of rows.
    activation : {"tanh", "relu", "softplus", "silu"}, default "tanh"
    sampler : str, default "auto"
        Name of a sampler (see `bnnviz list samplers`). With ``auto``, a pilot run selects one.
    minutes : float, default 0.25
        Computing time of a fit (CPU time of its thread, or time on the GPU), including the pilot run. Used only if
        ``sampler="auto"``. Time-limited runs are not reproducible.
    settings : dict, optional
        Settings of the sampler, by name. Used only if a sampler is given.
    draws, warmup, chains : int, optional
        Number of draws per chain, warm-up iterations and chains. The defaults are 250, 250 and 4 if a sampler is given.
        Otherwise the pilot run selects them.
    linear_path : bool, default True
        Whether to add a linear map of the inputs to the output of the network.
    prior : {"learned", "fan_in", "equal"}, default "learned"
        Scales of the prior: learned for each input and layer, determined by the fan-in, or equal for all weights (see
        `bnnviz.BNN`).
    prior_sd : float, default 1.0
        Standard deviation of the normal prior, times these scales.
    device : str, default "auto"
    random_state : int, RandomState or None
    validation_fraction : float, default 0.0
        Fraction of the rows that are held out for ``verdict_``.
    likelihood : str, default "auto"
        ``gaussian``, ``student_t``, ``heteroscedastic``, ``log_normal``, ``poisson`` or ``negative_binomial``. By
        default, the likelihood is selected using the values of the target and held-out rows. Several outputs require
        ``gaussian``.

    Attributes
    ----------
    posterior_ : NetworkDraws
        Network and draws.
    encoder_ : Encoder or None
        Encoder of a DataFrame with text, dates or missing values.
    plan_ : SamplerPlan
        Selected sampler, with the reason and the cost of the pilot run (``plan_.sentence``). Available only if
        ``sampler="auto"``.
    verdict_ : Message or None
        Verdict on the predictions of the held-out rows, next to those of simple models. None without held-out rows.
    rhat_ : float
        Largest R-hat of the outputs at up to 50 training rows, or nan for deep ensembles and other methods that do not
        converge to the posterior.
    n_draws_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz.sklearn import BNNRegressor
    >>> x = np.linspace(-2, 2, 40)[:, None]
    >>> model = BNNRegressor(hidden=4, sampler="hmc", draws=20, warmup=20, chains=2, random_state=0)
    >>> mean, sd = model.fit(x, np.sin(x[:, 0])).predict(x, return_std=True)
    >>> mean.shape, sd.shape
    ((40,), (40,))
    """

    task = "regression"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Sample the posterior of the weights.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        y : array_like, shape (rows,) or (rows, outputs)
            Several outputs have one network, and a learned noise each.
        sample_weight : array_like, shape (rows,), optional
            Factor on the log likelihood of each row. A row of weight 2 counts like two equal rows.
        """
        checks = {"y_numeric": True, "multi_output": True, "ensure_min_samples": 2}
        X, y, weights = self._fit_inputs(X, y, sample_weight, **checks)
        y = np.asarray(y, dtype=np.float64)
        return self._sample(X, y[:, 0] if y.ndim > 1 and y.shape[1] == 1 else y, (), weights)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the predictive mean of each row, and optionally the predictive standard deviation.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        return_std : bool
        """
        found = self.predict_distribution(X, ())
        return (found.mean, found.sd) if return_std else found.mean

    def predict_interval(self, X: Any, coverage: float = 0.9, conformal: bool = False) -> np.ndarray:
        """Return central predictive intervals, (rows, 2) or (rows, outputs, 2).

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        coverage : float, default 0.9
        conformal : bool, default False
            Whether to correct the intervals by the held-out rows (``validation_fraction``), so that they cover at least
            ``coverage`` of new rows like these.
        """
        tail = (1 - coverage) / 2
        found = self.predict_distribution(X, (tail, 1 - tail))
        if conformal and self.validation_fraction:
            found = conformalised(self.posterior_, found)
        elif conformal:
            raise BnnvizError("A conformal correction requires held-out rows. Set validation_fraction.", "conformal")
        return np.stack([found.quantiles[tail], found.quantiles[1 - tail]], axis=-1)


@dataclass(eq=False, repr=False)
class BNNClassifier(ClassifierMixin, _Estimator):
    """Bayesian neural network classifier with the parameters of `BNNRegressor`.

    ``likelihood`` is ``bernoulli``, ``categorical`` or ``ordinal`` (with the classes in the order of ``classes_``).

    Parameters
    ----------
    class_weight : dict or "balanced", optional
        Factors on the log likelihood of the rows of each class, as in scikit-learn.

    Attributes
    ----------
    classes_ : ndarray
    posterior_ : NetworkDraws or None
        Network and draws, or None if the training rows have a single class.
    rhat_, verdict_, n_draws_, n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz.sklearn import BNNClassifier
    >>> x = np.linspace(-2, 2, 40)[:, None]
    >>> model = BNNClassifier(hidden=4, sampler="laplace", draws=50, warmup=0, random_state=0)
    >>> model.fit(x, np.where(x[:, 0] > 0, "right", "left")).predict([[-1.5], [1.5]]).tolist()
    ['left', 'right']
    """

    task: ClassVar[str] = "classification"
    class_weight: Mapping[Any, float] | str | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Sample the posterior of the weights.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        y : array_like, shape (rows,)
        sample_weight : array_like, shape (rows,), optional
            Factor on the log likelihood of each row, times the weight of its class.
        """
        X, y, weights = self._fit_inputs(X, y, sample_weight)
        check_classification_targets(y)
        if self.class_weight is not None:
            of_classes = compute_sample_weight(self.class_weight, y)
            weights = of_classes if weights is None else weights * of_classes
        # Rows of weight 0 count like no rows.
        self.classes_ = np.unique(y if weights is None else y[weights > 0])
        if len(self.classes_) == 1:
            self.posterior_ = self.verdict_ = None
            return self
        known = np.isin(y, self.classes_)
        labels = np.searchsorted(self.classes_, y[known]).astype(np.float64)
        return self._sample(
            X[known], labels, list(map(str, self.classes_)), None if weights is None else weights[known]
        )

    def _coded(self, y: Any) -> np.ndarray:
        places = {name: i for i, name in enumerate(self.classes_.tolist())}
        unknown = [name for name in np.asarray(y).tolist() if name not in places]
        if unknown:
            raise BnnvizError(
                f"{unknown[0]!r} is not a class of the training rows ({listed(self.classes_.tolist())}).", "y"
            )
        return np.array([places[name] for name in np.asarray(y).tolist()], dtype=np.float64)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, (rows, classes).

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        """
        check_is_fitted(self, "classes_")
        if self.posterior_ is None:
            self._new_inputs(X)
            return np.ones((len(X), 1))
        return self.predict_distribution(X).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array_like, shape (rows, inputs)
        """
        check_is_fitted(self, "classes_")
        return self.classes_[self.predict_proba(X).argmax(1)]
