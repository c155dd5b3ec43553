"""Print what the records of the papers' experiments lack, for ``bnnviz reproduce --check``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bnnviz.cli.output import FAILED, console, print_json, say, table

if TYPE_CHECKING:
    from bnnviz.experiments import Experiment


def check_records(experiments: Sequence[Experiment], as_json: bool) -> int:
    """Print how each experiment's record compares, and what it lacks; return the exit code."""
    from bnnviz.experiments.audit.check import all_checked
    from bnnviz.experiments.audit.document import described

    checked = all_checked(experiments)
    lacks = sum(len(one.lacks) for one in checked)
    if as_json:
        print_json([described(one) | {"lacks": one.lacks} for one in checked])
    else:
        lines = [described(one) for one in checked]
        console().print(table(*lines[0], rows=[line.values() for line in lines]))
        for one, line in zip(checked, lines, strict=True):
            for sentence in one.lacks:
                print(f"{line['experiment']}: {sentence}")
    say(f"{len(checked)} records checked, {lacks} lacks.")
    return FAILED if lacks else 0
