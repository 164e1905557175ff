"""Rung 0: the loop that everyone writes first (B1), and the reference that every other rung is tested against.

It believes that names exist, that arguments fit, that it ends by itself, and that results are small.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from .loop import Model
from .records import Ask, Entry, Reply, Result
from .results import text_of
from .run import Run
from .tools import Toolbox


async def naked(question: str, model: Model, tools: Iterable[Any] | Mapping[str, Any] = ()) -> list[Entry]:
    """Ask, call, append, go round. Returns the log; raises whatever goes wrong."""
    box = tools if isinstance(tools, Toolbox) else Toolbox(tools)
    run = Run.start(question)
    while True:
        reply: Reply = run.named(await model(Ask(run.messages, box.offered(), turn=run.requests)))
        run = run.plus(reply)
        if not reply.calls:
            return list(run.log)
        for call in reply.calls:
            value = box[call.name](**call.args)
            value = await value if inspect.isawaitable(value) else value
            run = run.plus(Result(call.id, text_of(value)))
