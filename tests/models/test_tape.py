"""The tape: what was recorded is played, what differs is said, and no key is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import APIError, AsyncOpenAI

from agentlab import Agent, models
from agentlab.models.tape import TAPE, difference

KEY = "sk-canary-0123456789abcdef"
SCRIPT = [models.call("look", x=1), models.call("look", x=2), "Both are there."]


def look(x: int) -> str:
    """Look at one thing."""
    return f"thing {x}"


def client_on(transport: httpx2.AsyncBaseTransport) -> AsyncOpenAI:
    http = httpx2.AsyncClient(transport=transport)
    return AsyncOpenAI(api_key=KEY, base_url="http://lab.invalid/v1", http_client=http, max_retries=0)


async def record(path: Path, upstream: Any = None) -> models.recorded:
    tape = models.recorded(path, upstream or models.transport(SCRIPT), model="scripted")
    run = await Agent(tape, [look]).run("Is it there?")
    assert run.answer == "Both are there."
    return tape


async def test_what_was_recorded_is_played_without_its_upstream(tmp_path: Path) -> None:
    path = tmp_path / "deep/run.jsonl"
    first = await record(path)
    assert (len(first.exchanges), first.left) == (3, "The tape is empty.")
    tape = models.recorded(path)
    run = await Agent(tape, [look]).run("Is it there?")
    assert (run.answer, tape.left) == ("Both are there.", None)
    assert repr(tape) == "<models.recorded 'run.jsonl': 3 exchanges>"


async def test_the_first_request_that_differs_leaves_the_tape_and_says_where(tmp_path: Path) -> None:
    await record(tmp_path / "run.jsonl")
    tape = models.recorded(tmp_path / "run.jsonl")

    def look(x: int) -> str:
        """Look at one thing."""
        return "thing 1" if x == 1 else "another thing"

    run = await Agent(tape, [look]).run("Is it there?")
    assert run.status == "failed"
    assert tape.left is not None
    assert "nearest of its 3 requests is number 3" in tape.left
    assert 'messages[4].content is "another thing", it was "thing 2"' in tape.left
    assert "left the tape" in (run.stop.why if run.stop else "")


async def test_with_an_upstream_it_goes_on_and_records(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await record(path)
    tape = models.recorded(path, models.transport(SCRIPT))
    run = await Agent(tape, [look]).run("Is it here?")
    assert run.answer == "Both are there."
    assert tape.left is not None
    assert 'messages[0].content is "Is it here?"' in tape.left
    assert len(models.recorded(path).exchanges) == 6


async def test_equal_requests_are_played_in_order_and_the_last_one_again(tmp_path: Path) -> None:
    said = iter("abc")
    path = tmp_path / "run.jsonl"
    live = client_on(models.recorded(path, models.transport(lambda request: next(said))))
    body: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    await live.chat.completions.create(**body)
    # The second time it is on the tape already.
    assert (await live.chat.completions.create(**body)).choices[0].message.content == "a"
    lines = path.read_text()
    path.write_text(lines + lines.replace('"content": "a"', '"content": "b"'))
    played = client_on(models.recorded(path))
    texts = [(await played.chat.completions.create(**body)).choices[0].message.content for _ in range(4)]
    assert texts == ["a", "b", "b", "b"]


@pytest.mark.parametrize("stream", [False, True])
async def test_no_key_is_kept_and_a_stream_is_played_as_a_stream(tmp_path: Path, stream: bool) -> None:
    path = tmp_path / "run.jsonl"
    said: Any = lambda request: f"your key is {KEY}, is it not?"  # noqa: E731
    body: Any = {"model": "m", "messages": [{"role": "user", "content": f"my key is {KEY}"}], "stream": stream}
    for upstream in (models.transport(said), None):
        client = client_on(models.recorded(path, upstream))
        answer = await client.chat.completions.create(**body)
        text = "".join([c.choices[0].delta.content or "" async for c in answer]) if stream else answer.choices[0].message.content
        assert text == f"your key is {KEY if upstream else '[key]'}, is it not?"
    assert KEY not in path.read_text()
    assert "uthorization" not in path.read_text()


async def test_a_stream_that_broke_and_an_error_are_passed_on_and_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    body: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    for fault in ("cut", "down"):
        client = client_on(models.recorded(path, models.faulty(fault, models.transport(["a long enough answer " * 9]))))
        with pytest.raises((APIError, httpx2.HTTPError)):
            async for _ in await client.chat.completions.create(**body):
                pass
        assert not path.exists()


async def test_a_torn_last_line_is_dropped_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await record(path)
    path.write_text(path.read_text() + '{"request": {"mess')
    tape = models.recorded(path, models.transport(SCRIPT))
    assert len(tape.exchanges) == 3
    await Agent(tape, [look]).run("Something else?")
    assert len(models.recorded(path).exchanges) == 6


def test_what_is_no_tape_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no tape .*Record one"):
        models.recorded(tmp_path / "none.jsonl")
    for content, why in (("hello\nworld\n", "line 1 is no JSON"), ('{"a": 1}\n', "line 1 holds no request and answer")):
        (tmp_path / "bad.jsonl").write_text(content)
        with pytest.raises(ValueError, match=why):
            models.recorded(tmp_path / "bad.jsonl")


async def test_an_empty_tape_has_no_model_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    run = await Agent(models.recorded(tmp_path / "new.jsonl", models.transport(SCRIPT))).run("Hello?")
    assert "the model has no name yet" in (run.stop.why if run.stop else "")


async def test_other_paths(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await record(path)
    asked = httpx2.Request("GET", "http://lab.invalid/v1/models")
    assert (await models.recorded(path).handle_async_request(asked)).status_code == 404
    assert (await models.recorded(path, models.transport(SCRIPT)).handle_async_request(asked)).status_code == 200
    for content in (b"{", b"[]", b'{"messages": 3}', b"\xff"):
        post = httpx2.Request("POST", "http://lab.invalid/v1/chat/completions", content=content)
        assert (await models.recorded(path).handle_async_request(post)).status_code == 400
    played = httpx2.Request(
        "POST", "http://lab.invalid/v1/chat/completions", json=json.loads(path.read_text().split("\n")[0])["request"]
    )
    assert (await models.recorded(path).handle_async_request(played)).headers[TAPE] == "played"


@pytest.mark.parametrize(
    ("then", "now", "where"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1}, {"a": 2}, "a is 2, it was 1"),
        ({"a": 1}, {"a": True}, "a is true, it was 1"),
        ({"a": [1]}, {"a": [1, 2]}, "a has 2 entries, it had 1"),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, "a.b[1].c is 3, it was 2"),
        ({"a": 1}, {}, "a is missing, it was 1"),
        ({}, {"a": 1}, "a is new: 1"),
    ],
)
def test_difference(then: Any, now: Any, where: str | None) -> None:
    assert difference(then, now) == where
