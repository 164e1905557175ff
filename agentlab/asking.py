"""Who is asked before a dangerous call: a card in a notebook, a prompt in a terminal, nobody in a headless run (I1)."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from .records import Call, Ruling
from .run import Run
from .tools import Tool, in_thread

Ask = Callable[..., Any]
NOBODY = "nobody is here to approve it (no notebook with a person at it, and no interactive terminal)"


async def ask_person(run: Run, call: Call, tool: Tool | None) -> Ruling | None:
    """The default of `Agent(ask=…)`. None when the person cannot be reached yet: the run then comes back as waiting."""
    where = place()
    if where == "notebook":
        from .widgets.approve import ask as ask_in_notebook

        said: Ruling | None = await ask_in_notebook(run, call, tool)
        return said
    if where == "terminal":
        return await in_thread(lambda: prompt(call))  # type: ignore[no-any-return]  # in_thread returns what prompt does
    return call.ruled(False, NOBODY)


def place() -> str:
    """notebook, terminal or nowhere: where a person could answer now."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        attended = sys.platform == "emscripten" or bool(getattr(kernel, "_allow_stdin", False))  # False under papermill
        return "notebook" if attended else "nowhere"
    try:
        return "terminal" if sys.stdin.isatty() and sys.stdout.isatty() else "nowhere"
    except (AttributeError, ValueError, OSError):
        return "nowhere"


def prompt(call: Call, read: Callable[[str], str] = input) -> Ruling:
    """Ask on the terminal. Anything but a yes is a no."""
    shown = f"\nThe agent wants to run {call.name} with\n  {visible(call.arguments)}\nRun it? [y/N, or a reason to refuse] "
    try:
        said = read(shown).strip()
    except (EOFError, KeyboardInterrupt):
        said = ""
    if said.casefold() in ("y", "yes"):
        return call.ruled(True)
    return call.ruled(False, "" if said.casefold() in ("", "n", "no") else said)


def visible(text: str) -> str:
    """`text` with control and direction characters written out, so that what is shown is what would run."""
    return "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)


def takes(ask: Any) -> int:
    """How many arguments a person's own `ask` takes: two, the run and the call, or one, the call. Raises TypeError else."""
    if callable(ask):
        try:
            signature = inspect.signature(ask)
        except ValueError:  # a builtin that does not tell
            return 2
        for given in ((None, None), (None,)):
            with contextlib.suppress(TypeError):
                signature.bind(*given)
                return len(given)
    raise TypeError(f"ask must be a function `(run, call) -> bool, Ruling or None`, not {ask!r:.60}.")


async def answered(ask: Ask, run: Run, call: Call, tool: Tool | None) -> Ruling | None:
    """What `ask` says of the call, whatever form it takes: a Ruling, True or False, or None for "not yet"."""
    said = ask(run, call, tool) if ask is ask_person else ask(*(run, call)[-takes(ask) :])
    said = await said if isinstance(said, Awaitable) else said
    if said is None or isinstance(said, Ruling):
        return said
    if isinstance(said, bool):
        return call.ruled(said)
    raise TypeError(f'ask=… returned {said!r:.80}. Return True or False, a Ruling (call.ruled(False, "why")), or None to wait.')
