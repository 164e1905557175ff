"""What the checks of guards share: the learner's guard in a real run, and sentences about what it gave back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agentlab.loop import Act, Guard
from agentlab.records import Action, Ask, Call, Entry, Result
from agentlab.run import ENTRIES, Run
from agentlab.teach.task import Wrong, named


def as_guard(learner: Callable[..., Any], wrong: list[Wrong]) -> Guard:
    """The learner's guard; what it gives back is looked at before the loop sees it."""
    name = getattr(learner, "__name__", "your guard")

    def found(error: Wrong) -> Wrong:
        wrong.append(error)
        return error

    async def guard(run: Run, action: Action, act: Act) -> Entry:
        value = learner(run, action, act)
        if not inspect.isawaitable(value):
            raise found(Wrong(f"calling {name}", named(value), "a coroutine: begin it with `async def`"))
        entry = await value
        if inspect.iscoroutine(entry):
            entry.close()
            raise found(Wrong(f"calling {name}", "a coroutine that nobody awaited", "`await act(run, action)`"))
        if not isinstance(entry, ENTRIES):
            what = "a request to the model" if isinstance(action, Ask) else f"the call {action.name}"
            raise found(Wrong(what, f"{name} returned {named(entry)}", "what `act` returned, or an entry of its own"))
        if isinstance(action, Call) and isinstance(entry, Result) and entry.call_id != action.id:
            came = f"a result for call {entry.call_id!r}"
            raise found(Wrong(f"the call {action.name}, whose id is {action.id!r}", came, "Result(action.id, ...)"))
        return entry

    return guard


async def run_with(
    learner: Callable[..., Any], model: Any, tools: list[Any], question: str | Run = "Where is order 1042?", **more: Any
) -> Run:
    """One run with the learner's guard outermost; the check's own finding comes first, whatever the loop made of it."""
    from agentlab import Agent

    wrong: list[Wrong] = []
    guards = [as_guard(learner, wrong), *more.pop("inside", [])]
    try:
        return await Agent(model, tools, guards=guards, **more).run(question)
    except Exception:
        if wrong:
            raise wrong[0] from None
        raise
    finally:
        if wrong:
            raise wrong[0]
