"""Every check is tried with a blank stub, with right answers, and with the wrong answers that people write."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentlab import Ask, Cap, Isolate, Reply, Result, Stop, models
from agentlab.teach import check
from agentlab.teach.check import TASKS, Verdict, judge
from agentlab.teach.solutions import function_for, source

# ---- blank stubs, as they are published ----


def blank(*_: Any) -> Any:
    raise NotImplementedError


async def blank_async(*_: Any) -> Any:
    raise NotImplementedError("write me")


async def blank_loop(client: Any, tools: Any, question: str) -> Any:
    while True:
        await client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": question}])
        raise NotImplementedError


BLANKS = {"00-move": blank, "01-loop": blank_loop, "01-attack": blank, "03-number": blank}

# ---- wrong answers ----


def by_key(message: dict[str, Any]) -> str:
    return "call" if "tool_calls" in message else "answer"


def by_none(message: dict[str, Any]) -> str:
    return "call" if message.get("tool_calls") is not None else "answer"


def by_text(message: dict[str, Any]) -> str:
    return "answer" if message.get("content") else "call"


def by_word(message: dict[str, Any]) -> str:
    return "call" if 'tool_calls"' in json.dumps(message) and message.get("tool_calls") != [] else "answer"


def index_error(message: dict[str, Any]) -> str:
    return "call" if message["tool_calls"] else "answer"


def truth(message: dict[str, Any]) -> bool:
    return bool(message.get("tool_calls"))


async def async_move(message: dict[str, Any]) -> str:
    return "call" if message.get("tool_calls") else "answer"


def loop_with(
    *, keep: bool = True, end: bool = True, first: bool = False, id_: str = "", text: bool = True, leave: bool = False
) -> Any:
    """A learner's loop with one thing done wrong."""

    async def my_loop(client: Any, tools: Any, question: str) -> Any:
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            completion = await client.chat.completions.create(model="scripted", messages=messages)
            reply = completion.choices[0].message
            if keep:
                messages.append(reply.to_dict())
            if not reply.tool_calls and end:
                return reply.content
            for call in reply.tool_calls or []:
                result = tools[call.function.name](**json.loads(call.function.arguments))
                content = str(result) if text else [{"type": "text", "text": str(result)}]
                messages.append({"role": "tool", "tool_call_id": id_ or call.id, "content": content})
                if first:
                    break
            if leave and reply.tool_calls:
                return messages[-1]["content"]

    return my_loop


async def returns_reply(client: Any, tools: Any, question: str) -> Any:
    completion = await client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": question}])
    return completion.choices[0].message


def not_async(client: Any, tools: Any, question: str) -> str:
    return "hello"


async def forgets_json(client: Any, tools: Any, question: str) -> Any:
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        completion = await client.chat.completions.create(model="scripted", messages=messages)
        reply = completion.choices[0].message
        messages.append(reply.to_dict())
        if not reply.tool_calls:
            return reply.content
        for call in reply.tool_calls:
            result = tools[call.function.name](**call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})


async def nothing(run: Any, action: Any, act: Any) -> Any:
    await act(run, action)


async def passes(run: Any, action: Any, act: Any) -> Any:
    return await act(run, action)


async def not_awaited(run: Any, action: Any, act: Any) -> Any:
    return act(run, action)


def guard_not_async(run: Any, action: Any, act: Any) -> Any:
    return None


async def vague(run: Any, action: Any, act: Any) -> Any:
    try:
        return await act(run, action)
    except Exception:
        if isinstance(action, Ask):
            raise
        return Result(action.id, "Tool call failed.", error=True)


async def only_type(run: Any, action: Any, act: Any) -> Any:
    try:
        return await act(run, action)
    except Exception as error:
        if isinstance(action, Ask):
            raise
        return Result(action.id, type(error).__name__, error=True)


async def looks_fine(run: Any, action: Any, act: Any) -> Any:
    try:
        return await act(run, action)
    except Exception as error:
        if isinstance(action, Ask):
            raise
        return Result(action.id, str(error))


async def only_key_error(run: Any, action: Any, act: Any) -> Any:
    try:
        return await act(run, action)
    except KeyError as error:
        return Result(action.id, str(error), error=True)


async def swallows_asks(run: Any, action: Any, act: Any) -> Any:
    try:
        return await act(run, action)
    except Exception as error:
        return Result(action.id, f"{type(error).__name__}: {error}", error=True)


async def swallows_stop(run: Any, action: Any, act: Any) -> Any:
    try:
        return await act(run, action)
    except BaseException as error:
        if isinstance(action, Ask):
            raise
        return Result(action.id, f"{type(error).__name__}: {error}", error=True)


async def wrong_id(run: Any, action: Any, act: Any) -> Any:
    try:
        return await act(run, action)
    except Exception as error:
        if isinstance(action, Ask):
            raise
        return Result("call_1", f"{type(error).__name__}: {error}", error=True)


async def a_string(run: Any, action: Any, act: Any) -> Any:
    try:
        return await act(run, action)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


async def never_returns(run: Any, action: Any, act: Any) -> Any:
    while True:
        try:
            return await act(run, action)
        except Exception:
            continue


async def busy(run: Any, action: Any, act: Any) -> Any:
    while True:
        pass


async def typo(run: Any, action: Any, act: Any) -> Any:
    return await act(run, acton)  # type: ignore[name-defined]  # noqa: F821


async def empty_as_error(run: Any, action: Any, act: Any) -> Any:
    entry = await act(run, action)
    if isinstance(entry, Result) and entry.text in ("[]", "{}", "None"):
        return replace(entry, text="Nothing was found at all.", error=True)
    return entry


async def falsy(run: Any, action: Any, act: Any) -> Any:
    entry = await act(run, action)
    if isinstance(entry, Result) and entry.text in ("[]", "{}", "None", "0"):
        return replace(entry, text="Nothing was found at all.")
    return entry


async def only_list(run: Any, action: Any, act: Any) -> Any:
    entry = await act(run, action)
    return replace(entry, text="Nothing was found at all.") if getattr(entry, "text", "") == "[]" else entry


async def contains(run: Any, action: Any, act: Any) -> Any:
    entry = await act(run, action)
    empty = isinstance(entry, Result) and any(word in entry.text for word in ("[]", "{}", "None"))
    return replace(entry, text="Nothing was found at all.") if empty else entry


async def always(run: Any, action: Any, act: Any) -> Any:
    entry = await act(run, action)
    return replace(entry, text="Nothing was found at all.") if isinstance(entry, Result) else entry


async def no_isinstance(run: Any, action: Any, act: Any) -> Any:
    entry = await act(run, action)
    return replace(entry, text="Nothing was found.") if entry.result in ("", "[]") else entry


async def cap_raises(run: Any, action: Any, act: Any) -> Any:
    if isinstance(action, Ask) and run.requests >= 5:
        raise RuntimeError("limit")
    return await act(run, action)


async def cap_stops_last(run: Any, action: Any, act: Any) -> Any:
    if isinstance(action, Ask) and run.requests >= 5:
        return Stop("capped", "limit")
    return await act(run, action)


async def cap_all_replies(run: Any, action: Any, act: Any) -> Any:
    asked = sum(isinstance(entry, Reply) for entry in run.log)
    if isinstance(action, Ask) and not action.last and asked >= 5:
        return Stop("capped", "limit")
    return await act(run, action)


async def cap_off_by_one(run: Any, action: Any, act: Any) -> Any:
    if isinstance(action, Ask) and not action.last and run.requests > 5:
        return Stop("capped", "limit")
    return await act(run, action)


async def cap_early(run: Any, action: Any, act: Any) -> Any:
    if isinstance(action, Ask) and not action.last and run.requests >= 4:
        return Stop("capped", "limit")
    return await act(run, action)


async def cap_calls(run: Any, action: Any, act: Any) -> Any:
    if run.requests >= 5 and not getattr(action, "last", False):
        return Stop("capped", "limit")
    return await act(run, action)


async def cap_kind(run: Any, action: Any, act: Any) -> Any:
    if isinstance(action, Ask) and not action.last and run.requests >= 5:
        return Stop("stuck", "limit")
    return await act(run, action)


async def cap_no_reason(run: Any, action: Any, act: Any) -> Any:
    if isinstance(action, Ask) and not action.last and run.requests >= 5:
        return Stop("capped")
    return await act(run, action)


async def cap_answers(run: Any, action: Any, act: Any) -> Any:
    if isinstance(action, Ask) and run.requests >= 5:
        return Reply("I must stop here.")
    return await act(run, action)


def harmless() -> dict[str, Any]:
    return models.call("order_status", order_id=1042)


def invented() -> dict[str, Any]:
    return models.call("find_order", order_id=1042)


def no_call() -> dict[str, Any]:
    return models.say("Boo!")


def broken_json() -> dict[str, Any]:
    return models.calls(("order_status", '{"order_id": 10'))


def no_such_order() -> dict[str, Any]:
    return models.call("order_status", order_id=7)


def a_text() -> str:
    return "order_status()"


def mean(turns: list[int]) -> int:
    return math.ceil(1.5 * sum(turns) / len(turns))


def maximum(turns: list[int]) -> int:
    return math.ceil(1.5 * max(turns))


def median(turns: list[int]) -> int:
    return math.ceil(1.5 * sorted(turns)[len(turns) // 2])


def not_sorted(turns: list[int]) -> int:
    return math.ceil(1.5 * turns[int(0.99 * (len(turns) - 1))])


def not_rounded(turns: list[int]) -> float:
    return 1.5 * sorted(turns)[int(0.99 * (len(turns) - 1))]


def rounded_down(turns: list[int]) -> int:
    return int(1.5 * sorted(turns)[int(0.99 * (len(turns) - 1))])


def by_statistics(turns: list[int]) -> int:
    import statistics

    return math.ceil(1.5 * statistics.quantiles(turns, n=100, method="inclusive")[98])


RIGHT: list[tuple[str, Callable[..., Any]]] = [
    *((task, function_for(task)) for task in TASKS),
    ("01-attack", broken_json),
    ("01-attack", no_such_order),
    ("02-isolate", Isolate()),
    ("03-cap", Cap(5)),
]
WRONG: list[tuple[str, Callable[..., Any], str, str]] = [
    ("00-move", by_key, "incorrect", "tool_calls: []"),
    ("00-move", by_none, "incorrect", "tool_calls: []"),
    ("00-move", by_text, "incorrect", "a sentence and a call"),
    ("00-move", index_error, "crashed", "KeyError"),
    ("00-move", truth, "incorrect", "bool"),
    ("00-move", async_move, "incorrect", "plain `def`"),
    ("01-loop", loop_with(keep=False), "incorrect", "own reply"),
    ("01-loop", loop_with(end=False), "incorrect", "one more request"),
    ("01-loop", loop_with(first=True), "incorrect", "2, one for each call"),
    ("01-loop", loop_with(id_="call_x"), "incorrect", "ids of the calls"),
    ("01-loop", loop_with(text=False), "incorrect", "as text"),
    ("01-loop", loop_with(leave=True), "incorrect", "sent back to the model"),
    ("01-loop", returns_reply, "incorrect", "text of the last reply"),
    ("01-loop", not_async, "incorrect", "async def"),
    ("01-loop", forgets_json, "crashed", "TypeError"),
    ("01-attack", harmless, "incorrect", "it lived"),
    ("01-attack", invented, "incorrect", "does not exist"),
    ("01-attack", no_call, "incorrect", "calls no tool"),
    ("01-attack", a_text, "incorrect", "models.call"),
    ("02-isolate", nothing, "incorrect", "nothing (None)"),
    ("02-isolate", passes, "incorrect", "LookupError came through"),
    ("02-isolate", not_awaited, "incorrect", "await"),
    ("02-isolate", guard_not_async, "incorrect", "async def"),
    ("02-isolate", vague, "incorrect", "told only: Tool call failed."),
    ("02-isolate", only_type, "incorrect", "told only: LookupError"),
    ("02-isolate", looks_fine, "incorrect", "error=True"),
    ("02-isolate", only_key_error, "incorrect", "came through"),
    ("02-isolate", swallows_asks, "incorrect", "no call to answer"),
    ("02-isolate", swallows_stop, "incorrect", "Stop"),
    ("02-isolate", wrong_id, "incorrect", "action.id"),
    ("02-isolate", a_string, "incorrect", "str"),
    ("02-isolate", never_returns, "incorrect", "stopped after"),
    ("02-isolate", busy, "incorrect", "stopped after"),
    ("02-isolate", typo, "crashed", "acton"),
    ("02-empty", passes, "incorrect", "a sentence"),
    ("02-empty", empty_as_error, "incorrect", "no error"),
    ("02-empty", falsy, "incorrect", "answers '0'"),
    ("02-empty", only_list, "incorrect", "'{}'"),
    ("02-empty", contains, "incorrect", "None of the lamps"),
    ("02-empty", always, "incorrect", "untouched"),
    ("02-empty", no_isinstance, "crashed", "result"),
    ("03-cap", passes, "incorrect", "let through"),
    ("03-cap", nothing, "incorrect", "nothing (None)"),
    ("03-cap", cap_raises, "crashed", "RuntimeError: limit"),
    ("03-cap", cap_stops_last, "incorrect", "action.last"),
    ("03-cap", cap_all_replies, "incorrect", "since the last question"),
    ("03-cap", cap_off_by_one, "incorrect", "6 requests"),
    ("03-cap", cap_early, "incorrect", "after 4"),
    ("03-cap", cap_calls, "incorrect", ""),
    ("03-cap", cap_kind, "incorrect", "capped"),
    ("03-cap", cap_no_reason, "incorrect", "why"),
    ("03-cap", cap_answers, "incorrect", "capped"),
    ("03-number", mean, "incorrect", "99th percentile"),
    ("03-number", maximum, "incorrect", "runaway"),
    ("03-number", median, "incorrect", "99th percentile"),
    ("03-number", not_sorted, "incorrect", "another order"),
    ("03-number", not_rounded, "incorrect", "whole number"),
    ("03-number", rounded_down, "incorrect", "rounded up"),
]


def judged(task: str, function: Any) -> Verdict:
    verdict = check(task, function)
    assert isinstance(verdict, Verdict)
    return verdict


@pytest.fixture(autouse=True)
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["agentlab.teach.check"], "SECONDS", 1.0)


@pytest.mark.parametrize("task", TASKS)
def test_a_blank_stub_is_not_attempted(task: str) -> None:
    verdict = judged(task, BLANKS.get(task, blank_async))
    assert verdict.state == "not attempted"
    assert "NotImplementedError" in verdict.sentence


@pytest.mark.parametrize(("task", "function"), RIGHT, ids=lambda v: getattr(v, "__name__", str(v)))
def test_a_right_answer_is_correct(task: str, function: Callable[..., Any]) -> None:
    verdict = judged(task, function)
    assert verdict.state == "correct", verdict.text


@pytest.mark.parametrize(("task", "function", "state", "said"), WRONG, ids=lambda v: getattr(v, "__name__", str(v))[:30])
def test_a_wrong_answer_gets_one_clear_sentence(task: str, function: Callable[..., Any], state: str, said: str) -> None:
    verdict = judged(task, function)
    assert verdict.state == state, verdict.text
    assert said in verdict.sentence, verdict.text
    assert f"lab.hint('{task}')" in verdict.sentence
    if state == "incorrect" and "stopped after" not in verdict.sentence:
        assert all(word in verdict.sentence for word in ("Tried: ", "Came: ", "Expected: ")), verdict.text
    assert len(verdict.text) < 700


def test_another_right_way_to_the_percentile_is_right() -> None:
    assert judged("03-number", by_statistics).state == "correct"


def test_an_endless_loop_ends_with_a_sentence_in_time() -> None:
    began = time.perf_counter()
    verdict = judged("03-cap", busy)
    assert verdict.state == "incorrect"
    assert "Look for a loop" in verdict.sentence
    assert time.perf_counter() - began < 4


def test_a_loop_that_swallows_everything_still_ends() -> None:
    async def stubborn(run: Any, action: Any, act: Any) -> Any:
        for _ in range(3):
            try:
                while True:
                    pass
            except BaseException:
                continue

    assert "stopped after" in judged("03-cap", stubborn).sentence


def test_a_flood_of_prints_is_kept_out_of_the_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(message: dict[str, Any]) -> str:
        for number in range(10_000):
            print("spam", number)  # noqa: T201
        return "neither"

    verdict = judged("00-move", loud)
    assert "It printed: 'spam 0" in verdict.sentence
    assert len(verdict.text) < 500
    assert capsys.readouterr().out == ""


def test_a_check_runs_while_an_event_loop_runs() -> None:
    async def cell() -> Verdict:
        return judged("03-cap", Cap(5))

    assert asyncio.run(cell()).state == "correct"


def test_a_tool_that_raises_not_implemented_is_no_blank_stub() -> None:
    async def mine(run: Any, action: Any, act: Any) -> Any:
        await act(run, action)
        return helper()

    def helper() -> Any:
        raise NotImplementedError("a part of mine is missing")

    assert judged("03-cap", mine).state == "crashed"


@pytest.mark.parametrize("function", [None, "isolate", 3])
def test_what_is_no_function_gets_a_sentence(function: Any) -> None:
    verdict = judged("02-isolate", function)
    assert verdict.state in ("not attempted", "incorrect")
    assert "isolate" in verdict.sentence


def test_an_unknown_task_lists_the_tasks() -> None:
    assert "02-isolate" in str(check("02-isolat", blank))


@pytest.mark.parametrize("task", TASKS)
def test_a_solution_is_short_and_is_the_source_of_one_function(task: str) -> None:
    text = source(task)
    body = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(body) <= 13, text
    assert "NotImplementedError" not in text
    names: dict[str, Any] = {}
    exec(text, names)
    assert TASKS[task].name in names
    assert TASKS[task].name.isidentifier()


def test_a_name_that_a_cell_above_sets_is_said_to_be_missing() -> None:
    """Somebody who skipped the parameters was told to take a hint, and none of the hints speaks of that."""
    names: dict[str, Any] = {}
    exec("def next_move(message):\n    return MODEL", names)
    verdict = check("00-move", names["next_move"])
    assert isinstance(verdict, Verdict)
    assert verdict.state == "crashed"
    assert "name 'MODEL' is not defined" in verdict.sentence
    assert "run that cell first" in verdict.sentence


def test_what_a_function_printed_is_quoted() -> None:
    verdict = check("00-move", lambda message: print("tool"))  # noqa: T201
    assert "It printed: 'tool'. Stuck?" in str(verdict)


def test_a_quoted_sentence_ends_once() -> None:
    async def isolate(run: Any, action: Any, act: Any) -> Any:
        try:
            return await act(run, action)
        except Exception as error:
            return str(error)

    assert ".." not in str(check("02-isolate", isolate)).replace("...", "")


def test_what_is_slow_to_import_is_loaded_before_the_clock_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy computer the SDK alone took longer than a check may: a blank stub was told of an endless loop."""
    loaded: list[str] = []

    def slow(module: str) -> None:
        time.sleep(0.3)
        loaded.append(module)

    async def no_work(function: Callable[..., Any]) -> str:
        assert loaded == ["a_large_package"]
        return "done"

    monkeypatch.setattr(sys.modules["agentlab.teach.check"], "import_module", slow)
    task = replace(TASKS["00-move"], judge=no_work, loads=("a_large_package",))
    assert judge(task, len, seconds=0.2).state == "correct"
    assert "openai.resources.chat.completions" in TASKS["01-loop"].loads
