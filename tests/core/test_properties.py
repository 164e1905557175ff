"""What must hold for every model and every tool, the worst included (hypothesis).

1. A task that needs no guard: each rung of the ladder, at widths 1 and 4, leaves exactly the naked loop's transcript.
2. A model and tools that do anything: a guarded run never raises, ends within its cap, and leaves a history in which each
   call has exactly one result, in order, and which any endpoint takes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentlab import Agent, Ask, Call, Held, Reply, Result, Run, climb, lint, models, naked, tool
from agentlab.guards import Cap, Truncate
from agentlab.ladder import LADDER
from agentlab.tools import Tool

T = TypeVar("T")
SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
RUNGS = [None, *(rung.name for rung in LADDER)]
STATUSES = {"answered", "capped", "stuck", "over_budget", "failed"}


def run_alone(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run in an event loop of its own, in which nothing may go wrong behind the back of the run."""
    behind: list[dict[str, Any]] = []

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: behind.append(context))
        return await work()

    result = asyncio.run(watched())
    assert behind == []
    return result


# ---- 1. a task that needs no guard ----
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def echo(text: str) -> str:
    """Say it again."""
    await asyncio.sleep(0)
    return f"said {text}"


def rows(n: int) -> list[dict[str, int]]:
    """Make rows."""
    return [{"row": i} for i in range(n)]


PLAIN_TOOLS = [tool(add), tool(echo), tool(rows)]
number = st.integers(-(2**70), 2**70)
good_calls = st.one_of(
    st.tuples(st.just("add"), st.fixed_dictionaries({"a": number, "b": number})),
    st.tuples(st.just("echo"), st.fixed_dictionaries({"text": st.text(max_size=200)})),
    st.tuples(st.just("rows"), st.fixed_dictionaries({"n": st.integers(1, 40)})),
)


@st.composite
def easy_tasks(draw: st.DrawFn) -> list[Any]:
    """Replies of a model that does nothing wrong: at most seven turns of calls, none of them twice, then an answer."""
    wanted = draw(st.lists(good_calls, max_size=12, unique_by=lambda pair: json.dumps(pair, sort_keys=True)))
    turns: list[list[tuple[str, Any]]] = []
    while wanted and len(turns) < 7:
        size = draw(st.integers(1, 5))
        turns.append(wanted[:size])
        wanted = wanted[size:]
    text = st.none() | st.text(max_size=20)
    script: list[Any] = [models.calls(*turn, text=draw(text)) for turn in turns]
    for at, completion in enumerate(script):
        if draw(st.booleans()):  # some endpoints give ids, some do not
            for k, call in enumerate(completion["choices"][0]["message"]["tool_calls"]):
                call["id"] = f"id-{at}-{k}"
    return [*script, draw(st.text(min_size=1, max_size=50).filter(str.strip))]


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("rung", RUNGS, ids=str)
@given(task=easy_tasks())
@settings(SETTINGS, max_examples=25)
def test_a_task_that_needs_no_guard_leaves_the_naked_transcript(rung: str | None, width: int, task: list[Any]) -> None:
    guards = [] if rung is None else climb(rung)

    async def both() -> tuple[list[Any], Run]:
        bare = await naked("What is it?", models.scripted(task), PLAIN_TOOLS)
        agent = Agent(models.scripted(task), PLAIN_TOOLS, guards=guards, width=width)
        return bare, await agent.run("What is it?")

    bare, run = run_alone(both)
    assert list(run.log) == bare
    assert run.messages == Run(bare).messages
    assert run.status == "answered"
    assert all(not entry.notes for entry in run.log if isinstance(entry, Reply | Result))
    assert lint(run.messages) == []


# ---- 2. a model and tools that do anything ----
class Rude(BaseException):
    """No Exception, so `except Exception` does not see it."""


class Unsayable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message for you")


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("no repr either")


class Blurting:
    """Says things that no endpoint takes."""

    def __str__(self) -> str:
        return "\ud83d half a sign"


def endless() -> Any:
    while True:
        yield "again"


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


def ring() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@dataclass(frozen=True)
class Made:
    """A value that hypothesis cannot print, made by the tool itself."""

    make: str

    def now(self) -> Any:
        return {
            "unshowable": Unshowable, "blurting": Blurting, "unsayable": Unsayable, "ring": ring, "endless": endless,
            "object": object,
            "nested 3": lambda: nested(3), "nested 100": lambda: nested(100), "nested 5000": lambda: nested(5_000),
            "long": lambda: "x" * 100_000, "lines": lambda: "\n".join(map(str, range(5_000))),
            "families": lambda: "👩‍👩‍👧‍👦" * 900,
            "accents": lambda: "e" + "\u0301" * 5_000, "rude": lambda: Rude("x"), "huge number": lambda: 10**5_000,
        }[self.make]()  # fmt: skip


MADE = [
    "unshowable", "blurting", "unsayable", "ring", "endless", "object", "nested 3", "nested 100", "nested 5000",
    "long", "lines",
    "families", "accents", "rude", "huge number",
]  # fmt: skip


def now(value: Any) -> Any:
    if isinstance(value, Made):
        return value.now()
    if isinstance(value, list | tuple):
        return type(value)(now(item) for item in value)
    return {key: now(item) for key, item in value.items()} if isinstance(value, dict) else value


anything = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.complex_numbers(),
        st.text(st.characters(), max_size=40),  # surrogates too
        st.binary(max_size=40),
        st.sampled_from([int, ..., range(9), endless]),
        st.sampled_from(MADE).map(Made),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=5), st.integers(), st.none()), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=6,
)
errors = st.sampled_from(
    [
        ValueError("no"), KeyError("k"), LookupError(), RuntimeError("x" * 100_000), UnicodeDecodeError("utf-8",
        b"\xff", 0, 1, "bad"),
        SystemExit(3), asyncio.CancelledError(), StopIteration(7), StopAsyncIteration(), GeneratorExit(),
        Rude("rude"), Made("unsayable"),
        TimeoutError("dns"), RecursionError(), MemoryError(), AssertionError(), OSError(2, "gone"),
        ValueError("\ud83d"), ExceptionGroup("many", [ValueError("a"), KeyError("b")]), BaseExceptionGroup("rude", [Rude()]),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Does:
    """What one tool does: return `value`, or raise `error`; at once, after an await, or in what it returns."""

    value: Any
    error: BaseException | Made | None
    how: str


HOW = ("sync", "async", "returns a coroutine", "async generator")
deeds = st.builds(Does, anything, st.none() | errors, st.sampled_from(HOW))


def misbehaving(name: str, does: Does, typed: bool, dangerous: bool) -> Tool:
    """A tool that does it."""

    def act() -> Any:
        if does.error is not None:
            raise does.error if isinstance(does.error, BaseException) else does.error.now()
        return now(does.value)

    async def later() -> Any:
        await asyncio.sleep(0)
        return act()

    async def one_by_one() -> Any:
        yield 1
        yield act()

    made = {"sync": act, "async": later, "returns a coroutine": lambda: later(), "async generator": one_by_one}[does.how]

    if does.how == "async":

        async def work(**given: Any) -> Any:
            given.clear()
            return await later()

        async def work_typed(a: int, b: list[str] | None = None) -> Any:
            return await later()

    else:

        def work(**given: Any) -> Any:  # type: ignore[misc]  # the sync twin
            given.clear()
            return made()

        def work_typed(a: int, b: list[str] | None = None) -> Any:  # type: ignore[misc]
            return made()

    if typed:
        return tool(work_typed, name=name, dangerous=dangerous)
    return tool(work, name=name, dangerous=dangerous, parameters={"type": "object"})


NAMES = ("a_tool", "b_tool", "danger", "alone")
text_arguments = st.one_of(
    st.sampled_from(
        [
            "", " ", "{}", "null", '{"a": 1}', '{"a": "1"}', '{"a": NaN}', '{"a": Infinity}', '{"a": 1e999}',
            '{"a": 1', '{"a":', "{'a': 1}",
            '```json\n{"a": 1}\n```', '{"a": 1,}', '{"a": 1}{"a": 1}', '{"a": 1}{"a": 2}', '{"a": 1, "a": 2}',
            "[1, 2]", '"{\\"a\\": 1}"',
            '{"a": "\\ud83d"}', '{"\\ud83d": 1}', '{"a": "\ud83d"}', '{"a": ' + "9" * 5_000 + "}", "[" * 20_000,
            '{"a":' * 5_000,
            "{" * 3_000, '{"a": "' + "x" * 50_000 + '"}', "call me", "\x00", '{"a": 1, "b": ["x"]}',
            '{"a": 1, "c": 2}', '{"a": true}',
            '{"a": 1.0}', '{"a": 1.5}', '{"": 1}', '{"self": 1}', '{"given": 1}', "{\"a\": 1, 'b': None}",
            '{"a": {"b": {"c": []}}}',
        ]
    ),
    st.text(st.characters(), max_size=30),
    st.dictionaries(st.text(st.characters(), max_size=4), st.integers() | st.text(max_size=4), max_size=3).map(json.dumps),
)  # fmt: skip
raw_arguments = st.one_of(
    text_arguments,
    text_arguments,
    st.none(),
    st.integers(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
names = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from(
        [
            "",
            " a_tool\n",
            "A_TOOL",
            "a-tool",
            "find_it",
            "a_tool<|channel|>commentary",
            "$no!",
            "x" * 300,
            "\ud83d",
            "functions.a_tool",
        ]
    ),
    st.text(st.characters(), max_size=10),
    st.none(),
    st.integers(),
)
ids = st.one_of(
    st.sampled_from(["", "call_0", "call_1_0", "same", "x" * 200, "\ud83d"]), st.none(), st.text(max_size=5), st.integers()
)
wire_calls = st.one_of(
    st.fixed_dictionaries(
        {"id": ids, "type": st.just("function"), "function": st.fixed_dictionaries({"name": names, "arguments": raw_arguments})}
    ),
    st.fixed_dictionaries({"name": names, "arguments": raw_arguments}),
    st.sampled_from(
        [{}, None, "call", 7, {"id": "x"}, {"function": None}, {"function": {}}, {"id": {}, "function": {"name": []}}]
    ),
)
contents = st.one_of(
    st.none(),
    st.text(st.characters(), max_size=30),
    st.sampled_from(
        ["", " \n", "\ud83d", "y" * 100_000, [], [{"type": "text", "text": "parts"}], [None, 3, {"text": None}], {}, 7]
    ),
)
finishes = st.sampled_from([None, "stop", "tool_calls", "length", "max_tokens", "content_filter", "error", "weird", 3])
completions = st.fixed_dictionaries(
    {
        "choices": st.one_of(
            st.fixed_dictionaries(
                {
                    "finish_reason": finishes,
                    "message": st.fixed_dictionaries(
                        {"role": st.just("assistant"), "content": contents},
                        optional={
                            "tool_calls": st.one_of(st.lists(wire_calls, max_size=5), st.none(), st.just("calls")),
                            "function_call": st.fixed_dictionaries({"name": names, "arguments": raw_arguments}),
                            "refusal": st.sampled_from([None, "I will not."]),
                        },
                    ),
                }
            ).map(lambda choice: [choice]),
            st.sampled_from([[], None, [None], [{}], [{"message": None}], "choices"]),
        )
    },
    optional={
        "usage": st.sampled_from([None, {}, {"prompt_tokens": None}, {"prompt_tokens": -1, "completion_tokens": "x"}, 7]),
        "error": st.sampled_from([None, {"message": "overloaded"}, "broken"]),
    },
)
# Mostly calls that a tool can be reached with: a fault behind them is only found when they get there.
plain_calls = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(['{"a": 1}', '{"a": 2}', '{"a": "3"}', '{"a": 4, "b": ["x"]}', "{}"])
)
plain_turns = st.lists(plain_calls, min_size=1, max_size=4).map(lambda pairs: models.calls(*pairs))
made_calls = st.builds(
    Call,
    st.text(st.characters(), max_size=5),
    st.sampled_from(NAMES) | st.text(st.characters(), max_size=5),
    text_arguments,
)
failures = st.sampled_from(
    [
        ValueError("model"), RuntimeError(), TimeoutError(), KeyError("choices"), models.ModelError("unreachable"),
        Made("unsayable"),
        StopIteration(),
    ]
)  # fmt: skip
replies = st.one_of(
    *[plain_turns] * 6,
    completions,
    completions,
    st.builds(Reply, st.text(st.characters(), max_size=9), st.lists(made_calls, max_size=4).map(tuple)),
    st.text(st.characters(), max_size=20) | st.sampled_from([{}, None, 7, [], {"role": "assistant"}, {"content": None}]),
    failures,
)


def rules(said: Any) -> Callable[[Run, Call], Any]:
    def ask(run: Run, call: Call) -> Any:
        return call.ruled(True, arguments='{"a": 2}') if said == "edited" else said

    return ask


@pytest.mark.parametrize("width", [1, 4])
@given(
    said=st.lists(replies, min_size=1, max_size=6),
    does=st.tuples(*[deeds] * 4),
    typed=st.tuples(*[st.booleans()] * 4),
    person=st.sampled_from([True, False, "edited"]),
    cap=st.integers(1, 5),
)
@settings(SETTINGS, max_examples=150)
def test_no_model_and_no_tool_can_break_a_guarded_run(
    width: int, said: list[Any], does: tuple[Does, ...], typed: tuple[bool, ...], person: Any, cap: int
) -> None:
    tools = [misbehaving(name, d, t, name == "danger") for name, d, t in zip(NAMES, does, typed, strict=True)]
    requests: list[Any] = []

    def play(request: dict[str, Any]) -> Any:
        requests.append(lint(request["messages"]))
        return now(said[(len(requests) - 1) % len(said)])

    async def work() -> Run:
        agent = Agent(models.scripted(play), tools, guards=climb(cap=Cap(cap)), width=width, ask=rules(person))
        return await agent.run("What is it?")

    run = run_alone(work)
    assert len(requests) <= cap + 1
    assert not any(requests)  # what is sent is as clean as what is kept
    check_history(run)
    check_cuts(run)


def check_history(run: Run) -> None:
    """The run ended, each call has its one result in order, and any endpoint takes the history."""
    assert run.status in STATUSES
    assert not run.todo
    assert isinstance(run.answer, str)
    assert run.answer.strip()
    assert run.usage is not None
    wanted = [call.id for entry in run.log if isinstance(entry, Reply) for call in entry.calls]
    came = [entry.call_id for entry in run.log if isinstance(entry, Result)]
    assert len(set(wanted)) == len(wanted)
    assert sorted(came) == sorted(wanted)
    if not run.of(Held):  # a call that waited for a person has its result in the log later; in the history in its place
        assert came == wanted
    assert lint(run.messages) == []
    json.dumps(run.messages, allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert [message["tool_call_id"] for message in run.messages if message["role"] == "tool"] == wanted


def check_cuts(run: Run) -> None:
    """No result is longer than it may be, and what was cut is kept whole (F2, F5)."""
    for entry in run.log:
        if isinstance(entry, Result):
            assert len(entry.text) <= Truncate().chars
            assert entry.text.strip()
            assert entry.full is None or len(entry.full) > Truncate().chars


@given(said=st.lists(replies, min_size=1, max_size=4), rung=st.sampled_from([r for r in RUNGS if r not in (None, "isolate")]))
@settings(SETTINGS, max_examples=100)
def test_every_rung_from_the_cap_up_ends_a_run_of_any_model(said: list[Any], rung: str) -> None:
    def play(request: dict[str, Any]) -> Any:
        return now(said[len(request["messages"]) % len(said)])

    async def work() -> Run:
        return await Agent(models.scripted(play), PLAIN_TOOLS, guards=climb(rung)).run("What is it?")

    check_history(run_alone(work))


@given(said=st.lists(replies, min_size=1, max_size=4), data=st.data())
@settings(SETTINGS, max_examples=60)
def test_a_run_can_be_left_at_any_step_and_gone_on_with(said: list[Any], data: st.DataObject) -> None:
    """Stepping is extending a value: from any earlier point the same replies lead to the same end."""

    async def play(ask: Ask) -> Reply:
        return await models.scripted(lambda request: now(said[ask.turn % len(said)]))(ask)

    async def work() -> tuple[Run, list[Run]]:
        agent = Agent(play, PLAIN_TOOLS, guards=climb(cap=Cap(4)))
        points = [run async for run in agent.steps("What is it?")]
        chosen = data.draw(st.sampled_from(points))
        return points[-1], [await agent.run(chosen), await agent.run(chosen.upto(1))]

    whole, again = run_alone(work)
    for run in again:
        assert list(run.log) == list(whole.log)
        assert run.messages == whole.messages
