"""Publicly reported failures of agent loops (tests/cases/agent_loop.jsonl): what each should have come to, one by one.

A case holds a question, tools, the replies of a model on the wire, and in words what should happen. Each function here is
that expectation. Cases that the core does not meet stand in `LEFT_OUT` with the reason; one that is met later must leave it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentlab import Agent, Budget, Call, Reply, Result, Ruling, Run, User, climb, lint, models, tool
from agentlab.guards import EMPTY, Cap, Repeats, Timeout, Truncate

LINES = (Path(__file__).parents[1] / "cases/agent_loop.jsonl").read_text("utf-8").splitlines()
CASES = {row["id"]: row for row in map(json.loads, LINES)}
TOPICS = {
    "ids-parallel", "tool-results", "exceptions-cancel", "concurrency-timeouts", "args-empty", "args-shape",
    "args-malformed", "args-truncated", "tool-name", "approvals", "loops-caps", "message-shape", "reasoning",
}  # fmt: skip
LEGAL = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
RIGHT: dict[str, Callable[[Case], Awaitable[None]]] = {}
REACT = "the ReAct protocol comes with its model (M1-M3)"
LEFT_OUT = {
    "AP07": "a run is not kept on disk yet: that comes with the store (L1)",
    "EX10": "there are no observers to raise yet: they come with the trace",
    "RS03": REACT,
    "RS07": REACT,
}


def right(case_id: str) -> Callable[[Callable[[Case], Awaitable[None]]], None]:
    """Register what is right for a case."""

    def register(check: Callable[[Case], Awaitable[None]]) -> None:
        assert case_id not in RIGHT
        RIGHT[case_id] = check

    return register


@dataclass
class Case:
    """One case, played: the tools count what they were called with, the requests are kept as they were sent."""

    id: str
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    sent: list[list[dict[str, Any]]] = field(default_factory=list)
    offered: list[list[Any]] = field(default_factory=list)

    @property
    def input(self) -> dict[str, Any]:
        return dict(CASES[self.id]["input"])

    def agent(
        self,
        does: Mapping[str, Callable[..., Any]] | None = None,
        ask: Any = None,
        dangerous: tuple[str, ...] = (),
        then: tuple[Any, ...] = (),
        **guards: Any,
    ) -> Agent:
        """An agent with the case's tools and every guard; `does` says what a tool does where the case says it in words."""
        tools = [self.made(one, (does or {}).get(one["name"]), one["name"] in dangerous) for one in self.input.get("tools", ())]
        script = [*self.input["responses"], *then]

        def reply(request: dict[str, Any]) -> Any:
            messages = list(request["messages"])
            self.sent.append(messages)
            self.offered.append(request["tools"])
            if len(self.sent) > len(script):
                raise models.ModelError("the script is over")
            item = script[len(self.sent) - 1]
            if "http_status" in item:
                raise models.ModelError("the endpoint answered 500")
            return item

        return Agent(models.scripted(reply), tools, guards=climb(**guards), ask=ask or (lambda run, call: None))

    def made(self, about: dict[str, Any], does: Callable[..., Any] | None = None, dangerous: bool = False) -> Any:
        """The tool that the case describes, with a signature that fits its schema."""
        behaviour, name, schema = about["behaviour"], about["name"], about["parameters"]
        assert does or "returns" in behaviour, f"{self.id}: say what {name} does"

        def start(given: dict[str, Any]) -> Any:
            self.ran.append((name, given))
            return does(**given) if does else behaviour["returns"]

        async def work(**given: Any) -> Any:
            value = start(given)
            return await value if inspect.isawaitable(value) else value

        def work_in_a_thread(**given: Any) -> Any:
            return start(given)

        function: Any = work_in_a_thread if behaviour.get("sync") else work
        function.__signature__ = inspect.Signature(
            [
                inspect.Parameter(
                    parameter,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if parameter in schema["required"] else None,
                )
                for parameter in schema["properties"]
            ]
        )
        return tool(function, name=name, parameters=schema, dangerous=dangerous or behaviour.get("needs_approval", False))

    async def play(self, does: Mapping[str, Callable[..., Any]] | None = None, **about: Any) -> Run:
        """Play the case to its end. Every request that was sent is one that a strict endpoint takes."""
        run = await self.agent(does, **about).run(self.input["user"])
        for messages in self.sent:
            assert lint(messages) == []
        assert lint(run.messages) == []
        json.dumps(run.messages, allow_nan=False)
        return run


def told(run: Run, call_id: str | None = None) -> str:
    """What the model was told of one call, or of the only one."""
    results = run.of(Result)
    if call_id is None:
        assert len(results) == 1
        return results[0].text
    return next(result.text for result in results if result.call_id == call_id)


def result_of(run: Run) -> Result:
    (result,) = run.of(Result)
    return result


def order(run: Run) -> list[str]:
    return [message["tool_call_id"] for message in run.messages if message["role"] == "tool"]


def asked(run: Run) -> list[dict[str, Any]]:
    """The functions in the history, as they are sent again."""
    return [call["function"] for message in run.messages for call in message.get("tool_calls", ())]


def raising(error: BaseException) -> Callable[..., Any]:
    def work(**given: Any) -> Any:
        raise error

    return work


# ---- ids and parallel calls ----
@right("IP03")
async def _(case: Case) -> None:
    run = await case.play({"step": lambda n: n})
    assert case.ran == [("step", {"n": 1}), ("step", {"n": 2})]
    assert len(set(order(run))) == 2
    assert run.answer == "2"


@right("IP04")
async def _(case: Case) -> None:
    run = await case.play()
    assert len(case.ran) == 1
    assert order(run) == [f"id{n}" for n in range(9)]


@right("IP05")
async def _(case: Case) -> None:
    run = await case.play()
    assert len(case.ran) == 1
    assert "same as p1" in told(run, "p2")


@right("IP07")
async def _(case: Case) -> None:
    def read(path: str) -> str:
        if path == "/locked":
            raise PermissionError(path)
        return "data"

    agent = case.agent({"read": read}, then=("and then nothing",))
    run = await agent.run(case.input["user"])
    assert [(result.call_id, result.error) for result in run.of(Result)] == [("r1", True), ("r2", False)]
    assert told(run, "r2") == "data"
    run = await agent.run(run.plus(User(case.input["then_user"])))
    assert run.status == "answered"
    assert lint(case.sent[-1]) == []


@right("IP09")
async def _(case: Case) -> None:
    finished: list[str] = []

    async def slow() -> str:
        await asyncio.sleep(0.02)
        finished.append("slow")
        return "S"

    def fast() -> str:
        finished.append("fast")
        return "F"

    run = await case.play({"slow": slow, "fast": fast})
    assert finished == ["fast", "slow"]
    assert order(run) == ["s1", "f1"]


@right("IP10")
async def _(case: Case) -> None:
    def blocked(run: Run, call: Call) -> Ruling:
        return call.ruled(False, "blocked by policy")

    run = await case.play({"long_read": lambda: "L"}, ask=blocked, dangerous=("drop",))
    assert [name for name, _ in case.ran] == ["long_read"]
    assert order(run) == ["l1", "d1"]
    assert "not run" in told(run, "d1")
    assert "blocked by policy" in told(run, "d1")


# ---- tool results ----
@right("TR02")
async def _(case: Case) -> None:
    run = await case.play({"thumb": lambda: bytes([0x89, 0x50, 0x4E, 0x47, 0xFF, 0x00])})
    assert "6 bytes" in told(run)
    assert "b'" not in told(run)
    assert not result_of(run).error


@right("TR04")
async def _(case: Case) -> None:
    assert told(await case.play()) == "9 C, foggy"
    none = told(await Case(case.id).play({"temp": lambda: None}))
    assert none.strip() not in ("", "null", "None")


@right("TR06")
async def _(case: Case) -> None:
    async def ring(name: str) -> str:
        return f"dialled {name}"

    assert told(await case.play({"ring": lambda name: ring(name)})) == "dialled Ada"


@right("TR07")
async def _(case: Case) -> None:
    run = await case.play({"stats": lambda: {"mean": float("nan"), "max": float("inf"), "n": 0}})
    read = json.loads(told(run), parse_constant=lambda name: pytest.fail(f"bare {name}"))
    assert read["n"] == 0
    assert read["mean"] in (None, "NaN")
    assert read["max"] in (None, "Infinity")


@right("TR08")
async def _(case: Case) -> None:
    run = await case.play({"dump": lambda: "row\n" * 2_000_000}, truncate=Truncate(8_000))
    assert len(told(run)) <= 8_000
    assert "of 8,000,000 characters shown" in told(run)
    assert "same call gives the same cut" in told(run)


@right("TR11")
async def _(case: Case) -> None:
    big = json.dumps({"releases": {str(i): "y" * 100 for i in range(20_000)}, "info": {"version": "9.1"}})
    run = await case.play({"pkg": lambda name: big}, truncate=Truncate(3_000))
    assert not result_of(run).error
    assert "characters shown" in told(run)
    assert "narrower" in told(run)
    assert result_of(run).full == big


@right("TR12")
async def _(case: Case) -> None:
    run = await case.play({"ls": lambda path: "name\n" * 50_000}, truncate=Truncate(1_000))
    assert re.search(r"\d+ of 250,000 characters shown", told(run))
    assert "The same call gives the same cut" in told(run)
    again = models.scripted([models.call("ls", path="/"), models.call("ls", path="/"), "ok"])
    second = Case(case.id)
    tools = [second.made(second.input["tools"][0], lambda path: "name\n" * 50_000)]
    run = await Agent(again, tools, guards=climb(repeats=Repeats(1))).run("x")
    assert len(second.ran) == 1
    assert "Repeated call blocked" in run.of(Result)[1].text


@right("TR14")
async def _(case: Case) -> None:
    run = await case.play()
    assert not result_of(run).error
    assert "0 items" in told(run)
    assert "0 items" not in told(await Case(case.id).play({"query": lambda sql: None}))


@right("TR15")
async def _(case: Case) -> None:
    class Audio:
        def __init__(self, data: bytes) -> None:
            self.data = data

    run = await case.play({"media": lambda: Audio(b"RIFF"), "text": lambda: "plain"})
    assert order(run) == ["m", "t"]
    assert "Audio" in told(run, "m")
    assert len(told(run, "m")) < 500
    assert told(run, "t") == "plain"


@right("TR16")
async def _(case: Case) -> None:
    @dataclass
    class Point:
        x: int
        y: int

    assert json.loads(told(await case.play({"pt": lambda: Point(1, 2)}))) == {"x": 1, "y": 2}


# ---- exceptions and cancellation ----
@right("EX01")
async def _(case: Case) -> None:
    run = await case.play({"boom": raising(asyncio.CancelledError())})
    assert result_of(run).error
    assert "cancelled" in told(run)
    assert run.answer == "handled"


@right("EX02")
async def _(case: Case) -> None:
    begun = asyncio.Event()

    async def wait() -> None:
        begun.set()
        await asyncio.sleep(60)

    agent = case.agent({"boom": wait})
    task = asyncio.create_task(agent.run(case.input["user"]))
    await begun.wait()
    began = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - began < 1
    assert len(case.sent) == 1
    assert agent.last is not None
    assert agent.last.status == "interrupted"
    assert "Interrupted" in told(agent.last, "ex02")
    assert lint(agent.last.messages) == []


@right("EX03")
async def _(case: Case) -> None:
    async def later(value: str) -> str:
        await asyncio.sleep(0.02)
        return value

    run = await case.play(
        {"ok1": lambda: later("1"), "cancels_itself": raising(asyncio.CancelledError()), "ok2": lambda: later("2")}
    )
    assert [(result.call_id, result.error) for result in run.of(Result)] == [("a", False), ("b", True), ("c", False)]
    assert (told(run, "a"), told(run, "c")) == ("1", "2")


@right("EX04")
async def _(case: Case) -> None:
    run = await case.play({"boom": raising(SystemExit(3))})
    assert result_of(run).error
    assert "SystemExit" in told(run)
    assert run.answer == "handled"


@right("EX06")
async def _(case: Case) -> None:
    def boom() -> Any:
        return next(iter({}.values()))

    async def in_a_coroutine() -> Any:
        return boom()

    script = [models.call("boom"), "handled"]
    for function in (boom, in_a_coroutine):
        began = time.perf_counter()
        run = await Agent(models.scripted(script), [tool(function, name="boom")]).run("x")
        assert time.perf_counter() - began < 1
        assert "StopIteration" in told(run)
        assert run.answer == "handled"
    assert case.ran == []


@right("EX08")
async def _(case: Case) -> None:
    run = await case.play({"boom": raising(TimeoutError())})
    assert result_of(run).error
    assert "TimeoutError" in told(run)
    assert [note.guard for note in result_of(run).notes] == ["Isolate"]


# ---- concurrency and timeouts ----
@right("CT01")
async def _(case: Case) -> None:
    began = time.perf_counter()
    run = await case.play({"hang": lambda: asyncio.sleep(30)}, timeout=Timeout(0.05))
    assert time.perf_counter() - began < 5
    assert "hang" in told(run)
    assert "0.05 s" in told(run)
    assert run.answer == "gave up"


@right("CT02")
async def _(case: Case) -> None:
    go, wrote, threads = threading.Event(), threading.Event(), []

    def write_sync() -> str:
        threads.append(threading.current_thread())
        go.wait(10)
        wrote.set()
        return "written"

    run = await case.play({"write_sync": write_sync}, timeout=Timeout(0.05))
    assert "outcome is unknown" in told(run)
    assert "may still finish" in told(run)
    assert "Check before you repeat" in told(run)
    before = list(run.log)
    go.set()
    assert await asyncio.to_thread(wrote.wait, 5)
    await asyncio.sleep(0.01)
    assert list(run.log) == before
    assert "written" not in json.dumps(run.messages)
    assert threads[0].daemon  # so that it does not hold the process at exit


@right("CT03")
async def _(case: Case) -> None:
    ticks: list[int] = []
    begun = asyncio.Event()

    async def ticker() -> None:
        while True:
            ticks.append(1)
            begun.set()
            await asyncio.sleep(0.002)

    task = asyncio.create_task(case.agent({"ticker": ticker}).run(case.input["user"]))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    seen = len(ticks)
    await asyncio.sleep(0.02)
    assert len(ticks) == seen


@right("CT05")
async def _(case: Case) -> None:
    beats = 0

    async def heart() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0.005)

    task = asyncio.create_task(heart())
    await case.play({"sleepy": lambda: time.sleep(0.2) or "z"})
    task.cancel()
    assert beats >= 6


@right("CT06")
async def _(case: Case) -> None:
    with pytest.raises(RuntimeError, match=r"await agent\.run"):
        case.agent().run_sync("hi")
    assert case.sent == []


@right("CT08")
async def _(case: Case) -> None:
    run = await case.play({"net": raising(TimeoutError("dns"))}, timeout=Timeout(5))
    assert "TimeoutError: dns" in told(run)
    assert "5 s" not in told(run)


@right("CT12")
async def _(case: Case) -> None:
    async def slowly(request: dict[str, Any]) -> str:
        await asyncio.sleep(0.01)
        return str(request["messages"][-1]["content"]).upper()

    agent = Agent(models.scripted(slowly))
    first, second = await asyncio.gather(agent.run("a"), agent.run("b"))
    for run, question in ((first, "a"), (second, "b")):
        assert [message["content"] for message in run.messages] == [question, question.upper()]


# ---- empty arguments ----
for _id in ("AE02", "AE05", "AE06"):

    @right(_id)
    async def _(case: Case) -> None:
        run = await case.play()
        assert [given for _, given in case.ran] == [{}]
        assert [function["arguments"] for function in asked(run)] == ["{}"]
        assert not result_of(run).error


@right("AE07")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("store_health", {})]
    assert "'key'" in told(run, "call_ae07b")
    assert "issing" in told(run, "call_ae07b")
    assert "JSON" not in told(run, "call_ae07b")


# ---- the shape of arguments ----
@right("AS01")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("sum_up", {"nums": [1, 2, 3]})]
    assert order(run) == ["call_as01", "call_as01b", "call_as01c"]
    for call_id in ("call_as01", "call_as01b"):
        assert "JSON object" in told(run, call_id)


@right("AS02")
async def _(case: Case) -> None:
    await case.play()
    assert case.ran == [("set_plan", {"steps": ["buy", "cook"], "title": "[draft]"})]


@right("AS03")
async def _(case: Case) -> None:
    await case.play()
    assert case.ran == [("store_raw", {"content": '{"a": 1}'})]


@right("AS04")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("weather", {"city": "Bergen"})]
    assert json.loads(asked(run)[0]["arguments"]) == {"city": "Bergen"}


@right("AS09")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("row", {"row_id": 4611686018427387905})]
    assert "4611686018427387905" in asked(run)[0]["arguments"]


@right("AS10")
async def _(case: Case) -> None:
    await case.play()
    assert case.ran == [("find_word", {"word": "null"})]


@right("AS11")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == []
    assert "'MaxRows'" in told(run)
    assert "Did you mean 'max_rows'?" in told(run)
    assert "table, max_rows" in told(run)


@right("AS12")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("edit_file", {"path": "a", "text": "x"})]
    assert "required parameter 'path'" in told(run, "call_as12")


@right("AS13")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("lamp", {"room": "hall"})]
    assert asked(run) == [{"name": "lamp", "arguments": '{"room": "hall"}'}]


# ---- malformed arguments ----
def runs_with(case_id: str, **given: Any) -> None:
    @right(case_id)
    async def _(case: Case) -> None:
        run = await case.play()
        assert [arguments for _, arguments in case.ran] == [given]
        assert json.loads(asked(run)[0]["arguments"]) == given


runs_with("AM01", cmd="uptime")
runs_with("AM02", unit="K7")
runs_with("AM04", city="Oslo")
runs_with("AM07", path="m.go", old="\t\treturn 1", new="\t\treturn 2")
runs_with("AM08", name="poem", body="line one\nline two\n\nline four")
runs_with("AM13", w=7, h=8)


@right("AM10")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == []
    assert "JSON object" in told(run)


@right("AM11")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("desktop", {"action": "wlist"})]
    assert "not valid JSON" in told(run, "call_am11")
    assert "wlist" in told(run, "call_am11")
    assert not re.search("truncated|cut off", told(run, "call_am11"))


@right("AM15")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == []
    assert result_of(run).error


@right("AM17")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == []
    assert "not valid JSON" in told(run)


# ---- arguments that were cut off ----
for _id in ("AT02", "AT04", "AT06", "AT07"):

    @right(_id)
    async def _(case: Case) -> None:
        run = await case.play()
        assert case.ran == []
        assert "cut off" in told(run)
        assert "not run" in told(run)
        assert len(case.sent) == 2


@right("AT08")
async def _(case: Case) -> None:
    run = await case.play()
    assert run.status != "answered"
    assert "output limit" in (run.answer or "")


# ---- names of tools ----
@right("TN03")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("multiply", {"a": 3, "b": 4})]
    assert asked(run)[0]["name"] == "multiply"


@right("TN04")
async def _(case: Case) -> None:
    await case.play()
    assert case.ran == [("list_all", {"dir": "."})]


@right("TN05")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("lookup", {"k": "a"})]
    assert "'$LOOKUP!'" in told(run, "call_tn05b")
    assert all(LEGAL.match(function["name"]) for function in asked(run))
    assert order(run) == ["call_tn05", "call_tn05b"]


@right("TN06")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == []
    assert told(run).startswith("The tool name was empty. Available tools: scan")
    assert LEGAL.match(asked(run)[0]["name"])


@right("TN10")
async def _(case: Case) -> None:
    run = await case.play()
    assert sorted(name for name, _ in case.ran) == ["a_read", "b_read"]
    assert order(run) == ["c1", "c2", "c3"]
    assert "no tool 'c_read'" in told(run, "c2")


@right("TN11")
async def _(case: Case) -> None:
    run = await case.play()
    assert "'files.recent.show'" in told(run)
    assert LEGAL.match(asked(run)[0]["name"])
    assert order(run) == ["call_tn11"]


@right("TN12")
async def _(case: Case) -> None:
    await case.play()
    assert case.ran == [("list_dir", {"path": "a"})]

    def list_dir(path: str) -> str:
        return path

    two = [tool(list_dir), tool(list_dir, name="LIST_DIR")]
    run = await Agent(models.scripted([models.call("List_Dir", path="a"), "hi"]), two).run("list")
    assert "ambiguous" in told(run)


# ---- approvals ----
@right("AP01")
async def _(case: Case) -> None:
    agent = case.agent()
    waiting = await agent.run(case.input["user"])
    (call,) = waiting.held
    yes = call.ruled(True)
    done = await agent.run(waiting.plus(yes))
    assert case.ran == [("pay", {"to": "Ines", "eur": 20})]
    again = await agent.run(done.plus(yes))  # on the same run
    assert (again.status, again.answer) == (done.status, done.answer)
    other = await agent.run(waiting.plus(yes))  # from another view, on the run as it was then
    assert "used already" in told(other, call.id)
    assert len(case.ran) == 1


@right("AP03")
async def _(case: Case) -> None:
    agent = case.agent()
    waiting = await agent.run(case.input["user"])
    one, nine = waiting.held
    assert one.id != nine.id
    run = await agent.run(waiting.plus(one.ruled(True)))
    assert case.ran == [("pay", {"to": "A", "eur": 1})]
    assert run.status == "waiting"
    assert run.held == [nine]
    run = await agent.run(waiting.plus(Ruling(nine.id, True, digest=one.digest)))  # the other call's yes, on this id
    assert [given["eur"] for _, given in case.ran] == [1]


@right("AP05")
async def _(case: Case) -> None:
    run = await case.play(ask=lambda run, call: call.ruled(True, arguments={"to": "Ines", "eur": 15}))
    assert case.ran == [("pay", {"to": "Ines", "eur": 15})]
    assert "A person changed the arguments" in told(run)
    assert "20" in told(run)
    assert "15" in told(run)


@right("AP06")
async def _(case: Case) -> None:
    assert "name" not in inspect.signature(Ruling).parameters  # an edit cannot name another tool
    agent = case.agent()
    waiting = await agent.run(case.input["user"])
    run = await agent.run(waiting.plus(waiting.held[0].ruled(True, arguments={})))
    assert case.ran == []
    assert run.status == "waiting"


@right("AP08")
async def _(case: Case) -> None:
    agent = case.agent()
    waiting = await agent.run(case.input["user"])
    (call,) = waiting.held
    run = await agent.run(waiting.plus(Ruling(call.id, ok=False, digest=call.digest, expired=True)))
    assert "nobody answered in time" in told(run)
    assert "refused" not in told(run)
    late = await agent.run(run.plus(call.ruled(True)))
    assert case.ran == []
    assert late.answer == run.answer


@right("AP11")
async def _(case: Case) -> None:
    agent = case.agent(ask=lambda run, call: True)
    run = await agent.run(case.input["user"])
    assert run.status == "failed"
    assert told(run) == "paid"
    resumed = await agent.run(run.upto(len(run) - 1))
    assert resumed.answer == "Paid."
    assert len(case.ran) == 1


@right("AP13")
async def _(case: Case) -> None:
    agent = case.agent()
    waiting = await agent.run(case.input["user"])
    first, second = waiting.held
    half = await agent.run(waiting.plus(first.ruled(True)))
    assert half.status == "waiting"
    assert len(case.sent) == 1
    run = await agent.run(half.plus(second.ruled(True)))
    assert [given["to"] for _, given in case.ran] == ["A", "B"]
    assert run.answer == "ok"
    assert len(case.sent) == 2


# ---- loops and caps ----
@right("LC01")
async def _(case: Case) -> None:
    run = await case.play(cap=Cap(100), repeats=Repeats(3))
    assert run.status == "stuck"
    assert len(case.ran) == 8  # of a hundred that it may take: far below


@right("LC04")
async def _(case: Case) -> None:
    run = await case.play(cap=Cap(60))
    assert run.status == "stuck"
    assert run.requests <= 13
    assert "circle of 3" in (run.stop.why if run.stop else "")


@right("LC07")
async def _(case: Case) -> None:
    run = await case.play(repeats=Repeats(3))
    assert len(case.ran) == 6
    assert all("Repeated call blocked" in told(run, call_id) for call_id in ("7", "8"))


@right("LC08")
async def _(case: Case) -> None:
    run = await case.play(cap=Cap(2))
    assert len(case.sent) == 3
    assert case.offered[2] == []
    assert "best answer" in case.sent[2][-1]["content"]
    assert (run.status, run.answer) == ("capped", "Best answer so far: fact.")


@right("LC09")
async def _(case: Case) -> None:
    run = await case.play(cap=Cap(1))
    assert run.status == "capped"
    assert len(case.ran) == 1
    assert "the cap of 1 request is reached" in (run.answer or "")
    assert "f: 1" in (run.answer or "")


@right("LC10")
async def _(case: Case) -> None:
    bodies = await bodies_of(case, Cap(10), tool_choice="required")
    assert bodies[1].get("tool_choice", "auto") == "auto"


@right("LC11")
async def _(case: Case) -> None:
    bodies = await bodies_of(case, Cap(2), tool_choice={"type": "function", "function": {"name": "f"}})
    assert len(bodies) == 3
    assert bodies[2].get("tool_choice", "none") in ("none", "auto")


async def bodies_of(case: Case, cap: Cap, **options: Any) -> list[dict[str, Any]]:
    """What goes over the wire when the model has options of its own."""
    import httpx2
    from openai import AsyncOpenAI

    bodies: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json=case.input["responses"][len(bodies) - 1])

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        client = AsyncOpenAI(api_key="offline", base_url="http://lab.invalid/v1", http_client=http)
        tools = [case.made(one) for one in case.input["tools"]]
        await Agent(models.openai("m", client, **options), tools, guards=climb(cap=cap)).run("x")
    return bodies


@right("LC12")
async def _(case: Case) -> None:
    run = await case.play(repeats=Repeats(1))
    assert len(case.ran) == 1
    assert not result_of(run).error
    assert result_of(run).notes == ()


@right("LC13")
async def _(case: Case) -> None:
    run = await case.play(cap=Cap(20), repeats=Repeats(3))
    assert run.status == "stuck"
    assert run.requests <= 6
    assert run.stop is not None
    assert "repeated" in run.stop.why


@right("LC14")
async def _(case: Case) -> None:
    run = await case.play()
    assert (run.status, run.answer, len(case.sent)) == ("answered", "Good day.", 1)


@right("LC16")
async def _(case: Case) -> None:
    run = await case.play(budget=Budget(calls=case.input["config"]["max_tool_calls"]))
    assert len(case.ran) == 5
    assert len(order(run)) == 12


# ---- the shape of messages ----
@right("MS01")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("visit", {"url": "http://x.example"})]
    assert run.messages[1]["content"] in (None, "")


@right("MS02")
async def _(case: Case) -> None:
    run = await case.play()
    assert [message["role"] for message in run.messages] == ["user", "assistant", "tool", "assistant"]
    assert run.messages[1]["content"] == "Let me check that booking."
    assert run.answer == "It can be cancelled."


@right("MS06")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("open_notes", {})]
    assert run.answer == "Notes handled."


@right("MS07")
async def _(case: Case) -> None:
    run = await case.play()
    assert (run.answer, len(case.sent)) == ("Hello there.", 1)
    assert "tool_calls" not in run.messages[-1]


@right("MS08")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == []
    assert run.status != "answered"
    assert "I can't help with that." in (run.answer or "")


@right("MS11")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("convert", {"eur": 10})]
    assert run.answer == "11"


@right("MS12")
async def _(case: Case) -> None:
    run = await case.play()
    assert len(case.ran) == 1
    assert "function_call" not in json.dumps(run.messages)


for _id in ("MS13", "MS15", "MS16", "MS17", "MS18"):

    @right(_id)
    async def _(case: Case) -> None:
        run = await case.play()
        last = case.input["responses"][-1]["choices"][0]["message"]["content"]
        assert run.answer == last
        assert len(case.ran) == (case.id in ("MS15", "MS18"))  # only what came as a call; there is no text mode yet
        first = run.of(Reply)[0]
        assert first.fault.startswith("Nothing was run: you wrote a call")
        assert first.notes[0].guard == "Isolate"


@right("RS01")
async def _(case: Case) -> None:
    run = await case.play()
    assert case.ran == [("fetch", {"url": "u"})]  # the structured call, not the one that was only thought of
    assert run.answer == "page"
    first = run.of(Reply)[0]
    assert (first.text, first.fault) == ("", EMPTY)
    assert "I need it." in first.reasoning


@right("RS04")
async def _(case: Case) -> None:
    run = await case.play()
    assert run.answer == "8:00"
    assert case.sent[1][1]["reasoning_content"] == "User wants time; call now."


@right("MS22")
async def _(case: Case) -> None:
    run = await case.play()
    assert run.status == "failed"
    assert "no choices" in (run.answer or "")
    assert "object" in (run.answer or "")


@right("MS24")
async def _(case: Case) -> None:
    run = await case.play()
    assert run.status == "failed"
    assert "The totals are" not in (run.answer or "")
    assert run.usage is not None


@right("MS25")
async def _(case: Case) -> None:
    run = await case.play()
    assert run.answer == "hello"
    assert not run.usage.exact


@right("MS26")
async def _(case: Case) -> None:
    run = await case.play()
    assert (run.status, run.answer, run.requests) == ("answered", "done", 2)


def listed() -> list[Any]:
    """Every case with a check; those left out are expected to fail, so that none stays listed once it is met."""
    return [
        pytest.param(case_id, marks=pytest.mark.xfail(reason=LEFT_OUT[case_id])) if case_id in LEFT_OUT else case_id
        for case_id in CASES
        if case_id in RIGHT
    ]


@pytest.mark.parametrize("case_id", listed())
async def test_case(case_id: str) -> None:
    await RIGHT[case_id](Case(case_id))


def test_no_case_of_these_topics_is_forgotten() -> None:
    assert set(RIGHT) | set(LEFT_OUT) == {case_id for case_id, row in CASES.items() if row["topic"] in TOPICS}
    assert all(LEFT_OUT.values())
