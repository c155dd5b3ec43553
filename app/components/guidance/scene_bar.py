"""Lead through a scene by a bar over the stage, and list the scenes in a dialog."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote_plus

import param
from panel.custom import JSComponent

from bnnviz.specs import url
from bnnviz.specs.run import Spec
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.guidance import scenes
from bnnviz_app.components.guidance.dialogs import Dialog
from bnnviz_app.components.guidance.scenes import Scene, SceneStep
from bnnviz_app.components.widgets import Text, script, set_class
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)


class StepBar(JSComponent):
    """Show title, text and buttons of one step."""

    title = param.String()
    text = param.String()
    place = param.String(doc="Such as 2 of 6.")
    choices = param.List(doc="The student's choices; empty without an open question.")
    back = param.Boolean(doc="Whether there is a step before.")
    next = param.String(doc="Label of the button for the next step.")

    _esm = script(__file__, "scene_bar.js")


class SceneBar(PageComponent):
    """Lead through a scene."""

    def __init__(
        self,
        on_step: Callable[[SceneStep, int, bool], None],
        on_leave: Callable[[], None],
        on_more: Callable[[], None],
    ) -> None:
        self._on_step, self._on_leave, self._on_more = on_step, on_leave, on_more
        self.scene: Scene | None = None
        self.number = 0
        self._asking = False
        self.root = StepBar(
            sizing_mode="stretch_width", css_classes=["closed"], stylesheets=[SHEETS["pills"], _STYLES["bar"]]
        )
        self.enlarged = [self.root]
        self.root.on_msg(lambda event: self.go(event.data))

    @property
    def step(self) -> SceneStep | None:
        """The step that is shown; None outside of scenes."""
        return None if self.scene is None else self.scene.steps[self.number]

    @property
    def asking(self) -> bool:
        """Whether the student has yet to predict."""
        return self._asking

    def enter(self, scene: Scene, number: int) -> None:
        """Show a step of a scene, its run from the beginning."""
        self.scene = scene
        self._show(number, again=True)

    def go(self, where: Any) -> None:
        """Continue, go back, leave, or take the choice of this number."""
        if self.scene is None:
            return
        last = self.number == len(self.scene.steps) - 1
        if isinstance(where, int):
            self._reveal(where)
        elif where == "leave":
            self.leave()
        elif where == "back" and self.number:
            self._show(self.number - 1, again=True)
        elif where == "next" and self._asking:
            self._reveal(None)
        elif where == "next" and last:
            self._on_more()
        elif where == "next":
            self._show(self.number + 1, again=False)

    def leave(self) -> None:
        """Close the bar; the run continues."""
        self.scene, self._asking = None, False
        set_class(self.root, "closed", True)
        self._on_leave()

    def _show(self, number: int, again: bool) -> None:
        self.number = number
        self._asking = self.step.ask is not None
        self._write(self.step.text)
        set_class(self.root, "closed", False)
        self._on_step(self.step, number, again)

    def _reveal(self, chosen: int | None) -> None:
        """Reveal the answer, and let the run show it."""
        ask = self.step.ask
        if not self._asking or ask is None or (chosen is not None and not 0 <= chosen < len(ask.choices)):
            return
        self._asking = False
        self._write(ask.answer_text(chosen))
        self._on_step(self.step, self.number, self.step.begins is not None)

    def _write(self, text: str) -> None:
        ask, count = self.step.ask, len(self.scene.steps)
        last = self.number == count - 1
        self.root.param.update(
            title=self.scene.title,
            text=f"{text} {ask.question}" if self._asking else text,
            place=f"{self.number + 1} of {count}",
            choices=list(ask.choices) if self._asking else [],
            back=self.number > 0,
            next="Reveal" if self._asking else "More scenes" if last else "Next",
        )


class SceneMenu:
    """List examples and scenes in a dialog, as links that can be shared."""

    def __init__(self, examples: Sequence[dict[str, Any]]) -> None:
        self._examples = examples
        self._list = Text(stylesheets=[_STYLES["list"]])
        self._dialog = Dialog("Break it: examples and scenes", lambda: [self._list])
        self.root = self._dialog.root

    def show(self, flags: dict[str, str]) -> None:
        """Open; the links keep these flags of the address."""
        kept = "".join(f"&{name}={quote_plus(value)}" for name, value in flags.items())
        known = scenes.load().values()
        lists = {
            "BREAK IT: PREDICT FIRST, THEN SEE": [_scene(scene, kept) for scene in known if scene.predict],
            "STEP BY STEP": [_scene(scene, kept) for scene in known if not scene.predict],
            "EXAMPLES": [_example(example, kept) for example in self._examples],
        }
        self._list.object = "".join(f"<h3>{name}</h3><ul>{''.join(items)}</ul>" for name, items in lists.items())
        self._dialog.show()


def _scene(scene: Scene, kept: str) -> str:
    return _item(f"scene={scene.name}{kept}", scene.title, scene.summary)


def _example(example: dict[str, Any], kept: str) -> str:
    query = url.query_text(Spec.from_json(example["spec"]).to_query())
    return _item(f"{query}&play=1{kept}", example["title"], example["doc"])


def _item(query: str, title: str, text: str) -> str:
    link = html.escape(f"?page=lab&{query}")
    return f"<li><a href='{link}'>{html.escape(title)}</a><p>{html.escape(text)}</p></li>"
