"""Define the error that a user's input can cause, and the warning of a run's diagnostics."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from bnnviz.messages import Message, Remedy

P = ParamSpec("P")
R = TypeVar("R")
#: Names of PyMC, NumPyro, blackjax, posteriors and laplace-torch, and ours.
ELSEWHERE = {
    "sampler": {
        **dict.fromkeys(("adam", "sgd"), "map"),
        **dict.fromkeys(("advi", "svi", "vi", "mean_field", "meanfield", "mfvi", "bayes_by_backprop"), "bbb"),
        **dict.fromkeys(("langevin", "lmc", "sgmcmc"), "sgld"),
        **dict.fromkeys(("no_u_turn", "no_u_turn_sampler"), "nuts"),
        **dict.fromkeys(("smc", "tempered_smc", "pmc"), "pmcnet"),
        **dict.fromkeys(("dropout", "mcdropout"), "mc_dropout"),
        **dict.fromkeys(("deep_ensemble", "deep_ensembles"), "ensemble"),
        **dict.fromkeys(("bouncy", "bouncy_particle"), "bps"),
    },
    "likelihood": {
        **dict.fromkeys(("normal", "regression", "mse"), "gaussian"),
        **dict.fromkeys(("classification", "softmax", "cross_entropy"), "categorical"),
        **dict.fromkeys(("binary", "logistic", "sigmoid"), "bernoulli"),
        **dict.fromkeys(("studentt", "t"), "student_t"),
    },
    "keyword": {
        **dict.fromkeys(("num_samples", "n_samples", "nsamples", "samples", "iter_sampling"), "draws"),
        **dict.fromkeys(("tune", "num_warmup", "iter_warmup", "n_tune", "burn_in", "burnin"), "warmup"),
        **dict.fromkeys(("num_chains", "n_chains", "nchains"), "chains"),
        **dict.fromkeys(("random_seed", "rng_seed", "rng_key", "random_state"), "seed"),
        **dict.fromkeys(("initvals", "init_params", "inits"), "start"),
        **dict.fromkeys(("step", "method", "kernel_type"), "sampler"),
        **dict.fromkeys(("sigma_noise", "sigma", "observation_noise"), "noise_sd"),
        **dict.fromkeys(("prior_precision", "prior_scale", "prior_std"), "prior_sd"),
        "model": "target",
        "progressbar": "progress_bar",
        "trace": "record",
        "samplers": "entries",
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
    ours = ELSEWHERE.get(noun, {}).get(str(name).lower().replace("-", "_"))
    return ours if ours in known else nearest(name, known)


def none_of(noun: str, name: object, known: Iterable[str], other: str = "") -> BnnvizError:
    """Return the error for a name that is not known, with the one that is meant or all of them."""
    known = list(known)
    meant = meant_by(noun, name, known)
    rest = f"choose one of {', '.join(known)}{other}." if meant is None else f"did you mean {meant!r}?"
    given = repr(name[:60]) if isinstance(name, str) else repr(name)[:60]
    return BnnvizError(f"There is no {noun} {given}; {rest}", noun)


def no_attribute(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module does not have."""
    meant = None if name.startswith("_") else nearest(name, known)
    rest = "" if meant is None else f"; did you mean {meant!r}?"
    return AttributeError(f"module {module!r} has no attribute {name!r}{rest}")


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
