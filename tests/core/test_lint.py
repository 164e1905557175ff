"""Lint: what a strict endpoint would refuse in a history (J5, E2), and never an exception, whatever it is given."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab import lint


def call(call_id: Any = "a", name: Any = "look", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


ASK = {"role": "user", "content": "q"}
CALLS = {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]}


def result(call_id: Any, content: Any = "x") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


GOOD = [{"role": "system", "content": "be brief"}, ASK, CALLS, result("a"), result("b"), {"role": "assistant", "content": "done"}]


def test_a_sound_history_has_no_findings() -> None:
    assert lint(GOOD) == lint([]) == lint(tuple(GOOD)) == []
    assert lint([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]) == []


@pytest.mark.parametrize(
    ("messages", "at", "says"),
    [
        ([ASK, CALLS, result("a"), ASK], 1, "call 'b' has no result before the next message"),
        ([ASK, CALLS, result("a")], 1, "call 'b' has no result"),
        ([ASK, CALLS, result("a"), result("a"), result("b")], 3, "a result for 'a', which no call just before it has"),
        ([ASK, result("z")], 1, "a result for 'z'"),
        ([ASK, CALLS, result("a"), result("b"), result("b")], 4, "a result for 'b'"),
        ([ASK, CALLS, result(None), result("a"), result("b")], 2, "without a tool_call_id"),
        ([ASK, CALLS, result("a", None), result("b")], 2, "a tool result without content"),
        ([{"role": "robot", "content": "x"}], 0, "the role 'robot' does not exist"),
        ([{"role": [], "content": "x"}], 0, "the role [] does not exist"),
        ([ASK, None], 1, "is NoneType, not an object"),
        ([{"role": "assistant", "content": ""}], 0, "neither text nor calls"),
        ([{"role": "assistant", "content": "x", "tool_calls": []}], 0, "leave the key out"),
        ([{"role": "user", "content": "x", "tool_calls": [call()]}], 0, "tool_calls in a message of role 'user'"),
        ([{"role": "user", "content": None}], 0, "whose content is NoneType"),
        ([{"role": "user", "content": "\ud83d"}], 0, "half a character"),
        ([{"role": "user", "content": "x", "score": float("nan")}], 0, "cannot be written as strict JSON"),
        ([{"role": "user", "content": "x", "set": {1}}], 0, "cannot be written as strict JSON"),
        ([{**CALLS, "tool_calls": [call("a"), call("a")]}, result("a")], 0, "two calls of the id 'a'"),
        ([{**CALLS, "tool_calls": [call("")]}], 0, "a call without an id"),
        ([{**CALLS, "tool_calls": [call(name="no name")]}, result("a")], 0, "the tool name 'no name'"),
        ([{**CALLS, "tool_calls": [call(name="x" * 65)]}, result("a")], 0, "at most 64"),
        ([{**CALLS, "tool_calls": [call(arguments="[1]")]}, result("a")], 0, "are not the text of a JSON object"),
        ([{**CALLS, "tool_calls": [call(arguments={})]}, result("a")], 0, "are not the text of a JSON object"),
        ([{**CALLS, "tool_calls": [call(arguments="9" * 5_000)]}, result("a")], 0, "are not the text of a JSON object"),
        ([{**CALLS, "tool_calls": [7]}], 0, "a call without a function"),
    ],
)
def test_each_fault_is_found_where_it_stands(messages: Any, at: int, says: str) -> None:
    found = [finding for finding in lint(messages) if says in finding.why]
    assert [finding.at for finding in found] == [at]
    assert str(found[0]).startswith(f"message {at}: ")


class Nasty(dict[str, Any]):
    def get(self, *_: Any) -> Any:
        raise RuntimeError("no")


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("no repr")

    def __eq__(self, other: object) -> bool:
        raise ValueError("no comparison")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "thing", [None, 7, object(), [Nasty()], [{"role": Unshowable()}], [{1: 2}], "text", b"bytes", {"role": "user"}]
)
def test_what_is_no_history_at_all_is_a_finding_too(thing: Any) -> None:
    assert lint(thing)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "id", "function", "name", "arguments"])
nearly = st.dictionaries(
    keys, anything | st.sampled_from(["user", "assistant", "tool", "system", "a"]) | st.lists(st.dictionaries(keys, anything))
)


@given(st.lists(nearly | anything | st.sampled_from(GOOD), max_size=5))
def test_it_never_raises_and_what_it_passes_is_strict_json(messages: Any) -> None:
    if lint(messages) == []:
        json.dumps(messages, allow_nan=False, ensure_ascii=False).encode("utf-8")
