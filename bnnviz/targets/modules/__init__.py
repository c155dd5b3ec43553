"""Take modules as they come: refuse what has no posterior, and call the others with weights of each chain's own."""

from bnnviz.targets.modules.calls import CallRules, call, copied, move
from bnnviz.targets.modules.structure import aliases, check_structure, places, trainable
from bnnviz.targets.modules.trial import check_loaded, check_precision, rules_of, some_rows, unreadable

__all__ = [
    "CallRules",
    "aliases",
    "call",
    "check_loaded",
    "check_precision",
    "check_structure",
    "copied",
    "move",
    "places",
    "rules_of",
    "some_rows",
    "trainable",
    "unreadable",
]
