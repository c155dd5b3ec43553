"""Write a page for each lesson: its films, its texts, and the reasons below them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bnnviz.lessons import content
from bnnviz.lessons.content import Lesson

_OWN = re.compile(r"\[([^\]]*)\]\(<?(?:term|claim):[^)]*\)")  # links that only the lesson's own page has


def write(folder: Path) -> None:
    """Write the pages into the folder of concepts."""
    place = folder / "concepts"
    place.mkdir(parents=True, exist_ok=True)
    for lesson in content.load().values():
        (place / f"{lesson.name}.md").write_text("\n\n".join(_parts(lesson)) + "\n", encoding="utf-8")


def _parts(lesson: Lesson) -> Iterator[str]:
    """Yield the paragraphs of a page."""
    yield from (f"# {lesson.title}", lesson.aim, f"```{{lesson}} {lesson.name}\n```")
    for step in lesson.steps:
        yield from (f"## {step.title}", _OWN.sub(r"\1", step.text))
        if step.why:
            yield from ("**Why**", _OWN.sub(r"\1", step.why))
    yield f"## Further reading\n\n{lesson.reading}"
