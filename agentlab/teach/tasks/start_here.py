"""Lesson 00: what does the program do with a reply?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentlab.teach.task import Task, Wrong, named, plainly

CALL = {"id": "call_1", "type": "function", "function": {"name": "order_status", "arguments": '{"order_id": 1042}'}}
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("a reply with one call in `tool_calls`", {"role": "assistant", "content": None, "tool_calls": [CALL]}, "call"),
    ("a reply of text and no `tool_calls`", {"role": "assistant", "content": "Hello!"}, "answer"),
    ("a reply with a sentence and a call", {"role": "assistant", "content": "Let me look.", "tool_calls": [CALL]}, "call"),
    ("a reply of text with `tool_calls: []`", {"role": "assistant", "content": "Hello!", "tool_calls": []}, "answer"),
    ("a reply with `tool_calls: null`", {"role": "assistant", "content": "Hello!", "tool_calls": None}, "answer"),
    (
        "a reply that writes `tool_calls` inside its text",
        {"role": "assistant", "content": 'Sure. {"tool_calls": [{"name": "book"}]} Your slot is booked!'},
        "answer",
    ),
]


async def judge(learner: Callable[..., Any]) -> str:
    for tried, message, expected in CASES:
        came = plainly(learner, dict(message))
        if came != expected:
            raise Wrong(tried, repr(came) if isinstance(came, str) else named(came), repr(expected))
    return f"{len(CASES)} replies, {len(CASES)} right moves. This one line turns a straight line into a circle."


TASKS = [
    Task(
        "00-move",
        "next_move",
        'say "call" or "answer" for a reply',
        (
            "A reply asks for tools in one place only: its `tool_calls`. What the text says does not matter.",
            "The key may be missing, null, or an empty list. All three mean: no call. `message.get(...)` helps.",
            'One line will do: "call" if the list has something in it, else "answer".',
        ),
        judge,
    )
]
