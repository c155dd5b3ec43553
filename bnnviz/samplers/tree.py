"""Take nested tuples of tensors (states, what is drawn beforehand) apart, and put them together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

from torch import Tensor


def flat(value: Any) -> list[Tensor]:
    """Return the tensors of nested tuples, in order."""
    if isinstance(value, Tensor):
        return [value]
    return [] if value is None else [tensor for part in value for tensor in flat(part)]


def rebuilt(template: Any, tensors: Iterator[Tensor]) -> Any:
    """Return nested tuples like a template's, with the next tensors of an iterator in them."""
    return builder(template)(list(islice(tensors, len(flat(template)))))


def builder(template: Any) -> Callable[[list[Tensor]], Any]:
    """Return a function that makes nested tuples like a template's from the list of their tensors.

    It is written out as one expression: walking through the template takes longer than a small step.
    """
    kinds: dict[str, type] = {}
    places = count()

    def written(part: Any) -> str:
        if isinstance(part, Tensor):
            return f"numbers[{next(places)}]"
        if part is None:
            return "None"
        inner = "".join(f"{written(each)}, " for each in part)
        if not hasattr(part, "_fields"):
            return f"({inner})"
        kinds[type(part).__name__] = type(part)
        return f"{type(part).__name__}({inner})"

    return eval(f"lambda numbers: {written(template)}", kinds)
