"""Stepping an Agent: four places a turn, nothing runs twice, another way in the world as it was, a yes for one call."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from agentlab import Agent, Approve, Cap, Isolate, Result, Run, climb, models, tool
from agentlab.branches import Busy, NotPossible
from agentlab.records import Reply, Ruling, Stop
from agentlab.tools import Tool

from .conftest import Till, stepper_of, until

LOOK = [models.call("look"), models.say("There are 100 cents.")]
PAY = [models.call("pay", cents=30), models.say("Done.")]


async def places(stepper: Any) -> list[str]:
    seen = [stepper.state()["phase"]]
    while not stepper.is_over:
        await stepper.step()
        seen.append(stepper.state()["phase"])
    return seen


async def test_a_turn_has_four_places(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(LOOK), tools))
    assert await places(stepper) == ["request", "reply", "call", "result", "request", "reply", "end"]
    assert stepper.answer == "There are 100 cents."
    assert stepper.status == "answered"
    assert stepper.run == await Agent(models.scripted(LOOK), tools).run("How much is there?")
    assert stepper.messages == stepper.run.messages


async def test_the_lamps_of_a_turn(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(PAY), tools))
    now = []
    for _ in range(3):
        now.append(sorted(lamp for lamp, state in stepper.state()["lamps"].items() if state == "now"))
        await stepper.step()
    assert now == [["N6"], ["N1", "N2", "N3", "N5"], ["N7"]]
    stepper = stepper_of(Agent(models.scripted(LOOK), tools))
    for _ in range(3):
        await stepper.step()
    assert stepper.state()["lamps"] == {
        "N1": "done",
        "N2": "done",
        "N3": "done",
        "N4": "now",
        "N5": "done",
        "N6": "done",
        "N7": "",
    }


async def test_every_place_says_what_step_does(tools: list[Tool]) -> None:
    script = models.scripted([models.calls(("look", {}), ("look", {})), models.say("ok")])
    stepper = stepper_of(Agent(script, tools, guards=[Isolate()]))
    said = [stepper.state()["next"]]
    while not stepper.is_over:
        await stepper.step()
        said.append(stepper.state()["next"])
    assert "1 message and 2 tool schemas" in said[0]
    assert "look and look" in said[1]
    assert "2 calls together" in said[2]
    assert "not seen this yet" in said[3]
    one_by_one = stepper_of(Agent(script, tools, guards=[Isolate()], width=1))
    await one_by_one.step()
    await one_by_one.step()
    assert "2 calls one after another" in one_by_one.state()["next"]


async def test_back_and_forward_run_nothing_twice(tools: list[Tool], till: Till) -> None:
    asked = 0

    def script(request: Any) -> Any:
        nonlocal asked
        asked += 1
        return LOOK[len([m for m in request["messages"] if m["role"] == "assistant"])]

    stepper = stepper_of(Agent(models.scripted(script), tools))
    await stepper.go()
    for _ in range(10):
        stepper.back()
    state = stepper.state()
    assert (state["at"], state["rows"], state["phase"]) == (0, 1, "request")
    assert "nothing runs" in state["next"]
    assert state["can"]["back"] == "This is the first moment."
    for _ in range(state["last"]):
        await stepper.step()
    assert stepper.answer == "There are 100 cents."
    assert (asked, till.log) == (2, ["look"])
    stepper.goto(2)
    assert stepper.state()["at"] == 2
    stepper.goto(999)
    assert stepper.state()["at"] == state["last"]
    with pytest.raises(NotPossible, match="over"):
        await stepper.step()


async def test_the_bars_are_what_each_request_carries(tools: list[Tool]) -> None:
    agent = Agent(models.scripted(LOOK), tools)
    stepper = stepper_of(agent)
    await stepper.go()
    from agentlab.tokens import count_message, count_tools

    replies = stepper.run.of(Reply)
    for bar, reply in zip(stepper.branch.bars, replies, strict=True):
        assert reply.sent is not None
        by_hand = sum(count_message(message) for message in reply.sent.messages)
        assert sum(bar[role] for role in ("system", "user", "assistant", "tool")) == by_hand
        assert bar["tools"] == count_tools(agent.tools.offered())
        assert bar["exact"] is False


async def test_what_the_provider_counted_is_shown(tools: list[Tool]) -> None:
    told = {**models.say("hi"), "usage": {"prompt_tokens": 77, "completion_tokens": 1, "total_tokens": 78}}
    stepper = stepper_of(Agent(models.scripted([told]), tools))
    await stepper.go()
    assert stepper.branch.bars[0]["reported"] == 77


async def test_guards_are_named_where_they_acted(tools: list[Tool]) -> None:
    script = models.scripted([models.call("lok"), models.say("ok")])
    stepper = stepper_of(Agent(script, tools))
    for _ in range(3):
        await stepper.step()
    assert [note["guard"] for note in stepper.state()["notes"]] == ["Isolate"]
    assert stepper.branch.rows[-1]["notes"][0]["guard"] == "Isolate"
    assert stepper.branch.rows[-1]["error"] is True


async def test_the_cap_is_announced_and_then_shown(tools: list[Tool]) -> None:
    def restless(request: Any) -> Any:
        return models.call("look") if request["tools"] else models.say("best I can")

    stepper = stepper_of(Agent(models.scripted(restless), tools, guards=climb("cap", cap=Cap(1))))
    while stepper.state()["turn"] == 1 or "cap of 1" not in stepper.state()["next"]:
        await stepper.step()
    await stepper.step()
    assert stepper.state()["notes"] == [{"guard": "Cap", "why": "the cap of 1 request is reached"}]
    assert "without tools" in stepper.state()["next"]
    assert stepper.branch.bars[-1]["tools"] == 0
    await stepper.go()
    assert (stepper.status, stepper.answer) == ("capped", "best I can")


# ---- crashes ----
async def test_a_crash_is_an_end_that_names_the_line() -> None:
    @tool
    def broken() -> str:
        """Breaks."""
        return {}["find_order"]  # type: ignore[no-any-return]

    stepper = stepper_of(Agent(models.scripted([models.call("broken")]), [broken], guards=[]))
    await stepper.go()
    line = broken.function.__code__.co_firstlineno + 3
    assert stepper.status == f"crashed: KeyError('find_order') at line {line}"
    state = stepper.state()
    assert (state["phase"], state["line"]["lineno"]) == ("end", line)
    assert "find_order" in state["line"]["text"]
    assert stepper.branch.rows[-1]["text"] == stepper.status
    stepper.back()
    assert stepper.state()["phase"] == "call"


async def test_a_model_that_raises_is_an_end_too(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted([RuntimeError("no such planet")]), tools, guards=[]))
    await stepper.go()
    assert stepper.status.startswith("crashed: RuntimeError('no such planet')")


# ---- approval ----
async def test_a_held_call_waits_and_runs_after_exactly_this_yes(tools: list[Tool], till: Till) -> None:
    stepper = stepper_of(Agent(models.scripted(PAY), tools))
    await stepper.go()
    (held,) = stepper.state()["held"]
    assert (stepper.status, held["name"], held["arguments"]) == ("waiting", "pay", '{"cents": 30}')
    assert "really runs" in held["effect"]
    assert held["schema"]["required"] == ["cents"]
    assert stepper.state()["can"]["step"] == "pay waits for your yes or no."
    with pytest.raises(NotPossible, match="waits for your yes"):
        await stepper.step()
    stepper.rule(held["call_id"], held["digest"], True)
    assert till.log == []
    assert "as you approved" in stepper.state()["next"]
    await stepper.step()
    assert (till.log, till.cents) == (["pay 30"], 70)
    assert stepper.state()["phase"] == "result"


async def test_only_the_call_that_got_a_yes_runs(tools: list[Tool], till: Till) -> None:
    script = models.scripted([models.calls(("pay", {"cents": 1}), ("pay", {"cents": 2})), models.say("ok")])
    stepper = stepper_of(Agent(script, tools))
    await stepper.go()
    one, two = stepper.state()["held"]
    stepper.rule(two["call_id"], two["digest"], True)
    assert "still waits" in stepper.state()["next"]
    await stepper.step()
    assert till.log == ["pay 2"]
    assert [held["call_id"] for held in stepper.state()["held"]] == [one["call_id"]]
    stepper.rule(one["call_id"], one["digest"], False, "too much")
    assert "was refused" in stepper.state()["next"]
    await stepper.go()
    assert till.log == ["pay 2"]
    assert [r.error for r in stepper.run.of(Result)] == [False, True]


async def test_a_ruling_on_something_else_is_not_taken(tools: list[Tool], till: Till) -> None:
    stepper = stepper_of(Agent(models.scripted(PAY), tools))
    await stepper.go()
    (held,) = stepper.state()["held"]
    with pytest.raises(NotPossible, match="not the one that you were shown"):
        stepper.rule(held["call_id"], "0" * 16, True)
    with pytest.raises(NotPossible, match="does not wait"):
        stepper.rule("call_99", held["digest"], True)
    with pytest.raises(NotPossible, match="cannot be read"):
        stepper.rule(held["call_id"], held["digest"], True, arguments='{"cents": ')
    assert stepper.run.of(Ruling) == []
    stepper.rule(held["call_id"], held["digest"], True, arguments='{"cents": 5}')
    with pytest.raises(NotPossible, match="does not wait"):
        stepper.rule(held["call_id"], held["digest"], True)
    await stepper.go()
    assert till.log == ["pay 5"]


async def test_another_ruling_at_an_earlier_moment_is_another_way(tools: list[Tool], till: Till) -> None:
    stepper = stepper_of(Agent(models.scripted(PAY), tools))
    await stepper.go()
    (held,) = stepper.state()["held"]
    waiting = stepper.branch.at
    stepper.rule(held["call_id"], held["digest"], True)
    await stepper.go()
    assert till.cents == 70
    stepper.goto(waiting)
    (held,) = stepper.state()["held"]
    stepper.rule(held["call_id"], held["digest"], False, "no")
    await stepper.go()
    assert (till.cents, till.log) == (100, ["pay 30"])
    assert [branch["current"] for branch in stepper.state()["branches"]] == [False, True]
    stepper.goto(waiting)
    (held,) = stepper.state()["held"]
    stepper.rule(held["call_id"], held["digest"], True)  # a new yes: spent once, in this branch
    await stepper.go()
    assert (till.cents, till.log) == (70, ["pay 30", "pay 30"])


async def test_headless_no_answer_means_no(tools: list[Tool], till: Till) -> None:
    stepper = stepper_of(Agent(models.scripted(PAY), tools))
    run = await stepper.finish()
    assert (run.status, till.log) == ("answered", [])
    assert run.of(Ruling)[0].why == "nobody is here to approve it (headless run)"
    assert "nobody is here" in run.of(Result)[0].text


# ---- another way ----
async def test_a_fork_stands_where_the_row_came_in_and_the_parent_stays(tools: list[Tool], till: Till) -> None:
    stepper = stepper_of(Agent(models.scripted(LOOK), tools))
    await stepper.go()
    before = stepper.run
    await stepper.fork(2, "text", "5 cents")
    state = stepper.state()
    assert (state["phase"], state["rows"], state["turn"]) == ("result", 3, 1)
    assert stepper.branch.rows[2]["edited"] is True
    assert stepper.run.log[2] == Result("call_0_0", "5 cents")
    assert [row["i"] for row in stepper.branch.rows] == [0, 1, 2]
    await stepper.go()
    assert till.log == ["look"]
    stepper.switch(0)
    assert stepper.run == before
    assert [branch["rows"] for branch in stepper.state()["branches"]] == [4, 4]
    assert stepper.state()["branches"][1]["parent"] == 0


@pytest.mark.parametrize(
    ("row", "what", "text", "phase"),
    [(0, "text", "And now?", "request"), (1, "arguments", '{"cents": 7}', "reply"), (1, "text", "I pay.", "reply")],
)
async def test_every_kind_of_edit(tools: list[Tool], till: Till, row: int, what: str, text: str, phase: str) -> None:
    stepper = stepper_of(Agent(models.scripted(PAY), tools, guards=[Isolate()]))
    await stepper.go()
    call_id = "call_0_0" if what == "arguments" else None
    await stepper.fork(row, what, text, call_id)
    assert (stepper.state()["phase"], till.cents) == (phase, 100)
    await stepper.go()
    assert till.cents == (93 if what == "arguments" else 70)
    assert stepper.status == "answered"


async def test_siblings_of_an_edited_result_stay(tools: list[Tool]) -> None:
    script = models.scripted([models.calls(("look", {}), ("look", {})), models.say("ok")])
    stepper = stepper_of(Agent(script, tools, guards=[Isolate()]))
    await stepper.go()
    await stepper.fork(2, "text", "edited")
    assert [r.text for r in stepper.run.of(Result)] == ["edited", "100 cents"]
    assert stepper.state()["phase"] == "result"


async def test_an_edited_result_says_so_and_nothing_of_the_old_one(tools: list[Tool]) -> None:
    """What a guard did to the old text, and that it was an error, is not true of the person's."""
    stepper = stepper_of(Agent(models.scripted([models.call("nobody"), "Done."]), tools))
    await stepper.go()
    assert stepper.branch.rows[2]["notes"][0]["guard"] == "Isolate"
    await stepper.fork(2, "text", "100 cents")
    row = stepper.branch.rows[2]
    assert (row["edited"], row.get("notes"), row.get("error"), row.get("full_chars")) == (True, None, None, None)
    assert stepper.state()["notes"] == []
    assert "tool nobody (edited by you): 100 cents" in stepper.text()
    stepper.switch(0)
    assert stepper.branch.rows[2]["error"] is True  # the branch before is as it was


async def test_what_cannot_be_edited_says_so(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(PAY), tools))
    await stepper.go()
    for row, what, text in ((2, "text", "x"), (0, "arguments", "{}"), (99, "text", "x"), (1, "arguments", "{}")):
        with pytest.raises(NotPossible):
            await stepper.fork(row, what, text)
    assert len(stepper.branches) == 1
    assert not stepper.running


async def test_each_branch_runs_in_its_own_world(tools: list[Tool], till: Till) -> None:
    script = models.scripted([models.call("pay", cents=10), models.call("pay", cents=1), models.say("ok")])
    stepper = stepper_of(Agent(script, tools, guards=[Isolate()]))
    for _ in range(4):
        await stepper.step()  # the first ten are paid, and the second request stands there
    assert till.cents == 90
    await stepper.fork(1, "arguments", '{"cents": 50}', "call_0_0")
    assert till.cents == 100
    await stepper.go()
    assert till.cents == 49
    stepper.switch(0)
    assert till.cents == 90
    await stepper.go()
    assert till.cents == 89
    stepper.switch(1)
    assert till.cents == 49
    stepper.goto(0)
    stepper.switch(0)
    await stepper.reset()
    assert till.cents == 100
    assert (stepper.epoch, len(stepper.branches), stepper.state()["at"]) == (1, 1, 0)


async def test_equal_worlds_are_stored_once(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(LOOK), tools))
    await stepper.go()
    assert len({id(moment.world[0]) for moment in stepper.branch.moments}) == 1


async def test_no_fork_where_effects_cannot_be_put_back(tools: list[Tool]) -> None:
    @tool(dangerous=True)
    def shout() -> str:
        """Shout."""
        return "!"

    @tool
    def whisper() -> str:
        """Whisper."""
        return "."

    off = stepper_of(Agent(models.scripted(LOOK), [*tools, shout]))
    assert "shout" in off.state()["can"]["fork"]
    with pytest.raises(NotPossible, match="cannot be put back"):
        await off.fork(0, "text", "x")
    assert stepper_of(Agent(models.scripted(LOOK), [*tools, whisper])).state()["can"]["fork"] is True


async def test_a_run_is_taken_up_where_it_stands(tools: list[Tool], till: Till) -> None:
    agent = Agent(models.scripted(LOOK), tools)
    run = await agent.run("How much is there?")
    stepper = stepper_of(agent, run.upto(2))
    assert (stepper.state()["phase"], stepper.state()["rows"], len(stepper.branch.bars)) == ("call", 2, 1)
    await stepper.go()
    assert stepper.run == run
    whole = stepper_of(agent, run)
    assert (whole.state()["phase"], whole.state()["can"]["step"] is True) == ("end", False)
    await whole.fork(1, "arguments", "{}", "call_0_0")
    assert whole.state()["phase"] == "reply"
    assert len(whole.branch.rows) == 2


@pytest.mark.parametrize(
    ("said", "next_", "after"),
    [
        ('{"name": "look", "arguments": {}}', "no answer, and nothing in it can run. Step asks the model once more", "request"),
        ("", "no answer, and nothing in it can run. Step asks the model once more", "request"),
        ({"choices": [{"message": {"content": "No."}, "finish_reason": "content_filter"}]}, "A filter of the provider", "end"),
        ("Done.", "it is the answer. Step ends the run", "end"),
    ],
)
async def test_a_reply_that_is_no_answer_is_not_called_one(tools: list[Tool], said: Any, next_: str, after: str) -> None:
    stepper = stepper_of(Agent(models.scripted([said, "Done."]), tools))
    await stepper.step()
    state = stepper.state()
    assert (state["phase"], state["can"]["step"]) == ("reply", True)
    assert next_ in state["next"]
    await stepper.step()
    assert stepper.state()["phase"] == after


# ---- stopping ----
async def test_stop_cancels_what_runs_within_a_second(till: Till) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Take long."""
        begun.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "late"

    stepper = stepper_of(Agent(models.scripted([models.call("slow"), models.say("ok")]), [slow]))
    stepping = asyncio.create_task(stepper.go())
    await until(lambda: stepper.state()["phase"] == "call" and stepper._flight is not None)
    await begun.wait()
    began = time.monotonic()
    stepper.stop()
    await stepping
    assert time.monotonic() - began < 1
    assert cancelled.is_set()
    state = stepper.state()
    assert (state["status"], state["phase"], state["running"]) == ("interrupted", "end", False)
    assert "Outcome unknown" in stepper.run.of(Result)[0].text
    assert state["can"]["step"] is True
    await stepper.go()
    assert stepper.answer == "ok"


async def test_stop_does_not_wait_for_a_thread() -> None:
    begun, held = threading.Event(), threading.Event()

    @tool
    def stuck() -> str:
        """Hang."""
        begun.set()
        held.wait(5)
        return "late"

    stepper = stepper_of(Agent(models.scripted([models.call("stuck")]), [stuck], guards=[]))
    stepping = asyncio.create_task(stepper.go())
    await until(begun.is_set)
    began = time.monotonic()
    stepper.stop()
    await stepping
    assert time.monotonic() - began < 1
    assert stepper.status == "interrupted"
    held.set()


async def test_stop_of_what_will_not_be_cancelled() -> None:
    release, began_to = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Ignore cancellation."""
        began_to.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    stepper = stepper_of(Agent(models.scripted([models.call("stubborn")]), [stubborn], guards=[]))
    stepping = asyncio.create_task(stepper.go())
    await began_to.wait()
    began = time.monotonic()
    stepper.stop()
    await stepping
    assert time.monotonic() - began < 1
    assert stepper.status == "interrupted"
    assert stepper.run.log[-1] == Stop("interrupted", "a person stopped the run")
    await stepper.step()
    assert stepper.state()["phase"] == "request"  # taken up, it does not run the call a second time
    assert [result.error for result in stepper.run.of(Result)] == [True]
    release.set()
    await asyncio.sleep(0.01)


async def test_a_tool_that_tidies_up_has_its_time_when_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a heartbeat ends just after Stop: it took the time away, and the call ran again when the run was taken up."""
    monkeypatch.setattr("agentlab.stepper.HEARTBEAT", 0)
    said: list[str] = []

    @tool
    async def tidy() -> str:
        """Put things back when cancelled."""
        said.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            said.append("tidied up")
        return "never"

    stepper = stepper_of(Agent(models.scripted([models.call("tidy")]), [tidy], guards=[]))
    stepping = asyncio.create_task(stepper.go())
    await until(lambda: said)
    stepper.stop()
    await stepping
    assert said == ["began", "tidied up"]
    assert "Outcome unknown" in stepper.run.of(Result)[0].text


async def test_stop_while_nothing_runs_ends_the_run_and_step_takes_it_up(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(LOOK), tools))
    await stepper.step()
    stepper.stop()
    assert (stepper.status, stepper.left) == ("interrupted", True)
    await stepper.step()
    assert stepper.state()["phase"] == "call"
    assert stepper.status == "running"  # it was interrupted, and it is no more
    await stepper.go()
    assert stepper.answer == "There are 100 cents."


async def test_pause_lets_the_step_end(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(lambda request: models.call("look")), tools, guards=[Isolate()]))
    going = asyncio.create_task(stepper.go())
    await until(lambda: stepper.branch.last > 20)
    stepper.pause()
    await going
    assert not stepper.running
    assert stepper.status == "running"


async def test_one_thing_at_a_time(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(lambda request: models.call("look")), tools, guards=[Isolate()]))
    going = asyncio.create_task(stepper.go())
    await until(lambda: stepper.running)
    with pytest.raises(Busy):
        await stepper.step()
    with pytest.raises(Busy):
        stepper.back()
    stepper.pause()
    await going


async def test_an_interrupted_cell_leaves_what_was_found() -> None:
    begun = asyncio.Event()

    @tool
    async def slow() -> str:
        """Take long."""
        begun.set()
        await asyncio.sleep(30)
        return "late"

    stepper = stepper_of(Agent(models.scripted([models.call("slow")]), [slow]))
    cell = asyncio.create_task(stepper.finish())
    await begun.wait()
    cell.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cell
    assert (stepper.status, stepper.running) == ("interrupted", False)


async def test_an_interrupt_inside_a_step_does_not_leave_it() -> None:
    @tool
    async def interrupted() -> str:
        """Meets the kernel's Stop."""
        raise KeyboardInterrupt

    stepper = stepper_of(Agent(models.scripted([models.call("interrupted")]), [interrupted], guards=[]))
    await stepper.go()
    assert (stepper.status, stepper.is_over) == ("interrupted", True)


@pytest.mark.timing
async def test_a_step_costs_the_same_late_as_early(tools: list[Tool]) -> None:
    steady = stepper_of(Agent(models.scripted(lambda request: models.call("look")), tools[:1], guards=[Isolate()]))

    async def cost(turns: int) -> float:
        began = time.process_time()
        for _ in range(4 * turns):
            await steady.step()
        return (time.process_time() - began) / turns

    await cost(20)
    early = min([await cost(40) for _ in range(3)])
    while len(steady.run) < 3_000:
        await cost(50)
    late = min([await cost(40) for _ in range(3)])
    assert late < 1.6 * early + 0.0005, f"{early * 1e6:.0f} us a turn early, {late * 1e6:.0f} us at 3,000 entries"


def test_it_reads_well_in_a_terminal(tools: list[Tool]) -> None:
    stepper = stepper_of(Agent(models.scripted(PAY), tools, guards=[Approve()]))
    asyncio.run(stepper.go())
    assert repr(stepper) == stepper.text()
    assert "waiting for a person" in stepper.text()
    assert "pay({" in stepper.text()
    assert isinstance(stepper.run, Run)
