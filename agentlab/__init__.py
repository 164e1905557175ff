"""agentlab: the loop of an LLM agent, held still. See how it works, break it, and mend it one guardrail at a time.

    from agentlab import Agent, climb, tool, models, worlds
    agent = Agent(models.scripted([...]), worlds.orders.tools)
    run = await agent.run("Where is order 1042?")

The core is read in this order: records, loop, perform, naked, guards, ladder, agent. Each name is loaded when it is first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import lab, models, worlds
    from .agent import Agent
    from .budget import Budget
    from .guards import Approve, Cap, Isolate, Repeats, Timeout, Truncate, Validate
    from .ladder import climb
    from .lint import lint
    from .loop import guarded, steps
    from .naked import naked
    from .perform import Ledger, perform
    from .records import Ask, Call, Held, Note, Reply, Result, Ruling, Stop, System, User
    from .run import Run
    from .tools import Tool, tool

__version__ = "0.1.0"
__all__ = [
    "Agent", "Approve", "Ask", "Budget", "Call", "Cap", "Held", "Isolate", "Ledger", "Note", "Repeats", "Reply", "Result",
    "Ruling", "Run", "Stop", "System", "Timeout", "Tool", "Truncate", "User", "Validate", "climb", "guarded", "lab", "lint",
    "models", "naked", "perform", "steps", "tool", "worlds",
]  # fmt: skip
# Where each name stands. Loading them all takes 0.1 s, half of it asyncio: the command line needs none of it, and a kernel has
# asyncio already.
_PLACES = {
    "agent": "Agent", "budget": "Budget", "guards": "Approve Cap Isolate Repeats Timeout Truncate Validate", "ladder": "climb",
    "lint": "lint", "loop": "guarded steps", "naked": "naked", "perform": "Ledger perform", "run": "Run", "tools": "Tool tool",
    "records": "Ask Call Held Note Reply Result Ruling Stop System User",
}  # fmt: skip
_HOME = {name: place for place, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    elif name in __all__:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"agentlab has no {name!r}. It has: {', '.join(__all__)}.")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """`agentlab.lint` is the function, though the module that holds it has that name, too."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
