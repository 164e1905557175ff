"""The budget (D5, D6): what is spent stays within it, what is paid for is given, and a step costs the same late as early."""

from __future__ import annotations

from typing import Any

import pytest

from agentlab import Agent, Budget, Cap, Repeats, Result, Run, Stop, climb, lint, models, tokens
from agentlab.records import Reply, User

from .test_cases import CASES


def look(x: int) -> str:
    """Look at one thing."""
    return f"thing {x} " + "y " * 50


def deep(request: dict[str, Any]) -> Any:
    return models.call("look", x=len(request["messages"])) if request["tools"] else "That is all."


def agent(script: Any, budget: Budget, tools: Any = (look,), **others: Any) -> Agent:
    return Agent(models.scripted(script), list(tools), climb(budget=budget, **others))


# ---- tokens ----
async def test_pb07_an_answer_that_is_paid_for_is_given_and_marked() -> None:
    run = await agent(CASES["PB07"]["input"]["responses"], Budget(tokens=100), []).run("x")
    assert (run.status, run.answer, run.spent) == ("answered", "A fine answer.", 130)
    assert run.of(Reply)[0].notes[0].why == "130 of 100 tokens are spent"


async def test_pb08_without_the_providers_counts_it_counts_itself() -> None:
    case = CASES["PB08"]["input"]

    def f() -> str:
        """F."""
        return str(case["tools"][0]["behaviour"]["returns"])

    run = await agent(case["responses"], Budget(tokens=case["config"]["max_total_tokens"]), [f]).run("x")
    assert run.status == "over_budget"
    assert run.requests < len(case["responses"])
    assert run.answer is not None


@pytest.mark.parametrize("most", [150, 400, 1_000, 3_000, 20_000])
async def test_what_is_spent_stays_within_and_the_last_word_is_still_asked_for(most: int) -> None:
    run = await agent(deep, Budget(tokens=most), cap=Cap(1_000)).run("Look at everything.")
    assert run.status == "over_budget"
    assert run.spent <= most + 20  # a reply's own length is not known before it is made
    assert run.answer == "That is all." or most < 1_000  # too little for a third request
    assert lint(run.messages) == []


async def test_not_even_one_request() -> None:
    run = await agent(deep, Budget(tokens=1)).run("Look at everything.")
    assert (run.status, run.requests) == ("over_budget", 0)
    assert [type(entry) for entry in run.log] == [User, Stop, Stop]
    assert "0 of 1 tokens are spent" in (run.answer or "")


async def test_each_question_has_its_own_budget() -> None:
    spender = agent(deep, Budget(tokens=1_000), cap=Cap(1_000))
    run = await spender.run("Look at everything.")
    first = run.spent
    run = await spender.run(run.plus(User("And the rest?")))
    assert 0 < run.spent <= 1_020
    assert run.usage.total == first + run.spent


async def test_spent_is_what_usage_adds_up() -> None:
    run = await agent(deep, Budget(), cap=Cap(5)).run("Look.")
    assert run.spent == run.usage.total > 0
    assert run.carried == sum(map(tokens.count_message, run.messages))
    again = Run(run.log)
    assert (again.spent, again.carried) == (run.spent, run.carried)
    for n in range(len(run) + 1):
        assert run.upto(n).spent == Run(run.log[:n]).spent


# ---- calls ----
async def test_calls_of_the_run_and_of_a_turn() -> None:
    many = models.calls(*(("look", {"x": n}) for n in range(7)))
    run = await agent([many, many, "done"], Budget(calls_per_turn=3), repeats=Repeats(9)).run("q")
    results = run.of(Result)
    assert [result.error for result in results] == [False] * 3 + [True] * 4 + [False] * 3 + [True] * 4
    assert results[3].text == (
        "look was not run: only 3 calls of one turn are run. Ask for the rest in your next reply, if you still need it."
    )
    run = await agent([many, many, "done"], Budget(calls=9), repeats=Repeats(9)).run("q")
    assert [result.error for result in run.of(Result)] == [False] * 9 + [True] * 5
    assert "the budget of 9 calls is used up" in run.of(Result)[-1].text
    assert (run.status, run.answer) == ("answered", "done")
    again = await agent([many, "done", many, "done"], Budget(calls=9)).run(run.upto(1).plus(Reply("ok"), User("again")))
    assert not any(result.error for result in again.of(Result))  # counted from the question on


async def test_one_reply_cannot_ask_for_any_number() -> None:
    ran: list[int] = []

    def note(x: int) -> str:
        """Note."""
        ran.append(x)
        return str(x)

    run = await Agent(models.scripted([models.calls(*(("note", {"x": n}) for n in range(500))), "done"]), [note]).run("q")
    assert sorted(ran) == list(range(64))
    assert lint(run.messages) == []


# ---- failures ----
async def test_failures_in_a_row_end_the_run() -> None:
    """D5. One call that goes well, and the count begins anew."""

    def fail(x: int) -> str:
        """Fail, mostly."""
        if x == 4:
            return "fine"
        raise ValueError("no")

    def tries(request: dict[str, Any]) -> Any:
        return models.call("fail", x=len(request["messages"]) // 2 + 1) if request["tools"] else "It fails."

    run = await agent(tries, Budget(failures=5), [fail], cap=Cap(30)).run("q")
    assert (run.status, run.answer) == ("stuck", "It fails.")
    assert run.stop is not None
    assert run.stop.why == "every call of the last 5 turns failed"
    assert len(run.of(Result)) == 4 + 5


# ---- one result (D4) ----
async def test_one_result_again_and_again_is_no_progress() -> None:
    """LC01 and its kind: the arguments change, the result does not."""

    def search(word: str) -> str:
        """Search."""
        return "Nothing was found." if word != "4" else "Found."

    def tries(request: dict[str, Any]) -> Any:
        return models.call("search", word=str(len(request["messages"]) // 2)) if request["tools"] else "There is none."

    run = await agent(tries, Budget(), [search], cap=Cap(50)).run("q")
    assert (run.status, run.answer) == ("stuck", "There is none.")
    results = run.of(Result)
    assert len(results) == 5 + 8 + 2  # up to the one that was found; eight alike; two that were not run
    assert results[-1].text.startswith("Not run: in each of the last 8 turns search brought the same result")


@pytest.mark.parametrize("flag", ["dangerous", "repeatable"])
async def test_results_that_are_meant_to_be_alike(flag: str) -> None:
    from agentlab import tool

    flags: Any = {flag: True}

    @tool(**flags)
    def mail(to: int) -> str:
        """Mail."""
        return "sent"

    def tries(request: dict[str, Any]) -> Any:
        n = len(request["messages"])
        return models.call("mail", to=n) if n < 24 else "All sent."

    sender = Agent(models.scripted(tries), [mail], climb(cap=Cap(50)), ask=lambda run, call: True)
    run = await sender.run("q")
    assert (run.status, run.answer) == ("answered", "All sent.")


async def test_results_that_differ_only_where_they_were_cut_are_not_alike() -> None:
    def read(page: int) -> str:
        """Read."""
        return "x" * 3_000 + str(page)

    def tries(request: dict[str, Any]) -> Any:
        n = len(request["messages"])
        return models.call("read", page=n) if n < 24 else "Read."

    run = await Agent(models.scripted(tries), [read], climb(cap=Cap(50))).run("q")
    assert run.answer == "Read."


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "5", None])
@pytest.mark.parametrize("name", ["tokens", "calls", "calls_per_turn", "failures"])
def test_a_wrong_budget_is_named(name: str, wrong: Any) -> None:
    if wrong is None and name in ("tokens", "calls"):
        assert getattr(Budget(**{name: wrong}), name) is None
        return
    with pytest.raises(ValueError, match="give a whole number of at least 1"):
        Budget(**{name: wrong})
