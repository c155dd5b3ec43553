"""A checkout is used from any folder, that beside it too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_folder_of_the_same_name_beside_a_script_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "bnnviz" / "docs").mkdir(parents=True)  # as a checkout looks from the folder that it lies in
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    script = tmp_path / "mine.py"
    script.write_text("import bnnviz, bnnviz_app\nprint(bnnviz.BNN.__name__, bnnviz.__file__)\n")
    ended = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0 and ended.stdout.startswith("BNN "), ended.stderr
