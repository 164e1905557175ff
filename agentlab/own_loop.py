"""Step an `Agent`: its run is a value, so a place in the loop is a way of looking at that value.

Request: the run's todo is an `Ask`. Reply: its last entry is one. Call: calls are open. Result: results came in. Only from a
request and from a call does anything run; the other steps just look further.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from .agent import Agent
from .arguments import BadArguments, parse
from .branches import LAMPS, Branch, Moment, NotPossible, Place, Snapshot, Worlds
from .door import crashed_line, masked
from .loop import interrupted
from .records import Ask, Call, Entry, Note, Reply, Result, Stop, System, User
from .rows import weigh
from .run import Messages, Run
from .tokens import count_tools
from .tools import Tool


class OwnLoop:
    """How a stepper drives agentlab's own loop.

    When fork is off: going another way means to stand in the world as it was. A tool that is marked dangerous has effects;
    where it has no `world` to put back, every branch would run in what the others left behind. So one such tool turns fork
    off for the whole run, before it has run too: a branch could run it, and the way back to the other branches would be
    lost. A tool that is harmless (not marked) needs no world. A tool with a world is put back, dangerous or not.
    """

    door = False

    def __init__(self, agent: Agent, question: str | Run) -> None:
        self.agent = agent
        self.first = agent.begin(question)
        self.tools: list[Tool] = list(agent.tools.values())
        self.worlds = Worlds(tool.world for tool in self.tools if tool.world is not None)
        self.schema_tokens = count_tools(agent.tools.offered())
        self.start: Snapshot = ()
        asked = [entry.text for entry in self.first.log if isinstance(entry, User)]
        self.title = f"agent: {asked[-1]}" if asked else "agent"

    # ---- moments ----
    def open(self, branch: Branch) -> None:
        """The first moment: what is known of the run so far, and nothing has run."""
        for entry in self.first.log:
            if isinstance(entry, Reply):
                branch.add_bar(None, self.schema_tokens)
                self._said(branch, entry)
            branch.add(entry)
        self.start = self.worlds.keep()
        self._stand(branch, self.first, place_of(self.first), Run(), self.start)

    async def begin(self, branch: Branch) -> None:
        """Nothing has to be waited for: `open` stands at the first request already."""

    async def advance(self, branch: Branch) -> None:
        """One step from the branch's last moment."""
        moment = branch.moments[-1]
        if moment.place in ("request", "call") and moment.run.todo:
            self.worlds.put_back(moment.world)
            try:
                run = await self._next(moment.run)
            except asyncio.CancelledError:
                raise
            except KeyboardInterrupt:  # the kernel's Stop, met in this task: let out of it, it would end the kernel's loop
                self.stopped(branch, begun=True)
                return
            except (Exception, SystemExit) as error:
                self._crashed(branch, moment, error)
                return
            self._grown(branch, moment, run)
        elif moment.place in ("reply", "result", "end"):
            self._stand(branch, moment.run, place_of(moment.run), moment.run, moment.world)

    async def _next(self, run: Run) -> Run:
        steps = self.agent.steps(run)
        try:
            return await anext(steps)
        finally:
            await steps.aclose()  # type: ignore[attr-defined]  # it is an async generator

    def stopped(self, branch: Branch, begun: bool) -> None:
        """The person stopped it: what is left is the run that the agent stands at, or this one with a stop."""
        moment = branch.moments[-1]
        run = self.agent.last
        if run is None or len(run) <= len(moment.run) or run.upto(len(moment.run)) != moment.run or run.status != "interrupted":
            # What has begun and will not end must not run once more when the run is taken up.
            lost = list(moment.run.todo) if begun else []
            run = moment.run.plus(*interrupted(lost, {}))
        self._grown(branch, moment, run)

    def _grown(self, branch: Branch, before: Moment, run: Run) -> None:
        """Stand where the run is after something happened."""
        new = run.log[len(before.run) :]
        branch.add(*new)
        for entry in new:
            if isinstance(entry, Reply):
                self._said(branch, entry)
        if run.status == "interrupted":
            place: Place = "end"
        elif isinstance(new[-1], Reply):
            place = "reply"
        elif before.place == "call" and not run.held and not any(isinstance(action, Call) for action in run.todo):
            place = "result" if any(isinstance(entry, Result) for entry in new) else place_of(run)
        else:
            place = place_of(run)
        self._stand(branch, run, place, before.run, self.worlds.keep())

    def _said(self, branch: Branch, reply: Reply) -> None:
        """What the provider counted, and what was really sent where a guard shaped the request."""
        at = len(branch.bars) - 1
        if at < 0:
            return
        if reply.sent is not None and not isinstance(reply.sent.messages, Messages):
            branch.change_bar(at, **weigh(reply.sent.messages))
        if reply.usage and "prompt" in reply.usage:
            branch.change_bar(at, reported=reply.usage["prompt"])

    def _stand(self, branch: Branch, run: Run, place: Place, before: Run, world: tuple[bytes, ...]) -> None:
        new = run.log[len(before) :] if len(run) > len(before) else ()
        ask = self.agent.shaped(run) if place == "request" else None
        if isinstance(ask, Ask):
            self._bar(branch, ask)
        turn = run._mark.turn if place in ("reply", "call", "result") else run._mark.turn + (place == "request")
        branch.reach(
            Moment(
                place, max(turn, 1), len(branch.rows), len(branch.bars), run,
                status="running" if place != "end" and run.status == "interrupted" else run.status,  # taken up again
                answer=(run.answer or "") if place == "end" else "",
                says=self._says(branch, run, place) if ask is None else self._request_says(branch, ask),
                notes=tuple(note for entry in new for note in _notes(entry)),
                lamps=self._lamps(run, place),
                held=tuple(self._held(run)) if place == "call" else (),
                world=world,
                again=place == "end" and run.status == "interrupted" and bool(run.todo),
            )
        )  # fmt: skip

    def _bar(self, branch: Branch, ask: Ask) -> None:
        shaped = not isinstance(ask.messages, Messages)
        carried = self.schema_tokens if ask.tools is None or ask.tools is self.agent.tools.offered() else count_tools(ask.tools)
        branch.add_bar(weigh(ask.messages) if shaped else None, carried)

    def _crashed(self, branch: Branch, moment: Moment, error: BaseException) -> None:
        crash = crash_sentence(error)
        branch.add(crash)
        branch.rows[-1]["error"] = True
        lamps = {lamp: "done" if state == "now" else state for lamp, state in moment.lamps.items()}
        branch.reach(
            replace(
                moment, place="end", rows=len(branch.rows), status=crash, says=f"The run is over: {crash}.", held=(), lamps=lamps,
                notes=(), line=crashed_line(error), world=self.worlds.keep(),
            )
        )  # fmt: skip

    # ---- what is said about a place ----
    def _says(self, branch: Branch, run: Run, place: Place) -> str:
        match place:
            case "request":
                return ""  # said where the request is looked at
            case "reply":
                calls = [action for action in run.todo if isinstance(action, Call)]
                if calls:
                    return f"The model asks for {_names(calls)}. Step goes to the place before that runs."
                if run.todo:
                    return "The reply is no answer, and nothing in it can run. Step asks the model once more."
                if run.status == "failed":
                    return "A filter of the provider ended the reply: there is no answer. Step ends the run."
                return "The reply asks for no tool: it is the answer. Step ends the run."
            case "call":
                return self._call_says(run)
            case "result":
                if run.todo:
                    return "The model has not seen this yet. Step makes the next request, with it in the history."
                return "Step ends the run."
            case "end":
                if run.status == "interrupted" and run.todo:
                    return "The run was interrupted. Step takes it up again; Reset begins anew."
                return f"The run is over: {run.status.replace('_', ' ')}."

    def _request_says(self, branch: Branch, ask: Ask | Entry) -> str:
        if isinstance(ask, Stop):
            return f"The guard lets no further request through: {ask.why or ask.kind}. Step shows what it does instead."
        if not isinstance(ask, Ask):
            return "A guard answers in the model's place. Step shows what it says."
        bar = branch.bars[-1]
        total = sum(bar[part] for part in ("system", "user", "assistant", "tool", "tools"))
        if ask.last:
            return f"Step asks the model once more, without tools, for its best answer from what is known: {total:,} tokens."
        schemas = len(self.tools if ask.tools is None else ask.tools)
        sends = f"{many(len(ask.messages), 'message')} and {many(schemas, 'tool schema')}"
        return f"Step sends {sends} to the model: {total:,} tokens."

    def _call_says(self, run: Run) -> str:
        todo = [action for action in run.todo if isinstance(action, Call)]
        held = run.held
        if not todo:
            return f"{_names(held)} {_wait(held)} for you: approve or refuse. Without your yes nothing runs."
        waits = f" {_names(held)} still {_wait(held)} for you." if held else ""
        if len(todo) > 1:
            alone = [call for call in todo if call.name in self._alone()]
            if self.agent.width > 1 and not alone:
                how = "together" if len(todo) <= self.agent.width else f"together, at most {self.agent.width} at a time"
            else:
                one_by_one = self.agent.width <= 1 or len(alone) == len(todo)
                how = "one after another" if one_by_one else "together, save those marked alone"
            return f"Step runs {len(todo)} calls {how}: {_names(todo)}.{waits}"
        call = todo[0]
        ruling = run.ruling(call.id)
        if ruling is not None and not ruling.ok:
            return f"Step tells the model that {call.name} was refused. It is not run.{waits}"
        approved = ", as you approved" if ruling is not None else ""
        arguments = ruling.arguments if ruling is not None and ruling.arguments is not None else call.arguments
        shown = arguments if len(arguments) <= 120 else arguments[:119] + "…"
        return f"Step runs {call.name}({shown}){approved}.{waits}"

    def _alone(self) -> set[str]:
        return {tool.name for tool in self.tools if tool.alone}

    def _lamps(self, run: Run, place: Place) -> dict[str, str]:
        lamps = dict.fromkeys(LAMPS, "")
        if place == "request":
            return {**lamps, "N6": "now"}
        reply = run.log[run._mark.reply] if run._mark.reply >= 0 else None
        calls = reply.calls if isinstance(reply, Reply) else ()
        lamps["N6"] = "done"
        if place == "reply":
            lamps.update(N1="now", N5="now", **({"N2": "now", "N3": "now"} if calls else {}))
            return lamps
        lamps.update(N1="done", N5="done", **({"N2": "done", "N3": "done"} if calls else {}))
        if any(run.ruling(call.id) for call in calls):
            lamps["N7"] = "done"
        if place == "call":
            open_calls = [call for call in calls if not run.ruling(call.id) and not run.result(call.id)]
            if run.held or any(call.name in self._asks() for call in open_calls):
                lamps["N7"] = "now"
        elif place == "result":
            lamps["N4"] = "now"
        elif calls:
            lamps["N4"] = "done"
        return lamps

    def _asks(self) -> set[str]:
        """The tools before which a guard asks the person."""
        guarded = any(type(guard).__name__ == "Approve" for guard in self.agent.guards)
        return {tool.name for tool in self.tools if tool.dangerous} if guarded else set()

    def _held(self, run: Run) -> list[dict[str, Any]]:
        found = []
        for call in run.held:
            held = run.holding(call.id)
            tool = self.agent.tools.get(call.name)
            what = (tool.description.strip().partition("\n")[0] if tool is not None else "") or "Its effect is not described."
            why = f" {held.why}" if held is not None and held.why else ""
            found.append(
                {
                    "call_id": call.id,
                    "digest": held.digest if held is not None and held.digest else call.digest,
                    "name": call.name,
                    "arguments": call.arguments,
                    "effect": f"If you approve, {call.name} really runs with these arguments, once. {what}{why}",
                    **({"schema": tool.parameters} if tool is not None else {}),
                }
            )
        return found

    # ---- another way ----
    @property
    def cannot_fork(self) -> str:
        """Why no other way can be taken from here, or an empty text."""
        lost = [tool.name for tool in self.tools if tool.dangerous and tool.world is None]
        if not lost:
            return ""
        names = ", ".join(lost)
        return f"What {names} does cannot be put back: give it a world, @tool(dangerous=True, world=…), and you can fork."

    async def fork(self, branch: Branch, parent: Branch, row: int, what: str, text: str, call_id: str | None) -> str:
        """Make `branch` another way from the parent's `row`. Returns a sentence about it."""
        at = next((k for k, moment in enumerate(parent.moments) if moment.rows > row), None)
        if at is None:
            raise NotPossible(f"There is no message {row + 1} to fork from.")
        moment = parent.moments[at]
        old = parent.entries[row]
        new = edited(old, what, text, call_id)
        # The rest of the moment stays: the other results of the same turn do not hang on this one. Where a run was taken up
        # in the middle, its first moment holds several turns: what came after an edited one goes.
        after = [] if isinstance(old, Reply) else list(takewhile(lambda e: not isinstance(e, Reply), moment.run.log[row + 1 :]))
        run = moment.run.upto(row).plus(new, *after)
        whole = len(run) == len(moment.run)
        place: Place = moment.place if whole else "reply" if isinstance(new, Reply) else place_of(run)
        bars = moment.bars - (place == "request") if whole else sum(isinstance(entry, Reply) for entry in run.log)
        branch.share(parent, len(run), bars, parent.moments[:at], {row: new})
        self.worlds.put_back(moment.world)
        self._stand(branch, run, place, run.upto(row), moment.world)
        return f"A new branch begins at message {row + 1}. The one before stays as it was."

    def rule(self, branch: Branch, call_id: str, digest: str, ok: bool, why: str, arguments: str | None) -> None:
        """The person's ruling on one held call, bound to what was shown."""
        moment = branch.moments[-1]
        call = next((call for call in moment.run.held if call.id == call_id), None)
        if call is None:
            raise NotPossible("This call does not wait for a ruling any more. Nothing was run on this click.")
        held = moment.run.holding(call_id)
        if digest != (held.digest if held is not None and held.digest else call.digest):
            raise NotPossible("This call is not the one that you were shown: its arguments changed. Look at it again, then rule.")
        if ok and arguments is not None:
            try:
                parse(arguments)
            except BadArguments as error:
                raise NotPossible(f"Your arguments cannot be read, so nothing was approved. {error}") from error
        edit = arguments if ok and arguments != call.arguments else None
        run = moment.run.plus(call.ruled(ok, why, edit))
        branch.add(run.log[-1])
        self._stand(branch, run, "call", moment.run, moment.world)

    def refuse_all(self, branch: Branch, why: str) -> None:
        """No answer means no: refuse every call that waits."""
        for held in branch.moments[-1].held:
            self.rule(branch, held["call_id"], held["digest"], False, why, None)

    def close(self, branch: Branch) -> None:
        """Nothing of an agent's is left open between steps."""


def place_of(run: Run) -> Place:
    """Where a run stands when it is looked at."""
    todo = run.todo
    if todo:
        return "request" if isinstance(todo[0], Ask) else "call"
    return "call" if run.held else "end"


def edited(entry: Entry | str, what: str, text: str, call_id: str | None) -> Entry:
    """The entry with the person's text in it. What a guard did to the old text is not true of the new one."""
    match entry, what:
        case Result(), "text":
            return replace(entry, text=text, full=None, error=False, notes=())
        case ((System() | User()), "text"):
            return replace(entry, text=text)
        case Reply(), "text":
            return replace(entry, text=text, usage=None, notes=(), fault="")
        case Reply(calls=calls), "arguments":
            if not any(call.id == call_id for call in calls):
                raise NotPossible("There is no such call in this reply.")
            return replace(
                entry, usage=None, notes=(), calls=tuple(replace(c, arguments=text) if c.id == call_id else c for c in calls)
            )
    raise NotPossible("Only the text of a message or a result, and the arguments of a call, can be edited.")


def crash_sentence(error: BaseException) -> str:
    """crashed: KeyError('find_order') at line 12."""
    line = crashed_line(error)
    what = masked(repr(error))  # endpoints quote the key that they refuse
    what = what if len(what) <= 300 else what[:299] + "…"
    if type(error).__name__ == "APIConnectionError":
        what += " (the endpoint cannot be reached: check OPENAI_BASE_URL and the network)"
    return f"crashed: {what}" + (f" at line {line.lineno}" if line is not None else "")


def _notes(entry: Entry) -> Sequence[Note]:
    return getattr(entry, "notes", ())


def many(n: int, thing: str) -> str:
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def _names(calls: Sequence[Call]) -> str:
    return name_list([call.name for call in calls])


def _wait(held: Sequence[Call]) -> str:
    return "waits" if len(held) == 1 else "wait"


def name_list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
