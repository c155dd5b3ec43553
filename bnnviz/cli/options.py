"""Read the options that several commands share, and the plain JSON of a spec from them and from files."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bnnviz.errors import BnnvizError, meant_by
from bnnviz.figures.still import forms
from bnnviz.files import plain_json
from bnnviz.specs import catalogue, url
from bnnviz.specs.run import Spec

if TYPE_CHECKING:
    from bnnviz.data import UserTable

#: The sampler that a pilot chooses.
AUTO = "auto"
_MOST_TEXT = 10_000_000  # letters of a file

Json = Annotated[bool, typer.Option("--json", help="Print only JSON on stdout.")]
Details = Annotated[
    bool, typer.Option("--details", help="Print diagnostics, costs and settings of a run on a table, too.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Dask scheduler, tls://host:8786; default: BNNVIZ_SCHEDULER."),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Use a scheduler without TLS (tcp://...): anyone who can reach it can run code as you on its workers.",
    ),
]
RecordingWord = Annotated[str, typer.Argument(metavar="RUN", help="A recording: its name, or its folder.")]
Target = Annotated[str | None, typer.Option("--target", "-t", help="A target of `bnnviz list targets`.")]
Data = Annotated[
    str | None,
    typer.Option(help="A data set of `bnnviz list data`, or a CSV file: the target is a network on it."),
]
TargetColumn = Annotated[str | None, typer.Option(metavar="NAME", help="The column of the CSV file that is predicted.")]
Task = Annotated[
    str | None,
    typer.Option(metavar="TASK", help="Task: regression or classification; detected by default."),
]
Likelihood = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Distribution of an observation: gaussian, student_t, heteroscedastic, log_normal, poisson,"
        " negative_binomial, bernoulli, categorical or ordinal; default: selected from the column and held-out rows.",
    ),
]
_OF_CLASSES = ("bernoulli", "categorical", "ordinal")
Decimal = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="The decimal mark of the CSV file, a point or a comma; detected by default."),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE",
        help="Marker of missing values in the CSV file, such as -999; repeatable.",
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-out", metavar="COLUMN", help="A column of the CSV file to exclude from the inputs; repeatable."
    ),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")]


def examples(*commands: str) -> str:
    """Return an epilog with one command on each line."""
    return "Examples:\n\n" + "\n\n".join(commands)


# --- files


def read_text(path: str, what: str, kind: str) -> str:
    """Read a text file, or stdin where the path is "-"."""
    try:
        if path == "-":
            text = sys.stdin.read(_MOST_TEXT + 1)
        else:
            with Path(path).open(encoding="utf-8") as file:  # a device, such as /dev/zero, has no end
                text = file.read(_MOST_TEXT + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text"
        raise BnnvizError(f"Cannot read the {what} {path} ({reason}); give the path of {kind}.") from None
    if len(text) > _MOST_TEXT or "\0" in text:
        reason = f"it has more than {_MOST_TEXT:,} letters" if len(text) > _MOST_TEXT else "it is not a text"
        raise BnnvizError(f"Cannot read the {what} {path} ({reason}); give the path of {kind}.")
    return text


def read_request(path: str) -> dict[str, Any]:
    """Read a spec from a JSON file or stdin, without checking more than that it is an object."""
    text = read_text(path, "spec", "a JSON file")
    try:
        value = plain_json(text)
    except ValueError as error:
        is_json = path == "-" or path.endswith(".json")
        hint = "Check its commas and quotes." if is_json else f"A table is passed by --data {path}."
        raise BnnvizError(f"The spec {path} is not JSON ({error}). {hint}") from None
    if not isinstance(value, dict):
        raise BnnvizError(f"The spec {path} is not a JSON object with the keys target and sampler.")
    for place in ("settings", "target_settings"):
        if not isinstance(value.get(place, {}), dict):
            raise BnnvizError(f"The {place} of the spec {path} are a JSON object of names and values.", place)
    return value


def free_place(out: Path, suffix: str, option: str = "out", overwrite: bool = False) -> Path:
    """Return an output path with a suffix; refuse existing files and folders that are not writable."""
    if out.is_dir():
        raise BnnvizError(f"{out} is a folder; give --{option} a file, such as {out / ('run' + suffix)}.", option)
    out = out if out.suffix else out.with_suffix(suffix)
    if os.path.lexists(out) and not overwrite:
        raise BnnvizError(f"{out} exists already; choose another name for --{option}.", option)
    folder = out.absolute().parent
    if not folder.is_dir():
        raise BnnvizError(f"There is no folder {folder} to save it in; make it first.", option)
    check_writable(folder, option)
    return out


def check_writable(folder: Path, option: str) -> None:
    """Refuse a folder in which no file can be made: before the work that would be lost, not after it."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
    except OSError as error:
        raise BnnvizError(
            f"Nothing can be written to {folder} ({error.strerror}); give --{option} another folder.", option
        ) from None


def figure_place(out: Path | None, option: str) -> Path | None:
    """Return where a figure is written; refuse one that cannot be drawn or written."""
    if out is None:
        return None
    out = free_place(out, forms.PAGE, option)
    forms.check(out, option)
    return out


def task_of(likelihood: str | None) -> str | None:
    """Return the task that a likelihood implies."""
    if likelihood in (None, "auto"):
        return None
    return "classification" if likelihood in _OF_CLASSES else "regression"


# --- --target, --data, --target-column, --task


class TableOptions(NamedTuple):
    """The CSV options as arguments of `bnnviz.data.read_table`; None if none is set."""

    target_column: str | None
    task: str | None
    decimal: str | None
    missing: list[str] | None
    leave_out: list[str] | None

    @property
    def first(self) -> str | None:
        """The first option that is given."""
        return next((name.replace("_", "-") for name, value in self._asdict().items() if value is not None), None)

    def read(self, data: str) -> UserTable:
        """Read the file."""
        from bnnviz.data import read_table

        reading = {"decimal": self.decimal, "missing": self.missing, "leave_out": self.leave_out or ()}
        return read_table(data, self.target_column, self.task, **reading)


def enter_target(
    request: dict[str, Any], target: str | None, data: str | None, table_options: TableOptions
) -> UserTable | None:
    """Enter the target, data set or CSV file of the options; return the file's table."""
    table = _open_table(data, table_options)
    if table is not None:
        data = catalogue.own_data()
        request.pop("file", None)
    _name_target(request, target, data)
    return table


def _open_table(data: str | None, given: TableOptions) -> UserTable | None:
    """Read the CSV file of the options; return None where they name a data set or nothing."""
    option = given.first
    names = [item["name"] for item in catalogue.load()["data"]]
    if data is None or (data in names and not Path(data).is_file()):
        if option is not None:
            raise BnnvizError(f"--{option} is for a CSV file; give one with --data FILE.csv, or leave it out.", "data")
        return None
    if data in names and option is None:
        return None
    if option is None and not Path(data).exists() and not Path(data).suffix:
        raise BnnvizError(f"There is no data set and no file {data!r}; choose one of {', '.join(names)}.", "data")
    return given.read(data)


def _name_target(request: dict[str, Any], target: str | None, data: str | None) -> None:
    """Enter the target or the data set of the options, which go before those of the spec."""
    if data is not None:
        target = _target_on(data, target)
    if target is not None and request.get("target") != target:
        request["target"] = target
        request["target_settings"] = {}
    if data is not None:
        request["target_settings"] = {**request.get("target_settings", {}), "data": data}
    if "target" not in request:
        raise BnnvizError("Specify a target: --target NAME, --data NAME or a SPEC.json.", "target")


def _target_on(data: str, target: str | None) -> str:
    """Return a target that takes a data set: the named one, or the first that lists it."""
    choices = {item["name"]: find_setting(item, "data") for item in catalogue.load()["targets"]}
    on_data = [name for name, setting in choices.items() if setting]
    target = target or next((name for name in on_data if data in choices[name]["choices"]), on_data[0])
    if target not in on_data:
        raise BnnvizError(f"The target {target!r} takes no data; leave out --target or --data.", "target")
    catalogue.find("data", data)
    return target


def enter_options(request: dict[str, Any], **options: Any) -> None:
    """Enter the options that were given, each as the field of its name."""
    request.update({name: value for name, value in options.items() if value is not None})


# --- --set


def is_table(target: str) -> bool:
    """Return whether a target is a network on a table: its noise and its prior can be chosen."""
    item = catalogue.find("targets", target)
    return all(find_setting(item, name) for name in ("data", "noise", "prior"))


def enter_table_defaults(request: dict[str, Any]) -> None:
    """Set the default noise and prior of a network on the user's own table."""
    from bnnviz.engine.automatic.tables import DEFAULTS

    if is_table(request["target"]):
        request["target_settings"] = DEFAULTS | request.get("target_settings", {})


def apply_settings(request: dict[str, Any], assignments: list[str], *, to_sampler: bool = True) -> set[str]:
    """Enter the ``--set`` options, each where its setting belongs; return the names that were set."""
    owners = {"sampler": catalogue.find("samplers", request.get("sampler", Spec.sampler))} if to_sampler else {}
    owners |= {
        "target": catalogue.find("targets", request["target"]),
        "run": {"title": "The run", "settings": catalogue.load()["run"]},
    }
    places = {"sampler": "settings", "target": "target_settings"}
    found = set()
    for owner, name, value in read_assignments(assignments, owners):
        found.add(name)
        if owner in places:
            request[places[owner]] = {**request.get(places[owner], {}), name: value}
        else:
            request[name] = value
    return found


def read_assignments(
    assignments: list[str], owners: dict[str, dict[str, Any]], form: str = "key=value"
) -> Iterator[tuple[str, str, Any]]:
    """Yield the owner, the name and the value of each ``--set`` option."""
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not (key and equals):
            raise BnnvizError(f"{assignment!r} is not of the form {form}.", key or None)
        owner, setting = _find_owner(key, owners)
        yield owner, setting["name"], url.parse_value(setting, text.strip())


def _find_owner(key: str, owners: dict[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Find whose setting a key of ``--set`` is; return the owner and the setting."""
    prefix, dot, name = key.partition(".")
    if dot and prefix in owners:
        candidates = {prefix: owners[prefix]}
    else:
        candidates, name = owners, key
    found = [(owner, setting) for owner, item in candidates.items() if (setting := find_setting(item, name))]
    if len(found) > 1:
        choices = " or ".join(f"{owner}.{name}" for owner, _ in found)
        raise BnnvizError(f"{name} is a setting of more than one; write {choices}.", name)
    if not found:
        known = {item["title"]: [s["name"] for s in item["settings"]] for item in candidates.values()}
        meant = meant_by("keyword", name, [each for names in known.values() for each in names])
        lists = "; ".join(f"{title} has {', '.join(names) or 'none'}" for title, names in known.items())
        hint = f"{lists}." if meant is None else f"did you mean {meant}?"
        raise BnnvizError(f"There is no setting {key!r}: {hint}", key)
    return found[0]


def find_setting(item: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the named setting of a catalogue item, or None if it has no such setting."""
    return next((setting for setting in item["settings"] if setting["name"] == name), None)
