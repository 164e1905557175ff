"""What a strict endpoint would refuse in a history of OpenAI-style messages: where, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .wire import LEGAL

ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True)
class Finding:
    """One fault: the number of the message, and what is wrong with it."""

    at: int
    why: str

    def __str__(self) -> str:
        return f"message {self.at}: {self.why}"


def lint(messages: Sequence[Any]) -> list[Finding]:
    """The faults of `messages`, in order; an empty list when there are none. Never raises."""
    try:
        return _faults(messages)
    except Exception as error:  # not even data: objects that cannot be iterated, compared or shown
        return [Finding(0, f"these are no messages: they cannot be read ({type(error).__name__})")]


def _faults(messages: Sequence[Any]) -> list[Finding]:
    found: list[Finding] = []
    open_: list[str] = []
    opened = 0

    def say(at: int, why: str) -> None:
        found.append(Finding(at, why))

    def close() -> None:
        for call_id in open_:
            say(opened, f"call {call_id!r} has no result before the next message")
        open_.clear()

    for at, message in enumerate(messages):
        if not isinstance(message, Mapping):
            say(at, f"is {type(message).__name__}, not an object with a role")
            continue
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            say(at, f"the role {role!r} does not exist (use {', '.join(ROLES)})")
        if fault := _unsendable(message):
            say(at, fault)
        if role == "tool":
            call_id = message.get("tool_call_id")
            if not isinstance(call_id, str) or not call_id:
                say(at, "a tool result without a tool_call_id")
            elif call_id not in open_:
                say(at, f"a result for {call_id!r}, which no call just before it has")
            else:
                open_.remove(call_id)
            if not isinstance(content, str | list):
                say(at, "a tool result without content")
            continue
        close()
        calls = message.get("tool_calls")
        if role == "assistant":
            if calls is not None:
                opened = at
                open_ += _calls(at, calls, say)
            if not calls and (content is None or content == "" or content == []):
                say(at, "an assistant message with neither text nor calls")
        elif calls:
            say(at, f"tool_calls in a message of role {role!r}")
        if role in ("user", "system", "developer") and not isinstance(content, str | list):
            say(at, f"a {role} message whose content is {type(content).__name__}, not text")
    close()
    return sorted(found, key=lambda finding: finding.at)


def _calls(at: int, calls: Any, say: Any) -> list[str]:
    if not isinstance(calls, list) or not calls:
        say(at, "tool_calls is not a list with calls in it: leave the key out")
        return []
    ids: list[str] = []
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(call, Mapping) or not isinstance(function, Mapping):
            say(at, "a call without a function")
            continue
        call_id, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
        if not isinstance(call_id, str) or not call_id:
            say(at, "a call without an id")
        elif call_id in ids:
            say(at, f"two calls of the id {call_id!r}")
        else:
            ids.append(call_id)
        if not isinstance(name, str) or not name or len(name) > 64 or LEGAL.search(name):
            say(at, f"the tool name {name!r:.80} (letters, digits, _ and -, at most 64)")
        if not isinstance(arguments, str) or not _is_object(arguments):
            say(at, f"the arguments of {name!r:.80} are not the text of a JSON object")
    return ids


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _unsendable(message: Mapping[Any, Any]) -> str:
    try:
        json.dumps(message, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return "holds half a character (a lone surrogate), which cannot be sent"
    except (TypeError, ValueError, RecursionError) as error:
        return f"cannot be written as strict JSON ({error})"
    return ""
