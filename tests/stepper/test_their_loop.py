"""Stepping somebody else's loop through the door: held at requests and replies, its line shown, forked by running it again."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, OpenAI

from agentlab import Agent, lab, models, tool
from agentlab.branches import NotPossible
from agentlab.records import Reply, Result
from agentlab.stepper import Stepper
from agentlab.their_loop import TheirLoop
from agentlab.tools import Tool
from agentlab.twin import html_of_stepper

from .conftest import Till, until

QUESTION = "How much is there?"
LOOK = [models.call("look"), models.say("There are 100 cents.")]
PAY_TWICE = [models.call("pay", cents=10), models.call("pay", cents=1), models.say("Paid.")]


def loop_with(client: Any, tools: list[Tool]) -> Callable[[str], Any]:
    """The naked loop, as a learner writes it."""
    by_name = {one.name: one for one in tools}

    async def my_loop(question: str) -> str | None:
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            completion = await client.chat.completions.create(model="m", messages=messages)
            reply = completion.choices[0].message
            messages.append(reply.to_dict())
            if not reply.tool_calls:
                return reply.content
            for call in reply.tool_calls:
                result = by_name[call.function.name](**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    return my_loop


@pytest.fixture
async def make(tools: list[Tool]) -> AsyncIterator[Callable[..., Stepper]]:
    made: list[Stepper] = []

    def make(script: Any, loop: Any = None, **options: Any) -> Stepper:
        client = lab.client(script)
        taken = client if loop is not None and len(inspect.signature(loop).parameters) > 1 else None
        stepper = Stepper(TheirLoop(loop or loop_with(client, tools), QUESTION, taken, **options))
        made.append(stepper)
        return stepper

    yield make
    for stepper in made:
        stepper.close()
    await asyncio.sleep(0)


async def test_it_is_held_at_each_request_and_each_reply(make: Any, till: Till) -> None:
    stepper = make(LOOK)
    await stepper.begin()
    seen = []
    while not stepper.is_over:
        state = stepper.state()
        seen.append((state["phase"], state["turn"], state["rows"], len(till.log)))
        await stepper.step()
    assert seen == [("request", 1, 1, 0), ("reply", 1, 2, 0), ("request", 2, 3, 1), ("reply", 2, 4, 1)]
    assert (stepper.status, stepper.answer) == ("answered", "There are 100 cents.")
    assert [row["role"] for row in stepper.branch.rows] == ["user", "assistant", "tool", "assistant"]
    assert stepper.branch.rows[2]["name"] == "look"
    assert stepper.messages == stepper.run.messages
    assert [type(entry).__name__ for entry in stepper.run.log] == ["User", "Reply", "Result", "Reply"]
    assert stepper.state()["door"] is True


async def test_the_paused_line_is_the_learners_own(make: Any) -> None:
    stepper = make(LOOK)
    await stepper.begin()
    line = stepper.state()["line"]
    assert "client.chat.completions.create" in line["text"]
    assert line["file"] == "test_their_loop.py, my_loop"
    assert dict(line["locals"])["question"] == repr(QUESTION)
    assert "client" not in dict(line["locals"])
    assert line["lineno"] in dict(line["around"])


async def test_lamps_at_the_door(make: Any) -> None:
    stepper = make(LOOK)
    await stepper.begin()
    now = []
    while not stepper.is_over:
        now.append(sorted(lamp for lamp, state in stepper.state()["lamps"].items() if state == "now"))
        await stepper.step()
    assert now == [["N6"], ["N1", "N2", "N3", "N5"], ["N6"], ["N1", "N5"]]


async def test_back_does_not_run_the_function_again(make: Any, till: Till) -> None:
    stepper = make(LOOK)
    await stepper.go()
    stepper.goto(0)
    assert stepper.state()["rows"] == 1
    for _ in range(4):
        await stepper.step()
    assert (till.log, stepper.answer) == (["look"], "There are 100 cents.")


async def test_a_crash_of_the_learners_loop_is_kept(make: Any) -> None:
    stepper = make([models.call("find_order")])
    run = await stepper.finish()
    assert stepper.status.startswith("crashed: KeyError('find_order') at line ")
    assert "by_name[call.function.name]" in stepper.state()["line"]["text"]
    assert stepper.branch.rows[-1]["role"] == "note"
    assert len(run.of(Reply)) == 1
    stepper.back()
    assert stepper.state()["phase"] == "reply"


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt()])
async def test_what_would_end_the_kernel_ends_the_run(make: Any, raised: BaseException) -> None:
    async def leaving(question: str) -> str:
        raise raised

    stepper = make(LOOK, leaving)
    await stepper.finish()
    assert stepper.is_over
    assert stepper.status.startswith("crashed: SystemExit(3)") or stepper.status == "interrupted"


async def test_a_fork_runs_it_again_on_what_is_recorded(make: Any, till: Till) -> None:
    asked: list[int] = []

    def script(request: Any) -> Any:
        turn = sum(m["role"] == "assistant" for m in request["messages"])
        asked.append(turn)
        return PAY_TWICE[turn]

    stepper = make(script)
    await stepper.go()
    assert (till.cents, asked) == (89, [0, 1, 2])
    row = next(i for i, entry in enumerate(stepper.branch.entries) if isinstance(entry, Result) and entry.text == "paid 1")
    await stepper.fork(row, "text", "paid nothing")
    state = stepper.state()
    assert (state["phase"], state["turn"], state["rows"]) == ("request", 3, row + 1)
    assert asked == [0, 1, 2]  # the recorded replies were used
    assert till.cents == 89  # paid again, in the world as it was at the start
    assert stepper.branch.rows[row]["edited"] is True
    await stepper.go()
    assert stepper.answer == "Paid."
    assert stepper.messages[row]["content"] == "paid nothing"
    stepper.switch(0)
    assert (stepper.answer, till.cents) == ("Paid.", 89)


async def test_an_edited_message_is_what_the_model_is_sent(make: Any) -> None:
    got: list[Any] = []

    def script(request: Any) -> Any:
        got.append([m["content"] for m in request["messages"]])
        return LOOK[sum(m["role"] == "assistant" for m in request["messages"])]

    stepper = make(script)
    await stepper.go()
    await stepper.fork(0, "text", "And now?")
    await stepper.go()
    assert [contents[0] for contents in got] == [QUESTION, QUESTION, "And now?", "And now?"]


async def test_edited_arguments_are_what_the_function_gets(make: Any, till: Till) -> None:
    stepper = make(PAY_TWICE)
    await stepper.go()
    await stepper.fork(1, "arguments", '{"cents": 60}', "call_0_0")
    assert (stepper.state()["phase"], till.cents) == ("reply", 100)
    await stepper.step()
    assert till.cents == 40
    await stepper.go()
    assert till.cents == 39
    assert len(stepper.branches) == 2
    await stepper.fork(1, "text", "Never mind.")  # a fork of a fork
    assert stepper.branch.rows[1]["text"] == "Never mind."


async def test_branches_hold_their_own_coroutine_and_world(make: Any, till: Till) -> None:
    stepper = make(PAY_TWICE)
    for _ in range(3):
        await stepper.step()  # ten are paid; its second request waits
    assert till.cents == 90
    await stepper.fork(1, "arguments", '{"cents": 60}', "call_0_0")
    await stepper.go()
    assert till.cents == 39
    stepper.switch(0)
    assert till.cents == 90
    await stepper.go()
    assert till.cents == 89


async def test_a_function_that_takes_another_way_is_live_from_there(make: Any) -> None:
    lives = 0

    async def fickle(question: str, client: Any) -> str:
        nonlocal lives
        lives += 1
        first = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}])
        again = f"{first.choices[0].message.content} {lives}"
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": again}])
        last = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "end"}])
        return str(last.choices[0].message.content)

    said: list[str] = []
    stepper = make(lambda request: models.say("ok"), fickle, world=[])
    stepper.on_say = lambda text, tone: said.append(text)
    await stepper.go()
    row = next(i for i, row in enumerate(stepper.branch.rows) if row["text"] == "end")
    await stepper.fork(row, "text", "fin")
    assert "another way at request 2" in said[0]
    assert (stepper.state()["phase"], stepper.state()["turn"]) == ("request", 2)
    await stepper.go()
    assert stepper.answer == "ok"


async def test_a_history_that_is_cut_is_told(make: Any) -> None:
    async def forgetful(question: str, client: Any) -> str:
        messages = [{"role": "system", "content": "s"}, {"role": "user", "content": question}]
        await client.chat.completions.create(model="m", messages=messages)
        await client.chat.completions.create(model="m", messages=[messages[0], {"role": "user", "content": "short"}])
        return "done"

    stepper = make(lambda request: models.say("ok"), forgetful)
    await stepper.go()
    texts = [row["text"] for row in stepper.branch.rows]
    assert texts == ["s", QUESTION, "ok", "Request 2 leaves out 2 messages of the one before.", "short", "ok"]
    assert stepper.branch.bars[1]["user"] < stepper.branch.bars[0]["user"]
    with pytest.raises(NotPossible, match="note of the stepper"):
        await make_fork(stepper, 3)


async def make_fork(stepper: Stepper, row: int) -> None:
    stepper._loop.cannot_fork = ""  # type: ignore[misc]  # only to get past the world, which is not known here
    await stepper.fork(row, "text", "x")


async def test_several_requests_wait_in_a_queue(make: Any) -> None:
    async def both(question: str, client: Any) -> str:
        async def one(text: str) -> str:
            done = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
            return str(done.choices[0].message.content)

        return " ".join(await asyncio.gather(one("a"), one("b"), one("c")))

    stepper = make(lambda request: models.say(request["messages"][0]["content"].upper()), both)
    await stepper.begin()
    await until(lambda: len(stepper._loop.walks[stepper.branch].gate.waiting) == 3)
    seen = []
    while not stepper.is_over:
        state = stepper.state()
        seen.append((state["phase"], stepper.branch.rows[-1]["text"]))
        await stepper.step()
    assert [phase for phase, _ in seen] == ["request", "reply"] * 3
    assert stepper.answer == "A B C"


async def test_requests_of_tasks_show_a_line_of_the_learners(make: Any) -> None:
    async def gathering(question: str, client: Any) -> str:
        asked = client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}])
        (done,) = await asyncio.gather(asked)
        return str(done.choices[0].message.content)

    stepper = make(LOOK[1:], gathering)
    await stepper.begin()
    assert "asyncio.gather" in stepper.state()["line"]["text"]


async def test_streams_are_put_together_and_can_be_edited(make: Any) -> None:
    async def streaming(question: str, client: Any) -> str:
        stream = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}], stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    stepper = make([models.say("a long answer in several pieces of text")], streaming, world=[])
    await stepper.go()
    assert stepper.answer == "a long answer in several pieces of text"
    assert stepper.branch.rows[1]["text"] == stepper.answer
    await stepper.fork(1, "text", "short")
    await stepper.go()
    assert stepper.answer == "short"


async def test_an_endpoint_that_refuses_is_shown(make: Any) -> None:
    stepper = make([])
    await stepper.go()
    assert any("The script has 0 replies" in row["text"] and row["error"] for row in stepper.branch.rows)
    assert stepper.status.startswith("crashed: BadRequestError")


async def test_stop_cancels_the_function(make: Any) -> None:
    cancelled = asyncio.Event()

    async def slow(question: str, client: Any) -> str:
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}])
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "late"

    stepper = make(LOOK[1:], slow)
    going = asyncio.create_task(stepper.go())
    await until(lambda: stepper.state()["phase"] == "reply" and stepper._flight is not None)
    await asyncio.sleep(0.02)
    began = time.monotonic()
    stepper.stop()
    await going
    await asyncio.sleep(0)
    assert time.monotonic() - began < 1
    assert cancelled.is_set()
    assert (stepper.status, stepper.state()["phase"]) == ("interrupted", "end")
    assert "cannot be taken up again" in stepper.state()["next"]


async def test_a_stopped_function_cannot_go_on_asking_unseen(make: Any) -> None:
    asked = []

    async def stubborn(question: str, client: Any) -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}])
        await client.with_options(max_retries=0).chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        return "unseen"

    def script(request: Any) -> Any:
        asked.append(request)
        return models.say("ok")

    stepper = make(script, stubborn)
    await stepper.begin()
    task = stepper._loop.walks[stepper.branch].task
    stepper.stop()
    await asyncio.wait({task}, timeout=2)
    assert task.done()
    assert asked == []


async def test_reset_begins_anew(make: Any, till: Till) -> None:
    stepper = make(PAY_TWICE)
    await stepper.go()
    await stepper.reset()
    assert (till.cents, stepper.epoch, stepper.state()["phase"], stepper.state()["rows"]) == (100, 1, "request", 1)
    await stepper.go()
    assert till.cents == 89


async def test_an_agent_inside_a_function_passes_the_door_too(make: Any, tools: list[Tool]) -> None:
    agent = Agent(lab.model(LOOK), tools)

    async def wrapping(question: str) -> str | None:
        return (await agent.run(question)).answer

    stepper = make(LOOK, wrapping)
    await stepper.begin()
    assert stepper.state()["phase"] == "request"
    assert "agent.run(question)" in stepper.state()["line"]["text"]
    await stepper.go()
    assert stepper.answer == "There are 100 cents."


# ---- what is said of a function ----
def test_only_an_async_function_can_be_stepped() -> None:
    def sync(question: str) -> str:
        return question

    async def yielding(question: str) -> AsyncIterator[str]:
        yield question

    async def greedy(a: str, b: str, c: str) -> None: ...
    async def shy() -> None: ...
    async def strict(question: str, *, mood: str) -> None: ...

    with pytest.raises(TypeError, match="async def sync"):
        lab.step(sync, QUESTION)
    with pytest.raises(TypeError, match="async generator"):
        lab.step(yielding, QUESTION)
    for wrong in (greedy, shy, strict):
        with pytest.raises(TypeError, match="wrap it"):
            lab.step(wrong, QUESTION)
    with pytest.raises(TypeError, match="without the"):
        lab.step(strict(QUESTION, mood="x"), QUESTION)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not int"):
        lab.step(3, QUESTION)  # type: ignore[arg-type]


async def test_the_client_is_given_where_it_is_asked_for() -> None:
    async def with_client(question: str, client: Any = None) -> str:
        return type(client).__name__

    class Callable_:
        async def __call__(self, question: str) -> str:
            return question

    stepper = lab.step(with_client, QUESTION, client="mine")  # type: ignore[arg-type]
    await stepper.finish()
    assert stepper.answer == "str"
    assert "lab.client()" in stepper.state()["next"]
    made = lab.step(with_client, QUESTION)
    await made.finish()
    assert made.answer == "AsyncOpenAI"
    called = lab.step(Callable_(), QUESTION)
    await called.finish()
    assert called.answer == QUESTION


async def test_a_function_that_returns_nothing_is_told_so() -> None:
    async def mute(question: str, client: Any) -> None:
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}])

    stepper = lab.step(mute, QUESTION, client=lab.client([models.say("ok")]))
    await stepper.finish()
    assert (stepper.answer, stepper.status) == (None, "answered")
    assert "returned nothing" in stepper.state()["next"]


# ---- worlds ----
def test_worlds_are_found_among_the_names_that_a_function_uses(tools: list[Tool], till: Till) -> None:
    by_name = {one.name: one for one in tools}

    async def with_tools(question: str) -> None:
        by_name["look"]()

    async def through_helper(question: str) -> None:
        await with_tools(question)

    async def with_method(question: str, store: Any = till) -> None: ...

    for function in (with_tools, through_helper, with_method):
        loop = TheirLoop(function, QUESTION)
        assert (loop.cannot_fork, loop.worlds.worlds) == ("", (till,))


def test_the_desk_is_found_through_its_module() -> None:
    from agentlab import worlds

    async def with_desk(question: str) -> None:
        worlds.orders.desk.look()

    assert TheirLoop(with_desk, QUESTION).worlds.worlds == (worlds.orders.desk,)


def test_an_unknown_world_turns_fork_off_and_says_why(till: Till) -> None:
    async def plain(question: str) -> None: ...

    @tool(dangerous=True)
    def shout() -> str:
        """Shout."""
        return "!"

    async def shouting(question: str) -> None:
        shout()

    assert "world=desk" in TheirLoop(plain, QUESTION).cannot_fork
    assert "shout" in TheirLoop(shouting, QUESTION).cannot_fork
    assert TheirLoop(plain, QUESTION, world=till).worlds.worlds == (till,)
    assert TheirLoop(plain, QUESTION, world=[]).cannot_fork == ""
    with pytest.raises(TypeError, match="no snapshot"):
        TheirLoop(plain, QUESTION, world=3)


async def test_an_ordinary_client_of_their_own_is_given_the_door(till: Till) -> None:
    """Given without one, nothing was held: real requests went out on the first step."""
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers["x-mine"])
        return httpx2.Response(200, json=models.say("far away"))

    async def loop(question: str, client: Any) -> str:
        done = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}])
        return str(done.choices[0].message.content)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), headers={"x-mine": "kept"})
    own = AsyncOpenAI(api_key="none", base_url="http://far.invalid/v1", http_client=http, default_headers={"x-mine": "yes"})
    stepper = Stepper(TheirLoop(loop, QUESTION, own))
    await stepper.step()
    assert (stepper.state()["phase"], asked, stepper.is_over) == ("reply", ["yes"], False)  # held at the door
    await stepper.go()
    assert (stepper.state()["answer"], asked) == ("far away", ["yes"])
    stepper.close()


async def test_a_client_that_cannot_be_used_is_told_so() -> None:
    async def one(question: str) -> str:
        return ""

    async def two(question: str, client: Any) -> str:
        return ""

    with pytest.raises(TypeError, match="one takes no client, so the one given would not be used"):
        TheirLoop(one, QUESTION, lab.client([]))
    with pytest.raises(TypeError, match="sync OpenAI client"):
        TheirLoop(two, QUESTION, OpenAI(api_key="none"))


async def test_a_key_that_the_endpoint_quotes_is_not_shown() -> None:
    """Some do, in the 401 that refuses it; the crash is shown, and kept in the notebook."""
    key = "my-very-own-canary"

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(401, json={"error": {"message": f"Incorrect API key provided: {key}"}})

    async def loop(question: str, client: Any) -> str:
        return str(await client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}]))

    own = AsyncOpenAI(
        api_key=key, base_url="http://far.invalid/v1", http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    )
    stepper = Stepper(TheirLoop(loop, QUESTION, own))
    await stepper.go()
    assert "Incorrect API key provided" in stepper.state()["status"]
    for shown in (stepper.text(), json.dumps(stepper.state()), json.dumps(stepper.branch.rows), html_of_stepper(stepper)):
        assert key not in shown
    stepper.close()


async def test_an_endpoint_out_of_reach_says_what_to_do() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    async def loop(question: str, client: Any) -> str:
        return str(await client.chat.completions.create(model="m", messages=[{"role": "user", "content": question}]))

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    own = AsyncOpenAI(api_key="none", base_url="http://far.invalid/v1", http_client=http, max_retries=0)
    stepper = Stepper(TheirLoop(loop, QUESTION, own))
    await stepper.go()
    assert "check OPENAI_BASE_URL and the network" in stepper.state()["status"]
    stepper.close()


async def test_before_anything_ran_nothing_is_known(make: Any) -> None:
    assert make(LOOK).state()["next"] == "Step begins."
