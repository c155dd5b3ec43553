"""Run the command line: ``bnnviz sample``, ``sweep``, ``recordings``, ``replay``, ``reproduce``, ``serve`` and others.

Results go to stdout, everything else to stderr. Invalid input ends with exit code 2 and a one-line message.
Modules imported at start import neither torch nor numpy: commands import their dependencies when they run.
"""

import sys

from bnnviz import optional
from bnnviz.cli.output import complain

# Python runs this before any module of the package, and most of them import typer.
if not (optional.has("typer") and optional.has("rich")):
    sys.exit(complain("The command line needs typer and rich; pip install '.[cli]' in a checkout installs them."))
