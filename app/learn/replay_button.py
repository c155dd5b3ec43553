"""Offer the step of a lesson as a replay: a file with its film and its text, for slides and hand-outs."""

from __future__ import annotations

from collections.abc import Callable

from bnnviz.errors import BnnvizError
from bnnviz_app.components.run.replay_maker import ReplayMaker
from bnnviz_app.components.widgets import HEADER, download_button, header_button
from bnnviz_app.learn import languages
from bnnviz_app.learn.lessons import Lesson


class LessonReplay:
    """Make the replay of the step that is shown, and hand it out."""

    def __init__(self, language: str, words: Callable[[], list[str]], say: Callable[[str], None]) -> None:
        self._look, self._say, self._maker = words, say, ReplayMaker()
        self._place, self._making = "", False
        self._button = header_button("", self._make)
        self._download = download_button(variant="text", visible=False, **HEADER)
        self.roots = (self._button, self._download)
        self.speak(language)

    def offer(self, lesson: Lesson | None, number: int) -> None:
        """Offer the replay of a step, from 0; the question has that of the last one. What has no film offers none."""
        count = 0 if lesson is None else len(lesson.steps)
        shown = bool(count) and lesson.steps[min(number, count - 1)].picture.filmable
        self._place = f"{lesson.name}/{number + 1}" if shown else ""
        self._button.visible = shown

    def speak(self, language: str) -> None:
        """Take the words of a language."""
        self._language, self._words = language, languages.page(language)
        self._download.label = self._words["replay_ready"]
        self._name()

    def close(self) -> None:
        """End what is being made."""
        self._maker.close()

    def _name(self) -> None:
        label = self._words["replay_making" if self._making else "replay"]
        self._button.param.update(label=label, disabled=self._making)

    async def _make(self) -> None:
        """Make the replay of the step that is shown now, whatever is shown when it is there."""
        name, words = self._place.replace("/", "-"), ["--lesson", self._place, "--lang", self._language, *self._look()]
        self._making, self._download.visible = True, False
        self._name()
        try:
            made = await self._maker.make(name, words)
        except BnnvizError as error:
            self._say(self._words["replay_failed"].format(reason=error.message.text))
        else:
            self._download.param.update(file=str(made), filename=made.name, visible=True)
        finally:
            self._making = False
            self._name()
