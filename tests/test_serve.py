"""The endpoint on this machine: real sockets, the real SDK, sync and async, streamed and not, and clients that are no friends."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from agentlab import Agent, models, worlds
from agentlab.models import zoo
from agentlab.models.faults import FAULTS
from agentlab.serve import Server, serving

ASK: Any = {"model": "any", "messages": [{"role": "user", "content": "Where is order 1042?"}]}
TOOLS: Any = [{"type": "function", "function": {"name": "order_status", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture
def endpoint() -> Iterator[Server]:
    with serving(models.transport([models.call("order_status", order_id=1042), "It is on its way."])) as server:
        yield server


def sync(server: Server, retries: int = 0, timeout: float = 5) -> openai.OpenAI:
    return openai.OpenAI(api_key="offline", base_url=server.url, max_retries=retries, timeout=timeout)


def test_a_sync_client_gets_whole_and_streamed_answers(endpoint: Server) -> None:
    with sync(endpoint) as client:
        whole = client.chat.completions.create(**ASK, tools=TOOLS).choices[0].message
        assert whole.tool_calls is not None
        assert whole.tool_calls[0].function.arguments == '{"order_id": 1042}'  # type: ignore[union-attr]
        later = [*ASK["messages"], {"role": "assistant", "content": "I look."}]
        pieces = client.chat.completions.create(model="any", messages=later, stream=True)
        assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == "It is on its way."
        assert client.models.list().data[0].id == "scripted"


async def test_an_agent_of_ours_through_a_real_socket(endpoint: Server) -> None:
    worlds.orders.desk.reset()
    client = openai.AsyncOpenAI(api_key="offline", base_url=endpoint.url)
    async with client:
        run = await Agent(models.openai("any", client), worlds.orders.tools).run("Where is order 1042?")
    assert (run.answer, run.requests) == ("It is on its way.", 2)


@pytest.mark.parametrize("animal", zoo.NAMES)
def test_every_animal_answers_a_loop_without_guards(animal: str) -> None:
    """What a framework on the other side does with it is its affair: here it gets ten requests and well-formed answers."""
    with serving(models.transport(zoo.all()[animal].make())) as server, sync(server) as client:
        messages: list[Any] = [{"role": "user", "content": zoo.all()[animal].question}]
        tools: Any = [
            {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in zoo.ALL_TOOLS
        ]
        for _ in range(10):
            said = client.chat.completions.create(model="any", messages=messages, tools=tools).choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                break
            messages += [{"role": "tool", "tool_call_id": call.id, "content": "Order 1042: shipped."} for call in said.tool_calls]
        assert server.count >= 1


def test_ten_clients_at_once(endpoint: Server) -> None:
    answers = []

    def one() -> None:
        with sync(endpoint) as client:
            answers.append(client.chat.completions.create(**ASK).choices[0].finish_reason)

    threads = [threading.Thread(target=one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["tool_calls"] * 10


# ---- faults ----
@pytest.mark.parametrize(
    ("fault", "error", "requests"),
    [
        ("quota", openai.RateLimitError, 1), ("bad_request", openai.BadRequestError, 1),
        ("busy", openai.RateLimitError, 1), ("down", openai.InternalServerError, 1),
        ("cut", openai.APIConnectionError, 1), ("hangs", openai.APITimeoutError, 1),
    ],
)  # fmt: skip
def test_a_client_without_retries_meets_the_fault(fault: str, error: type[Exception], requests: int) -> None:
    with serving(models.faulty(fault, models.transport(["fine"]))) as server, sync(server, timeout=1) as client:
        with pytest.raises(error):
            client.chat.completions.create(**ASK)
        assert server.count == requests


@pytest.mark.parametrize("fault", ["down", "cut"])
def test_a_client_that_tries_again_gets_through(fault: str) -> None:
    with serving(models.faulty(fault, models.transport(["fine"]))) as server, sync(server, retries=2) as client:
        assert client.chat.completions.create(**ASK).choices[0].message.content == "fine"
        assert server.count == 2


def test_faults_of_the_answer() -> None:
    with serving(models.faulty("no_choices", models.transport(["fine"]))) as server, sync(server) as client:
        assert client.chat.completions.create(**ASK).choices == []
    with serving(models.faulty("html", models.transport(["fine"]))) as server, sync(server) as client:
        assert isinstance(client.chat.completions.create(**ASK), str)
    script = [models.call("order_status", order_id=1042, note="a rather long one")]
    with serving(models.faulty("cut_calls", models.transport(script))) as server, sync(server) as client:
        pieces = list(client.chat.completions.create(**ASK, stream=True))
        text = "".join(c.function.arguments or "" for p in pieces for c in p.choices[0].delta.tool_calls or [] if c.function)
        assert text
        assert not text.endswith("}")
        assert all(piece.choices[0].finish_reason is None for piece in pieces)
    with serving(models.faulty("slow", models.transport(["fine"]), slow=0.1)) as server, sync(server) as client:
        assert client.chat.completions.create(**ASK).choices[0].message.content == "fine"


@pytest.mark.parametrize("fault", FAULTS)
async def test_no_fault_leaves_an_agent(fault: str) -> None:
    """Whatever the endpoint does, the run ends and says what happened."""
    script = [models.call("order_status", order_id=1042), "It is on its way."]
    with serving(models.faulty(fault, models.transport(script), slow=0.1)) as server:
        client = openai.AsyncOpenAI(api_key="offline", base_url=server.url, max_retries=1, timeout=1)
        async with client:
            run = await asyncio.wait_for(Agent(models.openai("any", client), worlds.orders.tools).run("Where is order 1042?"), 20)
    through = {"busy", "down", "cut", "slow", "cut_calls"}  # the last one harms streams only
    assert run.status == ("answered" if fault in through else "failed")
    if run.status == "failed":
        assert run.stop is not None
        assert server.count <= 2


def test_a_fault_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"There is no fault 'flood'\. There are: busy"):
        models.faulty("flood", models.transport([]))


# ---- who may ask ----
def raw(
    server: Server, method: str = "POST", path: str = "/v1/chat/completions", body: bytes = b"{}", **headers: str
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=5)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    said = answer.read().decode()
    connection.close()
    return answer.status, said


def test_web_pages_and_foreign_names_are_refused(endpoint: Server) -> None:
    body = json.dumps(ASK).encode()
    assert raw(endpoint, body=body)[0] == 200
    assert raw(endpoint, body=body, Origin="https://evil.example")[0] == 403
    assert raw(endpoint, body=body, Host="evil.example:80")[0] == 403
    assert raw(endpoint, body=body, Host="localhost:80")[0] == 200
    assert raw(endpoint, path="/chat/completions") == (404, ANY_ADDRESS.format(url=endpoint.url))
    assert raw(endpoint, path="/v1/embeddings")[0] == 404
    assert raw(endpoint, method="DELETE")[0] == 501


ANY_ADDRESS = (
    '{{"error": {{"message": "The address ends in /v1: {url}. There is nothing at \'/chat/completions\'.", '
    '"type": "agentlab", "code": null}}}}'
)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"messages": 1}', b'{"messages": []}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_body_that_is_no_request(endpoint: Server, body: bytes) -> None:
    status, said = raw(endpoint, body=body)
    assert status in (200, 400)
    assert json.loads(said)


def test_bytes_that_are_no_request_do_not_stop_the_server(endpoint: Server) -> None:
    address = ("127.0.0.1", endpoint.server_address[1])
    start = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
    for junk in (b"\x00" * 500, b"GET\r\n\r\n", *(start + length + b"\r\n\r\n" for length in (b"many", b"-4", b"99999999999"))):
        with socket.create_connection(address, 5) as line:
            line.sendall(junk)
            line.settimeout(5)
            line.shutdown(socket.SHUT_WR)
            while line.recv(1000):
                pass
    with socket.create_connection(address, 5) as line:  # hangs up in the middle of a request
        line.sendall(start + b"500\r\n\r\n{")
    assert raw(endpoint, body=json.dumps(ASK).encode())[0] == 200


def test_it_ends_while_an_answer_hangs() -> None:
    with serving(models.faulty("hangs", models.transport(["fine"]))) as server:
        with sync(server, timeout=0.3) as client, pytest.raises(openai.APITimeoutError):
            client.chat.completions.create(**ASK)
        began = time.monotonic()
    assert time.monotonic() - began < 5


# ---- by command ----
def agentlab(*words: str) -> subprocess.Popen[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return subprocess.Popen(
        [sys.executable, "-m", "agentlab", "serve", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "Say what is to be served"),
        (("--zoo", "wolf"), "The zoo has no 'wolf'. It has: invents_tools"),
        (("--zoo", "honest", "--tape", "x"), "not both"),
        (("--tape", "none.jsonl"), "There is no tape none.jsonl"),
        (("--zoo", "honest", "--fault", "flood"), "There is no fault 'flood'"),
    ],
)
def test_what_cannot_be_served_is_told_so(words: tuple[str, ...], why: str) -> None:
    process = agentlab(*words)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, "")
    assert why in err


def test_the_command_records_and_replays_without_the_key(tmp_path: Path) -> None:
    key = "sk-canary-0123456789abcdef"
    tape = tmp_path / "run.jsonl"
    said = []
    with serving(models.transport(["It is on its way."])) as upstream:
        for words in (("--upstream", upstream.url, "--tape", str(tape)), ("--tape", str(tape))):
            process = agentlab(*words)
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(3)]
            url = re.search(r"OPENAI_BASE_URL=(\S+)", lines[2])
            assert url is not None, lines
            with openai.OpenAI(api_key=key, base_url=url[1], max_retries=0) as client:
                assert client.chat.completions.create(**ASK).choices[0].message.content == "It is on its way."
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=10)
            said.append(out)
            assert process.returncode == 0, err
            assert key not in "".join(lines) + out + err + tape.read_text()
        assert upstream.count == 1
    assert "1 message, 0 tools -> 200 (recorded)" in said[0]
    assert "1 message, 0 tools -> 200 (played)" in said[1]
    assert "Ended after 1 request." in said[1]
