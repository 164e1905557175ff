"""The innermost act: really ask the model, really run the tool. Everything else is policy around it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from .arguments import CUT_OFF, BadArguments
from .loop import Model, by_itself
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
        if not callable(model):
            hint = f"models.openai({model!r})" if isinstance(model, str) else "models.scripted([…]) or models.openai(…)"
            raise TypeError(f"The model must be something that can be asked, not {type(model).__name__}. Write {hint}.")
        if isinstance(model, type):
            raise TypeError(f"The model is the class {model.__name__}, not one of its kind. Write {model.__name__}(…).")
        self.model, self.ledger = model, OF_THIS_PROCESS if ledger is None else ledger
        self.tools = tools if isinstance(tools, Toolbox) else Toolbox(tools)

    def equip(self, action: Action) -> Action:
        """The action with what guards may want to look at: the tools."""
        if isinstance(action, Call):
            return replace(action, tools=self.tools)
        return replace(action, tools=() if action.last else self.tools.offered()) if action.tools is None else action

    async def __call__(self, run: Run, action: Action) -> Entry:
        began = time.perf_counter()
        if isinstance(action, Ask):
            asked = cast(Ask, self.equip(action))
            reply = await self._ask(asked)
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
        value = await by_itself(tool.run(args))
        return Result(action.id, text_of(value), seconds=time.perf_counter() - began)

    async def _ask(self, asked: Ask) -> Reply:
        """The reply, with tool names in the spelling that exists."""
        said = self.model(asked)
        if not inspect.isawaitable(said):
            raise ModelError("The model must be async: write `async def model(ask)`, or use models.scripted(function).")
        reply = reply_from(await said)
        return replace(reply, calls=tuple(replace(call, name=self.tools.resolve(call.name)) for call in reply.calls))
