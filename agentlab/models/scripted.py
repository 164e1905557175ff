"""The scripted model: a list of replies, or a function of the request. It keeps no state, so going back and forking work."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..arguments import written
from ..records import Ask, Reply
from ..wire import ModelError, reply_from

Script = Sequence[Any] | Callable[[dict[str, Any]], Any]
NAME = "scripted"


def say(text: str) -> dict[str, Any]:
    """A chat completion that answers with `text`."""
    return _completion({"role": "assistant", "content": text}, "stop")


def call(tool_name: str, /, **arguments: Any) -> dict[str, Any]:
    """A chat completion that calls one tool."""
    return calls((tool_name, arguments))


def calls(*pairs: tuple[str, Mapping[str, Any] | str], text: str | None = None) -> dict[str, Any]:
    """A chat completion that calls several tools in one turn: pairs of a name and arguments (a mapping, or raw text).

    The calls have no ids; whoever plays the script numbers them by the turn."""
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f'A call is a pair of name and arguments such as ("look", {{"place": "attic"}}), not {pair!r:.80}.')
    asked = [{"id": "", "type": "function", "function": {"name": name, "arguments": written(args)}} for name, args in pairs]
    return _completion({"role": "assistant", "content": text, "tool_calls": asked}, "tool_calls")


def _completion(message: dict[str, Any], finish: str) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": NAME, "choices": [choice]}


class scripted:  # used as a function; a class, so that the script can be looked at
    """`models.scripted([...])` plays the replies in order; `models.scripted(function)` asks the function.

    A list holds chat completions (dicts as on the wire; `models.say` and `models.call` write them), bare assistant messages,
    strings (a final answer), or exceptions to raise. Which one comes next is counted by the replies in the run, so a script has
    no memory. A function gets the request, `{"model", "messages", "tools"}`, and returns one of the same; it may be async.
    Asking beyond the end of a list raises `ModelError`.
    """

    def __init__(self, script: Script) -> None:
        if isinstance(script, str | bytes | Mapping) or not (callable(script) or isinstance(script, Sequence)):
            raise TypeError(
                f"A script is a list of replies or a function of the request, not {type(script).__name__}. "
                "Write models.scripted([…])."
            )
        self.script = script if callable(script) else tuple(script)

    def __repr__(self) -> str:
        what = f"{len(self.script)} replies" if isinstance(self.script, tuple) else getattr(self.script, "__name__", "a function")
        return f"<models.scripted: {what}>"

    async def __call__(self, ask: Ask) -> Reply:
        # A copy of the tools: a function that changes its request must not change what later requests carry.
        tools = copy.deepcopy(list(ask.tools or ())) if callable(self.script) else []
        return await self.reply({"model": NAME, "messages": ask.messages, "tools": tools}, ask.turn)

    async def reply(self, request: dict[str, Any], turn: int) -> Reply:
        """The reply number `turn` (from 0), or what the function says to `request`. Raises what the script says to raise."""
        await asyncio.sleep(0)  # as a real model does, it lets others run: else nobody could stop a loop that never ends
        if isinstance(self.script, tuple):
            if not 0 <= turn < len(self.script):
                raise ModelError(
                    f"The script has {len(self.script)} replies, and reply {turn + 1} was asked for. "
                    "Add replies to the list, or end it with a final answer (a string)."
                )
            item = self.script[turn]
        else:
            item = self.script(request)
            item = await item if isinstance(item, Awaitable) else item
        if isinstance(item, BaseException) or (inspect.isclass(item) and issubclass(item, BaseException)):
            raise item
        asked = item.get("tool_calls") if isinstance(item, Mapping) else None
        if isinstance(item, list) or (
            isinstance(asked, list) and any(isinstance(one, Mapping) and "choices" in one for one in asked)
        ):
            raise ModelError(
                f"Reply {turn + 1} of the script holds whole replies where calls belong. "
                'Several calls in one turn are written models.calls(("name", {"argument": value}), …, text="…").'
            )
        reply = reply_from(item)
        return replace(reply, calls=tuple(replace(one, id=one.id or f"call_{turn}_{k}") for k, one in enumerate(reply.calls)))
