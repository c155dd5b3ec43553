"""Render the films of lessons and measure their claims: ``python -m bnnviz.lessons [--seeds N] [LESSON ...]``."""

from __future__ import annotations

import argparse
import sys

from bnnviz.lessons import content, evidence, films


def main() -> int:
    """Render changed lessons, and measure their claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help=f"number of seeds per claim, up to {content.SEEDS}")
    parser.add_argument("lesson", nargs="*", help="only these lessons")
    asked = parser.parse_args()
    lessons = {name: content.written()[name] for name in asked.lesson or content.written()}
    for lesson in lessons.values():
        films.render(lesson, _say)
    evidence.record(lessons, asked.seeds, _say)
    wrong = evidence.check(lessons)
    for sentence in wrong:
        _say(sentence)
    return 1 if wrong else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
