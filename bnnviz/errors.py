"""Define the one error that a user's input can cause."""

from __future__ import annotations


class BnnvizError(ValueError):
    """Input that cannot be used, in one sentence that names it and the remedy.

    Parameters
    ----------
    sentence : str
        What is wrong and what to do about it.
    field : str or None, default None
        The setting it belongs to, so that a page can show the sentence beside its control.

    Examples
    --------
    >>> import bnnviz
    >>> try:
    ...     bnnviz.sample("banana", "bpz")
    ... except bnnviz.BnnvizError as error:
    ...     print(error.field)
    sampler
    """

    def __init__(self, sentence: str, field: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.field = field

    def __reduce__(self) -> tuple:
        return type(self), (self.sentence, self.field)
