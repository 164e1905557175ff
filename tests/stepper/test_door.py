"""The door itself: straight through outside a stepper, nothing secret shown, bodies and streams read rightly."""

from __future__ import annotations

import inspect
import json
from typing import Any

import httpx2
import pytest

from agentlab import lab, models
from agentlab.door import Answer, Door, briefly, chat_body, masked, paused_line, some_locals
from agentlab.models.offline import transport


async def test_outside_a_stepper_it_passes_straight_through() -> None:
    client = lab.client([models.say("hi")])
    done = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    assert done.choices[0].message.content == "hi"
    async with httpx2.AsyncClient(transport=Door(transport([models.say("hi")]))) as plain:
        assert (await plain.get("http://lab.invalid/v1/models")).status_code == 200


@pytest.mark.parametrize("content", [b"", b"no json", b"[]", b'{"input": "embed me"}', b'{"messages": "text"}'])
def test_what_is_no_chat_request_is_not_held(content: bytes) -> None:
    assert chat_body(content) is None


def test_a_packed_reply_is_handed_on_unpacked() -> None:
    answer = Answer(200, (("content-type", "application/json"),), b'{"choices": []}')
    response = answer.response(httpx2.Request("POST", "http://lab.invalid/v1/chat/completions"))
    assert response.json() == {"choices": []}


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (500, b"<html>", "HTTP 500: <html>"),
        (200, b"not json", "HTTP 200: not json"),
        (401, b'{"error": {"message": "no key"}}', "no key"),
    ],
)
def test_what_is_no_completion_comes_as_an_error(status: int, content: bytes, said: str) -> None:
    assert said in Answer(status, (), content).completion()["error"]["message"]


def test_a_stream_is_put_together() -> None:
    chunks: list[dict[str, Any]] = [
        {"choices": [{"delta": {"role": "assistant", "content": "a"}}]},
        {"choices": [{"delta": {"content": "b"}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a"'}}]}}]},
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}, "finish_reason": "tool_calls"}
            ]
        },
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
    ]
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + ": comment\n\ndata: [DONE]\n\n"
    kind = (("content-type", "text/event-stream"),)
    found = Answer(200, kind, text.encode()).completion()
    message = found["choices"][0]["message"]
    assert message["content"] == "ab"
    assert message["tool_calls"] == [{"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    assert found["usage"]["prompt_tokens"] == 3
    for part in (text[:150], text.replace("data: [DONE]", "data: broken")):
        assert "broke off" in Answer(200, kind, part.encode()).completion()["error"]["message"]


# ---- locals ----
def test_locals_are_few_short_and_hold_nothing_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2-hunter2")

    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError

    names: dict[str, Any] = {
        "_private": 1, "api_key": "abc", "json": json, "len": len, "client": lab.client([models.say("x")]),
        "text": "it is hunter2-hunter2 you know", "headers": {"Authorization": "Bearer abcdefgh12345678"},
        "long": "x" * 5_000, "history": [{"role": "user", "content": "y" * 500}] * 1_000, "bad": Bad(), "seventh": 7,
    }  # fmt: skip
    shown = dict(some_locals(names))
    assert list(shown) == ["api_key", "text", "headers", "long", "history", "bad"]
    assert shown["api_key"] == "•••"
    assert all(len(text) <= 170 for text in shown.values())
    assert "hunter2" not in str(shown)
    assert "abcdefgh" not in str(shown)
    assert "Bad instance" in shown["bad"]


@pytest.mark.parametrize("text", ["sk-test-abcdefgh12345678", "{'api_key': 'abc'}", "Bearer abc.def", "token='xyz'"])
def test_what_looks_like_a_key_is_masked(text: str) -> None:
    assert "•••" in masked(text)
    assert not any(secret in masked(text) for secret in ("abcdefgh", "'abc'", "abc.def", "xyz"))


def test_tokens_as_numbers_are_no_secret() -> None:
    assert dict(some_locals({"tokens": 12, "max_tokens": 5})) == {"tokens": "12", "max_tokens": "5"}


def test_a_line_is_named_without_its_path() -> None:
    line = paused_line(inspect.currentframe())
    assert line is not None
    assert line.file == "test_door.py, test_a_line_is_named_without_its_path"
    assert "/" not in line.file
    assert briefly("short") == "'short'"
