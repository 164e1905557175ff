"""Adversarial turns by the million: `python tools/fuzz.py --turns 1000000`.

Each run has a model that sends anything, tools that do anything, guards and widths by chance, a person who rules by chance, and
now and then an interrupt. What must hold: no exception leaves a guarded run, it ends within its cap, each call has one result
and in order, and a strict endpoint would take every history. The strict endpoint here shares no code with the package, whose
own linter is asked besides. A failure prints its seed: `--seed N --runs 1` plays it again.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import math
import random
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from agentlab import Agent, Run, climb, lint, tool
from agentlab.guards import Cap, Repeats, Timeout, Truncate
from agentlab.records import Call, Reply, Result, Ruling, User
from agentlab.wire import ModelError

NAMES = ["read", "count", "pay", "slow", "odd", "alone"]
TEXTS = [
    "",
    " ",
    "\n",
    "Done.",
    "Ich weiß: 42 €",
    "a\ud800b",
    "\x00\x1b[31m",
    "👩‍👩‍👧‍👦" * 3,
    "x" * 3000,
    "<think>hm</think>",
    "null",
    "{}",
    "[]",
    "\u202e",
]
VALUES = [
    0,
    1,
    -1,
    1.5,
    "1",
    "",
    "ten",
    True,
    None,
    [],
    {},
    [1, [2]],
    {"a": {"b": None}},
    10**400,
    "x" * 2000,
    "\ud83d",
    "2026-02-30",
]
RAW = [
    "", " ", "null", "{}", "[]", "0", '""', '"{}"', '"{\\"n\\": 1}"', "{", "}", '{"n": 1', '{"n": 1}}', '{"n": 1,}',
    "{'n': 1}", "{n: 1}",
    '{"n": NaN}', '{"n": 1, "n": 2}', '{"n": 1, "n": 1}', '```json\n{"n": 1}\n```', 'Here: {"n": 1}', '{"n": 1}{"n": 1}',
    '{"n": 1}{"n": 2}',
    '{"n": "\t"}', '{"n": "\\ud800"}', "[" * 3000, '{"n":' * 2000, '{"n": 1e999}', '{"n": ' + "9" * 5000 + "}", "\ufeff{}",
    "\x00", "undefined",
]  # fmt: skip
FINISHES = ["stop", "tool_calls", "length", "content_filter", "function_call", "", None, "error", "eos", 7]
LEGAL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


class Fault(Exception):
    """What must hold does not."""


# ---- a model that sends anything ----
class Wild:
    def __init__(self, rng: random.Random) -> None:
        self.rng, self.used, self.turns = rng, ["", "call_1"], 0

    async def __call__(self, ask: Any) -> Any:
        self.turns += 1
        rng = self.rng
        if rng.random() < 0.05:
            judge(list(ask.messages))
        if ask.tools is not None and rng.random() < 0.05:
            json.dumps(list(ask.tools)).encode()
        if rng.random() < 0.2:
            await asyncio.sleep(0)
        if rng.random() < 0.01:
            raise rng.choice(
                [ModelError("down"), ValueError(""), TimeoutError(), asyncio.CancelledError(), SystemExit(3), OSError(5, "io")]
            )
        if rng.random() < 0.02:
            return rng.choice(
                ["text", "", None, 7, [], {}, {"choices": []}, {"choices": None}, {"choices": [None]}, {"error": "no"}, b"x"]
            )
        message = self.message()
        if rng.random() < 0.1:
            return message
        choice = {"index": 0, "message": message, "finish_reason": rng.choice(FINISHES)}
        usage = rng.choice(
            [None, {}, {"prompt_tokens": 10, "completion_tokens": 3}, {"prompt_tokens": -1, "completion_tokens": "3"}, 5]
        )
        return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}

    def message(self) -> dict[str, Any]:
        rng = self.rng
        content: Any = rng.choice([None, *TEXTS])
        if rng.random() < 0.05:
            content = [{"type": "text", "text": rng.choice(TEXTS)}, rng.choice([None, 3, "loose", {"type": "image_url"}])]
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if rng.random() < 0.9:
            message["tool_calls"] = [self.call() for _ in range(rng.choice([0, 1, 1, 1, 2, 3, 6]))]
        elif rng.random() < 0.1:
            message["function_call"] = {"name": rng.choice(NAMES), "arguments": self.arguments()}
        if rng.random() < 0.03:
            message["refusal"] = "No."
        if rng.random() < 0.02:
            message["tool_calls"] = rng.choice(
                [None, {}, "calls", [None], [[]], [{}], [{"function": None}], [{"function": {"name": None}}]]
            )
        return message

    def call(self) -> Any:
        rng = self.rng
        id = rng.choice([None, "", 5, "x" * 200, f"call_{rng.randrange(10**6)}", f"call_{rng.randrange(10**6)}", *self.used[-2:]])
        self.used.append(str(id))
        name: Any = rng.choice(NAMES)
        if rng.random() < 0.2:
            name = rng.choice([
                None, "", " read ", "READ", "functions.read", "read<|channel|>json", "no_such_tool", "röad", "a b",
                "x" * 100, 7, "pay\ud800",
            ])  # fmt: skip
        function = {"name": name, "arguments": self.arguments()}
        return rng.choice([{"id": id, "type": "function", "function": function}] * 9 + [{"id": id, **function}])

    def arguments(self) -> Any:
        rng = self.rng
        if rng.random() < 0.35:
            return rng.choice(RAW)
        value = {rng.choice(["n", "n", "n", "N", "who", ""]): rng.choice(VALUES) for _ in range(rng.choice([0, 1, 1, 2]))}
        if rng.random() < 0.1:
            return value
        text = json.dumps(value)
        if rng.random() < 0.1:
            cut = rng.randrange(len(text) + 1)
            return text[:cut]
        return text


# ---- tools that do anything ----
class Rude:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@dataclasses.dataclass
class Box:
    inside: Any


class Strange(BaseException):
    pass


def anything(rng: random.Random) -> Any:
    circle: list[Any] = []
    circle.append(circle)
    return rng.choice([
        None, "", 0, math.nan, math.inf, b"", b"\xff\xfe", {1, 2}, set(), circle, Rude(), Box(Box(None)), object(),
        range(3), iter([1, 2]),
        (n for n in range(3)), {"a": {1: b"x"}}, {(1, 2): 3}, "x" * 20_000, "👍🏽" * 3000, "a\ud800", [Rude()],
        Exception("as a value"), int, ...,
        10**5000, complex(1, 2), memoryview(b"abc"), {"content": [{"type": "text", "text": "part"}]}, [{"type": "text",
        "text": "part"}],
    ])  # fmt: skip


def trouble(rng: random.Random) -> BaseException:
    return rng.choice([
        ValueError("bad value"), KeyError("k"), Exception(), RuntimeError("x" * 9000), SystemExit(1),
        asyncio.CancelledError(), GeneratorExit(),
        StopIteration(3), StopAsyncIteration(), RecursionError(), MemoryError(), OSError(2, "no file"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
        Strange("odd"), TimeoutError(), AssertionError(), ExceptionGroup("many", [ValueError(1)]), Exception(Rude()),
    ])  # fmt: skip


class Dice:
    """The chance of the run that is played: tools are made once, since making one costs more than a run."""

    rng = random.Random()


def tools_of(dice: type[Dice]) -> list[Any]:
    def maybe(value: Any) -> Any:
        if dice.rng.random() < 0.25:
            raise trouble(dice.rng)
        return anything(dice.rng) if dice.rng.random() < 0.3 else value

    async def read(n: int = 1) -> Any:
        """Read something."""
        if dice.rng.random() < 0.3:
            await asyncio.sleep(0)
        return maybe(f"line {n}")

    async def count(n: int) -> Any:
        """Count to n."""
        return maybe(n)

    @tool(dangerous=True)
    async def pay(n: int, who: str = "you") -> Any:
        """Pay somebody."""
        return maybe(f"paid {n} to {who}")

    @tool(timeout=0.001)
    async def slow(n: int = 0) -> Any:
        """Take a while."""
        for _ in range(dice.rng.choice([1, 3, 3000 if dice.rng.random() < 0.02 else 2])):
            await asyncio.sleep(0)
        return maybe("at last")

    async def odd(value: Any = None) -> Any:
        """Take anything."""
        if isinstance(value, list | dict):
            value.clear()
        return maybe(read(1) if dice.rng.random() < 0.02 else value)

    @tool(alone=True)
    async def alone(n: int = 0) -> Any:
        """Never beside another."""
        return maybe(n)

    return [read, count, pay, slow, odd, alone]


TOOLS = tools_of(Dice)


# ---- a person who rules by chance ----
def person(rng: random.Random) -> Callable[[Run, Call], Any]:
    def rule(run: Run, call: Call) -> Any:
        return rng.choice([
            True, False, None, call.ruled(True), call.ruled(False, "too dear\ud800"), call.ruled(True, arguments={"n": 5}),
            call.ruled(True, arguments=rng.choice(RAW)), Ruling(call.id, False, expired=True), Ruling(call.id, True,
            digest="another"),
        ])  # fmt: skip

    return rule


# ---- what must hold ----
def judge(messages: list[Any]) -> None:
    """A strict endpoint, in its own words: it shares nothing with the package."""
    json.dumps(messages, allow_nan=False).encode()
    json.dumps(messages, ensure_ascii=False).encode("utf-8")
    due: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(messages):
        role = message["role"]
        if role not in ("system", "user", "assistant", "tool"):
            raise Fault(f"message {at}: role {role!r}")
        if due and role != "tool":
            raise Fault(f"message {at}: {role} where results of {due} are due")
        if role == "tool":
            if not due or message["tool_call_id"] != due[0]:
                raise Fault(f"message {at}: result of {message['tool_call_id']!r}, due are {due}")
            due.pop(0)
            if not isinstance(message["content"], str) or not message["content"].strip():
                raise Fault(f"message {at}: an empty result")
            continue
        calls = message.get("tool_calls")
        if calls is not None and not calls:
            raise Fault(f"message {at}: an empty list of calls")
        if not calls and (
            not isinstance(message.get("content"), str) or (role == "assistant" and not message["content"].strip())
        ):
            raise Fault(f"message {at}: neither text nor calls")
        for call in calls or ():
            if not call["id"] or call["id"] in seen:
                raise Fault(f"message {at}: the id {call['id']!r} is empty or was there before")
            seen.add(call["id"])
            due.append(call["id"])
            if not LEGAL_NAME.match(call["function"]["name"]):
                raise Fault(f"message {at}: the name {call['function']['name']!r}")
            if not isinstance(json.loads(call["function"]["arguments"], parse_constant=_no), dict):
                raise Fault(f"message {at}: arguments that are no object")
    if due:
        raise Fault(f"no results of {due}")


def _no(name: str) -> None:
    raise Fault(f"{name} in arguments")


def check(run: Run, cap: int) -> None:
    if run.status not in ("answered", "capped", "stuck", "over_budget", "failed", "waiting", "refused"):
        raise Fault(f"it ended as {run.status}")
    if run.requests > cap + 1:
        raise Fault(f"{run.requests} requests with a cap of {cap}")
    if run.status != "waiting":
        if run.answer is None:
            raise Fault("it ended without an answer")
        judge(run.messages)
        if found := lint(run.messages):
            raise Fault(f"lint: {found[0]}")
    results = Counter(entry.call_id for entry in run.of(Result))
    calls = Counter(call.id for reply in run.of(Reply) for call in reply.calls)
    held = Counter(call.id for call in run.held)
    if any(calls[id] != results[id] + held[id] for id in {*calls, *results}):
        raise Fault(f"calls {calls}, results {results}, held {held}")


# ---- one run ----
async def play(seed: int) -> tuple[int, str]:
    """One run by chance. Returns its turns and how it ended; raises `Fault`, or whatever left the run."""
    rng = random.Random(seed)
    cap = rng.choice([1, 2, 5, 8, 12, 30])
    guards = climb(
        cap=Cap(cap),
        repeats=Repeats(limit=rng.choice([1, 2, 5, 100])),
        truncate=Truncate(rng.choice([1, 40, 300, 2000])),
        timeout=Timeout(rng.choice([5.0, 30.0])),
    )
    model = Wild(rng)
    Dice.rng = rng
    agent = Agent(model, TOOLS, guards, width=rng.choice([1, 2, 8]), ask=person(rng))
    begun: str | Run = rng.choice(["Where is it?", "a\ud800b", "x" * 3000])
    for _ in range(rng.choice([1, 1, 2, 4])):
        run = await ended(agent, begun, rng)
        check(run, cap)
        if run.status == "waiting":
            break
        begun = run.plus(User(rng.choice(["And now?", "Go on.", "\ud800?"])))  # another question of the person
    if rng.random() < 0.05:
        check(Run(list(run.log)), cap)
    return max(1, model.turns), run.status


async def ended(agent: Agent, begun: str | Run, rng: random.Random) -> Run:
    """The run at its end, interrupted on the way now and then and taken up again."""
    left = rng.choice([0] * 8 + [1, 2])
    while True:
        task = asyncio.ensure_future(agent.run(begun))
        stopped = False
        if left:
            left -= 1
            for _ in range(rng.randrange(12)):
                await asyncio.sleep(0)
            stopped = not task.done() and task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if not stopped:
                raise Fault("a cancellation that nobody asked for") from None
        begun = agent.last or begun


def many(start: int, turns: int, runs: int | None = None) -> tuple[int, Counter[str], list[tuple[int, str]]]:
    """Runs from the seed `start` on, until so many turns (or runs) are played. Returns the turns, the ends, and what failed."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    ends: Counter[str] = Counter()
    failed: list[tuple[int, str]] = []
    played = 0

    async def all() -> None:
        nonlocal played
        seed = start
        while played < turns and (runs is None or seed - start < runs) and len(failed) < 20:
            try:
                count, end = await asyncio.wait_for(play(seed), 60)
                played += count
                ends[end] += 1
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                failed.append((seed, f"{type(error).__name__}: {error!s:.300}"))
            seed += 1

    asyncio.run(all())
    return played, ends, failed


def shares(turns: int, workers: int, seed: int) -> Iterator[tuple[int, int]]:
    """Each worker's own stretch of seeds: small ones, so that all end together."""
    size = min(20_000, -(-turns // workers))
    for k in range(-(-turns // size)):
        yield seed + k * 10_000_000, min(size, turns - k * size)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=1_000_000, help="replies of the model in all (default: a million)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--runs", type=int, help="play only so many runs, from the seed on, in this process")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    args = parser.parse_args()
    began = time.perf_counter()
    played, ends, failed = 0, Counter[str](), list[tuple[int, str]]()
    if args.runs:
        played, ends, failed = many(args.seed, args.turns, args.runs)
    else:
        with ProcessPoolExecutor(args.workers) as pool:
            for some, how, wrong in pool.map(many, *zip(*shares(args.turns, args.workers, args.seed), strict=True)):
                played, ends = played + some, ends + how
                failed += wrong
                print(f"\r{played:>10,} turns, {len(failed)} failed", end="", file=sys.stderr)
    seconds = time.perf_counter() - began
    how_many = ", ".join(f"{end} {count:,}" for end, count in ends.most_common())
    print(f"\n{played:,} turns in {sum(ends.values()):,} runs, {seconds:.0f} s; ended as: {how_many}")
    for seed, why in failed[:20]:
        print(f"FAILED --seed {seed} --runs 1: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
