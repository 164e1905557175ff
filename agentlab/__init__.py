"""agentlab: the loop of an LLM agent, held still. See how it works, break it, and mend it one guardrail at a time.

    from agentlab import Agent, climb, tool, models, worlds
    agent = Agent(models.scripted([...]), worlds.orders.tools)
    run = await agent.run("Where is order 1042?")

The core is read in this order: records, loop, perform, naked, guards, ladder, agent. Importing it loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from . import lab, models, worlds

__version__ = "0.1.0"
__all__ = [
    "Agent", "Approve", "Ask", "Budget", "Call", "Cap", "Held", "Isolate", "Ledger", "Note", "Repeats", "Reply", "Result",
    "Ruling", "Run", "Stop", "System", "Timeout", "Tool", "Truncate", "User", "Validate", "climb", "guarded", "lab", "lint",
    "models", "naked", "perform", "steps", "tool", "worlds",
]  # fmt: skip
_LATER = {"lab", "models", "worlds"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"agentlab has no {name!r}. It has: {', '.join(__all__)}.")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
