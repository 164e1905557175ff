"""Calls written into text (M1, B6): recognised in every dialect that was reported, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.wire import reply_from, without_thinking
from agentlab.written import written_call

TOOLS = ["calc", "read", "sh", "book"]
CALL = {"name": "calc", "arguments": {"expr": "1+1"}}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (json.dumps(CALL), "calc"),
        (json.dumps({"name": "Greeter", "arguments": {}}), "Greeter"),
        (json.dumps({"name": "calc", "parameters": {"expr": "1"}}), "calc"),
        (json.dumps({"type": "function", "function": {"name": "calc", "arguments": "{}"}}), "calc"),
        (json.dumps([CALL, CALL]), "calc"),
        (json.dumps({"tool_calls": [{"function": CALL}]}), "calc"),
        (f"```json\n{json.dumps(CALL)}\n```", "calc"),
        ('Sure. {"content":null,"tool_calls":[{"function":{"name":"book","arguments":"{}"}}]} Booked!', "book"),
        ("<function=read>\n<parameter=path>\nnotes.md\n</parameter>\n</function>\n</tool_call>", "read"),
        ('<tool_call>{"name": "sh", "arguments": {"cmd": "ls"}}</tool_call>', "sh"),
        ('I will look.\n<tool_call>\n{"name": "sh"', "sh"),
        ('[TOOL_CALLS] [{"name": "sh", "arguments": {}}]', "sh"),
        ('<function_calls><invoke name="read"></invoke></function_calls>', "read"),
        ("<|python_tag|>calc.call(1)", ""),
        ('assistant to=functions.sh commentary json\n{"cmd":"git status"}', "sh"),
        ('<|channel|>commentary to=functions.sh <|message|>{"cmd":"ls"}', "sh"),
        ('<|start|>assistant<|message|>{"cmd":"ls"}', ""),
        ("I should look.\nAction: read\nAction Input: {}", "read"),
    ],
)
def test_a_call_in_the_text_is_seen(text: str, name: str) -> None:
    assert written_call(text, TOOLS) == name


@pytest.mark.parametrize(
    "text",
    [
        "", "Done.", "{}", "[]", "{", "4", '"calc"', "The answer is {expr}.", "1 < 2 and a[0] == {}",
        '{"name": "Ann", "age": 4}', '{"name": "Ann"}', '{"name": "calc", "arguments": 3}',
        '[1, {"name": "calc", "arguments": {}}]',
        '{"order": 1042, "status": "shipped"}', "Use `to=functions.sh` in the header.", "Press <Enter> to go on.",
        'A call looks so:\n```json\n{"tool_calls": [{"name": "calc", "arguments": {}}]}\n```\nSend it as it is.',
        "Write `<tool_call>` around it.", "Action: none is needed.\nAction Input is a label.", "Action: nothing\nAction Input: x",
        "the function calc(1) was called", "<b>bold</b> <div>", "[" * 5000, '{"name":' * 2000,
    ],
)  # fmt: skip
def test_what_is_no_call_is_left_alone(text: str) -> None:
    assert written_call(text, TOOLS) is None


@given(st.text(max_size=200) | st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["name", "arguments", "function", "tool_calls", "id", "x"]), inner, max_size=4),
).map(json.dumps))  # fmt: skip
def test_any_text_is_looked_at_without_harm(text: str) -> None:
    found = written_call(text, TOOLS)
    assert found is None or isinstance(found, str)


@pytest.mark.parametrize(
    ("text", "rest", "thought"),
    [
        ("plain", "plain", ""),
        ("<think>hm</think>42", "42", "hm"),
        ("<think>a</think>x<think>b</think>y", "xy", "a\nb"),
        ("<thinking>hm</thinking>\n\n42", "42", "hm"),
        ("<think>never closed", "", "never closed"),
        ("never opened</think>Final 42", "Final 42", "never opened"),
        ("I <thank> you", "I <thank> you", ""),
        ("<think></think>42", "42", ""),
    ],
)
def test_thinking_is_no_answer(text: str, rest: str, thought: str) -> None:
    assert without_thinking(text) == (rest, thought)
    for said in (text, {"role": "assistant", "content": text}):
        reply = reply_from(said)
        assert (reply.text, reply.reasoning, reply.replays) == (rest, thought, False)


@given(st.text(alphabet="<>/think abc", max_size=60))
def test_thinking_is_taken_out_of_any_text(text: str) -> None:
    rest, thought = without_thinking(text)
    assert len(rest) + len(thought) <= len(text)
    assert "<think>" not in rest


def test_reasoning_goes_back_only_where_the_endpoint_has_a_field_for_it() -> None:
    from agentlab.wire import message

    call: Any = [{"id": "1", "function": {"name": "now", "arguments": "{}"}}]
    asked = {"role": "assistant", "content": None, "tool_calls": call}
    assert message(reply_from({**asked, "reasoning_content": "hm\ud800"}))["reasoning_content"] == "hm?"
    assert "reasoning_content" not in message(reply_from({**asked, "reasoning": "hm"}))
    assert "reasoning_content" not in message(reply_from(asked))
    assert "reasoning_content" not in message(reply_from({"content": "42", "reasoning_content": "hm"}))
