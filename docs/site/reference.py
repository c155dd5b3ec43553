"""List the public names, and write an entry for each: its docstring, with an example that a test runs."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

#: The modules whose ``__all__`` is public, with their purpose.
MODULES = {
    "bnnviz": "Sample, predict and compare.",
    "bnnviz.plots": "Draw finished runs; each entry is a page of the [gallery](../gallery/index.rst).",
    "bnnviz.sklearn": "Estimators of scikit-learn.",
    "bnnviz.data": "Data sets and custom tables.",
    "bnnviz.models": "Ready-made networks.",
    "bnnviz.targets": "Densities and posteriors; base classes of custom targets.",
    "bnnviz.targets.likelihoods": "How outputs explain observations; the how-to on likelihoods has formulas.",
    "bnnviz.samplers": "Samplers by name; base classes of custom samplers.",
    "bnnviz.diagnostics": "Diagnose draws: arrays in, arrays out.",
}
#: Modules with a page for each name; the others have one page.
PAGES_OF_THEIR_OWN = ("bnnviz", "bnnviz.plots")

#: Constants, which have no docstring: a description and an example.
CONSTANTS = {
    "bnnviz.__version__": (
        "The version of bnnviz.",
        ">>> import bnnviz\n>>> len(bnnviz.__version__.split('.'))\n3",
    ),
    "bnnviz.models.ACTIVATIONS": (
        "Names of the activations that `mlp` takes.",
        ">>> from bnnviz import models\n>>> 'tanh' in models.ACTIVATIONS\nTrue",
    ),
    "bnnviz.models.IMAGE_NETWORKS": (
        "Names of the networks that `image_network` builds.",
        ">>> from bnnviz import models\n>>> 'lenet5' in models.IMAGE_NETWORKS\nTrue",
    ),
    "bnnviz.targets.NOISES": (
        "What `BNN` takes as ``noise``.",
        ">>> from bnnviz import targets\n>>> targets.NOISES\n('fixed', 'learned')",
    ),
    "bnnviz.targets.REGISTRY": (
        "The targets by name.",
        ">>> from bnnviz import targets\n>>> targets.REGISTRY.get('banana').title\n'Banana'",
    ),
    "bnnviz.samplers.REGISTRY": (
        "The samplers by name.",
        ">>> from bnnviz import samplers\n>>> samplers.REGISTRY.get('hmc').title\n'HMC'",
    ),
    "bnnviz.diagnostics.ODD": (
        "Names of odd activations: a hidden unit may change its sign, and `canonical` undoes that.",
        ">>> from bnnviz import diagnostics\n>>> 'tanh' in diagnostics.ODD\nTrue",
    ),
    "bnnviz.diagnostics.PAPER_BINS": (
        "Bins of the calibration error in the PDMP paper.",
        ">>> from bnnviz import diagnostics\n>>> diagnostics.PAPER_BINS\n10",
    ),
}


class Entry(NamedTuple):
    """A public name with its module, object, and the earlier entry of the same object."""

    module: str
    name: str
    kind: str
    value: Any
    same_as: str | None

    @property
    def path(self) -> str:
        """Module and name."""
        return f"{self.module}.{self.name}"

    @property
    def text(self) -> str:
        """The docstring, or the description of a constant."""
        if self.path in CONSTANTS:
            sentence, example = CONSTANTS[self.path]
            return f"{sentence}\n\nExamples\n--------\n{example}"
        return inspect.getdoc(self.value) or ""

    @property
    def line(self) -> str:
        """The first line of the docstring."""
        return self.text.partition("\n")[0].replace("`", "``").replace("````", "``")

    @property
    def page(self) -> str:
        """The staged page that has the entry, without its ending."""
        if self.module == "bnnviz.plots":
            return f"gallery/{self.name}"
        own = self.path if self.module in PAGES_OF_THEIR_OWN else self.module
        return f"reference/{own}"


def entries() -> list[Entry]:
    """Return every public name, in the order of modules and of the alphabet."""
    found: list[Entry] = []
    known: dict[int, str] = {}
    for module in MODULES:
        home = import_module(module)
        for name in sorted(home.__all__, key=str.lower):
            value = getattr(home, name)
            kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
            entry = Entry(module, name, kind, value, known.get(id(value)) if kind != "data" else None)
            known.setdefault(id(value), entry.path)
            found.append(entry)
    return found


def name_as_public() -> None:
    """Give each public class the name that it is public by, so that autodoc describes it and not an alias."""
    for entry in entries():
        if entry.kind == "class" and entry.same_as is None and entry.value.__name__ != entry.name:
            entry.value.__name__ = entry.value.__qualname__ = entry.name


def write(folder: Path) -> None:
    """Write the pages of all entries but those of the gallery."""
    found = entries()
    pages: dict[str, list[Entry]] = {}
    for entry in found:
        if entry.module != "bnnviz.plots":
            pages.setdefault(entry.page, []).append(entry)
    for page, listed in pages.items():
        alone = listed[0].module in PAGES_OF_THEIR_OWN
        title = listed[0].path if alone else listed[0].module
        text = [_heading(title, "="), "" if alone else f"{MODULES[listed[0].module]}\n"]
        for entry in listed:
            text += ["" if alone else _heading(entry.name, "-"), directive(entry)]
        (folder / f"{page}.rst").write_text("\n".join(text), encoding="utf-8")
    (folder / "reference" / "api.md").write_text(_overview(found), encoding="utf-8")


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def directive(entry: Entry) -> str:
    """Return the directive that describes a public name."""
    if entry.same_as is not None:
        return f"The same as `{entry.same_as}`.\n"
    if entry.kind == "data":
        sentence, example = CONSTANTS[entry.path]
        inside = f"{sentence}\n\n{example}".replace("\n", "\n   ")
        return f".. py:data:: {entry.path}\n\n   {inside}\n"
    if entry.kind == "function":
        return f".. autofunction:: {entry.path}\n"
    members = ", ".join(_members(entry.value))
    return f".. autoclass:: {entry.path}\n" + (f"   :members: {members}\n" if members else "")


def _members(cls: type) -> list[str]:
    """Return the methods and properties of a class that this package documents."""
    found: dict[str, None] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("bnnviz"):
            for name, value in vars(base).items():
                plain = inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
                if plain and not name.startswith("_") and inspect.getdoc(getattr(cls, name)):
                    found[name] = None
    return list(found)


def _overview(found: list[Entry]) -> str:
    """Return the page that lists all entries, a table for each module."""
    text = ["# Python", "Every public name, by its module. Each has an example that runs."]
    listed = []
    for module, purpose in MODULES.items():
        of = [entry for entry in found if entry.module == module]
        text += [f"## `{module}`", purpose, "| name | description |\n|---|---|"]
        text[-1] += "".join(f"\n| {_link(entry)} | {_cell(entry.line)} |" for entry in of)
        listed += [entry.page for entry in of if entry.module != "bnnviz.plots"]
    pages = "\n".join(f"/{page}" for page in dict.fromkeys(listed))
    return "\n\n".join(text) + f"\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def _link(entry: Entry) -> str:
    place = entry.same_as or entry.path
    return f"{{py:obj}}`{entry.name} <{place}>`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
