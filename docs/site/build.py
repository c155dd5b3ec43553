"""Build the documentation without a network: stage the texts, draw the figures, and call Sphinx.

Run it as ``python -m docs.site.build``, or ``make docs``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from docs.site import catalogue, gallery, lessons, reference, staging
from docs.site.contents import ROOT

OUT = ROOT / "build" / "docs"
_SITE = Path(__file__).parent


def stage(folder: Path) -> None:
    """Make a folder of all that Sphinx reads: texts, pages that are generated, pictures and lessons."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_SITE / "static", folder / "_static")
    (folder / "reference").mkdir()
    catalogue.write(folder)
    gallery.write(folder)
    reference.write(folder)
    lessons.write(folder)
    staging.stage(folder)


def build(out: Path) -> int:
    """Build the pages; every warning is an error."""
    from sphinx.cmd.build import build_main

    stage(out / "source")
    shutil.rmtree(out / "html", ignore_errors=True)
    reference.name_as_public()
    static = f"html_static_path={out / 'source' / '_static'}"
    options = [
        "-D",
        static,
        "--fail-on-warning",
        "--keep-going",
        "--nitpicky",
        "--quiet",
        "--doctree-dir",
        str(out / "doctrees"),
    ]
    return build_main(["-b", "html", "-c", str(_SITE), *options, str(out / "source"), str(out / "html")])


def main() -> int:
    """Build the pages in the folder of the command line, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="the folder to build in")
    out = parser.parse_args().out.resolve()
    # Recordings and caches of examples are in the build folder, not with those of the user.
    os.environ["BNNVIZ_HOME"] = str(out / "home")
    code = build(out)
    if code == 0:
        size = sum(path.stat().st_size for path in (out / "html").rglob("*") if path.is_file())
        sys.stdout.write(f"The documentation is in {out / 'html' / 'index.html'} ({size / 1e6:.0f} MB).\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
