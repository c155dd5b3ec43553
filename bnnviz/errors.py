"""Define the error that a user's input can cause, and the warning of a run's diagnostics."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from bnnviz.messages import Message, Remedy

P = ParamSpec("P")
R = TypeVar("R")
#: Our names by those of PyMC, NumPyro, blackjax, Stan, ArviZ, scikit-learn, posteriors and laplace-torch.
ELSEWHERE = {
    "sampler": {
        "map": ("adam", "sgd"),
        "bbb": ("advi", "svi", "vi", "mean_field", "meanfield", "mfvi", "bayes_by_backprop"),
        "sgld": ("langevin", "lmc", "sgmcmc"),
        "nuts": ("no_u_turn", "no_u_turn_sampler"),
        "pmcnet": ("smc", "tempered_smc", "pmc"),
        "mc_dropout": ("dropout", "mcdropout"),
        "ensemble": ("deep_ensemble", "deep_ensembles"),
        "bps": ("bouncy", "bouncy_particle"),
    },
    "likelihood": {
        "gaussian": ("normal", "regression", "mse"),
        "categorical": ("classification", "softmax", "cross_entropy"),
        "bernoulli": ("binary", "logistic", "sigmoid"),
        "student_t": ("studentt", "t"),
    },
    "keyword": {
        "draws": ("num_samples", "n_samples", "nsamples", "samples", "iter_sampling"),
        "warmup": ("tune", "num_warmup", "iter_warmup", "n_tune", "burn_in", "burnin"),
        "chains": ("num_chains", "n_chains", "nchains"),
        "seed": ("random_seed", "rng_seed", "rng_key", "random_state"),
        "start": ("initvals", "init_params", "inits"),
        "sampler": ("step", "method", "kernel_type"),
        "noise_sd": ("sigma_noise", "sigma", "observation_noise"),
        "prior_sd": ("prior_precision", "prior_scale", "prior_std"),
        "target": ("model",),
        "progress_bar": ("progressbar",),
        "record": ("trace",),
        "entries": ("samplers",),
        "max_treedepth": ("max_tree_depth", "max_depth"),
        "target_accept": ("target_accept_prob", "target_acceptance_rate"),
        "num_leapfrog_steps": ("num_integration_steps", "num_steps", "n_steps", "trajectory_length", "path_length"),
        "metric": ("inverse_mass_matrix", "mass_matrix", "dense_mass", "scaling"),
        "step_size": ("lr", "learning_rate"),
        "friction": ("alpha",),
        "batch_size": ("minibatch_size",),
        "thin": ("thinning",),
    },
    "attribute": {
        "draws": ("get_samples", "samples", "posterior_samples", "position", "trace"),
        "parameters": ("stan_variable", "stan_variables", "extract", "get_values", "params"),
        "summary": ("print_summary", "diagnose", "rhat", "ess"),
        "to_arviz": ("posterior", "log_likelihood", "observed_data", "to_inference_data", "idata"),
        "stats": ("sample_stats", "get_extra_fields", "info", "divergences", "acceptance_rate"),
        "predictive": ("posterior_predictive", "sample_posterior_predictive"),
        "predict": ("predict_proba", "predict_interval"),
        "save": ("to_netcdf", "to_zarr", "save_csvfiles"),
        "prior_predictive": ("sample_prior_predictive", "prior_samples"),
        "potential": ("log_prob", "logp", "logdensity", "log_posterior", "potential_fn"),
        "dim": ("n_params", "num_params", "num_parameters"),
        "sd": ("std", "stddev", "scale"),
        "quantiles": ("hdi", "interval", "ppf"),
        "to_frame": ("to_pandas", "to_dataframe", "df"),
        "probabilities": ("probs", "predict_proba"),
        "table": ("results", "leaderboard", "ranking"),
        "figure": ("plot",),
        "sample": ("fit", "mcmc"),
        "samplers": ("hmc", "nuts", "sgld"),
        "plots": ("plot_trace", "plot_posterior"),
        "bnnviz.sample": ("sample", "samples", "fit"),
        "bnnviz.plots": ("plot", "plot_trace", "plot_posterior"),
    },
}


class BnnvizError(ValueError):
    """Exception raised for invalid input.

    Parameters
    ----------
    sentence : str or Message
        Description of the problem and its solution.
    field : str or None, default None
        Name of the invalid setting. Pages show the message next to its control.
    *remedies : Remedy
        Options that resolve the problem.

    Examples
    --------
    >>> import bnnviz
    >>> try:
    ...     bnnviz.sample("banana", "bpz")
    ... except bnnviz.BnnvizError as error:
    ...     print(error.field)
    sampler
    """

    def __init__(self, sentence: str | Message, field: str | None = None, *remedies: Remedy) -> None:
        if not isinstance(sentence, Message):
            sentence = Message("remark", *remedies, text=sentence)
        super().__init__(str(sentence))
        self.message = sentence
        self.field = field

    @property
    def sentence(self) -> str:
        """The message with options as Python keywords."""
        return str(self.message)

    def __reduce__(self) -> tuple:
        return type(self), (self.message, self.field)


class SamplingWarning(UserWarning):
    """Warning that the estimates of a finished run are unreliable.

    Examples
    --------
    >>> import warnings
    >>> import bnnviz
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     run = bnnviz.sample("banana", "hmc", draws=10, warmup=5, chains=2)
    >>> [each.category.__name__ for each in caught]
    ['SamplingWarning']
    """


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that is meant by a misspelled one, or None."""
    lowered = {each.lower(): each for each in known}
    found = difflib.get_close_matches(str(name).lower().replace("-", "_"), lowered, n=1)
    return lowered[found[0]] if found else None


def meant_by(noun: str, name: object, known: Iterable[str]) -> str | None:
    """Return the known name that another package calls so, or the nearest one, or None."""
    given = str(name).lower().replace("-", "_")
    ours = (ours for ours, theirs in ELSEWHERE.get(noun, {}).items() if given in theirs and ours in known)
    return next(ours, None) or nearest(name, known)


def none_of(noun: str, name: object, known: Iterable[str], other: str = "") -> BnnvizError:
    """Return the error for a name that is not known, with the one that is meant or all of them."""
    known = list(known)
    meant = meant_by(noun, name, known)
    rest = f"choose one of {', '.join(known)}{other}." if meant is None else f"did you mean {meant!r}?"
    given = repr(name[:60]) if isinstance(name, str) else repr(name)[:60]
    return BnnvizError(f"There is no {noun} {given}; {rest}", noun)


def no_attribute(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module or an object does not have."""
    meant = None if name.startswith("_") else meant_by("attribute", name, [each for each in known if each[0] != "_"])
    rest = "" if meant is None else f"; did you mean {meant!r}?"
    return AttributeError(f"{owner} has no attribute {name!r}{rest}")


class Suggesting:
    """An object that answers an unknown attribute with the one that is meant, in notebooks too."""

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name: str) -> Any:
            """Raise the error for a name that is not found, or that of a property once more."""
            if name in dir(self):
                return super().__getattribute__(name)
            own = type(self).__name__
            known = [*dir(self), "bnnviz.plots", "bnnviz.sample"]
            raise no_attribute(importlib.import_module("bnnviz").RENAMED.get(own, own), name, known)


def suggests(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that refuses an unknown keyword with the one that is meant."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @functools.wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in known:
                meant = meant_by("keyword", name, known)
                rest = f"choose from {', '.join(known)}." if meant is None else f"did you mean {meant}?"
                raise BnnvizError(f"There is no keyword {name}; {rest}", name)
        return function(*args, **options)

    return called
