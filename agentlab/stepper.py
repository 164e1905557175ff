"""The stepper: a run that stands still until the person lets it go on. A state machine; nothing here knows of widgets.

It holds branches, each a list of moments with a cursor, and a loop that makes the next moment (`OwnLoop` for an `Agent`,
`TheirLoop` for the learner's own function). Within what is known, Step and Back only move the cursor; at the last moment Step
lets the loop do one thing. One command at a time: a click that comes while something runs is not kept for later.

Drive it from code as the widget does: `await stepper.step()`, `stepper.back()`, `await stepper.fork(...)`; these raise what
goes wrong. `stepper.receive(message)` is the widget's way in: it never raises, and the status line says what went wrong.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from .asking import place
from .branches import Branch, Busy, Moment, NotPossible, Snapshot, Worlds
from .clicks import Clicks
from .run import Run
from .state import can, state_of
from .twin import text_of_stepper

NOBODY_HERE = "nobody is here to approve it (headless run)"
STOP_WITHIN = 0.6
COMES_BACK_WITHIN = 1.0  # seconds in which a view that was taken off the page is shown again: a cell that was only moved
HEARTBEAT = 0.25  # without it, an interrupt of a cell that waits is not noticed for a long time


def clicks_come_through() -> bool:
    """Whether this kernel takes a click while a cell waits: ipykernel before 7 keeps it until the cell has ended."""
    kernel = sys.modules.get("ipykernel")
    return kernel is None or getattr(kernel, "version_info", (7,))[0] >= 7


class Loop(Protocol):
    """What makes the next moment of a branch."""

    door: bool
    title: str
    worlds: Worlds
    start: Snapshot  # the worlds before anything ran

    @property
    def cannot_fork(self) -> str: ...  # why no other way can be taken, or an empty text
    def open(self, branch: Branch) -> None: ...  # the first moment, where that needs no waiting
    async def begin(self, branch: Branch) -> None: ...  # the first moment, where it does
    async def advance(self, branch: Branch) -> None: ...
    def stopped(self, branch: Branch, begun: bool) -> None: ...  # begun: the next step was being taken
    async def fork(self, branch: Branch, parent: Branch, row: int, what: str, text: str, call_id: str | None) -> str: ...
    def rule(self, branch: Branch, call_id: str, digest: str, ok: bool, why: str, arguments: str | None) -> None: ...
    def refuse_all(self, branch: Branch, why: str) -> None: ...
    def close(self, branch: Branch) -> None: ...


class Stepper:
    """One run, standing still. `run`, `answer`, `messages` and `status` are those of the moment that is looked at."""

    def __init__(self, loop: Loop, name: str | None = None) -> None:
        self._loop = loop
        self.title = name or loop.title
        self.epoch = 0
        self.branches: dict[int, Branch] = {}
        self.running = False  # a step is being taken, or one after another
        self.going = False  # Run was pressed: step after step, until paused, held or over
        self.was_going = False  # Run came to a call that waits for a person
        self.left = False  # the person stopped it: nobody waits for it any more
        self.unseen_since: float | None = None  # when its last view was taken off the page
        self.on_change: Callable[[], None] = lambda: None
        self.on_say: Callable[[str, str], None] = lambda text, tone: None
        self.on_rest: Callable[[], None] = lambda: None  # it came to an end, or waits for a person
        self.clicks = Clicks(self)
        self._flight: asyncio.Task[None] | None = None
        self._stopping = False
        self._stop_asked = False
        self.view: Any = None  # what shows it in a notebook: the widget, or its twins alone
        self._start()

    def _start(self) -> None:
        self.branches = {}
        self.branch = self._new_branch("main")
        self.branches[self.branch.id] = self.branch
        self._loop.open(self.branch)

    def _new_branch(self, name: str, parent: Branch | None = None, row: int = 0) -> Branch:
        return Branch(len(self.branches), name, parent, row)

    # ---- look ----
    @property
    def moment(self) -> Moment | None:
        """The moment that is looked at; None before the loop has stood still for the first time."""
        return self.branch.moment if self.branch.moments else None

    @property
    def run(self) -> Run:
        """The run as of the moment that is looked at."""
        return self.moment.run if self.moment else Run()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.run.messages

    @property
    def answer(self) -> str | None:
        return self.moment.answer or None if self.moment else None

    @property
    def status(self) -> str:
        return self.moment.status if self.moment else "running"

    @property
    def is_over(self) -> bool:
        """Whether the loop has nothing left to do on this branch."""
        return bool(self.branch.moments) and self.branch.moments[-1].place == "end"

    @property
    def waits_for_person(self) -> bool:
        return bool(self.branch.moments) and bool(self.branch.moments[-1].held) and self.branch.moments[-1].status == "waiting"

    # ---- move: within what is known nothing runs ----
    def back(self) -> None:
        """One moment back. The loop itself stays where it is."""
        self.goto(self.branch.at - 1)

    def forward(self) -> None:
        """One moment on, where one is known."""
        self.goto(self.branch.at + 1)

    def goto(self, at: int) -> None:
        """Look at the moment `at`, or at the nearest that there is."""
        self._free()
        self.was_going = False
        self.branch.at = max(0, min(at, self.branch.last))
        self._changed()

    def switch(self, id: int, row: int | None = None) -> None:
        """Look at another branch, in its own world as it was at its cursor; at the latest where `row` has come in."""
        self._free()
        if id not in self.branches:
            raise NotPossible(f"There is no branch {id}. Branches: {', '.join(str(known) for known in self.branches)}.")
        self.branch = self.branches[id]
        moments = self.branch.moments
        if row is not None and moments and self.branch.moment.rows <= row:
            self.branch.at = next((at for at, moment in enumerate(moments) if moment.rows > row), self.branch.last)
        if self.moment is not None and not self._loop.cannot_fork:
            self._loop.worlds.put_back(self.moment.world)
        self._changed()

    # ---- run ----
    async def begin(self) -> None:
        """Stand still for the first time. Every other command does this first."""
        if not self.branch.moments:
            async with self._turn():
                await self._begin()

    async def step(self) -> None:
        """One moment on: known ones are only shown; from the last one the loop does one thing."""
        async with self._turn():
            await self._begin()
            await self._step()

    async def go(self, at_most: int | None = None) -> None:
        """Step after step, until paused, until a call waits for a person, or to the end. `at_most` so many steps."""
        async with self._turn():
            await self._begin()
            await self._go(at_most)

    async def _begin(self) -> None:
        if not self.branch.moments:
            await self._fly(self._loop.begin(self.branch))
            self._changed()

    async def _go(self, at_most: int | None) -> None:
        self.going = True
        taken = 0
        try:
            while self.going and not self._stop_asked and can(self, "step") is True:
                await self._step()
                if self.is_over and self.branch.is_at_last:  # an interruption is an end too, though Step may take it up again
                    break
                taken += 1
                if taken == at_most:
                    self.say(f"Run has taken {taken:,} steps and pauses here: nothing has ended it yet. Press Run to go on.")
                    break
                await asyncio.sleep(0)  # let clicks and messages through between two steps
            self.was_going = self.going and self.waits_for_person
        finally:
            self.going = False

    async def _step(self) -> None:
        self.was_going = False
        branch = self.branch
        if self._stop_asked:
            return
        if not branch.is_at_last:
            branch.at += 1
            self._changed()
            return
        reason = can(self, "step")
        if reason is not True:
            raise NotPossible(reason)
        self.left = False
        await self._fly(self._loop.advance(branch))
        self._changed()

    async def _fly(self, work: Coroutine[Any, Any, None]) -> None:
        """Await `work` in a task of its own, which Stop can cancel without ending whoever waits here."""
        self._stopping = False
        self._changed()
        self._flight = flight = asyncio.create_task(work)
        try:
            while not flight.done():
                stopping = self._stopping  # a heartbeat that ends just after Stop leaves what runs no time to end
                await asyncio.wait({flight}, timeout=STOP_WITHIN if stopping else HEARTBEAT)
                if stopping and not flight.done():
                    break  # it will not be cancelled: do not let it hold the person
        except asyncio.CancelledError:  # the cell that waits here was interrupted
            flight.cancel()
            await asyncio.wait({flight}, timeout=STOP_WITHIN)
            if self.branch.moments:
                self._loop.stopped(self.branch, begun=True)
            raise
        finally:
            self._flight = None
            flight.add_done_callback(_look_away)
        if self._stopping:
            if flight.done() and not flight.cancelled() and flight.exception() is None:
                return  # it was finished before it could be stopped
            self._loop.stopped(self.branch, begun=True)
        else:
            flight.result()

    def pause(self) -> None:
        """Let the step that runs come to its end, and take no further one."""
        self.going = False
        self._changed()

    def stop(self) -> None:
        """Cancel what runs. Where nothing runs, end the run here; what was found stays, and Step takes it up again."""
        self.going = False
        self.left = True
        if self._flight is not None:
            self._stopping = True
            self._flight.cancel()
        elif self.running:  # between two steps, or before the first: whoever runs ends the run as soon as they see it
            self._stop_asked = True
        elif self.branch.moments and not self.is_over:
            self.branch.at = self.branch.last
            self._loop.stopped(self.branch, begun=False)
            self._rest()
        self._changed()

    async def reset(self) -> None:
        """Begin anew, in the world as it was at the start. All branches go."""
        async with self._turn():
            for branch in self.branches.values():
                self._loop.close(branch)
            if self._loop.start and not self._loop.cannot_fork:
                self._loop.worlds.put_back(self._loop.start)
            self.epoch += 1
            self.left = False
            self._start()
            await self._begin()

    # ---- take another way ----
    async def fork(self, row: int, what: str, text: str, call_id: str | None = None) -> None:
        """Edit row `row` ("text" of a message or result, or "arguments" of the call `call_id`) and go on from there.

        The new branch stands where that row came in, in the world as it was then. The old one stays and can be switched to.
        """
        async with self._turn():
            if self._loop.cannot_fork:
                raise NotPossible(self._loop.cannot_fork)
            parent = self.branch
            if not 0 <= row < len(parent.rows):
                raise NotPossible(f"There is no message {row + 1} to fork from.")
            branch = self._new_branch(
                f"{len(self.branches) + 1}: {'arguments in message' if what == 'arguments' else 'message'} {row + 1} edited",
                parent,
                row,
            )
            said = ""

            async def work() -> None:
                nonlocal said
                said = await self._loop.fork(branch, parent, row, what, text, call_id)

            await self._take(branch, work())
            self.on_say(said, "info")

    async def _take(self, branch: Branch, work: Coroutine[Any, Any, None]) -> None:
        parent = self.branch
        self.branch = branch
        try:
            await self._fly(work)
        except BaseException:
            self.branch = parent
            self._loop.close(branch)
            raise
        self.branches[branch.id] = branch
        self.left = False

    def rule(self, call_id: str, digest: str, ok: bool, why: str = "", arguments: str | None = None) -> None:
        """The person's yes or no to one held call, exactly as it was shown. Step then runs it, or tells the model of the no.

        At an earlier moment this is another way: the ruling opens a branch there, and the one before stays.
        """
        self._free()
        branch = self.branch
        if branch.is_at_last:
            self._loop.rule(branch, call_id, digest, ok, why, arguments)
        else:
            if self._loop.cannot_fork:
                raise NotPossible(f"This call was ruled on. {self._loop.cannot_fork}")
            moment = branch.moment
            other = self._new_branch(f"{len(self.branches) + 1}: another ruling", branch, moment.rows)
            other.share(branch, moment.rows, moment.bars, branch.moments[: branch.at + 1], {})
            other.at = other.last
            self._loop.worlds.put_back(moment.world)
            self._loop.rule(other, call_id, digest, ok, why, arguments)
            self.branches[other.id] = self.branch = other
        self._rest()

    # ---- wait ----
    async def finish(self) -> Run:
        """Wait until the person has reached the end, or has stopped it. Where nobody can be, run to the end. Returns the run."""
        await self.clicks.done()
        if place() != "notebook" or self.view is None:
            await self.run_to_end()
        elif not clicks_come_through():
            self.say("This kernel takes no clicks while a cell runs. Step to the end first, then run the cells below.", "info")
        else:
            # an event alone would let an interrupt of the cell go unnoticed
            while (self.running or (not self.is_over and not self._is_unseen())) and not self.left:  # noqa: ASYNC110
                await asyncio.sleep(HEARTBEAT)
        return self.run

    def seen(self, on_a_page: bool) -> None:
        """Whether some page shows it."""
        self.unseen_since = None if on_a_page else self.unseen_since or time.monotonic()

    def _is_unseen(self) -> bool:
        """Nobody can click it: its cell is being run again, or its output was cleared. Who waits for it would hang."""
        return self.unseen_since is not None and time.monotonic() - self.unseen_since > COMES_BACK_WITHIN

    async def run_to_end(self, why: str = NOBODY_HERE) -> None:
        """Go to the end by itself. Every call that waits for a person is refused: no answer means no."""
        while True:
            await self.go()
            if not self.waits_for_person:
                break
            self._loop.refuse_all(self.branch, why)

    def close(self) -> None:
        """Let go of everything: its cell is run again, and another stepper takes its place."""
        self.left = True
        if self._flight is not None:
            self._flight.cancel()
        for branch in self.branches.values():
            self._loop.close(branch)

    # ---- the widget's way in ----
    def receive(self, message: Mapping[str, Any]) -> bool:
        """Do what a click asks. False where it was meant for another moment, or came while something runs: nothing is done."""
        return self.clicks.receive(message)

    def say(self, text: str, tone: str = "info") -> None:
        """One sentence for the status line."""
        self.on_say(text, tone)

    # ---- one thing at a time ----
    def _free(self) -> None:
        if self.running:
            raise Busy("A step is running. Wait for it, or stop it.")

    def _landed(self) -> None:
        """The turn is over."""
        self.running = False
        if self._stop_asked:
            self._stop_asked = False
            self.stop()
        self._rest()

    def _turn(self) -> _Turn:
        return _Turn(self)

    def _changed(self) -> None:
        self.on_change()

    def _rest(self) -> None:
        """Say what is new; and where it came to rest, that it did."""
        self._changed()
        if not self.running and (self.is_over or self.waits_for_person):
            self.on_rest()

    # ---- the state that a view shows ----
    def state(self) -> dict[str, Any]:
        """What a view shows besides rows and bars. Its size does not depend on the history."""
        return state_of(self)

    @property
    def cannot_fork(self) -> str:
        """Why no other way can be taken here, or an empty text."""
        return self._loop.cannot_fork

    @property
    def door(self) -> bool:
        """Whether it steps somebody else's loop through the door."""
        return self._loop.door

    # ---- in plain Python ----
    def text(self) -> str:
        """The stepper as text, for a terminal."""
        return text_of_stepper(self)

    def __repr__(self) -> str:
        return self.text()

    def _ipython_display_(self) -> None:
        """Show it once more, save in the cell that made it: there it is shown already."""
        if self.view is None:
            raise NotImplementedError  # IPython then prints the text
        self.view.output.show_here()


class _Turn:
    """`async with`: nothing else runs meanwhile. A command that was claimed by a click takes its claim over."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper

    async def __aenter__(self) -> None:
        if self.stepper.running and not self.stepper.clicks.claimed:
            raise Busy("A step is running. Wait for it, or stop it.")
        self.stepper.clicks.claimed = False
        self.stepper.running = True

    async def __aexit__(self, *_: object) -> None:
        self.stepper._landed()


def _look_away(flight: asyncio.Task[None]) -> None:
    """What was stopped may still raise later, when nobody looks: that is no news."""
    if not flight.cancelled():
        flight.exception()
