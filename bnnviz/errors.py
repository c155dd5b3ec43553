"""Define the error raised for invalid input."""

from __future__ import annotations

from bnnviz.messages import Message, Remedy


class BnnvizError(ValueError):
    """Invalid input; the message names it and the remedy.

    Parameters
    ----------
    sentence : str or Message
        The problem and how to solve it.
    field : str or None, default None
        The setting concerned, so that a page can show the message next to its control.
    *remedies : Remedy
        Options that resolve it.

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
        """The message as text, with options as Python keywords."""
        return str(self.message)

    def __reduce__(self) -> tuple:
        return type(self), (self.message, self.field)
