"""The agent loop: derive what comes next, carry it out, make the log longer.

Two verbs, *ask* (the model) and *call* (a tool). Everything else is policy around them: guards, one signature, composed in a
loop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from .records import Action, Ask, Call, Entry, Held, Reply, Result, Stop
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
    """Wrap `act` in guards; the first in the list is the outermost. Guards see actions that carry their tools.

    Raises TypeError, with what to write instead, where one of them is no guard."""
    equip = getattr(act, "equip", None)
    for guard in reversed(all_guards(guards)):
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
    calls keep their results, the others get "outcome unknown", and the cancellation is raised on. Raises what `act` raises,
    and TypeError where a guard answers with something that is no answer.
    """
    if not isinstance(run, Run):
        raise TypeError(f"steps() goes on with a Run, not {type(run).__name__}. Write steps(Run.start({run!r:.60}), …).")
    at_least_one(f"width={width!r}", width)
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
                keep(run.plus(*interrupted(todo, done)))
            raise
        run = run.plus(*_in_order(run, todo, done))
        if keep:
            keep(run)
        yield run


def _cancelled() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def _in_order(run: Run, todo: list[Action], done: dict[int, Entry]) -> list[Entry]:
    """What was done, in the order of what was to do; a stop comes last, and one is enough."""
    entries = [_fitting(run, action, done[i]) for i, action in enumerate(todo)]
    stops = [entry for entry in entries if isinstance(entry, Stop)]
    return [*(entry for entry in entries if not isinstance(entry, Stop)), *stops[:1]]


def _fitting(run: Run, action: Action, entry: Entry) -> Entry:
    """The entry, where it moves the run on: what a guard answers with something else would go round for ever. Calls get ids that
    are unique in the run, and none are made in the last reply (D2), whoever wrote it."""
    match action, entry:
        case _, Stop():
            return entry
        case Ask(), Reply():
            return replace(entry, calls=()) if action.last else run.named(entry)
        case Call(), Result() | Held() if entry.call_id == action.id:
            return entry
    if inspect.iscoroutine(entry):
        entry.close()
        raise TypeError("A guard returned a coroutine that nobody awaited. Write `return await act(run, action)`.")
    what = f"the call {action.id!r}" if isinstance(action, Call) else "the request to the model"
    raise TypeError(
        f"A guard answered {what} with {entry!r:.120}. It must return what `act` returned, "
        + ("or a Result, Held or Stop for this call." if isinstance(action, Call) else "or a Reply or Stop of its own.")
    )


def interrupted(todo: list[Action], done: dict[int, Entry]) -> Iterator[Entry]:
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


def at_least_one(shown: str, value: Any) -> None:
    """Raise ValueError unless `value` is a whole number above 0; `shown` is what was written."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{shown}: give a whole number of at least 1.")


def all_guards(guards: Iterable[Guard]) -> list[Guard]:
    """`guards` as a list, each found to be one. Raises TypeError, with what to write instead."""
    if callable(guards) or isinstance(guards, str) or not isinstance(guards, Iterable):
        raise TypeError(f"guards must be a list, not {guards!r:.60}: write guards=climb(), or [ ] around a single guard.")
    return [_checked(guard) for guard in guards]


def _checked(guard: Any) -> Guard:
    if isinstance(guard, type):
        raise TypeError(f"guards must be guards, not classes: write {guard.__name__}() instead of {guard.__name__}.")
    if not callable(guard):
        raise TypeError(f"{guard!r:.60} is no guard. A guard is `async (run, action, act) -> entry`; the ready ones: climb().")
    call = guard if inspect.isroutine(guard) else guard.__call__
    if not inspect.iscoroutinefunction(getattr(guard, "func", call)):
        raise TypeError(
            f"Guard {guard!r:.60} is not async. Write `async def …(run, action, act)` and `return await act(run, action)`."
        )
    try:
        inspect.signature(guard).bind(None, None, act=None)
    except TypeError:
        raise TypeError(f"Guard {guard!r:.60} must take three arguments: (run, action, act).") from None
    return guard  # type: ignore[no-any-return]  # it was found to be one


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


async def by_itself(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` as a task of its own, so that what it does to its task (an exit, a cancellation) it does not do to the run's.
    Raises what it raises."""
    task = apart(work)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        too_late = task.done()
        await let_go([task])
        if too_late or not task.done() or task.cancelled():
            raise
    return brought(task)  # also where it swallowed the cancellation: what it came to is true
