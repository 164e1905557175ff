"""Small things that a lesson needs: a crash shown without ending the notebook, and a way to go on without an answer."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

from agentlab.teach.check import judge
from agentlab.teach.solutions import function_for, source
from agentlab.teach.tasks import TASKS


@contextmanager
def crashes(*expected: type[BaseException]) -> Iterator[None]:
    """Run the block and show its crash as plain text: `with lab.crashes(KeyError): ...`. The notebook goes on.

    A headless run stops at any error that a cell lets out, however intended; so a crash that is part of the lesson is
    caught here. An interrupt is not: Stop must stop.
    """
    names = " or ".join(kind.__name__ for kind in expected)
    try:
        yield
    except (Exception, SystemExit) as error:
        said = first_lines(str(error)) or ("a stub is still to be filled in" if isinstance(error, NotImplementedError) else "")
        tell(f"CRASH  {type(error).__name__}{': ' if said else ''}{said}")
        for frame in innermost(error):
            tell(f"   in {frame.name}, line {frame.lineno}:  {(frame.line or '').strip()}")
        if expected and not isinstance(error, expected):
            tell(f"This cell expected {names}. If you skipped cells, run the ones above first.")
    else:
        tell(f"Nothing crashed: no {names} came out of this cell." if expected else "Nothing crashed.")


def tell(text: str) -> None:
    """Plain text, as print writes it: a screen reader, a terminal and a saved notebook all show it."""
    sys.stdout.write(f"{text}\n")


def first_lines(text: str, chars: int = 300) -> str:
    return text if len(text) <= chars else f"{text[:chars]}… ({len(text) - chars} more characters)"


def innermost(error: BaseException) -> list[traceback.FrameSummary]:
    """The learner's last two lines, and the tool's own line when it broke there: no machinery in between."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    theirs = [f for f in frames if f.filename.startswith(("<ipython", "<solution")) or "ipykernel_" in f.filename]
    if not theirs:  # a script or a test
        return frames[-1:]
    inside = [f for f in frames[-1:] if f"{os.sep}worlds{os.sep}" in f.filename]
    return theirs[-2:] + inside


def use(task: str, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The learner's own function when it passes its check, else the solution, so that the lesson can go on."""
    known = TASKS[task]
    verdict = judge(known, function)
    if verdict.state == "correct" and function is not None:
        tell(f"{known.name}: yours passes its check. From here on the lesson runs on your code.")
        return function
    tell(f"{known.name}: {verdict.state}. Until yours passes, the lesson runs on the solution from the package.")
    return in_place(task, function)


def in_place(task: str, stub: Callable[..., Any] | None) -> Callable[..., Any]:
    """The solution as if the learner had written it: it sees the notebook's names, and a stepper can show its lines."""
    if stub is None:
        return function_for(task)
    text = source(task)
    name = f"<solution of {task}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {**function_for(task).__globals__, **getattr(stub, "__globals__", {})}
    exec(compile(text, name, "exec"), names)  # our own source, from solutions/
    made: Callable[..., Any] = names[function_for(task).__name__]
    return made


@dataclass(frozen=True)
class Beside:
    """Two pieces of source, next to each other."""

    yours: str
    ours: str
    title: str = "yours"

    def __repr__(self) -> str:
        return f"# ---- {self.title} ----\n{self.yours}\n\n# ---- the package's ----\n{self.ours}"

    def _repr_html_(self) -> str:
        cell = "flex:1 1 22em;min-width:0;border-left:4px solid var(--jp-border-color1,#8a8a8a);padding:.2em .8em"
        code = "font-size:.85em;white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0;background:transparent;color:inherit"
        parts = "".join(
            f'<div style="{cell}"><b>{title}</b><pre style="{code}">{escape(text)}</pre></div>'
            for title, text in ((self.title, self.yours), ("the package's", self.ours))
        )
        return f'<div style="display:flex;flex-wrap:wrap;gap:1em">{parts}</div>'


def beside(yours: Callable[..., Any], ours: Any) -> Beside:
    """The source of a learner's function beside the package's own, read from where they stand: never a copy."""
    file = getattr(getattr(inspect.unwrap(yours), "__code__", None), "co_filename", "")
    lent = file.startswith("<solution of ") or f"{os.sep}teach{os.sep}solutions{os.sep}" in file  # by `use`, for want of theirs
    return Beside(code_of(yours), code_of(ours), "the solution, until yours passes" if lent else "yours")


def code_of(thing: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(thing)).rstrip()
    except (OSError, TypeError):
        return f"(the source of {getattr(thing, '__name__', thing)!r} cannot be read: run the cell that defines it)"
