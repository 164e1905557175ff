"""Step a loop that somebody else wrote: any `async def` that asks its model through a client of `lab.client()`.

The function runs in a task of its own and is held at the door, before each request and before each reply. A coroutine cannot
be rewound. So a fork runs the function again from its start, in the world as it was then, on the replies that are recorded,
and gives it the edited message where that comes; if the function takes another way meanwhile, it is live from there, and the
stepper says so. Calls and results pass inside the function: they are seen in its next request.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from . import tokens
from .branches import LAMPS, Branch, Moment, NotPossible, Place, Snapshot, World, Worlds, is_world
from .door import Answer, Gate, Line, Ticket, at_gate, crashed_line, is_theirs, masked, with_door
from .own_loop import crash_sentence, edited, many, name_list
from .records import Entry, Reply, Result, Stop, System, User
from .rows import entry_of, weigh
from .run import Run
from .tools import Tool
from .wire import ModelError, message, reply_from

Key = tuple[Any, ...]


@dataclass(eq=False)
class Walk:
    """One life of the function: its task, its gate, and what passed there."""

    gate: Gate
    task: asyncio.Task[None] | None = None
    root: object = None  # the function's own coroutine
    value: Any = None
    error: BaseException | None = None
    edits: dict[Key, dict[str, Any]] = field(default_factory=dict)  # the person's messages, by those that they replace
    requests: dict[int, tuple[Key, ...]] = field(default_factory=dict)  # as the function made them
    answers: dict[int, Answer] = field(default_factory=dict)  # as the function was given them
    history: list[tuple[Key, int]] = field(default_factory=list)  # the messages last sent, and their rows
    origins: dict[int, int] = field(default_factory=dict)  # row -> the request that it came in with, or the reply to it
    path: list[tuple[Place, int]] = field(default_factory=list)  # for each moment: place, and number of the request
    edited: set[int] = field(default_factory=set)  # requests whose reply is the person's
    ticket: Ticket | None = None  # what stands at the gate now


class TheirLoop:
    """How a stepper drives the learner's own function.

    Fork is on where the function's worlds are known: given as `world=…`, or found as tools and worlds among the names that
    the function uses. `world=[]` says that nothing it does has to be put back.
    """

    door = True

    def __init__(self, function: Callable[..., Any], question: str, client: Any = None, world: object = None) -> None:
        self.function, self.question = checked_function(function), question
        self.name = getattr(function, "__name__", type(function).__name__)
        self.arguments = arguments_for(function, question, client)
        self.title = f"{self.name}: {question}"
        self.cannot_fork, found = worlds_for(function, world)
        self.worlds = Worlds(found)
        self.start: Snapshot = ()
        self.walks: dict[Branch, Walk] = {}

    # ---- moments ----
    def open(self, branch: Branch) -> None:
        """There is no moment before the function has run up to its first request: `begin` waits for that."""

    async def begin(self, branch: Branch) -> None:
        """Run the function up to its first request."""
        self.start = self.worlds.keep()
        self._set_out(branch)
        await self._arrive(branch)

    async def advance(self, branch: Branch) -> None:
        """Let the request, or the reply, that stands at the gate through; stand still at the next one."""
        moment, walk = branch.moments[-1], self.walks[branch]
        ticket = walk.ticket
        if ticket is None:
            return
        self.worlds.put_back(moment.world)
        if ticket.place == "request":
            await self._let_go(walk, ticket, None)
        elif not ticket.back.done():
            self._hand_over(walk, ticket)
        await self._arrive(branch)

    def _set_out(self, branch: Branch, edits: Mapping[Key, dict[str, Any]] | None = None) -> Walk:
        gate = Gate()
        walk = self.walks[branch] = Walk(gate, edits=dict(edits or {}))
        coroutine = self.function(*self.arguments)
        gate.root = walk.root = coroutine

        async def live() -> None:
            try:
                walk.value = await coroutine
            except (Exception, SystemExit, KeyboardInterrupt) as error:  # the last two would end the kernel's loop
                walk.error = error

        context = contextvars.copy_context()
        context.run(at_gate.set, gate)
        walk.task = asyncio.get_running_loop().create_task(live(), context=context)
        walk.task.add_done_callback(lambda _: gate.ring())
        return walk

    async def _let_go(self, walk: Walk, ticket: Ticket, given: Answer | None) -> None:
        """Let a request through (or answer it with a recorded reply), and wait for what comes back."""
        if not ticket.leave.done():
            ticket.leave.set_result((self._as_edited(walk, ticket.body), given))
        while ticket.answer is None and ticket.failure is None and not self._is_done(walk):
            await walk.gate.rung()
        if ticket.answer is not None:
            walk.answers[ticket.number] = ticket.answer

    def _hand_over(self, walk: Walk, ticket: Ticket) -> None:
        assert ticket.answer is not None
        ticket.back.set_result(ticket.answer)
        walk.ticket = None

    @staticmethod
    def _is_done(walk: Walk) -> bool:
        return walk.task is None or walk.task.done()

    async def _arrive(self, branch: Branch) -> None:
        """Wait for what comes next at the gate, and stand there."""
        walk = self.walks[branch]
        while True:
            waiting = [one for one in walk.gate.waiting if not one.back.done()]
            if walk.ticket in waiting and walk.ticket is not None and walk.ticket.answer is not None:
                return self._at_reply(branch, walk, walk.ticket)
            if self._is_done(walk):
                return self._at_end(branch, walk)
            fresh = [one for one in waiting if not one.leave.done() or one.answer is not None]
            if fresh:
                walk.ticket = fresh[0]
                stand = self._at_request if fresh[0].place == "request" else self._at_reply
                return stand(branch, walk, fresh[0])
            await walk.gate.rung()

    def _at_request(self, branch: Branch, walk: Walk, ticket: Ticket) -> None:
        walk.requests[ticket.number] = tuple(key_of(wire) for wire in ticket.body["messages"])
        body = self._as_edited(walk, ticket.body)
        before = len(branch.rows)
        run = self._rows_of_request(branch, walk, ticket, body["messages"])
        schemas = body.get("tools") or []
        branch.add_bar(weigh(body["messages"]), tokens.count_tools(schemas) if schemas else 0)
        total = sum(branch.bars[-1][part] for part in ("system", "user", "assistant", "tool", "tools"))
        more = len([one for one in walk.gate.waiting if one is not ticket and not one.back.done()])
        behind = f" {many(more, 'more request')} {'waits' if more == 1 else 'wait'} behind it." if more else ""
        came = any(isinstance(entry, Result) for entry in branch.entries[before:])
        sends = f"{many(len(body['messages']), 'message')} and {many(len(schemas), 'tool schema')}"
        self._stand(
            branch, walk, "request", ticket.number, run,
            # what goes back was decided inside the function: here it can only be seen
            lamps={"N6": "now", **({"N4": "done"} if came else {})},
            says=f"{self.name} wants to send {sends}: {total:,} tokens. Step lets it through.{behind}", line=ticket.line,
        )  # fmt: skip

    def _at_reply(self, branch: Branch, walk: Walk, ticket: Ticket) -> None:
        assert ticket.answer is not None
        run = branch.moments[-1].run if branch.moments else Run()
        said = None
        try:
            completion = ticket.answer.completion()
            said = reply_from(completion)
        except ModelError as error:
            branch.add(masked(str(error)))  # endpoints quote the key that they refuse
            branch.rows[-1]["error"] = True
        lamps = {"N6": "done", "N1": "now", "N5": "now"}
        goes_on = f"Step hands this to {self.name}, which then runs up to its next request, or to its end."
        if said is not None:
            original = key_of_entry(said)
            walk.origins[len(branch.rows)] = ticket.number
            walk.history.append((original, len(branch.rows)))
            branch.add(said, edited=ticket.number in walk.edited)
            run = run.plus(said)
            bar = self._bar_of(walk, ticket.number)
            if said.usage and bar is not None:
                branch.change_bar(bar, reported=said.usage["prompt"])
            if said.calls:
                lamps.update(N2="now", N3="now")
                goes_on = f"The model asks for {name_list([call.name for call in said.calls])}. {goes_on}"
        self._stand(branch, walk, "reply", ticket.number, run, lamps=lamps, says=goes_on, line=ticket.line)

    def _bar_of(self, walk: Walk, number: int) -> int | None:
        asked = [n for place, n in walk.path if place == "request"]
        return asked.index(number) if number in asked else None

    def _at_end(self, branch: Branch, walk: Walk) -> None:
        walk.gate.give_up()
        walk.ticket = None
        run = branch.moments[-1].run if branch.moments else Run()
        lamps = {"N1": "done", "N5": "done", "N6": "done"}
        if walk.error is not None and not isinstance(walk.error, KeyboardInterrupt):
            crash = crash_sentence(walk.error)
            branch.add(crash)
            branch.rows[-1]["error"] = True
            line = crashed_line(walk.error)
            return self._stand(branch, walk, "end", -1, run, status=crash, says=f"{self.name} {crash}.", line=line, lamps=lamps)
        if walk.error is not None or (walk.task is not None and walk.task.cancelled()):
            return self._interrupted(branch, walk)
        answer = walk.value if isinstance(walk.value, str) else "" if walk.value is None else repr(walk.value)
        if not walk.requests:
            says = f"{self.name} came to its end without a request at the door. Let it ask through a client of lab.client()."
        elif walk.value is None:
            says = f"The run is over: {self.name} returned nothing (None). Give it a return."
        else:
            says = f"The run is over: {self.name} returned its answer."
        return self._stand(branch, walk, "end", -1, run, status="answered", answer=answer, says=says, lamps=lamps)

    def stopped(self, branch: Branch, begun: bool) -> None:
        """The person stopped it. The function is cancelled; it cannot be taken up again."""
        walk = self.walks.get(branch)
        if walk is not None and not (branch.moments and branch.moments[-1].place == "end"):
            self._cancel(walk)
            self._interrupted(branch, walk)

    def _interrupted(self, branch: Branch, walk: Walk) -> None:
        stop = Stop("interrupted", "a person stopped the run")
        branch.add(stop)
        run = (branch.moments[-1].run if branch.moments else Run()).plus(stop)
        says = f"{self.name} was cancelled and cannot be taken up again. Fork from an earlier point, or reset."
        self._stand(branch, walk, "end", -1, run, status="interrupted", says=says, lamps={})

    def _stand(
        self, branch: Branch, walk: Walk, place: Place, number: int, run: Run, *,
        says: str, lamps: Mapping[str, str], status: str = "running", answer: str = "", line: Line | None = None,
    ) -> None:  # fmt: skip
        walk.path.append((place, number))
        turn = sum(at == "request" for at, _ in walk.path)
        branch.reach(
            Moment(
                place, max(turn, 1), len(branch.rows), len(branch.bars), run, status=status, answer=answer, says=says,
                lamps={**dict.fromkeys(LAMPS, ""), **lamps}, line=line, world=self.worlds.keep(),
            )
        )  # fmt: skip

    # ---- the history, as far as it can be seen from here ----
    def _rows_of_request(self, branch: Branch, walk: Walk, ticket: Ticket, sent: list[dict[str, Any]]) -> Run:
        """Rows for the messages that were not seen before, and a note where the function does not just add to its history."""
        run = branch.moments[-1].run if branch.moments else Run()
        keys = walk.requests[ticket.number]
        known = walk.history
        same = 0
        while same < min(len(keys), len(known)) and known[same][0] == keys[same]:
            same += 1
        rest = known[same:]
        now = known[:same]
        fresh: list[tuple[Key, dict[str, Any]]] = []
        where: list[int | None] = []
        for key, wire in zip(keys[same:], sent[same:], strict=True):
            at = next((k for k, (other, _) in enumerate(rest) if other == key), None)
            where.append(None if at is None else rest.pop(at)[1])
            if at is None:
                fresh.append((key, wire))
        if known and (rest or any(row is not None for row in where)):
            left = f"leaves out {many(len(rest), 'message')} of the one before" if rest else "sends the messages in another order"
            branch.add(f"Request {ticket.number + 1} {left}.")
        for key, wire, row in zip(keys[same:], sent[same:], where, strict=True):
            if row is None:
                entry = entry_of(wire)
                row = len(branch.rows)
                walk.origins[row] = ticket.number
                branch.add(entry, edited=key in walk.edits)
                run = run.plus(entry)
            now.append((key, row))
        walk.history = now
        return run

    @staticmethod
    def _as_edited(walk: Walk, body: dict[str, Any]) -> dict[str, Any]:
        """The request with the person's messages in place of the function's."""
        if not walk.edits:
            return body
        return {**body, "messages": [{**wire, **walk.edits.get(key_of(wire), {})} for wire in body["messages"]]}

    # ---- another way ----
    async def fork(self, branch: Branch, parent: Branch, row: int, what: str, text: str, call_id: str | None) -> str:
        """Run the function again up to the parent's `row`, with the edit in its place. Returns a sentence about it."""
        old = self.walks[parent]
        if row not in old.origins:
            raise NotPossible("This is a note of the stepper's. Only messages, results and arguments can be edited.")
        number = old.origins[row]
        is_reply = self._is_reply_row(parent, old, row)
        entry = parent.entries[row]
        new = edited(entry, what, text, call_id)
        assert isinstance(new, System | User | Reply | Result)
        edits = dict(old.edits)
        if not is_reply:
            edits[self._key_at(old, parent, row)] = message(new)
        self.worlds.put_back(self.start)
        walk = self._set_out(branch, edits)
        walk.edited = set(old.edited)
        while True:
            await self._arrive(branch)
            place, at = walk.path[-1]
            if place == "end":
                return f"On the way there {self.name} came to its end. The branch before stays as it was."
            assert walk.ticket is not None
            if place == "request":
                if walk.requests[at] != old.requests.get(at):
                    return f"{self.name} took another way at request {at + 1} than it had before. It is live from there."
                if at == number and not is_reply:
                    break
                given = old.answers.get(at)
                if at == number:
                    assert given is not None
                    given = given.with_message(message(new))
                    walk.edited.add(number)
                if given is None:
                    break
                await self._let_go(walk, walk.ticket, given)
            elif at == number and is_reply:
                break
            else:
                self._hand_over(walk, walk.ticket)
        return f"{self.name} ran again up to here on the recorded replies, in the world as it was. The branch before stays."

    @staticmethod
    def _is_reply_row(parent: Branch, old: Walk, row: int) -> bool:
        """Whether the row came in as a reply, not as a message that the function had written itself."""
        at = next(k for k, moment in enumerate(parent.moments) if moment.rows > row)
        return old.path[at][0] == "reply"

    @staticmethod
    def _key_at(old: Walk, parent: Branch, row: int) -> Key:
        """The message that the function itself wrote in that row."""
        for key, at in old.history:
            if at == row:
                return key
        entry = parent.entries[row]
        assert isinstance(entry, System | User | Reply | Result)
        return key_of_entry(entry)

    def rule(self, branch: Branch, call_id: str, digest: str, ok: bool, why: str, arguments: str | None) -> None:
        raise NotPossible(f"{self.name} runs its calls itself: there is no approval at the door.")

    def refuse_all(self, branch: Branch, why: str) -> None:
        """Nothing is ever held at the door."""

    def close(self, branch: Branch) -> None:
        """Give up one life of the function."""
        walk = self.walks.pop(branch, None)
        if walk is not None:
            self._cancel(walk)

    @staticmethod
    def _cancel(walk: Walk) -> None:
        walk.gate.give_up()
        walk.ticket = None
        if walk.task is not None:
            walk.task.cancel()


# ---- messages, compared ----
def key_of(wire: Mapping[str, Any]) -> Key:
    """What makes two messages the same, however they were written: None and "" are both nothing."""
    try:
        return key_of_entry(entry_of(wire))
    except ModelError:
        return ("?", repr(wire))


def key_of_entry(entry: Entry) -> Key:
    match entry:
        case Reply(text, calls):
            return ("assistant", text, tuple((call.id, call.name, call.arguments) for call in calls))
        case Result(call_id, text):
            return ("tool", call_id, text)
        case System(text):
            return ("system", text)
        case User(text):
            return ("user", text)
    return ("note", repr(entry))


# ---- what may be stepped ----
def checked_function(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """`function` when it is an `async def`; else a sentence that says what to write."""
    if inspect.iscoroutine(function):
        function.close()
        raise TypeError('lab.step wants the function itself, not a call of it: lab.step(my_loop, "…"), without the ().')
    if not callable(function):
        raise TypeError(f"lab.step steps an Agent or an `async def` function, not {type(function).__name__}.")
    name = getattr(function, "__name__", type(function).__name__)
    call = getattr(function, "__call__", None)  # noqa: B004 - the bound method is wanted
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"{name} is an async generator. Let it return its answer instead of yielding, then it can be stepped.")
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)):
        raise TypeError(
            f"{name} is a sync function, and waiting in one would hold the whole kernel. Write `async def {name}(question):`, "
            f"take client = lab.client(), and await its calls."
        )
    return function


def arguments_for(function: Callable[..., Any], question: str, client: Any) -> tuple[Any, ...]:
    """(question,) or (question, client), by the function's signature."""
    name = getattr(function, "__name__", type(function).__name__)
    parameters = list(inspect.signature(function).parameters.values())
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in places if p.default is p.empty]
    strict = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    takes_client = len(needed) == 2 or (len(needed) == 1 and len(places) > 1 and places[1].name == "client")
    if strict or len(needed) > 2 or not places:
        wrong = f"{name}{inspect.signature(function)}"
        raise TypeError(f"lab.step calls {name}(question) or {name}(question, client). This is {wrong}: wrap it.")
    if not takes_client:
        if client is not None:
            raise TypeError(
                f"{name} takes no client, so the one given would not be used. Write `async def {name}(question, client)`."
            )
        return (question,)
    if client is None:
        from .lab import client as make_client

        client = make_client()
    return (question, with_door(client))


def worlds_for(function: Callable[..., Any], given: object) -> tuple[str, list[World]]:
    """Why fork is off (or an empty text), and the worlds to put back."""
    if given is not None:
        worlds: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
        for one in worlds:
            if not is_world(one):
                raise TypeError(
                    f"world={one!r:.60} has no snapshot() and restore(). Pass a world such as worlds.orders.desk, or world=[]."
                )
        return "", worlds
    found = list(_reached(function))
    worlds = [thing for thing in found if is_world(thing)]
    made = [thing for thing in found if isinstance(thing, Tool)]
    lost = [one.name for one in made if one.dangerous and one.world is None]
    if lost:
        return f"What {', '.join(lost)} does cannot be put back: give it a world, @tool(dangerous=True, world=…).", worlds
    if not worlds and not made:
        return (
            "To fork, the function is run again in the world as it was, and its world is not known. "
            "Say it with lab.step(…, world=desk), or world=[] where nothing has to be put back."
        ), []
    return "", worlds


def _reached(function: Callable[..., Any], depth: int = 3) -> Iterator[Any]:
    """Tools and worlds among the names that a function uses, in its own module and in the functions of it that it calls."""
    function = inspect.unwrap(getattr(function, "func", function))
    if isinstance(function, MethodType):
        yield from _things(function.__self__, (), depth)
        function = function.__func__
    if not isinstance(function, FunctionType):
        return
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            continue  # not bound yet
    values += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for value in values:
        yield from _things(value, names, depth)


def _things(value: object, names: Iterable[str], depth: int) -> Iterator[Any]:
    if isinstance(value, Tool):
        yield value
        if value.world is not None:
            yield value.world
    elif isinstance(value, ModuleType):
        if value.__name__.startswith("agentlab.worlds"):
            named = (getattr(value, name) for name in names if name in getattr(value, "NAMES", ()))
            inner = [value] if hasattr(value, "desk") else list(named)
            yield from (module.desk for module in inner if is_world(getattr(module, "desk", None)))
    elif is_world(value):
        yield value
    elif isinstance(value, MethodType) and is_world(value.__self__):
        yield value.__self__
    elif isinstance(value, Mapping) and len(value) <= 100:
        for one in list(value.values()):
            yield from _things(one, (), 0)
    elif isinstance(value, list | tuple | set) and len(value) <= 100:
        for one in list(value):
            yield from _things(one, (), 0)
    elif isinstance(value, FunctionType) and depth > 0 and is_theirs(value.__code__):
        yield from _reached(value, depth - 1)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
