"""Import packages that the core does without: which extra brings each, and the sentence where one is missing.

Whoever imports one asks for it here, so that each missing one gets the same sentence: what needs it, and how it is
installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple

from bnnviz.errors import BnnvizError


class Package(NamedTuple):
    """What an imported module is installed as, and the extra of bnnviz that brings it."""

    name: str
    extra: str


#: By the name that is imported; where another package brings it along, that one. Of several extras the one whose
#: purpose it is most often; callers may name another.
PACKAGES = {
    "anywidget": Package("anywidget", "notebook"),
    "arviz_base": Package("arviz-base", "metrics"),
    "arviz_stats": Package("arviz-stats", "metrics"),
    "bridgestan": Package("bridgestan", "stan"),
    "blackjax": Package("blackjax", "bench"),
    "bokeh": Package("bokeh", "app"),
    "contourpy": Package("bokeh", "app"),
    "cryptography": Package("cryptography", "cluster"),
    "datashader": Package("datashader", "shading"),
    "dask": Package("distributed", "cluster"),
    "distributed": Package("distributed", "cluster"),
    "h5netcdf": Package("h5netcdf", "metrics"),
    "h5py": Package("h5py", "metrics"),
    "holoviews": Package("holoviews", "plots"),
    "imageio_ffmpeg": Package("imageio-ffmpeg", "pictures"),
    "jax": Package("blackjax", "bench"),
    "jupyterlab": Package("jupyterlab", "notebook"),
    "matplotlib": Package("matplotlib", "plots"),
    "numcodecs": Package("numcodecs", "metrics"),
    "numpyro": Package("numpyro", "bench"),
    "panel": Package("panel", "app"),
    "panel_material_ui": Package("panel-material-ui", "app"),
    "pandas": Package("pandas", "data"),
    "pdmp_jax": Package("pdmp-jax", "bench"),
    "PIL": Package("pillow", "data"),
    "playwright": Package("playwright", "pictures"),
    "pooch": Package("pooch", "data"),
    "requests": Package("pooch", "data"),
    "pyro": Package("pyro-ppl", "pyro"),
    "rich": Package("rich", "cli"),
    "segno": Package("segno", "app"),
    "sklearn": Package("scikit-learn", "metrics"),
    "tornado": Package("distributed", "cluster"),
    "traitlets": Package("anywidget", "notebook"),
    "typer": Package("typer", "cli"),
    "xarray": Package("xarray", "metrics"),
    "yaml": Package("pyyaml", "cluster"),
    "zarr": Package("zarr", "metrics"),
}


def has(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a module inside a package that is missing
        return False


def install(module: str, extra: str | None = None) -> str:
    """Return how a module is installed, such as ``install zarr (pip install 'bnnviz[metrics]')``."""
    package = PACKAGES[module]
    return f"install {package.name} (pip install 'bnnviz[{extra or package.extra}]')"


def check(modules: str | tuple[str, ...], purpose: str, field: str | None = None, extra: str | None = None) -> None:
    """Raise an error that names the first of the modules that is missing, without importing them."""
    for module in (modules,) if isinstance(modules, str) else modules:
        if not has(module):
            raise _missing(module, purpose, field, extra)


def require(module: str, purpose: str, field: str | None = None, extra: str | None = None) -> ModuleType:
    """Import a module and return it."""
    check(module.partition(".")[0], purpose, field, extra)
    with needed(purpose, field, extra):
        return importlib.import_module(module)


@contextmanager
def needed(purpose: str, field: str | None = None, extra: str | None = None) -> Iterator[None]:
    """Explain an import in this block that fails for want of an optional package; other errors pass."""
    try:
        yield
    except ImportError as error:
        explained = explain(error, purpose, field, extra)
        if explained is None:
            raise
        raise explained from error


def explain(error: ImportError, purpose: str, field: str | None = None, extra: str | None = None) -> BnnvizError | None:
    """Return what to say of a failed import; None where no optional package is the cause."""
    module = (error.name or "").partition(".")[0]
    if module not in PACKAGES:
        return None
    if not has(module):
        return _missing(module, purpose, field, extra)
    package = PACKAGES[module]
    return BnnvizError(
        f"{purpose} {package.name}, which cannot be imported here ({error}); install it again with: pip install"
        f" 'bnnviz[{extra or package.extra}]'.",
        field,
    )


def _missing(module: str, purpose: str, field: str | None, extra: str | None) -> BnnvizError:
    package = PACKAGES[module]
    return BnnvizError(
        f"{purpose} {package.name}; install it with: pip install 'bnnviz[{extra or package.extra}]'.", field
    )


def in_notebook() -> bool:
    """Return whether this program runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")
