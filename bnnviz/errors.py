"""Define the error that a user's input can cause, and the warning of a run's diagnostics."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from bnnviz.messages import Message, Remedy


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


def none_of(noun: str, name: object, known: Iterable[str]) -> BnnvizError:
    """Return the error for a name that is not known, with the nearest one or all of them."""
    known = list(known)
    meant = nearest(name, known)
    rest = f"choose one of {', '.join(known)}." if meant is None else f"did you mean {meant!r}?"
    return BnnvizError(f"There is no {noun} {str(name)[:60]!r}; {rest}", noun)
