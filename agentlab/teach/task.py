"""What a task is: a name, three hints, and a judge that looks at what a function does to a run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Task:
    """One thing to write. `judge` returns a sentence when all is well and raises `Wrong` when it is not."""

    id: str
    name: str
    aim: str
    hints: tuple[str, str, str]
    judge: Callable[[Callable[..., Any]], Awaitable[str]]
    loads: tuple[str, ...] = ()  # modules that are slow to import: loaded before the clock of a check starts


class Wrong(Exception):
    """The check's own finding: what was tried, what came, what was expected."""

    def __init__(self, tried: str, came: str, expected: str) -> None:
        came, expected = came.removesuffix("."), expected.removesuffix(".")  # a quoted sentence brings its own
        super().__init__(f"Tried: {tried}. Came: {came}. Expected: {expected}.")


def shown(value: object, chars: int = 120) -> str:
    """A value in one short line."""
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= chars else f"{text[:chars]}…"


def named(value: object) -> str:
    """A value by its kind, for sentences about what a function returned."""
    return "nothing (None)" if value is None else f"{type(value).__name__}: {shown(value, 80)}"


def plainly(learner: Callable[..., Any], *args: Any) -> Any:
    """Call a function that must not be async."""
    if inspect.iscoroutinefunction(getattr(learner, "function", learner)):
        name = getattr(learner, "__name__", "your function")
        raise Wrong(f"calling {name}", "a coroutine", "a plain `def`: there is nothing to wait for here")
    return learner(*args)
