"""Import optional packages; an ImportError names the extra that installs a missing one."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

#: The extra that installs a package, by import name.
EXTRAS = {
    "anywidget": "notebook",
    "arviz_base": "metrics",
    "arviz_stats": "metrics",
    "babel": "lessons",
    "bokeh": "app",
    "contourpy": "app",
    "cryptography": "cluster",
    "dask": "cluster",
    "distributed": "cluster",
    "docutils": "lessons",
    "h5netcdf": "metrics",
    "h5py": "metrics",
    "holoviews": "plots",
    "jax": "bench",
    "jupyterlab": "notebook",
    "markdown_it": "lessons",
    "matplotlib": "plots",
    "mdit_py_plugins": "lessons",
    "numcodecs": "metrics",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "numpyro": "bench",
    "panel": "app",
    "panel_material_ui": "app",
    "pandas": "data",
    "pdmp_jax": "bench",
    "PIL": "data",
    "pooch": "data",
    "requests": "data",
    "rich": "cli",
    "segno": "app",
    "sklearn": "metrics",
    "tornado": "cluster",
    "traitlets": "notebook",
    "typer": "cli",
    "xarray": "metrics",
    "yaml": "cluster",
    "zarr": "metrics",
}


def has(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return importlib.util.find_spec(module) is not None


def install(module: str, extra: str | None = None) -> str:
    """Return how to install a module: ``install zarr: pip install '.[metrics]' in a checkout of bnnviz``."""
    return f"install {module}: pip install '.[{extra or EXTRAS[module]}]' in a checkout of bnnviz"


def check(modules: str | tuple[str, ...], purpose: str, extra: str | None = None) -> None:
    """Raise an ImportError for the first missing package, without importing any."""
    for module in (modules,) if isinstance(modules, str) else modules:
        if not has(module):
            raise ImportError(f"{purpose} {module}; {install(module, extra)}.", name=module)


def require(module: str, purpose: str, extra: str | None = None) -> ModuleType:
    """Import a module and return it."""
    check(module.partition(".")[0], purpose, extra)
    return importlib.import_module(module)


def in_notebook() -> bool:
    """Return whether this program runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")
