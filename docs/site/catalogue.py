"""Write the pages of what is chosen by name: samplers, targets, data sets, settings of a run, commands."""

from __future__ import annotations

import inspect
import re
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
    "baselines": "What they are compared with",
}


def write(folder: Path) -> None:
    """Write these pages.

    Parameters
    ----------
    folder : Path
        Where the pages are staged.
    """
    listed = catalogue.load()
    place = folder / "reference"
    place.mkdir(parents=True, exist_ok=True)
    (place / "samplers.rst").write_text(_samplers(listed["samplers"]), encoding="utf-8")
    (place / "targets.rst").write_text(_targets(listed["targets"]), encoding="utf-8")
    (place / "data_sets.rst").write_text(_data_sets(listed["data"]), encoding="utf-8")
    (place / "run_settings.rst").write_text(_run_settings(listed["run"]), encoding="utf-8")
    (place / "commands.rst").write_text(_commands(), encoding="utf-8")


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]], widths: tuple[int, ...]) -> str:
    """Return a table in reStructuredText.

    Parameters
    ----------
    heads : tuple of str
    rows : list of tuple of str
    widths : tuple of int
        Of the columns, as shares.
    """
    text = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, widths))}", ""]
    for row in (heads, *rows):
        text += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join(text) + "\n"


def _plain(text: str) -> str:
    """Return a text of the catalogue without marks that reStructuredText would read."""
    return re.sub(r"([*|_\\])", r"\\\1", text).replace("`", "")


def _settings(settings: list[dict[str, Any]]) -> str:
    rows = [
        (f"``{each['name']}``", _default(each), _range(each), _plain(each["doc"]))
        for each in settings
        if each["hidden"] is not True
    ]
    return table(("setting", "default", "values", "what it is"), rows, (18, 12, 22, 48)) if rows else ""


def _default(setting: dict[str, Any]) -> str:
    value = setting["default"]
    if value is None:
        return _plain(setting["empty"])
    return f"``{value}``" if value != "" else "none"


def _range(setting: dict[str, Any]) -> str:
    if setting["choices"]:
        hidden = setting["hidden"] if isinstance(setting["hidden"], list) else []
        return ", ".join(f"``{choice}``" for choice in setting["choices"] if choice not in hidden)
    unit = f" {setting['unit']}" if setting["unit"] else ""
    if setting["bounds"]:
        low, high = setting["bounds"]
        return f"{low:g} to {high:g}{_plain(unit)}"
    return {"boolean": "yes or no"}.get(setting["type"], setting["type"]) + _plain(unit)


def _samplers(listed: list[dict[str, Any]]) -> str:
    by_name = {entry["name"]: entry for entry in listed}
    homes = {cls.registered: cls.__module__ for cls in samplers.REGISTRY}
    text = [
        _title("Samplers", "="),
        "Each by its name, with its settings: ``bnnviz sample --sampler NAME --set KEY=VALUE``, or",
        '``bnnviz.sample(target, "NAME", settings={...})``. :doc:`/concepts/index` says what they do.\n',
    ]
    for family, title in FAMILIES.items():
        text.append(_title(title, "-"))
        for name in sorted(by_name):
            if homes[name].split(".")[2] == family:
                text += _sampler(by_name[name], homes[name])
    return "\n".join(text)


def _sampler(entry: dict[str, Any], home: str) -> list[str]:
    return [
        f".. _sampler-{entry['name']}:\n",
        _title(f"``{entry['name']}``: {entry['title']}", "~"),
        f"{_plain(entry['doc'])}\n",
        f".. automodule:: {home}\n   :no-members:\n   :no-index:\n",
        _settings(entry["settings"]),
    ]


def _targets(listed: list[dict[str, Any]]) -> str:
    text = [
        _title("Targets", "="),
        "Each by its name, with its settings: ``bnnviz sample --target NAME --set target.KEY=VALUE``. For targets of",
        "your own see :doc:`/manual/networks` and :doc:`/manual/densities`.\n",
    ]
    for entry in listed:
        dim = f" Dimension {entry['dim']}." if entry["dim"] else ""
        text += [_title(f"``{entry['name']}``: {entry['title']}", "-"), f"{_plain(entry['doc'])}{dim}\n"]
        text.append(_settings(entry["settings"]))
    return "\n".join(text)


def _data_sets(listed: list[dict[str, Any]]) -> str:
    rows = [
        (f"``{each['name']}``", _task(each), f"{each['rows']:,}", _plain(f"{each['title']}. {each['doc']}"))
        for each in listed
        if not each["attached"]
    ]
    text = [
        _title("Data sets", "="),
        "Each by its name: ``bnnviz sample --data NAME``. :doc:`/manual/data_and_workers` says which ones come with",
        "bnnviz, and :doc:`/manual/tables` how a table of your own is read.\n",
        table(("name", "task", "rows", "what it is"), rows, (18, 18, 10, 54)),
    ]
    return "\n".join(text)


def _task(entry: dict[str, Any]) -> str:
    return f"{entry['task']}, {entry['classes']} classes" if entry["classes"] else entry["task"]


def _run_settings(listed: list[dict[str, Any]]) -> str:
    text = [
        _title("Settings of a run", "="),
        "What every run has, whatever its sampler: options of ``bnnviz sample``, and arguments of `bnnviz.sample`.\n",
        _settings(listed),
    ]
    return "\n".join(text)


# --- commands


def _commands() -> str:
    text = [_title("Commands", "="), "What ``bnnviz COMMAND --help`` says; :doc:`/manual/command_line` has examples.\n"]
    for name, command in _walk(typer.main.get_command(app), "bnnviz"):
        text += [_title(f"``{name}``", "-"), f"{_help(command.help)}\n"]
        rows = [row for option in command.params if (row := _option(option)) is not None]
        text.append(table(("option", "default", "what it is"), rows, (28, 16, 56)) if rows else "")
    return "\n".join(text)


def _walk(command: Any, name: str) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(name, command)]
    return [found for word, each in inner.items() for found in _walk(each, f"{name} {word}")]


def _help(text: str | None) -> str:
    return _plain(" ".join(inspect.cleandoc(text or "").split()))


def _option(option: Any) -> tuple[str, str, str] | None:
    if getattr(option, "hidden", False) or "--help" in option.opts:
        return None
    words = [*option.opts, *option.secondary_opts]
    if option.param_type_name == "argument":
        words = [str(option.metavar or option.name).upper()]
    default = option.default
    shown = f"``{default}``" if isinstance(default, str | int | float) and not isinstance(default, bool) else ""
    return ", ".join(f"``{word}``" for word in words), shown, _help(getattr(option, "help", ""))
