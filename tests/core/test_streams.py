"""Streamed replies put together: however an endpoint cuts them, the whole is the same, and a part is none."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.records import Reply
from agentlab.streams import Assembly, events
from agentlab.wire import ModelError, reply_from

from .test_cases import CASES


def put_together(chunks: list[Any]) -> Reply:
    assembly = Assembly()
    for chunk in chunks:
        assembly.add(chunk)
    return reply_from(assembly.completion())


def delta(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(arguments: Any = None, index: Any = 0, id: Any = None, name: Any = None) -> dict[str, Any]:
    return delta(tool_calls=[{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}])


def calls_in(reply: Reply) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in reply.calls]


END = delta("tool_calls")


# ---- what was reported (tests/cases) ----
@pytest.mark.parametrize(
    ("case", "calls"),
    [
        ("ST01", [("c-a", "area", '{"w":2,"h":3}'), ("c-b", "tide", '{"port":"Bari"}')]),  # a new id at the same index
        ("ST02", [("id1", "p", '{"v":1}'), ("id2", "q", '{"v":2}')]),  # the tail under another index than the head
        ("ST05", [("only", "p", "{}")]),  # a gap in the indexes
        ("ST06", [("s0", "p", '{"v":1}'), ("", "p", '{"v":2}')]),  # an id only for the first; the run makes one up
    ],
)
def test_reported_streams(case: str, calls: list[tuple[str, str, str]]) -> None:
    (chunks,) = CASES[case]["input"]["streams"]
    assert calls_in(put_together(chunks)) == calls


def test_st10_a_stream_that_ends_without_a_finish_is_no_reply() -> None:
    (chunks,) = CASES["ST10"]["input"]["streams"]
    with pytest.raises(ModelError, match="broke off before the reply was whole"):
        put_together(chunks)


# ---- their kinds ----
@given(
    text=st.text(max_size=60),
    calls=st.lists(st.tuples(st.text(min_size=1, max_size=8), st.dictionaries(st.text(max_size=5), st.integers())), max_size=4),
    data=st.data(),
)
def test_however_it_is_cut_the_whole_is_the_same(text: str, calls: list[tuple[str, dict[str, int]]], data: st.DataObject) -> None:
    """Pieces of several calls come in turns, ids and names with the first piece or with each."""
    repeats_head, in_turns, by_index = (data.draw(st.booleans()) for _ in range(3))
    queues = []
    for k, (name, arguments) in enumerate(calls):
        written = json.dumps(arguments)
        cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(written) - 1)), max_size=4)))
        parts = [written[a:b] for a, b in zip([0, *cuts], [*cuts, len(written)], strict=True)]
        head = {"id": f"id{k}", "name": name}
        bare = {} if by_index else {"id": f"id{k}"}
        heads = [head, *([head if repeats_head else bare] * (len(parts) - 1))]
        index = k if by_index else None
        queues.append([piece(part, index=index, **said) for part, said in zip(parts, heads, strict=True)])
    chunks = [delta(role="assistant"), *(delta(content=sign) for sign in text)]
    while waiting := [k for k, queue in enumerate(queues) if queue]:
        at = data.draw(st.sampled_from(waiting)) if in_turns else waiting[0]
        chunks.append(queues[at].pop(0))
    reply = put_together([*chunks, delta("stop"), {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}])
    assert reply.text == text
    assert sorted(calls_in(reply)) == sorted((f"id{k}", name, json.dumps(a)) for k, (name, a) in enumerate(calls))
    assert reply.usage == {"prompt": 1, "completion": 2}


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.sampled_from(["tool_calls", "stop"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["choices", "delta", "tool_calls", "function", "index", "id", "name", "arguments", "content",
                         "finish_reason", "error", "message", "usage", "function_call"]), inner, max_size=5),
    max_leaves=25,
))  # fmt: skip
def test_no_chunk_does_more_than_raise_a_sentence(chunk: Any) -> None:
    assembly = Assembly()
    with suppress(ModelError):
        assert isinstance(assembly.add(chunk), str)
        assembly.add(END)
        assert isinstance(reply_from(assembly.completion()), Reply)


def test_forms_that_some_endpoints_send() -> None:
    whole = [piece({"v": 1}, index=0, id="a", name="p"), END]  # arguments as an object
    assert calls_in(put_together(whole)) == [("a", "p", '{"v": 1}')]
    again = [piece('{"v"', id="a", name="p"), piece(": 1}", id="a", name="p"), END]  # id and name with each piece
    assert calls_in(put_together(again)) == [("a", "p", '{"v": 1}')]
    slow = [piece(id="a", name="pa"), piece(name="y"), piece("{}"), END]  # the name in pieces
    assert calls_in(put_together(slow)) == [("a", "pay", "{}")]
    none = [piece('{"v": 1}', index=None, name="p"), piece('{"v": 2}', index=None, name="p"), END]  # neither index nor id
    assert [call[2] for call in calls_in(put_together(none))] == ['{"v": 1}', '{"v": 2}']
    legacy = [
        delta(function_call={"name": "p", "arguments": '{"v"'}),
        delta(function_call={"arguments": ": 1}"}),
        delta("function_call"),
    ]
    assert calls_in(put_together(legacy)) == [("", "p", '{"v": 1}')]
    last = [{"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}]
    assert put_together(last).text == "hi"
    other = {"choices": [{"index": 1, "delta": {"content": "another answer"}, "finish_reason": "stop"}]}
    assert put_together([delta(content="hi"), other, delta("stop")]).text == "hi"
    assert put_together([delta(content=[{"type": "text", "text": "hi"}]), delta("stop")]).text == "hi"
    assert put_together([delta(refusal="No"), delta(refusal=", sorry."), delta("stop")]).text == "No, sorry."


def test_what_goes_wrong_in_a_stream_is_said() -> None:
    with pytest.raises(ModelError, match="broke the stream off: overloaded"):
        put_together([delta(content="Wor"), {"error": {"message": "overloaded"}}])
    with pytest.raises(ModelError, match="held str where a chunk was due"):
        put_together(["hello"])
    with pytest.raises(ModelError, match=r"no JSON: '\{\"a'"):
        list(events('data: {"a\n\n'))
    with pytest.raises(ModelError):
        list(events("data: " + "[" * 100_000 + "\n\n"))
    assert list(events(": ping\n\nevent: x\ndata: 1\n\ndata:[DONE]\n\ndata: 2\n\n")) == [1]
