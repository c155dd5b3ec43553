"""Display a lesson in a notebook."""

from __future__ import annotations

import html

from bnnviz.lessons import content, site


class LessonFrame:
    """Show the page of a lesson in a separate frame."""

    def __init__(self, page: str, title: str, height: int) -> None:
        self._page, self._title, self._height = page, title, height

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self._height}px; border: 1px solid #d9e0e6"
        title = html.escape(self._title)
        return f'<iframe srcdoc="{html.escape(self._page)}" title="{title}" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"<Lesson {self._title}>"


def lesson(name: str, step: int = 1, language: str = content.DEFAULT, height: int = 620) -> LessonFrame:
    """Display a lesson in a notebook.

    Parameters
    ----------
    name : str
        Name of the lesson, such as ``"thinning"``.
    step : int
        Number of the step to open, starting from 1.
    language : str
        ``"en"`` or ``"de"``.
    height : int
        Height in pixels.

    Returns
    -------
    LessonFrame
        An HTML frame that requires no server.

    Raises
    ------
    BnnvizError
        If the lesson, step or language is unknown.

    Examples
    --------
    >>> import bnnviz
    >>> bnnviz.lesson("thinning", 3)
    <Lesson Thinning: simulating the time of an event>
    """
    return LessonFrame(site.page(name, step, language, alone=True), content.find(name, language).title, height)
