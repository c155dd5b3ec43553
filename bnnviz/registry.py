"""Register samplers and targets under explicit unique names, by a decorator."""

from __future__ import annotations

from collections.abc import Iterator

from bnnviz.errors import none_of


class Registry:
    """A set of classes under explicit unique names."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._classes: dict[str, type] = {}

    def add(self, cls: type) -> type:
        """Register a class under its ``registered`` name (use as a decorator)."""
        name = cls.registered
        if name in self._classes:
            raise ValueError(f"two {self.noun}s are called {name!r}: names are unique")
        self._classes[name] = cls
        return cls

    def get(self, name: str) -> type:
        """Return the class with a name; raise a `BnnvizError` that lists the names if it is unknown."""
        if name not in self._classes:
            raise none_of(self.noun, name, self._classes)
        return self._classes[name]

    def __iter__(self) -> Iterator[type]:
        return iter(self._classes.values())

    def names(self) -> list[str]:
        """Return the registered names, in the order of registration."""
        return list(self._classes)
