"""Faults that were found once, each by its right behaviour."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from agentlab import (
    Agent,
    Ask,
    Call,
    Cap,
    Held,
    Isolate,
    Ledger,
    Reply,
    Result,
    Run,
    Stop,
    Timeout,
    User,
    climb,
    lint,
    models,
    perform,
    steps,
    tool,
)  # fmt: skip


@tool
async def leave() -> str:
    """Leave the process."""
    raise SystemExit(3)


@tool
async def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing at {place}"


@tool(dangerous=True)
def delete_order(order_id: int) -> str:
    """Delete an order."""
    raise AssertionError("nobody asked for that")


@pytest.mark.parametrize("guards", [[], [Timeout(5)]], ids=["naked", "timeout"])
@pytest.mark.parametrize("times", [1, 2])
async def test_an_exit_raised_by_a_tool_reaches_who_awaits_the_run_and_not_the_event_loop(guards: Any, times: int) -> None:
    """C1: through the event loop it would take the kernel along, whoever caught it."""
    agent = Agent(models.scripted([models.calls(*[("leave", {})] * times)]), [leave], guards=guards)
    with pytest.raises(SystemExit):
        await agent.run("Go.")


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), BaseException("odd"), GeneratorExit()])
async def test_a_model_that_exits_or_cancels_itself_ends_the_run_politely(error: BaseException) -> None:
    """C1: what a model's code raises is a failure like others, where nobody cancelled the run."""
    run = await Agent(models.scripted([error]), [look]).run("Go.")
    assert run.status == "failed"
    assert "could not be asked" in (run.answer or "")


async def test_who_cancels_a_run_that_waits_for_its_model_is_heard() -> None:
    async def slow(request: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    agent = Agent(models.scripted(slow), [look])
    task = asyncio.ensure_future(agent.run("Go."))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert agent.last is not None
    assert agent.last.status == "interrupted"


async def test_a_script_that_never_ends_lets_others_run() -> None:
    """D1: with async tools nothing else in the loop would ever wait, and nobody could stop it."""
    agent = Agent(models.scripted(lambda request: models.call("look", place=str(len(request["messages"])))), [look], guards=[])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await agent.run("Go.")


async def test_a_hint_at_a_similar_name_never_leads_to_a_dangerous_tool() -> None:
    """C2, I1: find_order is more like delete_order than like look."""
    run = await Agent(models.scripted([models.call("find_order"), "done"]), [look, delete_order]).run("Go.")
    told = run.messages[2]["content"]
    assert "Available tools: look, delete_order." in told
    assert "Did you mean" not in told


async def test_a_yes_is_spent_once_in_the_process_whatever_agent_it_is_given_to() -> None:
    """I3: a cell that is run again makes a new agent out of the same run."""
    paid: list[int] = []

    @tool(dangerous=True)
    def refund(cents: int) -> str:
        """Pay money back."""
        paid.append(cents)
        return "paid"

    def agent() -> Agent:
        return Agent(models.scripted([models.call("refund", cents=5), "done"]), [refund])

    async for run in agent().steps("Pay."):
        held: Run = run
    ruled = held.plus(held.held[0].ruled(True))
    first, again = await agent().run(ruled), await agent().run(ruled)
    assert paid == [5]
    assert first.messages[2]["content"] == "paid"
    assert "used already" in again.messages[2]["content"]


async def test_a_persons_own_ask_may_take_the_call_alone() -> None:
    asked: list[Call] = []

    @tool(dangerous=True)
    def refund(cents: int) -> str:
        """Pay money back."""
        return "paid"

    def ask(call: Call) -> bool:
        asked.append(call)
        return True

    run = await Agent(models.scripted([models.call("refund", cents=5), "done"]), [refund], ask=ask).run("Pay.")
    assert [call.name for call in asked] == ["refund"]
    assert run.messages[2]["content"] == "paid"


async def test_a_sentence_does_not_end_twice() -> None:
    """C4: the message of an error may end in a mark of its own."""

    @tool
    def fail() -> str:
        """Fail."""
        raise ValueError("What now?")

    run = await Agent(models.scripted([models.call("fail"), "done"]), [fail], guards=[*climb("isolate"), Isolate()]).run("Go.")
    assert "What now?." not in run.messages[2]["content"]
    assert "ValueError: What now." in run.messages[2]["content"]


@pytest.mark.parametrize("guards", [climb("isolate"), climb()], ids=["isolate", "all"])
@pytest.mark.parametrize("times", [1, 2])
async def test_a_tool_that_cancels_its_own_task_does_not_cancel_the_run(guards: Any, times: int) -> None:
    """C1: it looked as if a person had stopped the run."""

    @tool(repeatable=True)
    async def cancels_itself() -> str:
        """Cancel the task that it runs in."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return "never"

    run = await Agent(models.scripted([models.calls(*[("cancels_itself", {})] * times), "done"]), [cancels_itself], guards).run(
        "Go."
    )
    assert run.status == "answered"
    assert ["cancelled from inside" in result.text for result in run.of(Result)] == [True] * times


async def test_calls_that_a_guard_writes_get_ids_of_their_own_and_none_are_made_in_the_last_reply() -> None:
    """E2, D2: what holds for the model's replies holds for those that a guard gives in its place."""

    async def in_its_place(run: Run, action: Any, act: Any) -> Any:
        twice = (Call("mine", "look", '{"place": "a"}'), Call("mine", "look", '{"place": "b"}'))
        return Reply("I know.", twice) if isinstance(action, Ask) else await act(run, action)

    run = await Agent(models.scripted([]), [look], guards=[*climb("cap", cap=Cap(1)), in_its_place]).run("Go.")
    assert run.status == "capped"
    assert [result.text for result in run.of(Result)] == ["nothing at a", "nothing at b"]
    assert run.of(Reply)[-1].calls == ()
    assert lint(run.messages) == []


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_cancellation_is_heard_by_who_calls_a_quick_tool_for_ever(fails: bool, is_async: bool) -> None:
    """The tool is always just done: its result or its error must not be taken for an answer to the cancellation."""

    def quick() -> str:
        if fails:
            raise ValueError("no")
        return "yes"

    async def quick_too() -> str:
        return quick()

    act = perform(models.scripted([]), {"quick": quick_too if is_async else quick})

    async def for_ever() -> None:
        while True:
            with contextlib.suppress(ValueError):
                await act(Run.start("q"), Call("1", "quick"))

    lost: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: lost.append(context))
    for _ in range(5):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(for_ever(), 0.05)
    gc.collect()
    assert lost == []


async def test_the_person_is_shown_what_a_guard_made_of_the_call() -> None:
    """I1: they said yes to 5, and 999 was paid."""
    paid: list[int] = []
    shown: list[tuple[str, dict[str, Any]]] = []

    @tool(dangerous=True)
    def refund(cents: int) -> str:
        """Pay money back."""
        paid.append(cents)
        return "paid"

    async def more(run: Run, action: Any, act: Any) -> Any:
        """Raise the sum, and turn a harmless call into a refund."""
        return await act(run, replace(action, name="refund", arguments='{"cents": 999}') if isinstance(action, Call) else action)

    def ask(run: Run, call: Call) -> bool:
        shown.append((call.name, call.args))
        return call.args["cents"] < 100

    for asked in (models.call("refund", cents=5), models.call("look", place="attic")):
        run = await Agent(models.scripted([asked, "done"]), [refund, look], guards=[more, *climb()], ask=ask).run("Go.")
        assert "refund was not run: this call was refused" in run.messages[2]["content"]
    assert shown == [("refund", {"cents": 999})] * 2
    assert paid == []

    waiting = await Agent(models.scripted([models.call("refund", cents=5)]), [refund], ask=lambda call: None).run("Go.")
    ruled = waiting.plus(waiting.held[0].ruled(True))  # a yes to 5 is none to 999
    run = await Agent(models.scripted([]), [refund], guards=[more, *climb()], ask=lambda call: None).run(ruled)
    assert (run.status, paid) == ("waiting", [])
    assert [call.args for call in run.held] == [{"cents": 999}]


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Timeout(10**400), ValueError, "give seconds above 0"),
        (lambda: tool(look.function, timeout=10**400), ValueError, "give seconds above 0"),
        (lambda: tool(look.function, name=3), ValueError, "cannot be named 3"),
        (lambda: tool(look.function, dangerous="no"), TypeError, "dangerous='no': write True or False"),
        (lambda: Run.start(7), TypeError, "question must be text, not int"),
        (lambda: Run.start("q", ["Be brief."]), TypeError, "system must be text, not list"),
        (lambda: Run(7), TypeError, "list of entries, not int"),
        (lambda: Run.start("q").upto("1"), IndexError, "no point '1' in it"),
        (lambda: Call("1", "look", 7), TypeError, "Arguments are a dict of what JSON has, or its text, not 7"),
        (lambda: Call("1", "look", {"place": object()}), TypeError, "not JSON serializable"),
        (lambda: Call("1", "look").ruled(True, arguments=[7]), TypeError, "Arguments are a dict"),
        (lambda: models.scripted(b"done"), TypeError, "not bytes"),
        (lambda: models.calls(("look",)), TypeError, "pair of name and arguments"),
        (lambda: models.calls("look"), TypeError, "pair of name and arguments"),
        (lambda: models.call("look", place=object()), TypeError, "not JSON serializable"),
        (lambda: models.openai(7), TypeError, "name must be text, not int"),
        (lambda: perform(None), TypeError, "must be something that can be asked"),
        (lambda: Agent(models.scripted([]), ask=lambda: True), TypeError, "ask must be a function"),
        (lambda: Agent(models.scripted([]), ask=lambda run, call, more: True), TypeError, "ask must be a function"),
        (lambda: Agent(models.scripted([])).request(7), TypeError, "question must be text"),
    ],
)  # fmt: skip
def test_what_is_passed_wrongly_gets_a_sentence(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=re.escape(says)):
        make()


async def test_steps_says_what_it_goes_on_with_and_how_wide() -> None:
    act: Any = perform(models.scripted([]))
    with pytest.raises(TypeError, match=r"steps\(\) goes on with a Run, not str"):
        await anext(steps("q", act))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="width=0: give a whole number"):
        await anext(steps(Run.start("q"), act, 0))


def test_a_class_can_be_a_tool() -> None:
    """The types of its parameters stand at its __init__."""

    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

    assert tool(Point).parameters["properties"] == {"x": {"type": "integer"}}


async def test_what_is_wrong_with_all_arguments_is_not_said_of_a_parameter_without_a_name() -> None:
    """H1"""
    lone = tool(lambda **given: "ran", name="lone", parameters={"type": "object", "minProperties": 1})
    run = await Agent(models.scripted([models.call("lone"), "done"]), [lone]).run("Go.")
    assert run.messages[2]["content"].startswith("The arguments of lone do not fit: ")


async def test_a_ledger_of_ones_own_is_used_while_it_is_empty() -> None:
    """I3: one that can be counted is false as long as nothing stands in it."""

    class Counted(Ledger):
        def __len__(self) -> int:
            return len(self._begun)

    ledger = Counted()
    assert perform(models.scripted([]), ledger=ledger).ledger is ledger


def test_the_first_check_loads_no_grammars_that_nobody_asked_for() -> None:
    """They are beside every JupyterLab, take 2.5 s, and the first call stood still for them. Who asks for one gets it."""
    code = """
import sys
from agentlab import tool
from agentlab.validation import checked

@tool
def look(n: int) -> str:
    "Look."
    return ""

assert checked({"n": "1"}, look) == '{"n": 1}'
assert "lark" not in sys.modules
import jsonschema
knows = jsonschema.FormatChecker()
assert knows.conforms("http://example.org/ü", "iri") and not knows.conforms("a b", "iri")
assert "lark" in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


def test_an_answer_that_came_with_the_interruption_is_not_lost() -> None:
    """Stopped in the very moment of the last reply: the run was over, and taken up again it has nothing to do."""
    run = Run([User("q"), Reply("42"), Stop("interrupted", "a person stopped the run")])
    assert (run.status, run.answer, run.todo, run.stop) == ("answered", "42", [], None)
    capped = Run([User("q"), Stop("capped", "cap"), Reply("42"), Stop("interrupted", "a person stopped the run")])
    assert (capped.status, capped.answer) == ("capped", "42")
    still = Run([User("q"), Stop("interrupted", "a person stopped the run")])
    assert (still.status, still.answer, len(still.todo)) == ("interrupted", None, 1)
    held = Run([User("q"), Reply("", (Call("1", "pay"),)), Held("1"), Stop("interrupted", "a person stopped the run")])
    assert (held.status, held.todo, held.stop) == ("waiting", [], None)  # taken up again, it can only wait on
