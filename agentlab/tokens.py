"""Count tokens without a network (J6). Exact for the text of OpenAI's models; what a provider adds around it is an estimate.

The vocabulary is o200k_base. Where the compiled counter is not installed (Pyodide), characters are weighed by their kind, and
`exact` is False.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .arguments import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .run import Run

exact: bool = find_spec("toktok") is not None
ENCODING = "o200k_base"
AROUND_MESSAGE = 3  # per message, as OpenAI's own notes give it
AROUND_REPLY = 3
AROUND_CALL = 7  # id, type and name of a call; measured against nothing but OpenAI's habit: an estimate
WORDS = re.compile(r"[A-Za-z]+|[0-9]{1,3}|\s+|[^\sA-Za-z0-9]")


@dataclass(frozen=True)
class Usage:
    """Tokens of a run. `reported` of the `requests` were counted by the provider; `exact` when all were."""

    requests: int
    prompt: int
    completion: int
    reported: int

    @property
    def total(self) -> int:
        return self.prompt + self.completion

    @property
    def exact(self) -> bool:
        return self.reported == self.requests

    @property
    def how(self) -> str:
        """One sentence on where the figures come from."""
        if self.exact:
            return "counted by the provider"
        by = f"{ENCODING}, and estimated around each message" if exact else "weighed by kinds of characters: an estimate"
        return f"{self.requests - self.reported} of {self.requests} requests counted here ({by})"

    def __str__(self) -> str:
        sign = "" if self.exact else "about "
        parts = f"{self.prompt:,} sent, {self.completion:,} written; {self.how}"
        return f"{sign}{self.total:,} tokens in {self.requests} requests ({parts})"


def count(text: str) -> int:
    """How many tokens `text` is."""
    return _count(text) if len(text) <= 4_000 else _counted(text)


@lru_cache(maxsize=8_192)
def _count(text: str) -> int:
    return _counted(text)


def _counted(text: str) -> int:
    if not exact:
        return sum(_weight(match[0]) for match in WORDS.finditer(text))
    import toktok

    return int(toktok.batch_count([plain_text(text)], ENCODING, threads=1)[0])


def _weight(piece: str) -> int:
    """Tokens of one piece, roughly: a word of up to seven letters is one, a run of spaces is one, a Chinese sign is one."""
    if piece.isspace():
        return 1 if len(piece) > 1 else 0
    return -(-len(piece) // 7) if piece.isascii() else 1


def count_message(message: Mapping[str, Any]) -> int:
    """Tokens of one wire message, with what the provider is thought to put around it."""
    content = message.get("content")
    text = (
        content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False, default=str)
    )
    calls = message.get("tool_calls") or ()
    inside = sum(count(call["function"]["name"]) + count(call["function"]["arguments"]) + AROUND_CALL for call in calls)
    return count(text) + inside + AROUND_MESSAGE


def count_messages(messages: Sequence[Mapping[str, Any]]) -> int:
    """Tokens of a whole history as a request carries it."""
    return sum(map(count_message, messages)) + AROUND_REPLY


def count_tools(tools: Sequence[Mapping[str, Any]]) -> int:
    """Tokens of the tool descriptions that every request carries (G3)."""
    return sum(count(json.dumps(tool.get("function", tool), ensure_ascii=False)) + AROUND_CALL for tool in tools)


def usage_of(run: Run) -> Usage:
    """Add up a run: the provider's figures where a reply has them, else counted here."""
    from .records import Reply

    replies = run.of(Reply)
    upto = [0]
    for message in run.messages:
        upto.append(upto[-1] + count_message(message))
    tools: dict[int, int] = {}
    prompt = completion = reported = 0
    for reply in replies:
        if reply.usage is not None:
            reported += 1
            prompt += reply.usage.get("prompt", 0)
            completion += reply.usage.get("completion", 0)
            continue
        if reply.sent is not None:
            offered = reply.sent.tools or ()
            if id(offered) not in tools:
                tools[id(offered)] = count_tools(offered)
            prompt += tools[id(offered)] + _sent(reply.sent.messages, upto) + AROUND_REPLY
        completion += count(reply.text) + sum(count(call.name) + count(call.arguments) + AROUND_CALL for call in reply.calls)
    return Usage(len(replies), prompt, completion, reported)


def _sent(messages: Sequence[Mapping[str, Any]], upto: list[int]) -> int:
    from .run import Messages

    if isinstance(messages, Messages) and len(messages) < len(upto):
        return upto[len(messages)]  # a beginning of the history: counted once, not once for each request
    return sum(map(count_message, messages))
