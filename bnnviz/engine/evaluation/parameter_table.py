"""Summarise draws by name: moments, quantiles, their errors, and the mixing of the chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import diagnostics, optional
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 5000
_DIAGNOSTICS = {"ess_bulk": diagnostics.ess, "ess_tail": diagnostics.ess_tail, "r_hat": diagnostics.rhat}


@dataclass(frozen=True, eq=False)
class ParameterTable:
    """A row per named number."""

    names: list[str]
    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> dict[str, float]:
        """Return the row of a name."""
        place = self.names.index(name)
        return {column: float(values[place]) for column, values in self.columns.items()}

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with the names as its index."""
        return optional.require("pandas", "A frame needs").DataFrame(self.columns, index=self.names)

    def __repr__(self) -> str:
        wide = max([len(name) for name in self.names], default=0)
        head = " " * wide + "".join(f"{name:>11}" for name in self.columns)
        rows = [
            f"{name:<{wide}}" + "".join(f"{values[k]:>11.4g}" for values in self.columns.values())
            for k, name in enumerate(self.names)
        ]
        return "\n".join([head, *rows])


def parameter_table(
    values: dict[str, np.ndarray],
    quantiles: Sequence[float],
    var_names: Sequence[str] | None = None,
) -> ParameterTable:
    """Summarise draws (chains, draws, ...) by name."""
    levels = [float(level) for level in quantiles]
    if not all(0 <= level <= 1 for level in levels):
        raise BnnvizError(f"quantiles must be between 0 and 1, not {levels}.", "quantiles")
    chosen = list(values) if var_names is None else [var_names] if isinstance(var_names, str) else list(var_names)
    unknown = [name for name in chosen if name not in values]
    if unknown:
        raise BnnvizError(f"There is no parameter {unknown[0]}; there are {', '.join(values)}.", "var_names")
    count = sum(int(np.prod(values[name].shape[2:])) for name in chosen)
    if count > _MOST_ROWS:
        raise BnnvizError(
            f"The parameters have {count:,} numbers, and a table has {_MOST_ROWS:,} rows at most; choose some by"
            " var_names.",
            "var_names",
        )
    names: list[str] = []
    columns: list[np.ndarray] = []
    for name in chosen:
        for place in np.ndindex(*values[name].shape[2:]):
            names.append(f"{name}[{', '.join(map(str, place))}]" if place else name)
            columns.append(values[name][(slice(None), slice(None), *place)].astype(float))
    if not columns or not columns[0].size:
        raise BnnvizError("There are no draws to summarise; sample some first.", "draws")
    return ParameterTable(names, _columns(columns, levels))


def _columns(columns: list[np.ndarray], levels: Sequence[float]) -> dict[str, np.ndarray]:
    found: dict[str, Any] = {
        "mean": [one.mean() for one in columns],
        "sd": [one.std() for one in columns],  # with the divisor n, as in ArviZ
    }
    found |= {f"q{100 * level:g}": [np.quantile(one, level) for one in columns] for level in levels}
    found |= {name: [of(one) for one in columns] for name, of in _DIAGNOSTICS.items()}
    found |= {f"mcse_{of}": [diagnostics.mcse(one, of) for one in columns] for of in ("mean", "sd")}
    return {name: np.array(values, dtype=float) for name, values in found.items()}
