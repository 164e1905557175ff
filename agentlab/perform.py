"""The innermost act: really ask the model, really run the tool. Everything else is policy around it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .arguments import CUT_OFF, BadArguments
from .loop import Model
from .records import Action, Ask, Call, Entry, Note, Reply, Result
from .results import text_of
from .run import Run
from .tools import Toolbox, ToolError
from .wire import ModelError, reply_from

BEGUN_BEFORE = (
    "Not run: the person's yes for this call was used already, in another branch of this run or before it broke off. "
    "Whether the call took effect is unknown. Check before you ask for it again."
)


class Ledger:
    """Which rulings have been spent. A run is a value and cannot know that another branch used its yes; this does (I3).

    Kept outside the log, and one for the whole process unless you pass another: a cell that is run again makes a new agent, and
    must not pay the same refund twice. `begin` is asked before a dangerous call and answers yes once for each ruling."""

    def __init__(self) -> None:
        self._begun: set[str] = set()

    def begin(self, ruling_id: str) -> bool:
        if ruling_id in self._begun:
            return False
        self._begun.add(ruling_id)
        return True


OF_THIS_PROCESS = Ledger()


class perform:  # used as a function, with its tools at hand for the guards around it
    """`perform(model, tools)` is an act: an `Ask` becomes the model's `Reply`, a `Call` becomes its `Result`.

    Raises what the model or the tool raises, `UnknownTool` and `BadArguments`."""

    def __init__(self, model: Model, tools: Iterable[Any] | Mapping[str, Any] = (), ledger: Ledger | None = None) -> None:
        self.model, self.ledger = model, ledger or OF_THIS_PROCESS
        self.tools = tools if isinstance(tools, Toolbox) else Toolbox(tools)

    def equip(self, action: Action) -> Action:
        """The action with what guards may want to look at: the tools."""
        if isinstance(action, Call):
            return replace(action, tools=self.tools)
        return self._offering(action)

    def _offering(self, ask: Ask) -> Ask:
        return replace(ask, tools=() if ask.last else self.tools.offered()) if ask.tools is None else ask

    async def __call__(self, run: Run, action: Action) -> Entry:
        began = time.perf_counter()
        if isinstance(action, Ask):
            asked = self._offering(action)
            reply = await self._ask(run, asked)
            return replace(reply, sent=asked, seconds=time.perf_counter() - began)
        tool = self.tools[action.name]
        if action.cut:
            raise BadArguments(CUT_OFF)
        args = action.args
        if action.unseen and tool.dangerous:
            raise ToolError(
                f"{tool.name} was not run: it is dangerous, and the guard Approve could not see that, since an act of your own "
                "stands between it and perform(…). Make that act a guard: `async (run, action, act) -> entry`"
            )
        ruling = run.ruling(action.id)
        if tool.dangerous and ruling is not None and not self.ledger.begin(ruling.id):
            return Result(action.id, BEGUN_BEFORE, error=True, notes=(Note("Ledger", "each yes is spent once"),))
        value = await tool.run(args)
        return Result(action.id, text_of(value), seconds=time.perf_counter() - began)

    async def _ask(self, run: Run, asked: Ask) -> Reply:
        """The reply with names in the spelling that exists, ids that are unique in the run, and no calls where none may be
        made (D2)."""
        said = self.model(asked)
        if not inspect.isawaitable(said):
            raise ModelError("The model must be async: write `async def model(ask)`, or use models.scripted(function).")
        reply = reply_from(await said)
        if asked.last:
            return replace(reply, calls=())
        return run.named(replace(reply, calls=tuple(self._spelled(call) for call in reply.calls)))

    def _spelled(self, call: Call) -> Call:
        name = self.tools.resolve(call.name)
        return call if name == call.name else replace(call, name=name)
