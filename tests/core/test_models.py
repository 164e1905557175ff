"""Models: scripts that keep no state, the same over HTTP without a socket, and an endpoint whose errors are sentences."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI

from agentlab import Agent, Call, Reply, Result, Run, climb, models, naked, tool
from agentlab.models.offline import BASE_URL
from agentlab.tools import Toolbox
from agentlab.wire import message, reply_from

from .test_cases import CASES

KEY = "sk-secret-0123456789abcdef"


@tool
def look(n: int) -> int:
    """Look."""
    return n


SCRIPT: list[Any] = [
    models.calls(("look", {"n": 1}), ("look", {"n": 2}), text="Let me look."),
    models.call("look", n=3),
    "done",
]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a socket was opened"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)


def client(transport: httpx2.AsyncBaseTransport, url: str = BASE_URL, key: str = KEY) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=key, base_url=url, max_retries=0, http_client=httpx2.AsyncClient(transport=transport))


class Endpoint(httpx2.AsyncBaseTransport):
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(json.loads(await request.aread()))
        said = self.answer(request) if callable(self.answer) else self.answer
        if isinstance(said, BaseException):
            raise said
        return said if isinstance(said, httpx2.Response) else httpx2.Response(200, json=said)


# ---- scripts ----
async def test_a_script_has_no_state_so_going_back_and_forking_work() -> None:
    agent = Agent(models.scripted(SCRIPT), [look])
    seen = [run async for run in agent.steps("q")]
    assert [c.id for run in seen[-1:] for r in run.of(Reply) for c in r.calls] == ["call_0_0", "call_0_1", "call_1_0"]
    for run in seen:
        assert (await agent.run(run)) == seen[-1]
    fork = await agent.run(seen[0].plus(Result("call_0_0", "7"), Result("call_0_1", "8")))
    assert fork.answer == "done"
    assert fork != seen[-1]


@pytest.mark.parametrize("item", ["text", {"role": "assistant", "content": "text"}, models.say("text"), Reply("text")])
async def test_a_script_may_hold_any_form_of_a_reply(item: Any) -> None:
    async def later(request: Any) -> Any:
        return item

    for script in ([item], lambda request: item, later):
        assert (await Agent(models.scripted(script)).run("q")).answer == "text"


@pytest.mark.parametrize("error", [ValueError("no"), KeyError, models.ModelError("gone")])
async def test_a_script_may_raise(error: Any) -> None:
    kind = error if isinstance(error, type) else type(error)
    with pytest.raises(kind):
        await naked("q", models.scripted([error]))
    assert (await Agent(models.scripted([error])).run("q")).status == "failed"


@pytest.mark.parametrize(
    "item",
    [[models.call("a"), models.call("b")], {"role": "assistant", "tool_calls": [models.call("a"), models.call("b")]}],
)
async def test_replies_where_calls_belong_are_named(item: Any) -> None:
    """A likely slip: it came out as two nameless calls."""
    run = await Agent(models.scripted([item, "done"])).run("q")
    assert run.stop is not None
    assert "Reply 1 of the script holds whole replies where calls belong" in run.stop.why
    assert 'models.calls(("name", {"argument": value})' in run.stop.why


@pytest.mark.parametrize("script", ["a text", {"choices": []}, None, 7])
def test_what_is_no_script_is_refused(script: Any) -> None:
    with pytest.raises(TypeError, match="A script is a list of replies or a function"):
        models.scripted(script)


async def test_a_function_sees_the_request_as_it_stands_on_the_wire() -> None:
    seen: list[Any] = []

    def script(request: dict[str, Any]) -> Any:
        seen.append(
            (request["model"], [m["role"] for m in request["messages"]], [t["function"]["name"] for t in request["tools"]])
        )
        return models.call("look", n=1) if len(seen) == 1 else "done"

    await Agent(models.scripted(script), [look]).run("q")
    assert seen == [("scripted", ["user"], ["look"]), ("scripted", ["user", "assistant", "tool"], ["look"])]


# ---- the same over HTTP ----
@pytest.mark.parametrize("width", [1, 4])
async def test_over_the_transport_a_run_is_the_same(width: int) -> None:
    near = await Agent(models.scripted(SCRIPT), [look], width=width).run("q")
    far = await Agent(models.openai(client=client(models.transport(SCRIPT))), [look], width=width).run("q")
    assert far == near
    assert far.answer == "done"


async def test_a_blank_reply_does_not_put_the_transport_out_of_step() -> None:
    """Our client tells the turn in a header: an empty message is not sent, so counting messages would miss it."""
    far = Agent(models.openai(client=client(models.transport(["", "at last"]))))
    run = await far.run("q")
    assert (run.status, run.answer) == ("answered", "at last")


async def test_a_plain_client_is_served_by_the_messages_that_it_sends() -> None:
    """The learner's own loop, with the SDK and nothing of ours."""
    plain = client(models.transport(SCRIPT))
    messages: list[Any] = [{"role": "user", "content": "q"}]
    while True:
        completion = await plain.chat.completions.create(model="any", messages=messages)
        said = completion.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            break
        for call in said.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "1"})  # noqa: PERF401 - as a learner writes it
    assert said.content == "done"
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    assert [m.id async for m in plain.models.list()] == ["scripted"]


async def test_streamed_it_is_the_same_reply() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    script = [{**models.calls(("look", {"n": 1}), ("look", '{"n": 2'), text="Let me look, and look again."), "usage": usage}]
    plain = client(models.transport(script))
    stream = await plain.chat.completions.create(
        model="any", messages=[{"role": "user", "content": "q"}], stream=True, stream_options={"include_usage": True}
    )
    text, calls, finish, counted = "", {}, None, None
    async for chunk in stream:
        counted = chunk.usage or counted
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for part in choice.delta.tool_calls or ():
                assert part.function is not None
                calls[part.index] = (part.id, part.function.name, part.function.arguments)
    assert text == "Let me look, and look again."
    assert calls == {0: ("call_0_0", "look", '{"n": 1}'), 1: ("call_0_1", "look", '{"n": 2')}
    assert finish == "tool_calls"
    assert counted is not None
    assert counted.total_tokens == 7


async def test_what_goes_wrong_in_a_script_comes_back_as_an_endpoints_error() -> None:
    def boom(request: Any) -> Any:
        raise ValueError("no such page")

    for script, says in (([], "The script has 0 replies"), (boom, "The script raised ValueError: no such page")):
        run = await Agent(models.openai(client=client(models.transport(script)))).run("q")
        assert run.stop is not None
        assert says in run.stop.why


@pytest.mark.parametrize("body", [b"no json", b"{}", b'{"messages": 7}', b"[]"])
async def test_the_transport_refuses_what_is_no_request(body: bytes) -> None:
    async with httpx2.AsyncClient(transport=models.transport(["x"])) as http:
        answer = await http.post(f"{BASE_URL}/chat/completions", content=body)
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, "The request holds no messages.")
        bad_turn = await http.post(f"{BASE_URL}/chat/completions", json={"messages": []}, headers={"x-agentlab-turn": "two"})
        assert bad_turn.status_code == 400
        assert (await http.get(f"{BASE_URL}/files")).status_code == 404


# ---- an endpoint ----
FAULTS = {
    "wrong key": (
        httpx2.Response(401, json={"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        "refused the key (401). Check OPENAI_API_KEY",
    ),
    "forbidden": (
        httpx2.Response(403, json={"error": {"message": f"no access for {KEY[:6]}****{KEY[-4:]}"}}),
        "does not allow this (403): no access for [key]",
    ),
    "no such model": (
        httpx2.Response(404, json={"error": {"message": "unknown"}}),
        "knows no model 'm', or the address is wrong (404): unknown.",
    ),
    "quota": (
        httpx2.Response(429, json={"error": {"message": "monthly limit"}}),
        "the quota is used up (429): monthly limit. Trying again does not help",
    ),
    "overloaded": (httpx2.Response(500, text=f"trace with {KEY} in it"), "answered 500"),
    "unreachable": (httpx2.ConnectError(f"no route, {KEY}"), "cannot be reached. Check OPENAI_BASE_URL"),
    "slow": (httpx2.ReadTimeout("slow"), "gave no answer in time"),
    "a web page": (httpx2.Response(200, text="<html>"), "answered with something that is no JSON"),
    "a list": (httpx2.Response(200, json=[1]), "no chat completion"),
    "no choices": (httpx2.Response(200, json={"id": "x", "choices": []}), "holds no choices (keys: choices, id)"),
    "an error in 200": (httpx2.Response(200, json={"error": {"message": "overloaded"}}), "answered with an error: overloaded"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_each_fault_is_a_sentence_and_the_key_is_nowhere(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Point 7 of the issue: not in the error, the run, the repr or the log."""
    caplog.set_level(logging.DEBUG)
    answer, says = FAULTS[name]
    model = models.openai("m", client=client(Endpoint(lambda _: answer), "http://host.example/v1"))
    agent = Agent(model, [look])
    run = await agent.run("q")
    assert run.status == "failed"
    assert run.stop is not None
    assert says in run.stop.why
    everything = f"{run!r} {list(run.log)!r} {run.answer} {model!r} {agent!r} {agent.last!r} {caplog.text}"
    for part in (KEY, KEY[3:], KEY[:6], KEY[-4:]):
        assert part not in everything


@pytest.mark.parametrize("key", ["sk-ключ-secret", "sk-bad\nsecret"])
async def test_a_key_that_no_header_can_carry_is_not_quoted(key: str) -> None:
    transport = httpx2.AsyncHTTPTransport()
    async with transport:
        run = await Agent(models.openai("m", client=client(transport, key=key))).run("q")
    assert run.status == "failed"
    assert "secret" not in f"{list(run.log)!r}"


def test_a_missing_name_and_a_missing_key_say_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"No model name.*OPENAI_MODEL"):
        models.openai()
    monkeypatch.setenv("OPENAI_MODEL", "from-env")
    assert repr(models.openai()) == "<models.openai 'from-env'>"
    run = Agent(models.openai()).run_sync("q")
    assert run.stop is not None
    assert "No API key. Set OPENAI_API_KEY" in run.stop.why


def test_a_client_of_the_wrong_kind_is_named() -> None:
    from openai import OpenAI

    with pytest.raises(TypeError, match=r"Write AsyncOpenAI\(…\)"):
        models.openai("m", OpenAI(api_key="x"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not str"):
        models.openai("m", "http://host")  # type: ignore[arg-type]


async def test_the_request_on_the_wire() -> None:
    """The header of ours goes to no other endpoint; a forced tool is forced once; no choice where there are no tools."""
    headers: list[Any] = []

    def answer(request: httpx2.Request) -> Any:
        headers.append(request.headers.get("x-agentlab-turn"))
        return models.call("look", n=len(headers)) if len(headers) < 3 else models.say("done")

    endpoint = Endpoint(answer)
    model = models.openai("m", client(endpoint, "http://host.example/v1"), temperature=0, tool_choice="required")
    from agentlab import Cap

    run = await Agent(model, [look], climb(cap=Cap(2))).run("q")
    assert run.status == "capped"
    assert headers == [None] * 3
    assert [body.get("tool_choice") for body in endpoint.asked] == ["required", None, None]
    assert ["tools" in body for body in endpoint.asked] == [True, True, False]
    assert {body["temperature"] for body in endpoint.asked} == {0}
    assert endpoint.asked[1]["messages"] == run.messages[:3]


def test_run_sync_can_be_called_again_with_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections of one event loop cannot be used in the next: a client made here is closed with it."""
    made: list[AsyncOpenAI] = []

    def new(*args: Any, **options: Any) -> AsyncOpenAI:
        made.append(client(Endpoint(models.say("hi")), "http://host.example/v1"))
        return made[-1]

    monkeypatch.setattr("openai.AsyncOpenAI", new)
    agent = Agent(models.openai("m"))
    assert [agent.run_sync("q").answer for _ in range(2)] == ["hi", "hi"]
    assert [one.is_closed() for one in made] == [True, True]


# ---- the border ----
@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": None}}]}, [("a", "f", "")]),
        ({"tool_calls": [{"id": "a", "name": "f", "arguments": {"x": 1}}]}, [("a", "f", '{"x": 1}')]),
        ({"function_call": {"name": "f", "arguments": "{}"}}, [("", "f", "{}")]),
        ({"tool_calls": [{"id": 7, "function": {"name": None}}], "function_call": {"name": "g"}}, [("7", "", "")]),
        ({"tool_calls": [None, "x", 3]}, []),
        ({"tool_calls": {}}, []),
    ],
)
def test_calls_in_every_shape_that_was_seen(said: Any, calls: Any) -> None:
    """AE02, AE06, AS04, AS13, MS11, MS12"""
    reply = reply_from({"choices": [{"message": {"role": "assistant", **said}}]})
    assert [(c.id, c.name, c.arguments) for c in reply.calls] == calls


@pytest.mark.parametrize("finish", ["content_filter", "refusal"])
def test_calls_that_were_not_meant_are_dropped(finish: str) -> None:
    """MS08"""
    completion = models.call("look", n=1)
    completion["choices"][0]["finish_reason"] = finish
    assert reply_from(completion).calls == ()


def test_names_and_arguments_go_out_in_a_form_that_endpoints_take() -> None:
    """TN05, TN06, TN11, AS01"""
    sent = message(Reply("", (Call("a", "no such.name", "[1]"), Call("b", "", "{'x': 1}"), Call("c", "x" * 99, "\ud83d"))))
    names = [call["function"]["name"] for call in sent["tool_calls"]]
    assert names == ["no_such_name", "unnamed_tool", "x" * 64]
    assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in sent["tool_calls"])
    assert sent["content"] is None


async def test_models_may_be_asked_side_by_side() -> None:
    model = models.openai(client=client(models.transport(lambda r: r["messages"][0]["content"])))
    runs = await asyncio.gather(*(Agent(model).run(f"q{i}") for i in range(5)))
    assert [run.answer for run in runs] == [f"q{i}" for i in range(5)]
    assert all(isinstance(run, Run) for run in runs)


# ---- trying again: one layer's business (D6, and the reports PB03, PB05, PB09) ----
class Waits:
    """The seconds that were waited, in a test where nobody does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds: list[float] = []
        real = asyncio.sleep

        async def sleep(seconds: float) -> None:
            if seconds:
                self.seconds.append(seconds)
            await real(0)

        monkeypatch.setattr("agentlab.models.endpoint.asyncio.sleep", sleep)


def patient(answers: list[Any], retries: int = 3) -> tuple[Agent, Endpoint]:
    left = iter(answers)
    endpoint = Endpoint(lambda request: next(left))
    sdk = AsyncOpenAI(api_key=KEY, base_url=BASE_URL, max_retries=retries, http_client=httpx2.AsyncClient(transport=endpoint))
    return Agent(models.openai("m", sdk), [look]), endpoint


def says(status: int, message: str = "no", **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, json={"error": {"message": message}}, headers=named)


OK = models.say("ok")


async def test_pb03_what_the_endpoint_asks_for_is_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    agent, endpoint = patient([says(429, "slow down", retry_after="2"), says(429, "slow down", retry_after_ms="300"), OK])
    run = await agent.run("x")
    assert (run.answer, waits.seconds, len(endpoint.asked)) == ("ok", [2.0, 0.3], 3)
    assert endpoint.asked[0] == endpoint.asked[2]


async def test_else_half_a_second_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    agent, _ = patient([says(500), says(503, retry_after="Wed, 21 Oct"), httpx2.ConnectError("gone"), OK])
    assert (await agent.run("x")).answer == "ok"
    assert [round(seconds / 0.5 / 2**n, 2) <= 1.0 for n, seconds in enumerate(waits.seconds)] == [True] * 3
    assert waits.seconds == sorted(waits.seconds)


@pytest.mark.parametrize("case", ["PB05", "PB09"])
async def test_a_quota_that_is_used_up_is_final(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    rows = CASES[case]["input"]["responses"]
    answers = [httpx2.Response(row["http_status"], json=row["body"]) if "http_status" in row else row for row in rows]
    agent, endpoint = patient(answers)
    if case == "PB05":
        agent.tools = Toolbox({"ls": lambda: "a"})
    run = await agent.run("x")
    assert (run.status, waits.seconds) == ("failed", [])
    assert len(endpoint.asked) == (2 if case == "PB05" else 1)
    assert run.stop is not None
    assert rows[-1]["body"]["error"]["message"] in run.stop.why
    assert "Trying again does not help" in run.stop.why
    assert case == "PB09" or "- ls: a" in (run.answer or "")


@pytest.mark.parametrize(
    ("answer", "tries"),
    [
        (says(400), 1), (says(401), 1), (says(403), 1), (says(404), 1), (says(413), 1), (says(422), 1),
        (says(408), 4), (says(409), 4), (says(502), 4),
        (says(429, "Rate limit reached: 3 RPM. Add a quota. Try again in 20s"), 4),
        (says(429, "You exceeded your current quota"), 1), (says(429, "Out of credits"), 1),
        (says(503, x_should_retry="false"), 1),
        (says(429, retry_after="3600"), 1), (says(429, retry_after="-1"), 1), (says(429, retry_after="nan"), 1),
        (httpx2.Response(429, json={"error": {"message": "no", "code": "insufficient_quota"}}), 1),
    ],
)  # fmt: skip
async def test_what_is_sent_again_and_what_never(answer: Any, tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    Waits(monkeypatch)
    agent, endpoint = patient([answer] * 9)
    run = await agent.run("x")
    assert (run.status, len(endpoint.asked)) == ("failed", tries)
    assert KEY not in repr(run.log)


async def test_a_wait_that_is_too_long_is_told() -> None:
    agent, _ = patient([says(429, retry_after="3600")])
    run = await agent.run("x")
    assert "It asks to wait 3600 s" in (run.stop.why if run.stop else "")
