"""The loop: one turn is one step, results in call order, and what is interrupted can be gone on with (E1, E2, E4)."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from agentlab import (
    Agent,
    Ask,
    Call,
    Reply,
    Result,
    Run,
    Stop,
    User,
    climb,
    guarded,
    lint,
    models,
    naked,
    perform,
    steps,
    tool,
)
from agentlab import loop as loop_module
from agentlab.records import Action, Entry


async def all_of(run: Run, act: Any, width: int = 1) -> Run:
    async for later in steps(run, act, width):
        run = later
    return run


def turn(*names: str) -> dict[str, Any]:
    return models.calls(*((name, {}) for name in names))


# ---- a turn ----
@pytest.mark.parametrize("width", [1, 2, 8])
async def test_results_come_in_call_order_whatever_finishes_first(width: int) -> None:
    """E2: the calls finish in the opposite order."""
    running = most = 0
    order: list[str] = []

    async def work(name: str, waits: int) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(waits):
            await asyncio.sleep(0)
        running -= 1
        order.append(name)
        return name

    @tool
    async def slow() -> str:
        return await work("slow", 20)

    @tool
    async def middle() -> str:
        return await work("middle", 8)

    @tool
    async def quick() -> str:
        return await work("quick", 0)

    run = await Agent(models.scripted([turn("slow", "middle", "quick"), "done"]), [slow, middle, quick], width=width).run("q")
    assert [r.text for r in run.of(Result)] == ["slow", "middle", "quick"]
    assert most == min(width, 3)
    assert (order == ["slow", "middle", "quick"]) == (width == 1)


async def test_a_tool_that_must_not_overlap_runs_by_itself() -> None:
    """E4"""
    running: set[str] = set()
    seen: dict[str, set[str]] = {}

    def made(name: str, alone: bool) -> Any:
        async def work() -> str:
            running.add(name)
            for _ in range(3):
                await asyncio.sleep(0)
                seen.setdefault(name, set()).update(running - {name})
            running.discard(name)
            return name

        return tool(work, name=name, alone=alone)

    tools = [made("a", False), made("b", False), made("only", True), made("c", False), made("d", False)]
    run = await Agent(models.scripted([turn("a", "b", "only", "c", "d"), "done"]), tools, width=8).run("q")
    assert [r.text for r in run.of(Result)] == ["a", "b", "only", "c", "d"]
    assert seen == {"a": {"b"}, "b": {"a"}, "only": set(), "c": {"d"}, "d": {"c"}}


async def test_every_call_of_a_turn_sees_the_run_as_of_its_reply() -> None:
    seen: list[int] = []

    async def look(run: Run, action: Action, act: Any) -> Entry:
        if isinstance(action, Call):
            seen.append(len(run))
        return await act(run, action)

    @tool
    def one() -> str:
        return "1"

    for width in (1, 4):
        agent = Agent(models.scripted([models.calls(("one", {}), ("one", {}), ("one", {})), "done"]), [one], [look], width=width)
        await agent.run("q")
    assert seen == [2] * 6


async def test_without_isolation_the_first_failure_ends_the_run_and_nothing_is_reported_as_lost() -> None:
    """B2, and the others of the turn: cancelled, and their errors are not shouted later."""
    behind: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: behind.append(context))
    ended: list[str] = []

    @tool
    async def fails() -> str:
        raise ValueError("no")

    @tool
    async def fails_too() -> str:
        raise KeyError("no")

    @tool
    async def fails_when_cancelled() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise RuntimeError("while it was cleaning up") from None
        return ""

    act = perform(models.scripted([turn("fails_when_cancelled", "fails", "fails_too")]), [fails, fails_too, fails_when_cancelled])
    with pytest.raises(ValueError, match="no"):
        await all_of(Run.start("q"), act, width=4)
    gc.collect()
    await asyncio.sleep(0)
    assert ended == ["cancelled"]
    assert behind == []


# ---- what a guard may answer (what it may not: test_contract.py) ----
async def test_a_stop_in_a_turn_comes_after_the_results_and_only_once() -> None:
    async def stops(run: Run, action: Action, act: Any) -> Entry:
        return Stop("stuck", action.name) if isinstance(action, Call) and action.name != "c" else await act(run, action)

    agent = Agent(models.scripted([turn("a", "c", "b"), "sorry"]), {n: (lambda: "C") for n in "abc"}, [stops])
    run = await agent.run("q")
    assert [type(e).__name__ for e in run.log] == ["User", "Reply", "Result", "Stop", "Reply"]
    assert (run.status, run.stop.why, run.answer) == ("stuck", "a", "sorry")  # type: ignore[union-attr]
    assert lint(run.messages) == []


async def test_guards_nest_in_the_order_of_the_list() -> None:
    order: list[str] = []

    def named(name: str) -> Any:
        async def guard(run: Run, action: Action, act: Any) -> Entry:
            order.append(name)
            return await act(run, action)

        return guard

    await all_of(Run.start("q"), guarded(perform(models.scripted(["hi"])), [named("outer"), named("inner")]))
    assert order == ["outer", "inner"]


# ---- an interruption ----
class Waits:
    """Tools of which one finishes and one waits until it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = 0

    async def quick(self) -> str:
        return "quick result"

    async def hangs(self) -> str:
        self.begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "never"

    async def stubborn(self) -> str:
        self.begun.set()
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                self.cancelled += 1
                if self.cancelled > 3:
                    raise

    async def swallows(self) -> str:
        self.begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.cancelled += 1
        return "went on regardless"


@pytest.mark.parametrize("guards", [climb(), climb("isolate"), []], ids=["all", "isolate", "none"])
@pytest.mark.parametrize("width", [1, 4])
async def test_an_interruption_keeps_what_is_finished_and_says_what_is_unknown(width: int, guards: Any) -> None:
    """EX02, CT03, HV14"""
    tools = Waits()
    agent = Agent(
        models.scripted([turn("quick", "hangs", "quick2"), "after all"]),
        {"quick": tools.quick, "hangs": tools.hangs, "quick2": tools.quick},
        guards,
        width,
    )
    task = asyncio.ensure_future(agent.run("q"))
    await tools.begun.wait()
    await asyncio.sleep(0.02)  # the quick one is back
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run = agent.last
    assert run is not None
    assert tools.cancelled == 1
    assert run.status == "interrupted"
    first, second, third = run.of(Result)
    assert first.text == "quick result"
    assert "unknown" in second.text
    assert ("unknown" in third.text) == (width == 1)
    assert lint(run.messages) == []
    assert (await agent.run(run)).answer == "after all"


@pytest.mark.parametrize("width", [1, 4])
async def test_a_tool_that_swallows_the_cancellation_does_not_keep_the_run_alive(width: int) -> None:
    """EX02: the stop was meant for the run. What the tool returned is kept, for it is true."""
    tools = Waits()
    requests = 0

    def script(request: Any) -> Any:
        nonlocal requests
        requests += 1
        return models.calls(("swallows", {}), ("quick", {})) if requests == 1 else "as if nothing had been"

    agent = Agent(models.scripted(script), {"swallows": tools.swallows, "quick": tools.quick}, climb("isolate"), width)
    task = asyncio.ensure_future(agent.run("q"))
    await tools.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert requests == 1
    assert agent.last is not None
    assert agent.last.status == "interrupted"
    assert agent.last.of(Result)[0].text == "went on regardless"


async def test_a_tool_that_will_not_be_cancelled_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SECONDS_TO_LET_GO", 0.01)
    tools = Waits()
    agent = Agent(models.scripted([turn("stubborn"), "x"]), {"stubborn": tools.stubborn})
    task = asyncio.ensure_future(agent.run("q"))
    await tools.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(task), 5)
    assert agent.last is not None
    assert "unknown" in agent.last.of(Result)[0].text
    for left in asyncio.all_tasks() - {asyncio.current_task()}:
        while not left.done():  # it gives in at the fourth time: the test leaves nothing behind
            left.cancel()
            await asyncio.sleep(0)


async def test_interrupted_while_the_model_is_asked() -> None:
    asked = asyncio.Event()

    async def model(ask: Ask) -> Reply:
        if not asked.is_set():
            asked.set()
            await asyncio.sleep(600)
        return Reply("now")

    agent = Agent(model)
    task = asyncio.ensure_future(agent.run("q"))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert agent.last is not None
    assert list(agent.last.log) == [User("q"), Stop("interrupted", "a person stopped the run")]
    assert (await agent.run(agent.last)).answer == "now"


async def test_steps_can_be_left_at_any_point_and_gone_on_with() -> None:
    agent = Agent(models.scripted([models.call("t"), "done"]), {"t": lambda: "T"})
    async for _ in agent.steps("q"):
        break
    assert agent.last is not None
    assert [r.status async for r in agent.steps(agent.last)] == ["running", "answered"]
    assert agent.last.answer == "done"


def test_a_second_interrupt_in_a_script_still_leaves_the_run_standing() -> None:
    """KeyboardInterrupt, raised where it happens to strike: it is the person's, never a failure of the tool."""

    async def struck() -> str:
        raise KeyboardInterrupt

    for width in (1, 4):
        agent = Agent(models.scripted([models.calls(("struck", {}), ("struck", {"x": 1}))]), {"struck": struck}, width=width)
        with pytest.raises(KeyboardInterrupt):
            agent.run_sync("q")
        assert agent.last is not None
        assert agent.last.status == "interrupted"
        assert lint(agent.last.messages) == []


# ---- the reference ----
async def test_naked_raises_what_goes_wrong() -> None:
    """B2: an invented tool name takes the whole run down."""

    def needs(x: int) -> int:
        return x

    with pytest.raises(KeyError, match="There is no tool 'no_such'"):
        await naked("q", models.scripted([models.call("no_such")]), [])
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        await naked("q", models.scripted([models.call("t")]), {"t": needs})


@pytest.mark.parametrize("width", [1, 4])
async def test_ids_that_come_again_in_each_turn_leave_the_same_log_guarded_or_not(width: int) -> None:
    def same_ids(*names: str) -> dict[str, Any]:
        said = turn(*names)
        for k, call in enumerate(said["choices"][0]["message"]["tool_calls"]):
            call["id"] = f"call_{k}"
        return said

    @tool
    async def a() -> str:
        return "A"

    @tool
    def b() -> str:
        return "B"

    script = models.scripted([same_ids("a", "b"), same_ids("b", "a"), same_ids("a"), "done"])
    bare = await naked("q", script, [a, b])
    run = await Agent(script, [a, b], climb("cap"), width).run("q")
    assert list(run.log) == bare
    assert [m["content"] for m in Run(bare).messages if m["role"] == "tool"] == ["A", "B", "B", "A", "A"]


def test_a_hanging_thread_does_not_hold_the_process() -> None:
    """C6, CT02: a thread cannot be killed, so it must not count at exit either."""
    script = textwrap.dedent(
        """
        import threading
        from agentlab import Agent, models, climb, Timeout
        def hang() -> str:
            threading.Event().wait()
        agent = Agent(models.scripted([models.call("hang"), "went on"]), {"hang": hang}, climb(timeout=Timeout(0.05)))
        print(agent.run_sync("q").answer)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "went on\n"
    assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_in_a_script_ends_it_at_once_and_keeps_the_run() -> None:
    script = textwrap.dedent(
        """
        import os, signal, threading
        from agentlab import Agent, models
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it from birth
        def hang() -> str:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait()
        agent = Agent(models.scripted([models.call("hang"), "no"]), {"hang": hang})
        try:
            agent.run_sync("q")
        except KeyboardInterrupt:
            print(agent.last.status)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "interrupted\n"
