"""Race samplers in the background of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bnnviz import optional
from bnnviz.api import automatic
from bnnviz.api.given import own_target
from bnnviz.api.precision import plain
from bnnviz.api.run import WithFigures
from bnnviz.api.seeds import Seed, number
from bnnviz.engine.race import race as racing
from bnnviz.errors import suggests
from bnnviz.progress_bar import RunProgress
from bnnviz.specs.race import DEFAULT_BUDGET, RaceSpec
from bnnviz.specs.run import Spec


class BackgroundRace(WithFigures):
    """A comparison of samplers with equal gradient budgets that runs in the background.

    Attributes
    ----------
    spec : RaceSpec

    Examples
    --------
    >>> import bnnviz
    >>> race = bnnviz.race("gaussian", ["sgld", "hmc"], budget=2_000, chains=2, warmup=5)
    >>> sorted(row["sampler"] for row in race.table)
    ['hmc', 'sgld']
    """

    _run: racing.Race

    @property
    def spec(self) -> RaceSpec:
        """The executed race."""
        return self._run.spec

    @property
    def table(self) -> list[dict[str, Any]]:
        """Metrics of each sampler, best first. Unavailable metrics are nan and are not ranked."""
        with self._lock:
            return self._run.table()

    @property
    def curves(self) -> list[dict[str, Any]]:
        """Errors and numbers of gradients of each sampler, as arrays."""
        with self._lock:
            return self._run.measure.curves()

    @property
    def statement(self) -> str:
        """Short text summary of the race."""
        caption = self.frame(["caption"])["caption"]
        return " ".join(part for part in (caption["text"], caption["warning"]) if part)

    def entry_draws(self, entry: int) -> np.ndarray:
        """Return the draws (chains, draws, dim) of a sampler, given by its index in the spec."""
        with self._lock:
            return self._run.entries[entry].draws

    def figure(self, path: str | Path) -> Path:
        """Write curves, table and summary to an HTML page and return its path.

        For other suffixes, such as ``.pdf``, only the curves are written (see `bnnviz.plots.save`).

        Raises
        ------
        BnnvizError
            If the suffix is unknown, or the file cannot be written.
        """
        optional.check(("bokeh", "holoviews"), "A figure needs", extra="plots")
        from bnnviz.figures.still.race_page import save_race

        return save_race(self.scene(), self.frame(["caption", "curves", "table"]), path)

    def _repr_html_(self) -> str | None:
        if not optional.has("bokeh"):
            return None  # a notebook shows the text then
        table = self.frame(["table"])["table"]
        return _leaderboard().table_html(table["rows"], table["scores"], self.spec.entries[0].chains)

    def __repr__(self) -> str:
        return f"<Race {', '.join(self.spec.names())}: {self.statement}>"


@torch.inference_mode(False)
@suggests
def race(
    target: Any,
    entries: Sequence[Any] = (),
    *,
    budget: int = DEFAULT_BUDGET,
    chains: int = 8,
    seed: Seed = 0,
    warmup: int = 200,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "float32",
    target_settings: dict[str, Any] | None = None,
    dim: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    wait: bool = True,
    callback: Callable[[BackgroundRace], Any] | None = None,
    progress_bar: bool | None = None,
    reference: bool = True,
) -> BackgroundRace:
    """Compare two to six samplers on one target with the same start, seed and budget of per-example gradients.

    Parameters
    ----------
    target : str, RaceSpec, UserTable, Target or callable
        A registered name; a `RaceSpec`, which replaces all other arguments; a table from `bnnviz.data.read_table`; or a
        network or density, as in `bnnviz.start`.
    entries : sequence of str or (str, dict)
        Registered names of samplers, or pairs of a name and settings.
    budget : int
        Number of per-example gradients for each sampler, summed over its chains. It includes rejected proposals, tuning
        and warm-up.
    chains, seed, device, dtype, target_settings, dim, parameters
        As in `bnnviz.start`. These apply to all samplers.
    warmup : int
        Number of initial draws per chain to discard.
    wait : bool
        Whether to wait for the end of the race. Otherwise return immediately.
    callback : callable, optional
        Function that is called with the race about ten times per second, in the thread of the race.
    progress_bar : bool, optional
        As in `bnnviz.sample`. Used only if ``wait`` is true.
    reference : bool, default True
        Whether to estimate the truth by a long run of NUTS, which is needed to compute errors. If false, only R-hat and
        ESS are reported. Densities with known moments do not need a reference.

    Returns
    -------
    Race

    Raises
    ------
    BnnvizError
        If an argument is invalid, or every sampler diverged.

    Examples
    --------
    >>> import bnnviz
    >>> race = bnnviz.race("gaussian", ["sgld", ("hmc", {"num_leapfrog_steps": 5})], budget=2_000, chains=2, warmup=5)
    >>> len(race.curves)
    2
    """
    spec, own = target, None
    if not isinstance(target, RaceSpec):
        target, target_settings, attachment = automatic.of_table(target, target_settings)
        own = own_target(target, dim, parameters)
        title = target if own is None else own.title
        shared = {"target": title, "target_settings": dict(target_settings or {}), "chains": chains, "draws": None}
        shared |= {"seed": number(seed), "warmup": warmup, "device": plain(device), "dtype": plain(dtype)}
        shared["attachment"] = attachment
        named = [(entry, {}) if isinstance(entry, str) else entry for entry in entries]
        spec = RaceSpec(tuple(Spec(sampler=name, settings=dict(given), **shared) for name, given in named), budget)
    found = BackgroundRace(racing.Race(spec, target=own, measured=reference), callback)
    if not wait:
        return found.begin()
    with RunProgress(progress_bar) as shown:
        found.listen(lambda: shown.show(found._run))
        return found.begin().run_to_end()


def _leaderboard() -> Any:
    optional.check("bokeh", "A figure needs")
    from bnnviz.figures import leaderboard

    return leaderboard
