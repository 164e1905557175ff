"""What a view's clicks do. A click says which moment it was meant for; one that comes late, twice, or while something runs
does nothing. Commands run as tasks on the loop that the stepper lives on, and what goes wrong stands in the status line.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from .branches import Busy, NotPossible

if TYPE_CHECKING:
    from .stepper import Stepper

RUN_AT_MOST = 1_000  # steps of one click on Run: a loop that never ends, at a real endpoint, costs until somebody looks


class Clicks:
    """The way in from the views of one stepper."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.claimed = False  # a click has begun a command whose task has not started
        self._tasks: set[asyncio.Task[None]] = set()
        self._home: asyncio.AbstractEventLoop | None = None
        self._context: contextvars.Context | None = None

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take steps on this event loop, with the context of the cell that made the stepper: what tools print goes there."""
        self._home, self._context = loop, contextvars.copy_context()

    def launch(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a command as a task."""
        if self._home is None:
            work.close()
            raise RuntimeError("The stepper has no event loop. Make it in a notebook cell, or await stepper.finish().")
        task = self._home.create_task(self._told(work), context=self._context)
        self._tasks.add(task)  # a task that nobody holds may be collected while it runs
        task.add_done_callback(self._tasks.discard)

    async def _told(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            pass
        except Exception as error:
            self._say(error)

    async def done(self) -> None:
        """Wait for the commands that were given."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    def receive(self, message: Mapping[str, Any]) -> bool:
        """Do what a click asks. False where nothing is done."""
        op, stepper = message.get("op"), self.stepper
        if op in ("pause", "stop"):  # these are meant for what runs, wherever that has got to
            if message.get("epoch") != stepper.epoch:
                return False
            stepper.pause() if op == "pause" else stepper.stop()
            return True
        at = stepper.branch.at if op == "goto" else message.get("at")  # a goto looks at what is known: it may come late
        meant = (message.get("epoch"), message.get("branch"), at)
        if stepper.running or meant != (stepper.epoch, stepper.branch.id, stepper.branch.at):
            if op == "rule" and message.get("epoch") == stepper.epoch:
                self._was_ruled(message)
            return False
        try:
            self._do(op, message)
        except Exception as error:
            self._say(error)
        return True

    def _do(self, op: object, message: Mapping[str, Any]) -> None:
        stepper = self.stepper
        match op:
            case "step":
                self._claim(stepper.step)
            case "run":
                self._claim(lambda: stepper.go(RUN_AT_MOST))
            case "reset":
                self._claim(stepper.reset)
            case "fork":
                row, what, text = int(message["row"]), str(message["what"]), str(message["text"])
                self._claim(lambda: stepper.fork(row, what, text, message.get("call_id")))
            case "back":
                stepper.back()
            case "forward":
                stepper.forward()
            case "goto":
                stepper.goto(int(message.get("to", message.get("at", stepper.branch.at))))
            case "branch":
                parting = message.get("row")
                stepper.switch(int(message["id"]), None if parting is None else int(parting))
            case "rule":
                self._rule(message)
            case _:
                raise NotPossible(f"The stepper knows no command {op!r}: its front end is of another version. Reload the page.")

    def _rule(self, message: Mapping[str, Any]) -> None:
        arguments = message.get("arguments")
        goes_on = self.stepper.was_going
        self.stepper.rule(
            str(message["call_id"]), str(message["digest"]), message.get("ok") is True, str(message.get("why") or ""),
            None if arguments is None else str(arguments),
        )  # fmt: skip
        if goes_on and not self.stepper.waits_for_person:  # they had pressed Run: the ruling was all that it waited for
            self._claim(lambda: self.stepper.go(RUN_AT_MOST))

    def _was_ruled(self, message: Mapping[str, Any]) -> None:
        """Somebody answers a card that was answered, in another view: say what was decided."""
        branch = self.stepper.branches.get(message.get("branch"))  # type: ignore[arg-type]  # any key may be asked for
        ruling = branch.moments[-1].run.ruling(str(message.get("call_id"))) if branch is not None and branch.moments else None
        if ruling is not None:
            decided = "approved" if ruling.ok else "refused"
            self.stepper.say(f"This call was {decided} already. A second answer changes nothing.")

    def _claim(self, command: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Mark the stepper as running from this very click on: a second click finds it so, though the task has not begun."""
        self.stepper.running = self.claimed = True
        self.launch(command())

    def _say(self, error: BaseException) -> None:
        self.stepper.say(str(error) if isinstance(error, NotPossible | Busy) else f"{type(error).__name__}: {error}", "error")
