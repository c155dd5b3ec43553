"""Write the reference pages of samplers, targets, data sets, settings of a run, and commands."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import typer

from bnnviz import samplers
from bnnviz.cli.main import app
from bnnviz.specs import catalogue

#: The families of samplers by their folders.
FAMILIES = {
    "pdmp": "Piecewise deterministic Markov processes",
    "mcmc": "Hamiltonian Monte Carlo and relatives",
    "sgmcmc": "Stochastic-gradient MCMC",
    "functional": "Functional samplers",
    "importance": "Adaptive importance sampling",
    "baselines": "Baselines",
}
_SAMPLERS = """# Samplers

Select a sampler by name and settings: `bnnviz sample --sampler NAME --set KEY=VALUE`, or
`bnnviz.sample(target, "NAME", settings={...})`. The [lessons](../concepts/index.md) explain them."""
_TARGETS = """# Targets

Select a target by name and settings: `bnnviz sample --target NAME --set target.KEY=VALUE`. For custom targets see
[networks](../manual/networks.md) and [densities](../manual/densities.md)."""
_DATA_SETS = """# Data sets

Select a data set by name: `bnnviz sample --data NAME`. [Data sets](../manual/clusters.md#data-sets) lists those that
come with bnnviz; [tables](../manual/tables.md) describes how to use your own table."""
_RUN = """# Settings of a run

Settings of all samplers: options of `bnnviz sample`, and arguments of {py:obj}`bnnviz.sample`."""
_COMMANDS = """# Commands

The output of `bnnviz COMMAND --help`; [the command line](../manual/command_line.md) has examples."""


def write(folder: Path) -> None:
    """Write these pages."""
    listed = catalogue.load()
    pages = {
        "samplers": _samplers(listed["samplers"]),
        "targets": _targets(listed["targets"]),
        "data_sets": _data_sets(listed["data"]),
        "run_settings": [_RUN, _settings(listed["run"])],
        "commands": _commands(),
    }
    for name, parts in pages.items():
        text = "\n\n".join(part for part in parts if part)
        (folder / "reference" / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown; none without rows."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) if rows else ""


def _plain(text: str) -> str:
    """Return a text without marks that Markdown would read."""
    return re.sub(r"([*|_<>\\\[\]$])", r"\\\1", " ".join(text.split()))


def _settings(settings: list[dict[str, Any]]) -> str:
    shown = [each for each in settings if each["hidden"] is not True]
    rows = [(f"`{each['name']}`", _default(each), _range(each), _plain(each["doc"])) for each in shown]
    return table(("setting", "default", "values", "description"), rows)


def _default(setting: dict[str, Any]) -> str:
    value = setting["default"]
    if value is None:
        return _plain(setting["empty"])
    return f"`{value}`" if value != "" else "none"


def _range(setting: dict[str, Any]) -> str:
    unit = f" {setting['unit']}" if setting["unit"] else ""
    if setting["choices"]:
        hidden = setting["hidden"] if isinstance(setting["hidden"], list) else []
        return ", ".join(f"`{choice}`" for choice in setting["choices"] if choice not in hidden)
    if setting["bounds"]:
        low, high = setting["bounds"]
        return _plain(f"{low:g} to {high:g}{unit}")
    return {"boolean": "yes or no"}.get(setting["type"], _plain(setting["type"] + unit))


def _samplers(listed: list[dict[str, Any]]) -> list[str]:
    homes = {cls.registered: cls.__module__ for cls in samplers.REGISTRY}
    parts = [_SAMPLERS]
    for family, title in FAMILIES.items():
        parts.append(f"## {title}")
        for entry in sorted(listed, key=lambda entry: entry["name"]):
            home = homes[entry["name"]]
            if home.split(".")[2] == family:
                parts += [f"### `{entry['name']}`: {entry['title']}", _plain(entry["doc"]), _reported(home)]
                parts.append(_settings(entry["settings"]))
    return parts


def _reported(module: str) -> str:
    """Return the docstring of a sampler's module: formulas and sources in Markdown."""
    return inspect.getdoc(sys.modules[module]).partition("\n\n")[2]


def _targets(listed: list[dict[str, Any]]) -> list[str]:
    parts = [_TARGETS]
    for entry in listed:
        dim = f" Dimension {entry['dim']}." if entry["dim"] else ""
        parts += [f"## `{entry['name']}`: {entry['title']}", _plain(entry["doc"]) + dim, _settings(entry["settings"])]
    return parts


def _data_sets(listed: list[dict[str, Any]]) -> list[str]:
    rows = [
        (f"`{each['name']}`", _task(each), f"{each['rows']:,}", _plain(f"{each['title']}. {each['doc']}"))
        for each in listed
        if not each["attached"]
    ]
    return [_DATA_SETS, table(("name", "task", "rows", "description"), rows)]


def _task(entry: dict[str, Any]) -> str:
    return f"{entry['task']}, {entry['classes']} classes" if entry["classes"] else entry["task"]


# --- commands


def _commands() -> list[str]:
    parts = [_COMMANDS]
    for name, command in _walk(typer.main.get_command(app), "bnnviz"):
        rows = [row for option in command.params if (row := _option(option)) is not None]
        parts += [f"## `{name}`", _plain(command.help or ""), table(("option", "default", "description"), rows)]
    return parts


def _walk(command: Any, name: str) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(name, command)]
    return [found for word, each in inner.items() for found in _walk(each, f"{name} {word}")]


def _option(option: Any) -> tuple[str, str, str] | None:
    if getattr(option, "hidden", False) or "--help" in option.opts:
        return None
    words = [*option.opts, *option.secondary_opts]
    if option.param_type_name == "argument":
        words = [str(option.metavar or option.name).upper()]
    default = option.default
    statement = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    return ", ".join(f"`{word}`" for word in words), f"`{default}`" if statement else "", _plain(option.help or "")
