"""Build pages in short steps, between which the server goes on with the pages that play.

A page is a second of work for the server's one thread. What is built here runs in a greenlet: now and then, where a
model, a pane or its text is about to be made, it lets everybody else have a turn first.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import sys
import time
import weakref
from collections.abc import Callable, Coroutine, Generator
from importlib import import_module
from typing import Any

import bokeh.model.util
from bokeh.core.serialization import Serializer
from bokeh.document import Document
from bokeh.document.models import DocumentModelManager
from bokeh.io.doc import _PATCHED_CURDOCS as _DOCUMENTS
from bokeh.model import Model
from bokeh.server.contexts import ApplicationContext
from bokeh.server.session import ServerSession
from greenlet import getcurrent, greenlet
from panel.custom import ReactiveESM
from panel.io.server import DocHandler
from panel.pane.markup import HTMLBasePane
from param.parameterized import Parameterized

from bnnviz_app.memory import COLLECTOR

STEP_S = 0.008  # of building, before everybody else has a turn
TURNS = 8  # for those who play, after a step: a frame goes by way of so many callbacks
SHARE = 0.25  # of the thread for who waits for a page, where those who play would take all of it
LONGEST_S = 0.04  # of a step
PAUSE_S = 0.024  # after a step for nobody, where somebody plays
REST_S = 0.06  # after work that takes longer than a step, where somebody plays
#: Whether what is built now is built ahead, for nobody yet.
AHEAD: contextvars.ContextVar[bool] = contextvars.ContextVar("ahead", default=False)
_IMPORT = "<frozen importlib._bootstrap>"
# Where a step may end: what makes a pane, makes a model, looks through models, or writes one for the browser.
_MARKS = (
    (Parameterized, "__init__"),
    (Model, "__init__"),
    (bokeh.model.util, "visit_immediate_value_references"),
    (Serializer, "_encode"),
)


class InSteps:
    """Await a coroutine whose work is done in steps."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        work, turn, others = _Work(self._coroutine), _turn(), 0.0
        work.gr_context = contextvars.copy_context()
        answer: Any = None
        raised: BaseException | None = None
        while True:
            yield from turn.acquire().__await__()
            try:
                step_s = STEP_S if AHEAD.get() else _step_s(others)
                waited = work.go_on(answer, raised, step_s)
                answer = raised = None
                # Turns for everybody else, before the next step of this work or of another.
                since = time.perf_counter()
                for _ in range(TURNS if COLLECTOR.somebody_plays else int(waited is None and not work.dead)):
                    yield
                    others = time.perf_counter() - since
                    if _step_s(others) > step_s and not AHEAD.get():
                        break
            except _Ended as ended:
                raise ended.error from None
            except GeneratorExit:  # nobody waits any more
                raise
            except BaseException as error:  # noqa: BLE001, it is the coroutine's
                raised = error
            finally:
                turn.release()
            if work.dead:
                return waited
            if AHEAD.get() and _IN_LINE.empty and COLLECTOR.somebody_plays:
                yield from asyncio.sleep(PAUSE_S).__await__()
            if waited is not None:
                try:
                    answer = yield waited  # what the coroutine waits for
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001, it is the coroutine's
                    raised = error


def _step_s(others: float) -> float:
    """Return how long a step may be after one in whose turns everybody else took so many seconds."""
    return min(max(STEP_S, others * SHARE / (1 - SHARE)), LONGEST_S)


class _Line:
    """Count those who wait for a page of theirs."""

    def __init__(self) -> None:
        self._waiting = 0

    def __enter__(self) -> None:
        self._waiting += 1

    def __exit__(self, *raised: object) -> None:
        self._waiting -= 1

    @property
    def empty(self) -> bool:
        """Whether nobody waits."""
        return self._waiting == 0


_IN_LINE = _Line()


async def alone(work: Coroutine[Any, Any, Any]) -> Any:
    """Await work of some length that is not done in steps: one such after another, and between two, those who play."""
    async with _alone.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        answer = await work
        if COLLECTOR.somebody_plays:
            await asyncio.sleep(REST_S)
    return answer


_alone: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()


class _Ended(Exception):
    """Carry what a coroutine raised."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


_turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()


def _turn() -> asyncio.Lock:
    """Return what one piece of work in steps has at a time, each for a step."""
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())


class _Work(greenlet):
    """Run a coroutine, and stop at the marks in it."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        super().__init__(self._work)
        self._coroutine = coroutine
        self._begun, self._step_s = 0.0, STEP_S
        self._depth = 0  # of Bokeh's present documents, where this work begins or goes on

    def go_on(self, answer: Any, raised: BaseException | None, step_s: float) -> Any:
        """Run until the coroutine waits, or its step is over; return what it waits for, or its result."""
        self._step_s = step_s
        self.parent, self._begun, self._depth = getcurrent(), time.perf_counter(), len(_DOCUMENTS)
        return self.switch(answer, raised)

    def mark(self) -> None:
        """Let everybody else have a turn, if this step is over."""
        if time.perf_counter() - self._begun > self._step_s and not _imports():
            _, raised = self._let_go(None)
            if raised is not None:
                raise raised

    def _let_go(self, waited: Any) -> tuple[Any, BaseException | None]:
        """Give the thread back, and with it the present documents as they were before."""
        mine = _DOCUMENTS[self._depth :]
        del _DOCUMENTS[self._depth :]
        answer = self.parent.switch(waited)
        _DOCUMENTS.extend(mine)
        return answer

    def _work(self, answer: Any, raised: BaseException | None) -> Any:
        while True:
            try:
                waited = self._coroutine.send(answer) if raised is None else self._coroutine.throw(raised)
            except StopIteration as stop:
                return stop.value
            except BaseException as error:
                raise _Ended(error) from error
            answer, raised = self._let_go(waited)


def _imports() -> bool:
    """Tell whether a module is being imported: whoever else imports it meanwhile would have half of it."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False


def install() -> None:
    """Have the server build pages, one after another, and write them for the browser, in steps."""
    create = ApplicationContext.create_session_if_needed
    if getattr(create, "in_steps", False):
        return

    async def create_in_turn(context: ApplicationContext, session_id: str, *args: Any, **kwargs: Any) -> ServerSession:
        if session_id in context._sessions:
            return context._sessions[session_id]
        # Who has come first has its page first, and not all at the end.
        with contextlib.nullcontext() if AHEAD.get() else _IN_LINE:
            async with context.__dict__.setdefault("bnnviz_turn", asyncio.Lock()):
                return await create(context, session_id, *args, **kwargs)

    ApplicationContext.create_session_if_needed = create_in_turn
    for owner, name in (
        (ApplicationContext, "create_session_if_needed"),
        (ServerSession, "_handle_pull"),
        (DocHandler, "get"),
    ):
        setattr(owner, name, in_steps(getattr(owner, name)))
    for owner, name in _MARKS:
        setattr(owner, name, _marked(getattr(owner, name)))
    _spare_work()


def _spare_work() -> None:
    """Leave out what takes a fifth of the time of a page or of a frame, and comes out alike each time."""
    for name in ("_bundle_path", "_bundle_css"):
        setattr(ReactiveESM, name, _Once(ReactiveESM.__dict__[name]))
    # For authors: it looks through all models for what they may have forgotten.
    Document.validate = lambda document: None
    HTMLBasePane._update = _text_alone
    DocumentModelManager.synced_references = property(lambda models: models)
    import_module("bokeh.protocol.messages.patch_doc").Serializer = _PatchSerializer


def _text_alone(pane: HTMLBasePane, ref: str, model: Model) -> None:
    """Update the text of a pane without its design, which would look for files each time."""
    model.update(**pane._process_param_change({"object": pane.object}))


class _PatchSerializer(Serializer):
    """Write a change of a page; whether its browser has a model is asked of that model, instead of listing them all."""

    def __init__(self, *, references: DocumentModelManager) -> None:
        super().__init__()
        self._models = references

    def has_ref(self, obj: Any) -> bool:
        """Tell whether the browser knows an object, or will by this message."""
        return self.get_ref(obj) is not None

    def get_ref(self, obj: Any) -> Any:
        """Return how the browser knows an object; None where it does not."""
        known = super().get_ref(obj)
        if known is not None or not isinstance(obj, Model):
            return known
        synced = self._models.get_by_id(obj.id) is obj and obj not in self._models._new_models
        return obj.ref if synced else None


class _Once:
    """Ask a property of classes, which looks for files, once for each class."""

    def __init__(self, asked: Any) -> None:
        self._asked = asked
        self._known: dict[type, Any] = {}

    def __get__(self, instance: Any, owner: type) -> Any:
        if owner not in self._known:
            self._known[owner] = self._asked.__get__(instance, owner)
        return self._known[owner]


def in_steps(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a coroutine function that does the same in steps."""

    @functools.wraps(function)
    async def stepping(*args: Any, **kwargs: Any) -> Any:
        if isinstance(getcurrent(), _Work):  # one that works in steps already
            return await function(*args, **kwargs)
        return await InSteps(function(*args, **kwargs))

    stepping.in_steps = True
    return stepping


def _marked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that lets everybody else have a turn before, where it is called in a step."""

    @functools.wraps(function)
    def marked(*args: Any, **kwargs: Any) -> Any:
        current = getcurrent()
        if type(current) is _Work:
            current.mark()
        return function(*args, **kwargs)

    return marked
