"""What the stepper's tests share: a world of one number, a front end that speaks the protocol, and loops written by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from agentlab import Agent, tool
from agentlab.own_loop import OwnLoop
from agentlab.stepper import Stepper
from agentlab.tools import Tool


class Till:
    """A world: some money, which can be put back."""

    def __init__(self) -> None:
        self.cents = 100
        self.log: list[str] = []

    def snapshot(self) -> bytes:
        return json.dumps(self.cents).encode()

    def restore(self, state: bytes) -> None:
        self.cents = json.loads(state)


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def tools(till: Till) -> list[Tool]:
    @tool(world=till)
    def look() -> str:
        """What is in the till."""
        till.log.append("look")
        return f"{till.cents} cents"

    @tool(world=till, dangerous=True)
    def pay(cents: int) -> str:
        """Pay out of the till."""
        till.log.append(f"pay {cents}")
        till.cents -= cents
        return f"paid {cents}"

    return [look, pay]


def stepper_of(agent: Agent, question: Any = "How much is there?") -> Stepper:
    return Stepper(OwnLoop(agent, question))


class View:
    """A front end without a browser: it keeps what it is sent as the real one does, and can lose messages."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.rows: dict[Any, list[dict[str, Any]]] = {}
        self.bars: dict[Any, list[dict[str, Any]]] = {}
        self.epoch: Any = None
        self.state: dict[str, Any] = {}
        self.said: list[dict[str, Any]] = []
        self.texts: dict[int, dict[str, Any]] = {}
        self.gap = False
        self.lose: Callable[[dict[str, Any]], bool] = lambda message: False

    def hear(self, message: dict[str, Any]) -> None:
        message = json.loads(json.dumps(message))  # only JSON travels
        self.messages.append(message)
        self.times.append(asyncio.get_running_loop().time())
        if self.lose(message):
            return
        if message["op"] == "said":
            self.said.append(message)
        elif message["op"] == "full":
            self.texts[message["row"]] = message
        else:
            self._absorb(message)

    def _absorb(self, batch: dict[str, Any]) -> None:
        if batch["epoch"] != self.epoch:
            self.epoch = batch["epoch"]
            self.rows, self.bars = {}, {}
        self.state = batch["state"]
        if batch["branch"] not in self.rows:
            own = next(b for b in batch["state"]["branches"] if b["id"] == batch["branch"])
            self.rows[batch["branch"]] = self.rows.get(own["parent"], [])[: batch["from_row"]]
            self.bars[batch["branch"]] = self.bars.get(own["parent"], [])[: batch["from_bar"]]
        for kept, start, new, total in (
            (self.rows[batch["branch"]], batch["from_row"], batch["rows"], batch["total_rows"]),
            (self.bars[batch["branch"]], batch["from_bar"], batch["bars"], batch["total_bars"]),
        ):
            if start > len(kept):
                self.gap = True
                return
            kept[start : start + len(new)] = new
            del kept[total:]

    def click(self, op: str, **extra: Any) -> dict[str, Any]:
        return {"op": op, "branch": self.state["branch"], "at": self.state["at"], "epoch": self.epoch, **extra}

    def hello(self) -> dict[str, Any]:
        branch = self.state.get("branch")
        have = {"rows": len(self.rows.get(branch, [])), "bars": len(self.bars.get(branch, []))}
        return {"op": "hello", "branch": branch, "at": self.state.get("at", 0), "epoch": self.epoch, **have}

    @property
    def here(self) -> list[dict[str, Any]]:
        return self.rows[self.state["branch"]]


@pytest.fixture
def view() -> View:
    return View()


async def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Let the loop run until the condition holds. A busy computer may be slow: nothing is measured here."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for knows of no event
            await asyncio.sleep(0.002)
