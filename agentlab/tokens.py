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

    from .records import Reply
    from .run import Run, _Trunk

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
    parts = [_parts(reply) for reply in replies]
    reported = sum(reply.usage is not None for reply in replies)
    return Usage(len(replies), sum(prompt for prompt, _ in parts), sum(written for _, written in parts), reported)


def size_of(trunk: _Trunk, n: int) -> int:
    """Tokens of the first `n` messages of a history. Each message is counted once, whoever asks."""
    for at in range(len(trunk.sizes) - 1, n):
        trunk.sizes.append(trunk.sizes[at] + count_message(trunk.wire[at]))
    return trunk.sizes[n]


def cost_of(trunk: _Trunk, n: int) -> int:
    """Tokens of the first `n` requests and replies of a history."""
    from .records import Reply

    for at in range(len(trunk.costs) - 1, n):
        reply = trunk.entries[trunk.replies[at]]
        trunk.costs.append(trunk.costs[at] + (sum(_parts(reply)) if isinstance(reply, Reply) else 0))
    return trunk.costs[n]


def _parts(reply: Reply) -> tuple[int, int]:
    """What a request took, and its reply."""
    from .run import Messages

    if reply.usage is not None:
        return reply.usage.get("prompt", 0), reply.usage.get("completion", 0)
    written = count(reply.text) + sum(count(call.name) + count(call.arguments) + AROUND_CALL for call in reply.calls)
    if reply.sent is None:
        return 0, written
    sent = reply.sent.messages
    history = size_of(sent.trunk, len(sent)) if isinstance(sent, Messages) else sum(map(count_message, sent))
    return count_same(reply.sent.tools or ()) + history + AROUND_REPLY, written


_same: list[Any] = [(), 0]


def count_same(tools: Sequence[Mapping[str, Any]]) -> int:
    """`count_tools`, at once where the same object is counted again, as it is for request after request."""
    if _same[0] is not tools:
        _same[:] = [tools, count_tools(tools)]
    return int(_same[1])
