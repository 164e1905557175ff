"""Lesson 02: judged by the results in the run's log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agentlab.records import Action, Ask, Call, Entry, Result, Stop
from agentlab.run import Run
from agentlab.teach.task import Task, Wrong, named, shown
from agentlab.teach.tasks.guards import as_guard, run_with


def order_status(order_id: int) -> str:
    """Tell where an order is."""
    if order_id < 1000:
        raise LookupError(f"There is no order {order_id}. Order numbers start at 1001.")
    return f"Order {order_id}: shipped."


async def judge_isolate(learner: Callable[..., Any]) -> str:
    from agentlab import models, tool

    tools = [tool(order_status)]
    say, call, calls = models.say, models.call, models.calls

    run = await run_with(learner, models.scripted([call("order_status", order_id=1042), say("Shipped.")]), tools)
    results = run.of(Result)
    if [r.text for r in results] != ["Order 1042: shipped."] or results[0].error:
        raise Wrong("a call that works", told(results), "its result, unchanged")

    failing = models.scripted([call("order_status", order_id=7), say("No such order.")])
    result = only(await alive(learner, failing, tools, "a tool that raises LookupError"), "a tool that raises LookupError")
    needs(result, ["no order 7", "1001"], "a tool that raises LookupError", "the tool's own message in the text")

    invented = models.scripted([call("find_order", order_id=1042), say("Sorry.")])
    result = only(await alive(learner, invented, tools, "an invented tool, find_order"), "an invented tool, find_order")
    needs(result, ["order_status"], "an invented tool, find_order", "a text that names the tools that exist")

    short = models.scripted([call("order_status"), say("Sorry.")])
    result = only(await alive(learner, short, tools, "a call without order_id"), "a call without order_id")
    needs(result, ["order_id"], "a call without order_id", "a text that names the parameter")

    both = models.scripted([calls(("order_status", {"order_id": 7}), ("order_status", {"order_id": 1042})), say("One.")])
    run = await alive(learner, both, tools, "two calls in one turn, the first fails")
    results = run.of(Result)
    if [r.error for r in results] != [True, False]:
        raise Wrong("two calls in one turn, the first fails", told(results), "one error and one good result, each with its id")

    await raises_on(learner)
    await can_be_stopped(learner)
    return "A good call, three failures, a mixed turn, a dead model and a Stop: the run lived where it should."


async def alive(learner: Callable[..., Any], model: Any, tools: list[Any], tried: str) -> Run:
    """The run, or a finding that the exception came through."""
    try:
        return await run_with(learner, model, tools)
    except (Wrong, NotImplementedError):
        raise
    except Exception as error:
        if came_from(error, learner):
            raise
        raise Wrong(tried, f"{type(error).__name__} came through and ended the run", "a Result with error=True") from None


def came_from(error: BaseException, learner: Callable[..., Any]) -> bool:
    """True when the learner's own line raised it, not the act that it called."""
    code = getattr(getattr(learner, "function", learner), "__code__", None)
    at, last = error.__traceback__, None
    while at is not None:
        last, at = at, at.tb_next
    return last is not None and last.tb_frame.f_code is code


async def raises_on(learner: Callable[..., Any]) -> None:
    """A request that fails has no call to answer. To end the run with a Stop, as the package does, is fine too."""
    tried, expected = "a model that cannot be reached", "that the exception of an Ask is raised on: there is no call to answer"
    unreachable = ConnectionError("the endpoint cannot be reached")

    async def act(run: Run, action: Action) -> Entry:
        raise unreachable

    wrong: list[Wrong] = []
    try:
        entry = await as_guard(learner, wrong)(Run.start("Where is order 1042?"), Ask(), act)
    except Exception as error:
        if wrong:
            raise wrong[0] from None
        if error is not unreachable:
            raise Wrong(tried, f"{type(error).__name__}: {error}", expected) from None
    else:
        if not isinstance(entry, Stop):
            raise Wrong(tried, f"it became {named(entry)}", expected)


async def can_be_stopped(learner: Callable[..., Any]) -> None:
    """A person who presses Stop cancels the task: that must come through, or nothing can be stopped any more."""
    begun = asyncio.Event()

    async def act(run: Run, action: Action) -> Entry:
        begun.set()
        await asyncio.sleep(60)
        return Result("call_1", "too late")

    call = Call("call_1", "order_status")
    task = asyncio.ensure_future(as_guard(learner, [])(Run.start("Where is order 1042?"), call, act))
    waiting = asyncio.ensure_future(begun.wait())
    await asyncio.wait([task, waiting], timeout=1, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    task.cancel()
    await asyncio.wait([task], timeout=1)
    if task.cancelled():
        return
    came = f"it became {named(task.result())}" if task.done() and not task.exception() else "the cancellation was swallowed"
    raise Wrong("a person who presses Stop", came, "that CancelledError comes through: catch Exception, not BaseException")


def only(run: Run, tried: str) -> Result:
    results = run.of(Result)
    if len(results) != 1:
        raise Wrong(tried, told(results), "exactly one result for the one call")
    return results[0]


def needs(result: Result, words: list[str], tried: str, expected: str) -> None:
    if not result.error:
        raise Wrong(tried, f"a result that looks like a success: {shown(result.text)}", "Result(..., error=True)")
    if any(word not in result.text for word in words):
        raise Wrong(tried, f"the model was told only: {shown(result.text)}", expected)


def told(results: list[Result]) -> str:
    if not results:
        return "no result at all"
    return "; ".join(f"{'error' if r.error else 'result'} {shown(r.text, 60)!r}" for r in results)


async def judge_empty(learner: Callable[..., Any]) -> str:
    for nothing in ("[]", "{}", "None"):
        tried = f"a tool that hands over the text {nothing!r}"
        result = only(await searching(learner, nothing), tried)
        if len(result.text.split()) < 3:
            raise Wrong(tried, f"the model is told {result.text!r}", "a sentence: nothing was found, try this instead")
        if result.error:
            raise Wrong(tried, "error=True", "no error: the tool worked, it found nothing")
    for full in ("1042: shipped", "0", "None of the lamps is late."):
        tried = f"a tool that answers {full!r}"
        result = only(await searching(learner, full), tried)
        if result.text != full:
            raise Wrong(tried, f"the model is told {shown(result.text)!r}", "the same text, untouched: it is an answer")
    return "Three kinds of nothing became sentences; three answers, a zero among them, passed untouched."


async def searching(learner: Callable[..., Any], text: str) -> Run:
    """One run in which the tool hands over `text`."""
    from agentlab import models, tool

    search = tool(lambda keyword: text, name="search", parameters=KEYWORD)
    return await run_with(learner, models.scripted([models.call("search", keyword="walrus"), "So be it."]), [search])


KEYWORD = {"type": "object", "properties": {"keyword": {"type": "string"}}, "required": ["keyword"]}


TASKS = [
    Task(
        "02-isolate",
        "isolate",
        "turn whatever a call raises into a result that the model can read",
        (
            "`act(run, action)` does the work. Await it inside a `try`, and return what it returned when all is well.",
            "In the `except`, return Result(action.id, text, error=True). The text must say what happened: the exception "
            "knows its type and its message. A request to the model (Ask) has no id: raise that one on.",
            "except Exception as error: if isinstance(action, Ask): raise; "
            'return Result(action.id, f"{type(error).__name__}: {error}", error=True). Not BaseException: Stop must get through.',
        ),
        judge_isolate,
    ),
    Task(
        "02-empty",
        "never_empty",
        "say that nothing was found, and what to try instead",
        (
            "Let the call happen first: entry = await act(run, action). Then look at entry.text, if it is a Result.",
            'Compare the whole text with "[]", "{}" and "None". A "0" is an answer: leave it.',
            'if isinstance(entry, Result) and entry.text in ("[]", "{}", "None"): '
            'return replace(entry, text="Nothing was found. Try ..."). Else return entry.',
        ),
        judge_empty,
    ),
]
