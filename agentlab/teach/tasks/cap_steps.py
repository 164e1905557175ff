"""Lesson 03: judged by how many requests a run makes and by how it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentlab.records import Reply, Result, Stop, User
from agentlab.teach.task import Task, Wrong, named, plainly
from agentlab.teach.tasks.guards import run_with

LIMIT = 5
LAST_WORD = "Two of the lamps were shipped. I did not see the rest."


def search(keyword: str) -> str:
    """Search the orders."""
    return f"1042: shipped, {keyword}"


def restless(request: Mapping[str, Any]) -> Any:
    """A model that asks for one more thing for as long as it has tools."""
    from agentlab import models

    asked = sum(len(message.get("tool_calls") or ()) for message in request["messages"])
    return models.call("search", keyword=f"lamp {asked}") if request.get("tools") else LAST_WORD


async def judge_cap(learner: Callable[..., Any]) -> str:
    from agentlab import Cap, models, tool

    tools = [tool(search)]
    # The package's own cap stands far outside, so that a learner's cap that does nothing still ends.
    spare = [Cap(30)]

    short = models.scripted([models.call("search", keyword="lamp"), "One lamp."])
    run = await run_with(learner, short, tools, inside=spare)
    if run.status != "answered":
        raise Wrong("a model that answers on its second request", f"the run ended as {run.status!r}", "'answered'")

    run = await run_with(learner, models.scripted(restless), tools, inside=spare)
    tried = f"a model that never stops, with LIMIT = {LIMIT}"
    working = sum(1 for reply in run.of(Reply) if reply.calls)
    if working > LIMIT:
        raise Wrong(tried, f"{working} requests with tools were let through", f"{LIMIT}, then a Stop")
    if run.status != "capped":
        raise Wrong(tried, f"the run ended as {run.status!r}", "'capped': return Stop(\"capped\", why)")
    if working < LIMIT:
        raise Wrong(tried, f"it was stopped after {working}", f"{LIMIT} requests, then a Stop")
    if len(run.of(Stop)) > 1 or run.answer != LAST_WORD:
        raise Wrong(tried, "the last request, the one without tools, was stopped as well", "that it passes: action.last is True")
    if not run.of(Stop)[0].why:
        raise Wrong(tried, "a Stop without a reason", "a Stop that says why: the person will read it")
    if len(run.of(Result)) != working:
        raise Wrong(tried, "a call of an earlier turn has no result", "that only requests are stopped, never calls")

    # A second question in the same talk starts at zero: the cap counts since the last question.
    clocks = models.scripted(lambda request: "Three clocks.")
    again = await run_with(learner, clocks, tools, run.plus(User("And the clocks?")), inside=spare)
    if again.status != "answered":
        came, expected = f"it ended as {again.status!r}", "'answered': count since the last question"
        raise Wrong("a second question after a capped one", came, expected)
    return f"{LIMIT} requests, one last word without tools, and a second question starts at zero."


async def judge_number(learner: Callable[..., Any]) -> str:
    usual = [1] * 120 + [2] * 50 + [3] * 20 + [4] * 9 + [60]
    cases = [
        ("200 runs: most took 1 to 4 turns, one ran away to 60", usual, 6, 6),
        ("the same runs, in another order", usual[::-1], 6, 6),
        ("200 runs of exactly 8 turns", [8] * 200, 12, 12),
        ("200 runs of exactly 5 turns: half a turn is a turn", [5] * 200, 8, 8),
    ]
    for tried, turns, least, most in cases:
        came = plainly(learner, list(turns))
        if isinstance(came, bool) or not isinstance(came, int | float):
            raise Wrong(tried, named(came), "a number of turns")
        if came != int(came):
            raise Wrong(tried, f"{came}", "a whole number, rounded up: there is no half request")
        if not least <= came <= most:
            about = "rounded up" if turns[0] == turns[-1] else "the mean hides the hard ones, the maximum obeys the runaway"
            raise Wrong(tried, f"{came}", f"{least}, which is 1.5 times the 99th percentile ({about})")
    return "Four sets of runs. The cap follows the hard jobs and ignores the runaway."


TASKS = [
    Task(
        "03-cap",
        "cap",
        "let LIMIT requests through, then stop with a reason",
        (
            "Only requests to the model count: isinstance(action, Ask). Calls pass: return await act(run, action).",
            'run.requests is the number of replies since the last question. From LIMIT on, return Stop("capped", why).',
            "One request more must pass, the one without tools. Its action.last is True: test `not action.last` as well.",
        ),
        judge_cap,
    ),
    Task(
        "03-number",
        "pick_cap",
        "choose a cap from data",
        (
            "The 99th percentile: sort the turns; 99 of 100 runs needed no more than this one.",
            "in_order[int(0.99 * (len(in_order) - 1))] is good enough. Then times 1.5, rounded up.",
            "math.ceil(1.5 * p99), where p99 is the value from the sorted list.",
        ),
        judge_number,
    ),
]
