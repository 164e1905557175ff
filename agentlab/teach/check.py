"""Check what the learner wrote, by what it does to a run: never by a model's prose, never by how the code looks.

A check runs the learner's function against scripted models in a thread of its own, with a time limit, and comes back with
one of four words and one sentence. It never raises: Run All goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import inspect
import io
import threading
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from agentlab.teach.progress import Text, book
from agentlab.teach.task import Task, Wrong, shown
from agentlab.teach.tasks import TASKS

State = Literal["correct", "incorrect", "not attempted", "crashed"]
SECONDS = 5.0
MARK = {"correct": "✓", "incorrect": "✗", "not attempted": "○", "crashed": "!"}
TONE = {"correct": "good", "incorrect": "bad", "not attempted": "plain", "crashed": "bad"}


@dataclass(frozen=True)
class Verdict:
    """What a check found."""

    task: str
    state: State
    sentence: str

    @property
    def text(self) -> str:
        return f"{MARK[self.state]} {self.task}: {self.state}. {self.sentence}"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return Text(self.text, TONE[self.state])._repr_html_()


class OutOfTime(BaseException):
    """Thrown into a learner's loop that does not end."""


class Watched:
    """The learner's function, with a note of what escaped from it: the loop around it may swallow an exception."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.blank = False
        self.__name__ = getattr(function, "__name__", "your function")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            value = self.function(*args, **kwargs)
        except NotImplementedError as error:
            self.note(error)
            raise
        return self.awaited(value) if inspect.isawaitable(value) else value

    async def awaited(self, value: Awaitable[Any]) -> Any:
        try:
            return await value
        except NotImplementedError as error:
            self.note(error)
            raise

    def note(self, error: NotImplementedError) -> None:
        """Blank when the stub's own `raise NotImplementedError` was reached, not one that a tool raised."""
        innermost = list(traceback.walk_tb(error.__traceback__))[-1][0]
        if innermost.f_code is getattr(inspect.unwrap(self.function), "__code__", None):
            self.blank = True


class Said(io.TextIOBase):
    """What the learner's function printed, cut where it becomes a flood."""

    def __init__(self, chars: int = 1000) -> None:
        self.kept: list[str] = []
        self.room = chars

    def write(self, text: str) -> int:
        if self.room > 0:
            self.kept.append(text[: self.room])
            self.room -= len(text)
        return len(text)


def judge(task: Task, function: Callable[..., Any] | None, seconds: float | None = None) -> Verdict:
    """Run the task's checks on the function. Every way to fail ends as a verdict."""
    seconds = seconds or SECONDS
    if function is None:
        return Verdict(task.id, "not attempted", f"There is no {task.name} yet. Run the cell that defines it.")
    if not callable(function):
        return Verdict(task.id, "incorrect", f"Give the function itself: lab.check({task.id!r}, {task.name}).")
    for module in task.loads:
        import_module(module)
    watched = Watched(function)
    said = Said()
    with contextlib.redirect_stdout(said):
        outcome = within(seconds, lambda: task.judge(watched))
    printed = f" It printed: {shown(''.join(said.kept))!r}." if said.kept else ""
    if watched.blank:
        sentence = f"Replace the line `raise NotImplementedError` in {task.name}, run that cell, then check again."
        return Verdict(task.id, "not attempted", sentence)
    if isinstance(outcome, str):
        return Verdict(task.id, "correct", outcome)
    if isinstance(outcome, Wrong):
        return Verdict(task.id, "incorrect", f"{outcome}{printed}")
    if isinstance(outcome, OutOfTime):
        sentence = f"{task.name} was stopped after {seconds:g} seconds. Look for a loop in it that nothing ends.{printed}"
        return Verdict(task.id, "incorrect", sentence)
    if isinstance(outcome, NoThread):
        return Verdict(task.id, "not attempted", str(outcome))
    return Verdict(task.id, "crashed", f"{crash_line(outcome, function)}{printed}")


def crash_line(error: BaseException, function: Callable[..., Any]) -> str:
    """Type, message, and the learner's line where it happened."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if code is not None and (f.filename, f.name) == (code.co_filename, code.co_name)]
    where = f" at line {(own[-1].lineno or 0) - code.co_firstlineno + 1}, `{own[-1].line}`" if own and code else ""
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        where += ". If a cell above sets that name, run that cell first, then check again"
    return f"{getattr(function, '__name__', 'Your function')} raised {type(error).__name__}: {str(error)[:200]}{where}."


class NoThread(Exception):
    """This Python cannot start a thread, so a check could not be stopped."""


def within(seconds: float, work: Callable[[], Awaitable[str]]) -> str | BaseException:
    """Await `work()` on a thread and a loop of its own; give back its sentence or whatever it raised, in time."""
    outcome: list[str | BaseException] = []

    async def limited() -> str:
        try:
            return await asyncio.wait_for(work(), seconds)
        except TimeoutError as error:
            raise (OutOfTime() if is_ours(error) else error) from None

    def body() -> None:
        try:
            outcome.append(asyncio.run(limited()))
        except BaseException as error:  # whatever it is, the learner gets a sentence about it
            outcome.append(error)

    thread = threading.Thread(target=body, name="agentlab-check", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return NoThread("This Python can start no thread, so nothing could stop an endless loop. Compare with lab.solution.")
    thread.join(seconds + 0.5)
    late = thread.is_alive()
    for _ in range(20):  # a busy loop hears no cancellation; a bare `except:` in it may even swallow the first throws
        if not thread.is_alive():
            break
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(OutOfTime))
        thread.join(0.05)
    return OutOfTime() if late or not outcome else outcome[0]


def is_ours(error: BaseException) -> bool:
    """True for the deadline's own TimeoutError; one that the learner's code raised has frames below `wait_for`."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.endswith(("tasks.py", "timeouts.py"))


def find(task: str) -> Task | Text:
    if task in TASKS:
        return TASKS[task]
    return Text(f"There is no task {task!r}. The tasks are: {', '.join(TASKS)}.", "warn")


def check(task: str, function: Callable[..., Any] | None = None) -> Verdict | Text:
    """Judge the learner's function: correct, incorrect, not attempted or crashed, with one sentence. Never raises."""
    known = find(task)
    if isinstance(known, Text):
        return known
    verdict = judge(known, function)
    book.checked(task, verdict.state)
    if verdict.state == "incorrect" or verdict.state == "crashed":
        sentence = f"{verdict.sentence} Stuck? lab.hint({task!r})"
        return Verdict(task, verdict.state, sentence)
    return verdict


def hint(task: str) -> Text:
    """The next of three hints, each more telling than the one before."""
    known = find(task)
    if isinstance(known, Text):
        return known
    level = min(book.hints.get(task, 0) + 1, len(known.hints))
    book.hints[task] = level
    more = "More: run this cell again." if level < len(known.hints) else f"The last hint. The answer: lab.solution({task!r})"
    return Text(f"Hint {level} of {len(known.hints)}: {known.hints[level - 1]}\n{more}")


def solution(task: str) -> Text:
    """The source that passes. Read it after a try of your own; there are others."""
    from agentlab.teach.solutions import source

    known = find(task)
    if isinstance(known, Text):
        return known
    return Text(source(task), "code")
