"""Accept any module: reject those without a posterior, and call the others with each chain's weights."""

from bnnviz.targets.modules.calls import CallRules, call, copied, move, with_dense_gradients
from bnnviz.targets.modules.structure import aliases, check_structure, computed, frozen_but, places, trainable
from bnnviz.targets.modules.trial import (
    Trial,
    check_computed,
    check_loaded,
    check_precision,
    reads_whole,
    rules_of,
    some_rows,
    tried,
    unreadable,
)

__all__ = [
    "CallRules",
    "Trial",
    "aliases",
    "call",
    "check_computed",
    "check_loaded",
    "check_precision",
    "check_structure",
    "computed",
    "copied",
    "frozen_but",
    "move",
    "places",
    "reads_whole",
    "rules_of",
    "some_rows",
    "trainable",
    "tried",
    "unreadable",
    "with_dense_gradients",
]
