"""A run: everything that has happened, oldest first. A value: extended by `plus`, never edited.

What must happen next (`Run.todo`) is derived from the log and stored nowhere. So to step, to step back, to fork, to resume
after a crash and to wait for a person are one thing: keep the run, extend it. Messages, status, answer and usage are views.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, overload

from .arguments import plain_text
from .records import Action, Ask, Call, Entry, Held, Reply, Result, Ruling, Stop, System, User
from .wire import message

if TYPE_CHECKING:
    from .tokens import Usage

T = TypeVar("T")
DEGRADED = {"capped", "stuck", "over_budget"}  # after these the model is asked once more, without tools (D2)
LOST = "Not completed: the run went on without this call. Outcome unknown."
ENTRIES = (System, User, Reply, Result, Held, Ruling, Stop)


class _Mark(NamedTuple):
    """What is known as of one entry, so that a step costs the same at 2,000 entries as at 2."""

    asked: int = -1  # where the last question stands
    reply: int = -1  # where the last reply stands
    replies: int = 0  # replies since the last question
    turn: int = 0  # replies in all
    stop: int = -1  # the first stop since the last question; an interruption is none, it can be resumed
    stops: int = 0
    messages: int = 0  # how many there are on the wire
    calls: int = 0  # calls since the last question


class _Trunk:
    """The list that runs of one history share. Entries are only ever added at its end; a fork copies what it keeps."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.marks: list[_Mark] = []
        self.wire: list[dict[str, Any]] = []  # the messages in order; copies are handed out, never these
        self.settled = -1  # the last reply whose results have been placed among the messages
        # Call id -> where in the entries. An id that comes again in a later turn means the later call from then on.
        self.ids: dict[str, list[int]] = {}
        self.results: dict[str, list[int]] = {}
        self.holds: dict[str, list[int]] = {}
        self.rulings: dict[str, list[int]] = {}
        self.replies: list[int] = []
        self.alike: dict[str, list[tuple[int, int]]] = {}  # digest -> (reply, place in it) of every such call
        self.sizes = [0]  # tokens of the first n messages; counted when they are asked for
        self.costs = [0]  # tokens of the first n requests and replies; likewise

    def add(self, entry: Entry) -> None:
        at = len(self.entries)
        mark = self.marks[-1] if self.marks else _Mark()
        match entry:
            case System():
                self.wire.append(message(entry))
            case User():
                self._settle(mark)
                mark = mark._replace(asked=at, replies=0, stop=-1, stops=0, calls=0)
                self.wire.append(message(entry))
            case Reply():
                self._settle(mark)
                for call_id in dict.fromkeys(call.id for call in entry.calls):
                    self.ids.setdefault(call_id, []).append(at)
                calls = mark.calls + len(entry.calls)
                mark = mark._replace(reply=at, replies=mark.replies + 1, turn=mark.turn + 1, calls=calls)
                self.replies.append(at)
                for k, call in enumerate(entry.calls):
                    self.alike.setdefault(call.digest, []).append((at, k))
                if entry.calls or entry.text.strip():  # an empty message is refused by endpoints: it is not sent
                    self.wire.append(message(entry))
                if entry.fault:
                    self.wire.append(message(User(entry.fault)))
            case Result():
                self.results.setdefault(entry.call_id, []).append(at)
            case Held():
                self.holds.setdefault(entry.call_id, []).append(at)
            case Ruling():
                self.rulings.setdefault(entry.call_id, []).append(at)
            case Stop() if entry.kind != "interrupted":
                self._settle(mark)
                if entry.kind in DEGRADED and not mark.stops:
                    self.wire.append(message(entry))
                mark = mark._replace(stop=at if mark.stop < 0 else mark.stop, stops=mark.stops + 1)
        self.entries.append(entry)
        if isinstance(entry, Result):
            self._settle(mark, only_whole=True)
        self.marks.append(mark._replace(messages=len(self.wire)))

    def _settle(self, mark: _Mark, only_whole: bool = False) -> None:
        """Place the results of the last turn, in call order. A call that never got one gets one made up (never sent alone)."""
        if mark.reply <= self.settled:
            return
        calls = cast(Reply, self.entries[mark.reply]).calls
        found = [first_after(mark.reply, self.results.get(call.id, [])) for call in calls]
        if only_whole and None in found:
            return
        self.settled = mark.reply
        for call, at in zip(calls, found, strict=True):
            self.wire.append(message(Result(call.id, LOST, error=True) if at is None else cast(Result, self.entries[at])))


def first_after(start: int, places: list[int]) -> int | None:
    """The first of `places` (sorted) beyond `start`."""
    k = bisect_right(places, start)
    return places[k] if k < len(places) else None


class Log(Sequence[Entry]):
    """The entries of a run, oldest first: reads like a tuple, costs nothing to make."""

    __slots__ = ("_entries", "_n")

    def __init__(self, entries: list[Entry], n: int) -> None:
        self._entries, self._n = entries, n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, at: int | slice) -> Entry | tuple[Entry, ...]:
        if isinstance(at, slice):
            return tuple(self._entries[i] for i in range(*at.indices(self._n)))
        where = at + self._n if at < 0 else at
        if not 0 <= where < self._n:
            raise IndexError(f"the log has {self._n} entries; there is no entry {at}")
        return self._entries[where]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Log | tuple | list):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class Messages(Sequence[dict[str, Any]]):
    """Wire messages, made when they are looked at: a new dict each time, so that nobody can change the history."""

    __slots__ = ("_n", "trunk")

    def __init__(self, trunk: _Trunk, n: int) -> None:
        self.trunk, self._n = trunk, n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(self._n))]
        where = at + self._n if at < 0 else at
        if not 0 <= where < self._n:
            raise IndexError(f"there are {self._n} messages; there is no message {at}")
        return _copied(self.trunk.wire[where])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(_copied, islice(self.trunk.wire, self._n))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Messages | list | tuple):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal to lists, so no hash

    def __deepcopy__(self, memo: dict[int, Any]) -> list[dict[str, Any]]:
        return list(self)

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[dict[str, Any]]]]:
        return list, (list(self),)

    def __repr__(self) -> str:
        return repr(list(self))


class Run:
    """Everything that has happened, oldest first. A value: extended by `plus`, never edited."""

    __slots__ = ("_n", "_trunk")

    def __init__(self, log: Iterable[Entry] = ()) -> None:
        self._trunk, self._n = _Trunk(), 0
        if not isinstance(log, Iterable):
            raise TypeError(
                f'A run is made of a list of entries, not {type(log).__name__}. Write Run.start("…"), or [ ] around it.'
            )
        for entry in log:
            self._trunk.add(_checked(entry))
            self._n += 1

    @classmethod
    def start(cls, question: str, system: str = "") -> Run:
        """A run in which nothing has happened but the question. Raises ValueError when it is empty, TypeError when no text."""
        for name, text in (("question", question), ("system", system)):
            if not isinstance(text, str | None):
                raise TypeError(f"The {name} must be text, not {type(text).__name__} ({text!r:.60}).")
        if not question or not question.strip():
            raise ValueError('The question is empty. Ask something, for example agent.run("Where is order 1042?").')
        return cls([System(system), User(question)] if system else [User(question)])

    # ---- extend ----
    def plus(self, *entries: Entry) -> Run:
        """This run and what happened next. The old one stays as it was: two extensions of one run are a fork."""
        trunk = self._trunk if len(self._trunk.entries) == self._n else self.upto(self._n, copy=True)._trunk
        for entry in entries:
            trunk.add(_checked(entry))
        return _view(trunk, self._n + len(entries))

    def upto(self, n: int, copy: bool = False) -> Run:
        """The run as of its first `n` entries."""
        if not isinstance(n, int) or not 0 <= n <= self._n:
            raise IndexError(f"The log has {self._n} entries; there is no point {n!r:.60} in it.")
        return Run(self._trunk.entries[:n]) if copy else _view(self._trunk, n)

    # ---- read ----
    @property
    def log(self) -> Log:
        return Log(self._trunk.entries, self._n)

    def of(self, kind: type[T]) -> list[T]:
        """All entries of one kind."""
        return [entry for entry in self.log if isinstance(entry, kind)]

    @property
    def _mark(self) -> _Mark:
        return self._trunk.marks[self._n - 1] if self._n else _Mark()

    @property
    def requests(self) -> int:
        """How many replies the model has given since the last question."""
        return self._mark.replies

    @property
    def stop(self) -> Stop | None:
        """What ended the run, if anything did since the last question."""
        mark = self._mark
        if mark.stop >= 0:
            return cast(Stop, self._trunk.entries[mark.stop])
        return cast(Stop, self.log[-1]) if self._interrupted else None

    @property
    def _interrupted(self) -> bool:
        """Whether an interruption stands last. Of a run that was over, or only waits for a person, it ended nothing."""
        last = self._trunk.entries[self._n - 1] if self._n else None
        if not isinstance(last, Stop) or last.kind != "interrupted":
            return False
        return bool(self.todo) or self._mark.reply <= self._mark.asked

    def named(self, reply: Reply) -> Reply:
        """`reply` with an id of its own for each call: not empty, and not one that a call before it has."""
        calls: list[Call] = []
        turn, taken = self._mark.turn, set[str]()
        for k, call in enumerate(reply.calls):
            wanted = plain_text(call.id)
            others = (f"{wanted[:40]}_{turn}_{k}" + f"_{n}" * (n > 0) for n in count())
            fresh = wanted or f"call_{turn}_{k}"
            while fresh in taken or self.call(fresh):
                fresh = next(others)
            taken.add(fresh)
            calls.append(call if fresh == call.id else replace(call, id=fresh))
        return replace(reply, calls=tuple(calls)) if calls else reply

    def call(self, call_id: str) -> Call | None:
        """The call of this id, as the model wrote it."""
        at = self._asked(call_id)
        calls = cast(Reply, self._trunk.entries[at]).calls if at >= 0 else ()
        return next((call for call in calls if call.id == call_id), None)

    def result(self, call_id: str) -> Result | None:
        """What the call came to, if it has."""
        at = first_after(self._asked(call_id), self._trunk.results.get(call_id, []))
        return cast(Result, self._trunk.entries[at]) if at is not None and at < self._n else None

    def ruling(self, call_id: str) -> Ruling | None:
        """The person's ruling on the call as it was last held, if there is one."""
        at = self._last(self._trunk.rulings, call_id)
        before = max(self._last(self._trunk.holds, call_id), self._asked(call_id))
        return cast(Ruling, self._trunk.entries[at]) if at > before else None

    def holding(self, call_id: str) -> Held | None:
        """The entry by which the call waits now, if it does."""
        at = self._last(self._trunk.holds, call_id)
        before = max(self._last(self._trunk.rulings, call_id), self._asked(call_id))
        return cast(Held, self._trunk.entries[at]) if at > before else None

    def _asked(self, call_id: str) -> int:
        return self._last(self._trunk.ids, call_id)

    def _last(self, index: dict[str, list[int]], call_id: str) -> int:
        found = index.get(call_id, [])
        at = bisect_left(found, self._n)
        return found[at - 1] if at else -1

    def earlier(self, call: Call) -> tuple[list[int], str | None]:
        """Where the same call was asked for since the last question: the numbers of the turns before its own, and the id of
        an equal sibling before it in its own turn."""
        mark, entries = self._mark, self._trunk.entries
        alike = self._trunk.alike.get(call.digest, [])
        own = cast(Reply, entries[mark.reply]).calls if mark.reply >= 0 else ()
        place = next((k for k, other in enumerate(own) if other.id == call.id), len(own))
        since = [at for at, _ in alike[bisect_left(alike, (mark.asked, 0)) : bisect_left(alike, (mark.reply, 0))]]
        sibling = next((own[k].id for at, k in alike if at == mark.reply and k < place), None) if place < len(own) else None
        return [self._trunk.marks[at].replies for at in dict.fromkeys(since)], sibling

    def turns(self, n: int) -> list[Reply]:
        """The last `n` replies since the question, oldest first."""
        end = bisect_left(self._trunk.replies, self._n)
        return [cast(Reply, self._trunk.entries[at]) for at in self._trunk.replies[max(0, end - min(n, self.requests)) : end]]

    @property
    def _open(self) -> list[Call]:
        """Calls of the last reply that have no result yet."""
        mark = self._mark
        if mark.reply <= mark.asked or mark.stop >= 0:
            return []
        return [call for call in cast(Reply, self._trunk.entries[mark.reply]).calls if self.result(call.id) is None]

    @property
    def held(self) -> list[Call]:
        """The calls that wait for a person, as they would run."""
        return [held.call or call for call in self._open if (held := self.holding(call.id))]

    @property
    def todo(self) -> list[Action]:
        """What must happen next, derived from the log: one `Ask`, or the open calls of the last turn. Empty when the run is
        finished or waits for a person."""
        mark = self._mark
        if mark.asked < 0:
            return []
        if mark.stop >= 0:
            said = mark.reply > mark.stop
            degraded = cast(Stop, self._trunk.entries[mark.stop]).kind in DEGRADED
            return [] if said or mark.stops > 1 or not degraded else [self._ask(last=True)]
        if opened := self._open:
            return [call for call in opened if not self.holding(call.id)]
        last = self._trunk.entries[mark.reply] if mark.reply > mark.asked else None
        return [] if isinstance(last, Reply) and (last.final or last.declined) else [self._ask()]

    def _ask(self, last: bool = False) -> Ask:
        mark = self._mark
        return Ask(Messages(self._trunk, mark.messages), last=last, turn=mark.turn)

    @property
    def status(self) -> str:
        """running, waiting, answered, capped, stuck, over_budget, failed (a reply that a filter ended, too) or interrupted."""
        if self._interrupted:
            return "interrupted"
        if self.todo:
            return "running"
        if self.held:
            return "waiting"
        stop = self.stop
        if stop or self._mark.reply <= self._mark.asked:
            return stop.kind if stop else "running"
        return "failed" if cast(Reply, self._trunk.entries[self._mark.reply]).declined else "answered"

    @property
    def answer(self) -> str | None:
        """What the person gets: the model's last word; where a stopped run has none, what was found so far (D2).
        None while the run goes on."""
        if self.status in ("running", "waiting", "interrupted"):
            return None
        mark = self._mark
        word = cast(Reply, self._trunk.entries[mark.reply]).text if mark.reply > max(mark.asked, mark.stop) else ""
        if not word.strip() and not self.stop:
            return "There is no answer: a filter of the provider ended the reply."
        return word if word.strip() or not self.stop else self._found_so_far(self.stop)

    def _found_so_far(self, stop: Stop) -> str:
        entries = self.log[self._mark.asked + 1 :]
        names = {call.id: call.name for entry in entries if isinstance(entry, Reply) for call in entry.calls}
        said = [entry.text for entry in entries if isinstance(entry, Reply) and entry.text.strip() and not entry.fault][-1:]
        found = [
            f"- {names.get(r.call_id, r.call_id)}: {r.text[:300]}" for r in entries if isinstance(r, Result) and not r.error
        ][-5:]
        known = said + (["Found so far:", *found] if found else [])
        return "\n".join([f"There is no final answer: {stop.why or stop.kind}.", *(known or ["Nothing was found before that."])])

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The whole history as wire messages, results in call order; new dicts each time."""
        ready = [self.result(call.id) for call in cast(Reply, self._trunk.entries[self._mark.reply]).calls] if self._open else []
        return [*Messages(self._trunk, self._mark.messages), *(message(result) for result in ready if result)]

    @property
    def carried(self) -> int:
        """Tokens of the history as the next request carries it, counted here."""
        from .tokens import size_of

        return size_of(self._trunk, self._mark.messages)

    @property
    def carried_before(self) -> int:
        """The same of the request before it, 0 for the first since the question."""
        from .tokens import size_of

        mark = self._mark
        return size_of(self._trunk, self._trunk.marks[mark.reply - 1].messages) if mark.reply > mark.asked else 0

    @property
    def spent(self) -> int:
        """Tokens of all requests and replies since the last question: the provider's counts, else counted here."""
        from .tokens import cost_of

        return cost_of(self._trunk, self._mark.turn) - cost_of(self._trunk, self._mark.turn - self._mark.replies)

    def place(self, call_id: str) -> tuple[int, int]:
        """How many calls came before the turn of this one since the question, and how many before it in its turn."""
        mark = self._mark
        calls = cast(Reply, self._trunk.entries[mark.reply]).calls if mark.reply >= 0 else ()
        return mark.calls - len(calls), next((k for k, call in enumerate(calls) if call.id == call_id), 0)

    @property
    def usage(self) -> Usage:
        """Tokens so far: the provider's counts where it gave them, else counted here and marked as an estimate."""
        from .tokens import usage_of

        return usage_of(self)

    def __len__(self) -> int:
        return self._n

    def __eq__(self, other: object) -> bool:
        return self.log == other.log if isinstance(other, Run) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.log)

    def __repr__(self) -> str:
        return f"<Run: {self.status}, {self.requests} requests, {self._n} entries>"


def _copied(sent: dict[str, Any]) -> dict[str, Any]:
    """A message that its owner may change."""
    if "tool_calls" in sent:
        return {**sent, "tool_calls": [{**call, "function": {**call["function"]}} for call in sent["tool_calls"]]}
    return {**sent}


def _view(trunk: _Trunk, n: int) -> Run:
    run = Run.__new__(Run)
    run._trunk, run._n = trunk, n
    return run


def _checked(entry: Entry) -> Entry:
    if not isinstance(entry, ENTRIES):
        raise TypeError(
            f"A log holds entries such as Result or Stop, not {type(entry).__name__} ({entry!r:.80}). "
            "A guard must return what `act` returned, or an entry of its own."
        )
    return entry
