"""The guardrails of the ladder, one small frozen value each, in the order taught.

A guard is `async (run, action, act) -> entry`. It passes the action on, changes it, changes what comes out, answers instead,
or holds. It has no memory of its own: it reads the log, back to the last question. The one-line docstring of each is its row
in the README.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any

from .arguments import CUT_OFF, BadArguments, canonical
from .loop import Act, apart, at_least_one, brought, let_go
from .records import Action, Ask, Call, Entry, Held, Note, Reply, Result, Stop
from .results import words
from .run import Run
from .tools import ToolError, UnknownTool, is_a_time
from .truncation import shorten
from .validation import checked
from .wire import CUT, ModelError


@dataclass(frozen=True)
class Isolate:
    """A failed call becomes a result that says what happened and what to do; a model out of reach ends the run politely."""

    # C1-C5. Nothing that a tool does may leave the loop: SystemExit and a cancellation of its own are failures like others.
    async def __call__(self, run: Run, action: Action, act: Act) -> Entry:
        if isinstance(action, Ask) and not action.last and (why := _no_use(run)):
            return Stop("stuck", why, (Note("Isolate", why),))
        task = _this_task()
        try:
            return _judged(await act(run, action), action)
        except KeyboardInterrupt:
            raise
        except (asyncio.CancelledError, GeneratorExit) as error:
            # A person stops the run, or its coroutine is thrown away; raised from inside, it is a failure like others.
            if task is None or task.cancelling() or _this_task() is not task:
                raise
            return self._failed(action, error)
        except BaseException as error:
            return self._failed(action, error)

    def _failed(self, action: Action, error: BaseException) -> Entry:
        if isinstance(action, Ask):
            why = f"the model could not be asked ({_words(error)})"
            return Stop("failed", why, (Note("Isolate", why),))
        text, why = self._told(action, error)
        return Result(action.id, text, error=True, notes=(Note("Isolate", why),))

    def _told(self, call: Call, error: BaseException) -> tuple[str, str]:
        """What the model is told of a failed call, and what the person is."""
        match error:
            case UnknownTool():
                return str(error), "there is no such tool"
            case BadArguments():
                return str(error), "the arguments cannot be used"
            case asyncio.CancelledError():
                return (
                    f"{call.name} was cancelled from inside. Try it again once, or go on without it.",
                    "the tool cancelled itself",
                )
        others = _others(call) if call.tools is not None else ""
        text = f"{call.name} failed: {_words(error)}. Change the arguments if they are the reason, or go on without it{others}."
        return text, f"the tool raised {type(error).__name__}"


# What a model is told whose reply is no answer and holds no call that could run (C1, C4); then it has another try.
EMPTY = "Your reply was empty. Make a tool call, or give your answer in plain text."
ANNOUNCED = "You announced a tool call, but none came with it, and nothing was run. Make the call now, or give your answer."
WRITTEN = "Nothing was run: you wrote a call{name} into your text. Send it as a real tool call, or answer in plain text."
UNKNOWN = "Nothing was run: you wrote a call into your text, and there is no tool {name!r}. Answer in plain text{tools}."
TRIES = 3  # replies in a row that are of no use; then the run is stuck


def _judged(entry: Entry, action: Action) -> Entry:
    """The reply, with what is wrong with it where it looks like an answer and is none."""
    if not isinstance(action, Ask) or action.last or not isinstance(entry, Reply) or entry.calls or entry.declined or entry.fault:
        return entry
    fault = _fault(entry, [str(tool.get("function", {}).get("name")) for tool in action.tools or ()])
    return replace(entry, fault=fault, notes=(*entry.notes, Note("Isolate", fault))) if fault else entry


def _fault(reply: Reply, names: list[str]) -> str:
    if not reply.text.strip():
        return "" if reply.finish in CUT else EMPTY  # cut off before a word: asked again, it would be again
    if reply.finish in ("tool_calls", "function_call"):
        return ANNOUNCED
    from .written import written_call  # its patterns take a while to compile

    if not names or (name := written_call(reply.text, names)) is None:
        return ""
    if name and name not in names:
        return UNKNOWN.format(name=name[:64], tools=f", or call one of {', '.join(names)}" if names else "")
    return WRITTEN.format(name=f" of {name}" if name else "")


def _no_use(run: Run) -> str:
    """What to say where the last replies were none: asked once more, the model would likely do the same."""
    last = run.turns(TRIES)
    if not last or last[-1].calls or last[-1].final:
        return ""
    if not last[-1].fault:
        limit = "it ran into its output limit" if last[-1].finish in CUT else "no text and no call"
        return f"the model sent an empty reply ({limit})"
    if len(last) < TRIES or not all(reply.fault for reply in last):
        return ""
    if last[-1].fault == EMPTY:
        return f"the model sent an empty reply, {TRIES} times in a row"
    return f"{TRIES} replies in a row were neither an answer nor a call that could run"


def _this_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop: the coroutine is driven by hand, or thrown away after its loop
        return None


def _words(error: BaseException) -> str:
    said = words(error)  # the messages of our own errors are sentences already
    return said.removeprefix(f"{type(error).__name__}: ") if isinstance(error, ToolError | ModelError) else said


def _others(call: Call) -> str:
    """Harmless tools besides the one called: told to take another, a small model took any, writes too (see D3's evidence)."""
    names = [name for name, tool in (call.tools or {}).items() if name != call.name and not tool.dangerous]
    return f", or use another tool ({', '.join(names)})" if names else ""


@dataclass(frozen=True)
class Cap:
    """After so many requests the model is asked once more, without tools, for its best answer."""

    requests: int = 8  # D1, D2; D7: about 1.5 times the 99th percentile of what your jobs need

    def __post_init__(self) -> None:
        at_least_one(f"Cap(requests={self.requests!r})", self.requests)

    async def __call__(self, run: Run, action: Action, act: Act) -> Entry:
        if isinstance(action, Ask) and not action.last and run.requests >= self.requests:
            why = f"the cap of {self.requests} request{'s' * (self.requests != 1)} is reached"
            return Stop("capped", why, (Note("Cap", why),))
        return await act(run, action)


@dataclass(frozen=True)
class Repeats:
    """The same call with the same arguments runs only so often; who goes round in circles is stopped."""

    limit: int = 2  # D3: how often an equal call may run between two questions
    period: int = 8  # D4: the longest circle of calls that is named as one
    same: int = 8  # D4: how many turns in a row may bring one and the same result, though the arguments change

    def __post_init__(self) -> None:
        at_least_one(f"Repeats(limit={self.limit!r})", self.limit)
        at_least_one(f"Repeats(period={self.period!r})", self.period)
        at_least_one(f"Repeats(same={self.same!r})", self.same)

    async def __call__(self, run: Run, action: Action, act: Act) -> Entry:
        if isinstance(action, Ask):
            last = run.turns(2)
            if not action.last and len(last) == 2 and all(_all_refused(run, reply) for reply in last):
                why = f"two turns in a row held nothing but repeated calls ({self._circle(run)})"
                return Stop("stuck", why, (Note("Repeats", why),))
            return await act(run, action)
        if action.tool is not None and action.tool.repeatable:
            return await act(run, action)
        turns, sibling = run.earlier(action)
        if sibling is not None:
            text = f"Not run a second time: this call is the same as {sibling} in this turn. Its result stands there."
            return Result(action.id, text, error=True, notes=(Note("Repeats", f"same call as {sibling}"),))
        if self._no_news(run, action):
            text = (
                f"Not run: in each of the last {self.same} turns {action.name} brought the same result, whatever the arguments "
                f"were. One more will not bring another. Answer from the results that you have{_others(action)}."
            )
            return Result(action.id, text, error=True, notes=(Note("Repeats", f"{self.same} turns in a row, one result"),))
        if len(turns) < self.limit:
            return await act(run, action)
        shown = f"{action.name}({_short(canonical(action.arguments), 200)})"
        when = f"turn{'s' * (len(turns) > 1)} {', '.join(map(str, turns))}"
        text = (
            f"Repeated call blocked: {shown} was not run. You made this exact call in {when} already; its result stands above. "
            f"To be exact: {self._circle(run)}. Your next reply must not make it again: answer from the results that you have, "
            f"or change the arguments{_others(action)}."
        )
        return Result(action.id, text, error=True, notes=(Note("Repeats", f"{shown}: asked for in {when} already"),))

    def _no_news(self, run: Run, call: Call) -> bool:
        """Change without progress: other arguments turn after turn, and always one result. Not of dangerous tools, whose results
        are meant to be alike, and where a person sees each call."""
        if self.same == 1 or call.tool is None or call.tool.dangerous:
            return False
        ran = [reply for reply in run.turns(2 * self.same)[:-1] if not _all_refused(run, reply)]
        last = [{_whole(run.result(one.id)) for one in reply.calls if one.name == call.name} for reply in ran[-self.same :]]
        return len(last) == self.same and len(last[0]) == 1 and all(one == last[0] for one in last)

    def _circle(self, run: Run) -> str:
        """The evidence: the shortest circle that the last turns went round, at least twice."""
        turns = [tuple(sorted(call.digest for call in reply.calls)) for reply in run.turns(3 * self.period)]
        replies = run.turns(3 * self.period)
        for length in range(1, self.period + 1):
            if len(turns) >= 2 * length and turns[-length:] == turns[-2 * length : -length]:
                rounds = 2
                while len(turns) >= (rounds + 1) * length and turns[-(rounds + 1) * length : -rounds * length] == turns[-length:]:
                    rounds += 1
                names = " -> ".join(" + ".join(call.name for call in reply.calls) for reply in replies[-length:])
                return f"the last turns go in a circle of {length}: {_short(names, 200)}, {rounds} times round"
        return "the last turns repeat what was done before"


def _whole(result: Result | None) -> str:
    """A result as it was before it was cut: two that begin alike may differ where they were cut off."""
    return "" if result is None else result.text if result.full is None else result.full


def _all_refused(run: Run, reply: Reply) -> bool:
    results = [run.result(call.id) for call in reply.calls]
    return bool(results) and all(result is not None and by_repeats(result) for result in results)


def by_repeats(result: Result) -> bool:
    """Whether the call was not run since it would have been a repetition."""
    return any(note.guard == "Repeats" for note in result.notes)


@dataclass(frozen=True)
class Truncate:
    """A long result is cut before it is sent, says how much is shown of how much, and how to get more; the log keeps it all."""

    chars: int = 2_000  # F1, F2, F5: what the model is sent of one result, notice included

    def __post_init__(self) -> None:
        at_least_one(f"Truncate(chars={self.chars!r})", self.chars)

    async def __call__(self, run: Run, action: Action, act: Act) -> Entry:
        entry = await act(run, action)
        if not isinstance(entry, Result) or len(entry.text) <= self.chars or not isinstance(action, Call):
            return entry
        notes = tuple(note for note in entry.notes if note.guard != "Truncate")  # cut before: begin again with the whole
        whole = entry.full if entry.full is not None and notes != entry.notes else entry.text
        text, why = shorten(whole, self.chars, action)
        return replace(entry, text=text, full=entry.full or entry.text, notes=(*notes, Note("Truncate", why)))


@dataclass(frozen=True)
class Validate:
    """Arguments are checked against the tool's JSON Schema before it runs; "10" for 10 is mended, nothing else is guessed."""

    # H1, H2: shape here, business rules inside the tool. What is wrong goes back to the model as a task.
    async def __call__(self, run: Run, action: Action, act: Act) -> Entry:
        if isinstance(action, Ask) or action.tool is None:
            return await act(run, action)
        try:
            if action.cut:  # before a person is asked about half a call
                raise BadArguments(CUT_OFF)
            arguments = checked(action.args, action.tool)
        except BadArguments as error:
            return Result(action.id, str(error), error=True, notes=(Note("Validate", str(error)[:200]),))
        mended = canonical(arguments) != canonical(action.arguments)
        return await act(run, replace(action, arguments=arguments) if mended else action)


@dataclass(frozen=True)
class Timeout:
    """A call that takes too long is left, and the model is told that its outcome is unknown."""

    seconds: float = 30.0  # C6; a tool's own timeout goes before it

    def __post_init__(self) -> None:
        if not is_a_time(self.seconds):
            raise ValueError(f"Timeout(seconds={self.seconds!r:.60}): give seconds above 0, for example Timeout(30).")

    async def __call__(self, run: Run, action: Action, act: Act) -> Entry:
        if isinstance(action, Ask):
            return await act(run, action)
        limit = (action.tool.timeout if action.tool else None) or self.seconds
        began = time.perf_counter()
        task = apart(act(run, action))
        try:
            await asyncio.wait([task], timeout=limit)
            if task.done():
                return self._late(brought(task), time.perf_counter() - began, limit)
        finally:
            await let_go([task])
        text = (
            f"{action.name} gave no result within {limit:g} s and was left. The outcome is unknown: it may still finish, or have "
            f"finished. Check before you repeat it; ask for less if you do."
        )
        return Result(
            action.id,
            text,
            error=True,
            seconds=limit,
            notes=(Note("Timeout", f"no result within {limit:g} s, outcome unknown"),),
        )

    def _late(self, entry: Entry, seconds: float, limit: float) -> Entry:
        """Where a tool ran in line (no threads, as in Pyodide) or blocked the event loop, nobody could leave it in time."""
        if seconds <= limit or not isinstance(entry, Result):
            return entry
        why = f"took {seconds:.1f} s: the limit of {limit:g} s could not be held, since the event loop was blocked meanwhile"
        return replace(entry, notes=(*entry.notes, Note("Timeout", why)))


@dataclass(frozen=True)
class Approve:
    """A call of a tool marked dangerous waits until a person has ruled on exactly this call."""

    # I1, I2: bound to id and argument digest; yes, no with a reason, or other arguments. No answer is not a yes. What guards
    # above made of the call is what the person is shown; a guard that you put below it is trusted, as the tool is.
    async def __call__(self, run: Run, action: Action, act: Act) -> Entry:
        if isinstance(action, Call) and action.tools is None:  # an act of somebody's own stands between: say so to `perform`
            return await act(run, replace(action, unseen=True))
        if isinstance(action, Ask) or action.tool is None or not action.tool.dangerous:
            return await act(run, action)
        ruling = run.ruling(action.id)
        if ruling is None or ruling.digest not in ("", action.digest):
            return self._held(run, action, "" if ruling is None else "the ruling was for other arguments")
        if ruling.expired:
            return self._not_run(action, "nobody answered in time. That is not a refusal: ask the person whether to try again")
        if ruling.ok is not True:
            reason = f" Reason: {ruling.why.rstrip('.')}." if ruling.why.strip() else ""
            return self._not_run(
                action,
                f"this call was refused.{reason} Do not repeat it; say what was refused, or find another way",
            )
        if ruling.arguments is None:
            return await act(run, action)
        try:
            edited = checked(replace(action, arguments=ruling.arguments).args, action.tool)
        except BadArguments as error:
            return self._held(run, action, f"the edited arguments do not fit: {error}")
        entry = await act(run, replace(action, arguments=edited))
        told = f"A person changed the arguments from {_short(action.arguments, 500)} to {_short(edited, 500)}."
        if not isinstance(entry, Result):
            return entry
        return replace(entry, text=f"{told} {entry.text}", notes=(*entry.notes, Note("Approve", told)))

    def _held(self, run: Run, call: Call, why: str) -> Held:
        note = Note("Approve", why.partition(":")[0] or f"{call.name} is marked dangerous")
        return Held(call.id, call.digest, why, (note,), None if call == run.call(call.id) else replace(call, tools=None))

    def _not_run(self, call: Call, why: str) -> Result:
        return Result(call.id, f"{call.name} was not run: {why}.", error=True, notes=(Note("Approve", why.split(".")[0]),))


def _short(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[:chars] + "…"
