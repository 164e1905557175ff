"""The agent loop: derive what comes next, carry it out, make the log longer.

Two verbs, *ask* (the model) and *call* (a tool). Everything else is policy around them: guards, one signature, composed in a
loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from .records import Action, Ask, Call, Entry, Reply, Result, Stop
from .run import Run

T = TypeVar("T")
Model = Callable[[Ask], Awaitable[Reply]]
SECONDS_TO_LET_GO = 1.0  # how long a cancelled tool may take to end before it is left behind


class Act(Protocol):
    """Carry out one action and return the entry to log."""

    async def __call__(self, run: Run, action: Action) -> Entry: ...


class Guard(Protocol):
    """Stand between the loop and `act`: pass the action on, change it, change what comes out, answer instead, or hold.

    A guard changes the action, never the run that it passes on. It has no memory: it reads the log."""

    async def __call__(self, run: Run, action: Action, act: Act) -> Entry: ...


def guarded(act: Act, guards: Sequence[Guard]) -> Act:
    """Wrap `act` in guards; the first in the list is the outermost. Guards see actions that carry their tools."""
    equip = getattr(act, "equip", None)
    for guard in reversed(guards):
        act = partial(guard, act=act)
    return act if equip is None or not guards else partial(_equipped, equip=equip, act=act)


async def _equipped(run: Run, action: Action, equip: Callable[[Action], Action], act: Act) -> Entry:
    return await act(run, equip(action))


async def steps(
    run: Run, act: Act, width: int = 1, alone: Collection[str] = (), keep: Callable[[Run], None] | None = None
) -> AsyncIterator[Run]:
    """Yield the run after every step, until there is nothing left to do or it waits for a person.

    All open calls of a turn are one step (E1): at most `width` at a time, tools named in `alone` by themselves, results in
    call order whatever finishes first (E2). `keep` gets every run, also the one that stands after an interruption: finished
    calls keep their results, the others get "outcome unknown", and the cancellation is raised on.
    """
    while todo := run.todo:
        done: dict[int, Entry] = {}
        cancelled = _cancelled()
        try:
            if isinstance(todo[0], Ask):
                done[0] = await act(run, todo[0])
            else:
                await _turn(run, act, cast(list[Call], todo), width, alone, done)
            if _cancelled() > cancelled:  # a tool swallowed the cancellation, which was meant for the run
                raise asyncio.CancelledError
        except (asyncio.CancelledError, KeyboardInterrupt):
            if keep:
                keep(run.plus(*_interrupted(todo, done)))
            raise
        run = run.plus(*_in_order(todo, done))
        if keep:
            keep(run)
        yield run


def _cancelled() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def _in_order(todo: list[Action], done: dict[int, Entry]) -> list[Entry]:
    """What was done, in the order of what was to do; a stop comes last, and one is enough."""
    entries = [_fitting(action, done[i]) for i, action in enumerate(todo)]
    stops = [entry for entry in entries if isinstance(entry, Stop)]
    return [*(entry for entry in entries if not isinstance(entry, Stop)), *stops[:1]]


def _fitting(action: Action, entry: Entry) -> Entry:
    """The entry, where it moves the run on. A guard that answers another call than the one asked would loop for ever."""
    about = getattr(entry, "call_id", None)
    if isinstance(entry, Stop) or about == (action.id if isinstance(action, Call) else None):
        return entry
    what = f"the call {action.id!r}" if isinstance(action, Call) else "the request to the model"
    raise TypeError(
        f"A guard answered {what} with {entry!r:.120}. It must return what `act` returned, "
        + ("or a Result, Held or Stop for this call." if isinstance(action, Call) else "or a Reply or Stop of its own.")
    )


def _interrupted(todo: list[Action], done: dict[int, Entry]) -> Iterator[Entry]:
    unknown = "Interrupted: a person stopped the run while this call was open. Outcome unknown: check before you repeat it."
    for i, action in enumerate(todo):
        if i in done:
            yield done[i]
        elif isinstance(action, Call):
            yield Result(action.id, unknown, error=True)
    yield Stop("interrupted", "a person stopped the run")


async def _turn(run: Run, act: Act, calls: list[Call], width: int, alone: Collection[str], done: dict[int, Entry]) -> None:
    """Run the calls of one turn. Every one sees the run as of its reply."""

    async def one(i: int) -> None:
        done[i] = await act(run, calls[i])

    group: list[int] = []
    for i, call in enumerate(calls):
        if call.name in alone:
            await _together(one, group, width)
            await one(i)
            group = []
        else:
            group.append(i)
    await _together(one, group, width)


async def _together(one: Callable[[int], Awaitable[None]], group: list[int], width: int) -> None:
    """Await all of a group, at most `width` at a time; the first that raises ends the others and is raised on."""
    if len(group) <= 1 or width <= 1:
        for i in group:
            await one(i)
        return
    places = asyncio.Semaphore(width)

    async def placed(i: int) -> None:
        async with places:
            await one(i)

    tasks = [apart(placed(i)) for i in group]
    try:
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task in finished:
                brought(task)
    finally:
        await let_go(tasks)


class Exit(Exception):
    """An order to leave the process (SystemExit, Ctrl-C), on its way out of a task."""


def apart(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """`work` as a task. An exit raised in a task would go through the event loop, past everybody who waits for the task, and
    take the kernel with it: it is carried to `brought`, which raises it there."""

    async def carried() -> T:
        try:
            return await work
        except (SystemExit, KeyboardInterrupt) as error:
            raise Exit from error

    return asyncio.ensure_future(carried())


def brought(task: asyncio.Task[T]) -> T:
    """What a task that was made by `apart` came to. Raises what it raised."""
    try:
        return task.result()
    except Exit as carrier:
        raise (carrier.__cause__ or carrier) from None


async def let_go(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel what is still open and wait a moment for it to end. What will not end is left behind: it must not hold the person
    who stopped the run. (A thread cannot be killed: it runs on, and nobody waits for it.)"""
    open_ = [task for task in tasks if not task.done()]
    for task in open_:
        task.cancel()
    if open_:
        await asyncio.wait(open_, timeout=SECONDS_TO_LET_GO)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it as lost
