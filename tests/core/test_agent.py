"""The agent: wrong parts get a sentence at once (point 7 of the issue), and a request can be looked at without being sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentlab import Agent, Ask, Call, Cap, Isolate, Reply, Run, System, User, climb, models, tool
from agentlab.records import Action, Entry


@tool
def look(n: int = 1) -> int:
    """Look."""
    return n


SCRIPT = models.scripted([models.call("look", n=2), "done"])


async def sync_looking(run: Run, action: Action, act: Any) -> Entry:
    return await act(run, action)  # type: ignore[no-any-return]


def not_async(run: Run, action: Action, act: Any) -> Any:
    return act(run, action)


async def two_arguments(run: Run, action: Action) -> Any:
    return None


def no_types(a):  # type: ignore[no-untyped-def]
    return a


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Agent("gpt-5"), r"not str. Write models.openai\('gpt-5'\)"),
        (lambda: Agent(None), "must be something that can be asked, not NoneType"),
        (lambda: Agent(models.scripted), r"is the class scripted.*Write scripted\(…\)"),
        (lambda: Agent(SCRIPT, look), "tools must be a list"),
        (lambda: Agent(SCRIPT, None), "tools must be a list of functions or tools, not NoneType"),
        (lambda: Agent(SCRIPT, "look"), "tools must be a list of functions or tools, not str"),
        (lambda: Agent(SCRIPT, ["look"]), "makes a tool of a function; 'look' is str"),
        (lambda: Agent(SCRIPT, [no_types]), "parameter 'a' has no type. Write for example `a: str`"),
        (lambda: Agent(SCRIPT, [look, look]), "Two tools are named 'look'.*rename one"),
        (lambda: Agent(SCRIPT, [look], [Cap]), r"not classes: write Cap\(\) instead of Cap"),
        (lambda: Agent(SCRIPT, [look], Cap()), "guards must be a list"),
        (lambda: Agent(SCRIPT, [look], climb), "guards must be a list"),
        (lambda: Agent(SCRIPT, [look], ["cap"]), "'cap' is no guard"),
        (lambda: Agent(SCRIPT, [look], [not_async]), "is not async"),
        (lambda: Agent(SCRIPT, [look], [lambda run, action, act: act(run, action)]), "is not async"),
        (lambda: Agent(SCRIPT, [look], [two_arguments]), "must take three arguments"),
        (lambda: Agent(SCRIPT, [look], ask="yes"), "ask must be a function"),
        (lambda: Agent(SCRIPT, width=0), "width=0: give a whole number"),
        (lambda: Agent(SCRIPT, width=True), "width=True"),
    ],
)
def test_a_wrong_part_is_named_with_the_remedy(make: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        make()


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (lambda ask: Reply("hi"), "must be async"),
        (lambda ask: "hi", "must be async"),
        (models.scripted([models.call("look")]), "The script has 1 replies, and reply 2 was asked for"),
        (models.scripted(lambda request: None), "returned NoneType, not a chat completion"),
        (models.scripted(lambda request: {"choices": []}), "holds no choices"),
    ],
)
async def test_a_model_that_cannot_be_asked_is_said_in_a_sentence(model: Any, says: str) -> None:
    run = await Agent(model, [look]).run("q")
    assert run.status == "failed"
    assert run.stop is not None
    assert says in run.stop.why


async def test_run_sync_in_a_notebook_says_what_to_write() -> None:
    """CT06: never 'coroutine was never awaited'."""
    with pytest.raises(RuntimeError, match=r"run = await agent.run\(…\)"):
        Agent(SCRIPT, [look]).run_sync("q")


def test_run_sync_runs_and_runs_again() -> None:
    agent = Agent(SCRIPT, [look])
    assert [agent.run_sync("q").answer for _ in range(2)] == ["done", "done"]
    assert agent.last is not None
    assert agent.last.answer == "done"


async def test_a_conversation_goes_on_with_a_question_added() -> None:
    agent = Agent(models.scripted(lambda r: f"{sum(m['role'] == 'user' for m in r['messages'])} questions"), system="be brief")
    run = await agent.run("one")
    assert run.log[0] == System("be brief")
    assert (await agent.run(run.plus(User("two")))).answer == "2 questions"
    assert run.answer == "1 questions"


async def test_two_runs_of_one_agent_at_once_do_not_mix() -> None:
    """CT12"""

    async def model(ask: Ask) -> Reply:
        await asyncio.sleep(0)
        return Reply("", (Call("", "look", {"n": 1}),)) if ask.turn == 0 else Reply(ask.messages[0]["content"])

    agent = Agent(model, [look])
    runs = await asyncio.gather(*(agent.run(f"q{i}") for i in range(5)))
    assert [run.answer for run in runs] == [f"q{i}" for i in range(5)]
    assert {len(run) for run in runs} == {4}


async def test_what_a_guard_and_a_model_see_is_theirs_to_spoil() -> None:
    """A model function may do what it likes with its request; the next one is as it should be."""
    seen: list[Any] = []

    def spoils(request: dict[str, Any]) -> Any:
        seen.append((len(request["messages"]), request["tools"][0]["function"]["name"], request["messages"][0]["content"]))
        request["messages"][0]["content"] = "spoilt"
        request["tools"][0]["function"]["name"] = "spoilt"
        request["tools"].clear()
        return models.call("look", n=len(seen)) if len(seen) < 3 else "done"

    agent = Agent(models.scripted(spoils), [look])
    run = await agent.run("q")
    assert seen == [(1, "look", "q"), (3, "look", "q"), (5, "look", "q")]
    shown = agent.request(Run.start("q"))
    assert shown is not None
    shown["tools"][0]["function"]["name"] = "spoilt"
    assert run.messages[0]["content"] == "q"
    assert look.schema["function"]["name"] == "look"


async def test_a_tool_that_changes_its_arguments_changes_nothing_else() -> None:
    """PA13"""

    @tool
    def sort(words: list[str]) -> str:
        words.sort()
        words.append("more")
        return " ".join(words)

    run = await Agent(models.scripted([models.call("sort", words=["b", "a"]), "done"]), [sort]).run("q")
    assert run.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"words": ["b", "a"]}'
    assert run.messages[2]["content"] == "a b more"


# ---- request: what would be sent next ----
async def test_the_request_is_the_one_that_is_sent() -> None:
    sent: list[Ask] = []

    async def model(ask: Ask) -> Reply:
        sent.append(ask)
        return Reply("", (Call("", "look", {"n": ask.turn}),)) if ask.tools else Reply("last word")

    async def shortens(run: Run, action: Action, act: Any) -> Entry:
        if isinstance(action, Ask):
            action = Ask(list(action.messages)[-3:], action.tools, action.last, action.turn)
        return await act(run, action)  # type: ignore[no-any-return]

    agent = Agent(model, [look], [*climb(cap=Cap(2)), shortens])
    shown = [agent.request(agent.begin("q"))]
    shown += [agent.request(run) async for run in agent.steps("q")]
    requests = [request for request in shown if request]
    assert len(sent) == 3
    for ask in sent:
        assert {"messages": list(ask.messages), "tools": list(ask.tools or ())} in requests
    assert shown[1] is None, "calls are open"
    assert shown[-1] is None, "the run is finished"
    assert any(request["tools"] == [] and "no tools now" in request["messages"][-1]["content"] for request in requests)


async def test_looking_at_a_request_changes_neither_the_run_nor_what_comes_of_it() -> None:
    agent = Agent(SCRIPT, [look], climb(cap=Cap(1)))
    async for run in agent.steps("q"):
        before = list(run.log)
        agent.request(run)
        agent.request(run)
        assert list(run.log) == before
    assert run.status == "capped"


def test_a_guard_that_waits_is_not_followed_with_or_without_an_event_loop() -> None:
    async def waits(run: Run, action: Action, act: Any) -> Entry:
        await asyncio.sleep(0.01)
        return await act(run, action)  # type: ignore[no-any-return]

    agent = Agent(SCRIPT, [look], [waits, Isolate()])

    async def inside() -> Any:
        return agent.request(agent.begin("q"))

    shown = agent.request(agent.begin("q"))
    assert shown == asyncio.run(inside())
    assert shown == {"messages": [{"role": "user", "content": "q"}], "tools": [look.schema]}


async def test_the_last_request_has_no_tools_even_where_the_guards_cannot_be_followed() -> None:
    async def waits(run: Run, action: Action, act: Any) -> Entry:
        await asyncio.sleep(0)
        return await act(run, action)  # type: ignore[no-any-return]

    from agentlab import Stop

    shown = Agent(SCRIPT, [look], [waits]).request(Run.start("q").plus(Stop("capped")))
    assert shown is not None
    assert shown["tools"] == []
