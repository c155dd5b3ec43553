"""`sample` and `start`: run a sampler on a target from Python."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from bnnviz import samplers, targets
from bnnviz import settings as declared
from bnnviz.engine import run as engine
from bnnviz.errors import BnnvizError
from bnnviz.spec import Spec
from bnnviz.targets import BNN

__all__ = ["BNN", "Run", "sample", "start"]


class Run:
    """A run that samples in the background of this process.

    Attributes
    ----------
    spec : Spec
    """

    def __init__(self, run: engine.Run, callback: Callable[[Run], Any] | None = None) -> None:
        self._run, self._callback = run, callback
        self._stop, self._failure = threading.Event(), None
        # numpy's and torch's own locks make reading draws while they are written safe enough only
        # between two slices of work.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="bnnviz-run", daemon=True)

    def _work(self) -> None:
        try:
            while not self._run.finished and not self._stop.is_set():
                with self._lock:
                    self._run.advance(0.1)
                if self._callback is not None:
                    self._callback(self)
        except Exception as failure:  # noqa: BLE001
            # Whatever the target raises is raised in the caller's thread by wait(); the draws stay readable.
            self._failure = failure

    @property
    def spec(self) -> Spec:
        """What is run."""
        return self._run.spec

    @property
    def running(self) -> bool:
        """Whether it is still sampling."""
        return self._thread.is_alive()

    @property
    def phase(self) -> str:
        """Where it is: start, tuning, warm-up, sampling, done or failed."""
        return self._run.phase

    @property
    def progress(self) -> float:
        """Share of the work done, 0 to 1."""
        return self._run.progress

    def wait(self, timeout: float | None = None) -> Run:
        """Wait until the run has ended, or ``timeout`` seconds have passed; return the run.

        Raises
        ------
        BnnvizError
            If every chain met values that are not finite, or the target or sampler failed. The draws
            made until then stay in ``draws``.
        """
        self._thread.join(timeout)
        if self._failure is not None:
            raise self._failure
        if self._run.phase == "failed":
            raise BnnvizError(self._run.error or "The run failed.")
        return self

    def stop(self) -> Run:
        """End the run early and keep its draws."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        return self

    @property
    def draws(self) -> np.ndarray:
        """Kept draws, (chains, draws, dim)."""
        with self._lock:
            return self._run.draws

    @property
    def stats(self) -> dict[str, Any]:
        """Counts and ratios of the kernel."""
        with self._lock:
            return self._run.stats

    def summary(self) -> dict[str, Any]:
        """Return settings, costs, and estimates with their errors, as plain JSON."""
        with self._lock:
            return self._run.summary()

    def to_arviz(self) -> Any:
        """Return the draws as an ArviZ data tree (an ``xarray.DataTree``)."""
        with self._lock:
            return self._run.to_arviz()

    def save(self, path: Any) -> Any:
        """Write draws and header to a NetCDF file that ArviZ opens; return its path."""
        with self._lock:
            return self._run.save(path)

    def __repr__(self) -> str:
        shape = "x".join(str(n) for n in self.draws.shape)
        return f"<Run {self._run.sampler.title} on {self._run.target.describe_value()}: {self.phase}, draws {shape}>"


def start(
    target: Any,
    sampler: Any = "bps",
    *,
    dim: int | None = None,
    draws: int | None = 1000,
    warmup: int = 200,
    chains: int = 4,
    seed: int = 0,
    device: str = "auto",
    dtype: str = "float32",
    settings: dict[str, Any] | None = None,
    target_settings: dict[str, Any] | None = None,
    callback: Callable[[Run], Any] | None = None,
) -> Run:
    """Start sampling in the background and return at once.

    Parameters
    ----------
    target : str, Spec, Target or callable
        A registered name; a `Spec`, which says everything else too; a `BNN` of your network and data
        or another `Target`; or a function U of states (chains, dim) in torch that returns (chains,),
        minus the log density up to a constant.
    sampler : str or Sampler
        A registered name, or an instance with its settings.
    dim : int, optional
        Dimension of a state; needed for a function only.
    draws : int or None
        Draws to keep of each chain; None goes on until ``stop``.
    warmup : int
        Draws of each chain to throw away first.
    chains : int
        Chains in lock-step.
    seed : int
        Seed of the run's one generator.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    dtype : {"float32", "float64"}
    settings, target_settings : dict, optional
        Settings of the sampler and of a named target, by name.
    callback : callable, optional
        Called with the run about ten times a second, in the run's thread.

    Returns
    -------
    Run

    Raises
    ------
    BnnvizError
        If something given does not fit; the sentence says what and the remedy.
    """
    if isinstance(target, Spec):
        spec, own = target.checked(), None
    else:
        spec, own = _spec(target, sampler, dim, settings, target_settings, draws, warmup, chains, seed, device, dtype)
    instance = sampler if isinstance(sampler, samplers.Sampler) else None
    run = Run(engine.Run(spec, target=own, sampler=instance), callback)
    run._thread.start()
    return run


def sample(target: Any, sampler: Any = "bps", **options: Any) -> Run:
    """Sample and return the finished run; takes what `start` takes.

    Examples
    --------
    >>> run = sample("gaussian", "bps", draws=200, chains=8)
    >>> run.draws.shape
    (8, 200, 2)
    """
    run = start(target, sampler, **options)
    try:
        return run.wait()
    except KeyboardInterrupt:
        run.stop()
        raise


def _spec(
    target: Any,
    sampler: Any,
    dim: int | None,
    given: dict[str, Any] | None,
    target_settings: dict[str, Any] | None,
    draws: int | None,
    warmup: int,
    chains: int,
    seed: int,
    device: str,
    dtype: str,
) -> tuple[Spec, targets.Target | None]:
    """Return a checked spec, and the target if it is an object of the caller's."""
    own = _own_target(target, dim)
    name, values = _sampler(sampler, given or {})
    spec = Spec(
        target=target if own is None else own.title,
        target_settings=dict(target_settings or {}),
        sampler=name,
        settings=values,
        chains=chains,
        draws=draws,
        warmup=warmup,
        seed=seed,
        device=device,
        dtype=dtype,
    )
    return spec.checked(own_target=own is not None), own


def _own_target(target: Any, dim: int | None) -> targets.Target | None:
    if isinstance(target, str):
        return None
    if isinstance(target, targets.Target):
        return target
    if isinstance(target, torch.nn.Module):
        raise BnnvizError("A module alone is no target: give bnnviz.BNN(module, (inputs, observations)).", "target")
    if not callable(target):
        raise BnnvizError(f"target is a name, a Target, a BNN or a function, not {type(target).__name__}.", "target")
    if dim is None:
        raise BnnvizError("A function as a target needs dim=, the dimension of a state.", "dim")
    return targets.Callable(target, dim)


def _sampler(sampler: Any, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(sampler, str):
        return sampler, dict(given)
    if isinstance(sampler, samplers.Sampler) and sampler.registered:
        if given:
            raise BnnvizError("Give settings to the sampler instance itself, or name the sampler.", "settings")
        names = [setting["name"] for setting in declared.describe(type(sampler))]
        return sampler.registered, {name: getattr(sampler, name) for name in names}
    raise BnnvizError(f"sampler is a name or a registered Sampler, not {type(sampler).__name__}.", "sampler")
