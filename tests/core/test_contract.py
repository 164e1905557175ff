"""The contract of a guard, held by guards that somebody else writes: `async (run, action, act) -> entry`.

Composed with the built-in ones in any order, they keep what a run promises: each call has exactly one result, in order, and
the run ends within its cap.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentlab import (
    Ask,
    Call,
    Cap,
    Held,
    Reply,
    Result,
    Ruling,
    Run,
    Stop,
    System,
    User,
    climb,
    guarded,
    lint,
    models,
    perform,
    steps,
)
from agentlab.loop import Act, Guard
from agentlab.records import Action, Entry


# ---- guards as somebody would write them, in ten lines or less ----
@dataclass(frozen=True)
class Curfew:
    """One tool is closed."""

    tool: str = "echo"

    async def __call__(self, run: Run, action: Action, act: Act) -> Entry:
        if isinstance(action, Call) and action.name == self.tool:
            return Result(action.id, f"{self.tool} is closed. Try another tool.", error=True)
        return await act(run, action)


async def again(run: Run, action: Action, act: Act) -> Entry:
    """A failed call is tried once more."""
    entry = await act(run, action)
    if isinstance(entry, Result) and entry.error:
        entry = await act(run, action)
    return entry


async def shouts(run: Run, action: Action, act: Act) -> Entry:
    """Arguments go in changed, and results come out changed."""
    if isinstance(action, Call) and "text" in action.arguments:
        action = replace(action, arguments='{"text": "LOUD"}')
    entry = await act(run, action)
    return replace(entry, text=entry.text.upper()) if isinstance(entry, Result) else entry


async def forgets(run: Run, action: Action, act: Act) -> Entry:
    """Only the question is sent."""
    return await act(run, replace(action, messages=list(action.messages)[:1]) if isinstance(action, Ask) else action)


async def knows_it(run: Run, action: Action, act: Act) -> Entry:
    """Now and then it answers for the model, with ids of its own that are not unique, in the last reply too."""
    if isinstance(action, Ask) and action.turn % 2:
        return Reply("I know.", (Call("mine", "add", '{"a": 1, "b": 2}'), Call("mine", "add", '{"a": 2, "b": 2}')))
    return await act(run, action)


async def gives_up(run: Run, action: Action, act: Act) -> Entry:
    """Ends the run in the middle of a turn."""
    return Stop("stuck", "enough") if isinstance(action, Call) and run.requests > 2 else await act(run, action)


THEIRS: list[Guard] = [Curfew(), again, shouts, forgets, knows_it, gives_up]


# ---- tools and a model that go wrong in usual ways ----
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def echo(text: str) -> str:
    """Say it again."""
    return text * 3_000


def fails() -> str:
    """Fail."""
    raise ValueError("as always")


CALLS = [("add", '{"a": 1, "b": 2}'), ("add", '{"a": "1"}'), ("echo", '{"text": "hi"}'), ("fails", "{}"), ("nowhere", "{}")]
turns = st.lists(st.sampled_from(CALLS), min_size=1, max_size=3).map(lambda pairs: models.calls(*pairs))
scripts = st.lists(st.one_of(turns, turns, st.sampled_from(["", "done"])), min_size=1, max_size=4)


@given(data=st.data(), said=scripts, width=st.sampled_from([1, 4]))
@settings(deadline=None, max_examples=150)
def test_a_guard_of_your_own_keeps_what_a_run_promises_wherever_it_stands(
    data: st.DataObject, said: list[Any], width: int
) -> None:
    theirs = data.draw(st.lists(st.sampled_from(THEIRS), min_size=1, max_size=2))
    guards = data.draw(st.permutations([*climb(cap=Cap(4)), *theirs]))
    asked = 0

    def play(request: dict[str, Any]) -> Any:
        nonlocal asked
        asked += 1
        assert lint(request["messages"]) == []
        return said[(asked - 1) % len(said)]

    async def work() -> Run:
        run = Run.start("q")
        act = guarded(perform(models.scripted(play), [add, echo, fails]), guards)
        async for later in steps(run, act, width):
            run = later
        return run

    run = asyncio.run(work())
    assert asked <= 5
    assert not run.todo
    assert run.status in {"answered", "capped", "stuck"}
    assert run.answer
    wanted = [call.id for reply in run.of(Reply) for call in reply.calls]
    results = [message["tool_call_id"] for message in run.messages if message["role"] == "tool"]
    assert len(set(wanted)) == len(wanted)
    assert results == wanted
    assert lint(run.messages) == []
    json.dumps(run.messages, allow_nan=False)


# ---- what is no guard, and what is no answer ----
async def short(run: Run, action: Action) -> Entry:
    raise AssertionError("never called")


async def renamed(run: Run, action: Action, inner: Act) -> Entry:
    raise AssertionError("never called")


def not_async(run: Run, action: Action, act: Act) -> Any:
    return act(run, action)


@pytest.mark.parametrize(
    ("guards", "says"),
    [
        ([3], "3 is no guard"),
        ([None], "None is no guard"),
        ([Cap], r"write Cap\(\) instead of Cap"),
        (Cap(), "guards must be a list"),
        ("cap", "guards must be a list, not 'cap'"),
        (None, "guards must be a list, not None"),
        ([climb()], "is no guard"),
        ([not_async], "is not async"),
        ([short], "must take three arguments"),
        ([renamed], "must take three arguments"),
    ],
)
def test_what_is_no_guard_is_named_where_it_is_put_in(guards: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        guarded(perform(models.scripted(["a"])), guards)


@pytest.mark.parametrize("outside", [[], climb()], ids=["alone", "inside the others"])
@pytest.mark.parametrize(
    ("answer", "about", "says"),
    [
        (lambda action: None, Ask, "answered the request to the model with None"),
        (lambda action: "an answer", Ask, "or a Reply or Stop of its own"),
        (lambda action: User("go on"), Ask, "or a Reply or Stop of its own"),
        (lambda action: System("obey"), Ask, "or a Reply or Stop of its own"),
        (lambda action: Result("x", "found"), Ask, "or a Reply or Stop of its own"),
        (lambda action: None, Call, "answered the call 'call_0_0' with None"),
        (lambda action: "found", Call, "or a Result, Held or Stop for this call"),
        (lambda action: Reply("done"), Call, "or a Result, Held or Stop for this call"),
        (lambda action: Result("another", "found"), Call, "or a Result, Held or Stop for this call"),
        (lambda action: Held("another"), Call, "or a Result, Held or Stop for this call"),
        (lambda action: Ruling(action.id, True), Call, "or a Result, Held or Stop for this call"),
    ],
)
async def test_an_answer_of_the_wrong_kind_gets_a_sentence(outside: list[Guard], answer: Any, about: Any, says: str) -> None:
    async def wrong(run: Run, action: Action, act: Act) -> Any:
        return answer(action) if isinstance(action, about) else await act(run, action)

    act = guarded(perform(models.scripted([models.call("add", a=1, b=2), "done"]), [add]), [*outside, wrong])
    with pytest.raises(TypeError, match=says):
        async for _ in steps(Run.start("q"), act):
            pass


async def test_a_forgotten_await_is_named() -> None:
    async def forgot(run: Run, action: Action, act: Act) -> Any:
        return act(run, action)

    with pytest.raises(TypeError, match=r"`return await act\(run, action\)`"):
        async for _ in steps(Run.start("q"), guarded(perform(models.scripted(["a"])), [forgot])):
            pass
