"""Where the tests find a browser, how they get one, and what is said where none is to be had."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import get_browser
import pytest

from bnnviz.replays.chromium import find_chromium

ROOT = Path(__file__).resolve().parents[2]
GETTER = ROOT / "tests" / "get_browser.py"


def program(path: Path, text: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Leave a machine with no browser, no apt-get and no sudo; return the folder of its programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in ("env", "true"):
        program(programs / tool, f'exec /usr/bin/{tool} "$@"')
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "playwright"))
    monkeypatch.delenv("CHROMIUM", raising=False)
    return programs


def test_a_browser_is_the_named_one_the_systems_or_playwrights_newest(bare, tmp_path, monkeypatch):
    assert find_chromium() is None
    for revision in (999, 1255):
        newest = program(tmp_path / "playwright" / f"chromium-{revision}" / "chrome-linux64" / "chrome")
    assert find_chromium() == str(newest)
    installed = program(bare / "chromium")
    assert find_chromium() == str(installed)
    named = program(tmp_path / "mine")
    monkeypatch.setenv("CHROMIUM", str(named))
    assert find_chromium() == str(named)
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    assert find_chromium() is None


def test_where_one_is_there_nothing_is_installed(bare, tmp_path):
    program(bare / "chromium")
    program(bare / "apt-get", f"touch {tmp_path}/asked")
    assert get_browser.get() == (True, f"The tests in a browser run in {bare}/chromium.")
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("root", [True, False])
def test_debians_package_is_installed_as_root_or_by_a_sudo_that_asks_nothing(bare, tmp_path, monkeypatch, root):
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    if not root:
        program(bare / "sudo", f'echo sudo >> {tmp_path}/said; [ "$1" = -n ] && shift && exec "$@"')
    browser = f"printf '#!/bin/sh\\n' > {bare}/chromium; /bin/chmod 755 {bare}/chromium"
    program(bare / "apt-get", f'echo "$@" >> {tmp_path}/said; case "$*" in *install*) {browser};; esac')
    assert get_browser.get() == (True, f"The tests in a browser run in {bare}/chromium.")
    said = (tmp_path / "said").read_text()
    assert "update" in said and "install -y --no-install-recommends chromium" in said
    assert ("sudo" in said) is not root


def test_without_rights_playwright_downloads_its_own(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program(bare / "sudo", "exit 1")  # wants a password
    program(bare / "apt-get", f"touch {tmp_path}/asked")
    chrome = tmp_path / "playwright" / "chromium-1" / "chrome-linux64" / "chrome"
    asked = f"/bin/mkdir -p {chrome.parent}; printf '#!/bin/sh\\n' > {chrome}; /bin/chmod 755 {chrome}"
    monkeypatch.setattr(sys, "executable", str(program(tmp_path / "python", asked)))
    assert get_browser.get() == (True, f"The tests in a browser run in {chrome}.")
    assert not (tmp_path / "asked").exists()


def test_what_hangs_is_ended_and_one_sentence_says_how_to_get_one(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(get_browser, "APT_S", 0.2)
    monkeypatch.setattr(get_browser, "DOWNLOAD_S", 0.2)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(bare / "apt-get", "/bin/sleep 30 & wait")
    monkeypatch.setattr(sys, "executable", str(program(tmp_path / "python", "/bin/sleep 30 & wait")))
    begun = time.monotonic()
    there, said = get_browser.get()
    assert time.monotonic() - begun < 5
    assert not there
    assert said.startswith("The tests in a browser are skipped, since there is none here: install one (apt install")


def test_a_browser_that_does_not_start_is_none(bare):
    program(bare / "chromium", "exit 127")  # a library of it is missing
    there, said = get_browser.get()
    assert not there
    assert f"{bare}/chromium does not start" in said


@pytest.mark.parametrize(("required", "tests"), [("", 0), ("1", 1)])
def test_make_skips_the_stage_with_one_line_unless_a_browser_is_required(tmp_path, required, tests):
    python = program(tmp_path / "python", f'case "$*" in *pytest*) echo ran;; *) exec {sys.executable} "$@";; esac')
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"include {ROOT}/Makefile\nPY = {python}\nstage:\n\t@$(call in_browser,browser)\n")
    environment = {**os.environ, "CHROMIUM": "no-such-browser", "BNNVIZ_REQUIRE_BROWSER": required}
    command = ["make", "-s", "-f", str(makefile), "stage"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.count("ran") == tests
    skipped = [line for line in result.stderr.splitlines() if "are skipped" in line]
    assert len(skipped) == 1
    if not tests:
        assert result.stderr.splitlines() == skipped
