"""Define the data set of the user's own file."""

from __future__ import annotations

from dataclasses import dataclass

from bnnviz.data.dataset import DataSet
from bnnviz.data.entry import DataEntry
from bnnviz.errors import BnnvizError


@dataclass(frozen=True, kw_only=True)
class YourFile(DataEntry):
    """A table that is attached to the spec and describes itself."""

    def load(self, split: int) -> DataSet:
        """Raise an error: without a table there is nothing to load."""
        raise BnnvizError(
            "There is no file of yours yet: open one on the page, or give --data FILE.csv --target-column NAME on the"
            " command line.",
            field="data",
        )


SETS = (
    YourFile(
        name="own",
        title="Your file",
        doc="An uploaded table: open a CSV file on the page, or pass --data FILE.csv --target-column NAME on the"
        " command line. A random 10% of the rows are test rows.",
        task=None,
        inputs=0,
        rows=0,
        splits=20,
        attached=True,
    ),
)
