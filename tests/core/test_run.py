"""A run is a value, and everything that is asked of it is a view of its log.

The run keeps indexes, so that a step costs the same at 2,000 entries as at 2. Here each view is compared with a slow reference
that looks at nothing but `list(run.log)`, on every prefix of every history, forks included.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentlab import Ask, Call, Held, Reply, Result, Ruling, Run, Stop, System, User, lint
from agentlab.records import Action, Entry
from agentlab.run import DEGRADED, LOST
from agentlab.wire import message

IDS = ["a", "b", "c"]


# ---- the reference ----
class Slow:
    """What a run says, worked out from the list alone."""

    def __init__(self, log: list[Entry]) -> None:
        self.log = log
        self.asked = self.last(User)
        self.reply = self.last(Reply)
        self.stops = [i for i, e in enumerate(log) if i > self.asked and isinstance(e, Stop) and e.kind != "interrupted"]

    def last(self, kind: type, call_id: str | None = None) -> int:
        places = [
            i for i, e in enumerate(self.log) if isinstance(e, kind) and (call_id is None or getattr(e, "call_id", "") == call_id)
        ]
        return places[-1] if places else -1

    def asks(self, call_id: str) -> int:
        return max((i for i, e in enumerate(self.log) if isinstance(e, Reply) and call_id in [c.id for c in e.calls]), default=-1)

    def result(self, call_id: str) -> Result | None:
        later = self.log[self.asks(call_id) + 1 :]
        return next((e for e in later if isinstance(e, Result) and e.call_id == call_id), None)

    def ruling(self, call_id: str) -> Entry | None:
        at = self.last(Ruling, call_id)
        return self.log[at] if at > max(self.last(Held, call_id), self.asks(call_id)) else None

    def holding(self, call_id: str) -> Entry | None:
        at = self.last(Held, call_id)
        return self.log[at] if at > max(self.last(Ruling, call_id), self.asks(call_id)) else None

    def open(self) -> list[Call]:
        if self.reply <= self.asked or self.stops:
            return []
        return [call for call in self.log[self.reply].calls if self.result(call.id) is None]  # type: ignore[union-attr]

    def messages(self) -> list[dict[str, Any]]:
        placed = list(self.placed())
        if self.open():
            found = [self.result(call.id) for call in self.log[self.reply].calls]  # type: ignore[union-attr]
            placed += [message(result) for result in found if result]
        return placed

    def placed(self) -> Iterator[dict[str, Any]]:
        """Each message at the entry that puts it there: the results of a turn when it is whole, or when something ends it."""
        at: dict[int, list[dict[str, Any]]] = {i: [] for i in range(len(self.log))}
        ended = False
        for i, entry in enumerate(self.log):
            if isinstance(entry, Reply):
                self.place_turn(i, entry, at)
        for i, entry in enumerate(self.log):
            if isinstance(entry, User):
                ended = False
            if isinstance(entry, System | User) or (isinstance(entry, Reply) and (entry.calls or entry.text.strip())):
                at[i].append(message(entry))
            if isinstance(entry, Stop) and entry.kind != "interrupted":
                if entry.kind in DEGRADED and not ended:
                    at[i].append(message(entry))
                ended = True
        for i in at:
            yield from at[i]

    def place_turn(self, i: int, reply: Reply, at: dict[int, list[dict[str, Any]]]) -> None:
        ends = (
            k
            for k in range(i + 1, len(self.log))
            if isinstance(e := self.log[k], User | Reply) or (isinstance(e, Stop) and e.kind != "interrupted")
        )
        end = next(ends, None)
        until = len(self.log) if end is None else end
        found = [
            next((k for k in range(i + 1, until) if isinstance(e := self.log[k], Result) and e.call_id == call.id), None)
            for call in reply.calls
        ]
        whole = [k for k in found if k is not None]
        if reply.calls and len(whole) == len(reply.calls):
            where = max(whole)
        elif end is not None:
            where = end
        else:
            return
        for call, k in zip(reply.calls, found, strict=True):
            result = Result(call.id, LOST, error=True) if k is None else self.log[k]
            at[where].append(message(result))  # type: ignore[arg-type]

    def todo(self) -> list[Action]:
        if self.asked < 0:
            return []
        turn = sum(isinstance(e, Reply) for e in self.log)
        if self.stops:
            first = self.log[self.stops[0]]
            once_more = first.kind in DEGRADED and len(self.stops) == 1 and self.reply < self.stops[0]  # type: ignore[union-attr]
            return [Ask(list(self.placed()), last=True, turn=turn)] if once_more else []
        if open_ := self.open():
            return [call for call in open_ if not self.holding(call.id)]
        said = self.log[self.reply]
        if self.reply > self.asked and isinstance(said, Reply) and said.text.strip() and not said.calls:
            return []
        return [Ask(list(self.placed()), turn=turn)]

    def status(self) -> str:
        goes_on = self.todo() or self.reply <= self.asked
        if self.log and isinstance(self.log[-1], Stop) and self.log[-1].kind == "interrupted" and goes_on:
            return "interrupted"
        if self.todo():
            return "running"
        if any(self.holding(call.id) for call in self.open()):
            return "waiting"
        if self.stops:
            return self.log[self.stops[0]].kind  # type: ignore[union-attr]
        return "answered" if self.reply > self.asked else "running"


def same_action(one: Action, other: Action) -> bool:
    if isinstance(one, Ask) and isinstance(other, Ask):
        return (list(one.messages), one.last, one.turn) == (list(other.messages), other.last, other.turn)
    return one == other


def agrees(run: Run, log: list[Entry]) -> None:
    slow = Slow(log)
    assert list(run.log) == log
    assert len(run) == len(run.log) == len(log)
    assert run.messages == slow.messages()
    todo, expected = run.todo, slow.todo()
    assert len(todo) == len(expected)
    assert all(map(same_action, todo, expected))
    assert run.status == slow.status()
    assert [call.id for call in run.held] == [call.id for call in slow.open() if slow.holding(call.id)]
    assert run.requests == sum(isinstance(e, Reply) for e in log[slow.asked + 1 :])
    for call_id in IDS:
        assert run.result(call_id) == slow.result(call_id)
        assert run.ruling(call_id) == slow.ruling(call_id)
        assert run.holding(call_id) == slow.holding(call_id)
        assert (run.call(call_id) is not None) == (slow.asks(call_id) >= 0)
    assert (run.answer is None) == (run.status in ("running", "waiting", "interrupted"))
    if run.todo and isinstance(run.todo[0], Ask):
        assert lint(run.todo[0].messages) == []


call_lists = st.lists(st.sampled_from(IDS), max_size=3, unique=True).map(
    lambda ids: tuple(Call(call_id, f"tool_{call_id}", {"n": 1}) for call_id in ids)
)
entries = st.one_of(
    st.sampled_from(["q1", "q2"]).map(User),
    st.builds(Reply, st.sampled_from(["", "said"]), call_lists),
    st.builds(Reply, st.sampled_from(["", "said"]), call_lists),
    st.builds(Result, st.sampled_from(IDS), st.sampled_from(["one", "two"])),
    st.builds(Result, st.sampled_from(IDS), st.sampled_from(["one", "two"])),
    st.builds(Held, st.sampled_from(IDS)),
    st.builds(Ruling, st.sampled_from(IDS), st.booleans()),
    st.sampled_from(["capped", "stuck", "failed", "interrupted"]).map(Stop),
)
histories = st.lists(entries, max_size=14).map(lambda log: [System("be brief"), User("q"), *log])


@given(histories, st.lists(entries, max_size=5), st.integers(0, 20))
@settings(deadline=None, max_examples=200)
def test_every_view_of_every_prefix_and_fork_is_what_the_list_says(log: list[Entry], other: list[Entry], at: int) -> None:
    """A run grown entry by entry, its earlier self, and a fork of it: none sees what the others became."""
    runs = [Run()]
    for entry in log:
        runs.append(runs[-1].plus(entry))
    at = min(at, len(log))
    fork = runs[at].plus(*other)
    for n, run in enumerate(runs):
        agrees(run, log[:n])
        agrees(runs[-1].upto(n), log[:n])
    agrees(fork, log[:at] + other)
    assert runs[at] == Run(log[:at])


# ---- as a value ----
def asked(*entries: Entry) -> Run:
    return Run([User("q"), *entries])


def test_two_extensions_of_one_run_are_a_fork() -> None:
    base = asked()
    one, other = base.plus(Reply("yes")), base.plus(Reply("no"))
    assert (base.status, one.answer, other.answer) == ("running", "yes", "no")
    assert len(base) == 1


def test_runs_compare_hash_and_travel_by_their_logs() -> None:
    run = asked(Reply("", (Call("a", "t"),)), Result("a", "x"))
    assert run == Run(list(run.log)) != asked()
    assert hash(run) == hash(Run(list(run.log)))
    assert run != "a run"
    for twin in (pickle.loads(pickle.dumps(run)), copy.deepcopy(run)):
        assert twin == run
        assert twin.messages == run.messages
    assert "running" in repr(run)


def test_nobody_can_change_the_history_through_what_is_handed_out() -> None:
    """PA13: what was recorded must not change because it was shared."""
    run = asked(Reply("", (Call("a", "t", '{"x": [1]}'),)), Result("a", "x"))
    before = copy.deepcopy(run.messages)
    run.messages.clear()
    run.messages[1]["tool_calls"][0]["function"]["name"] = "other"
    for sent in run.todo[0].messages:  # type: ignore[union-attr]
        sent["content"] = "changed"
    run.log[1].calls[0].args["x"].append(2)  # type: ignore[union-attr]
    assert run.messages == before


def test_log_and_messages_read_like_sequences() -> None:
    run = asked(Reply("hi"))
    assert run.log[-1] == Reply("hi")
    assert run.log[:1] == (User("q"),)
    assert hash(run.log) == hash(tuple(run.log))
    assert "User" in repr(run.log)
    messages = asked().todo[0].messages  # type: ignore[union-attr]
    assert messages[0] == messages[-1] == {"role": "user", "content": "q"}
    assert messages[:] == list(messages) == messages
    assert "user" in repr(messages)
    for sequence in (run.log, messages):
        with pytest.raises(IndexError, match="there"):
            sequence[9]
    with pytest.raises(IndexError, match="no point 3"):
        run.upto(3)


@pytest.mark.parametrize("bad", ["", "  ", None])
def test_an_empty_question_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="question is empty"):
        Run.start(bad)


@pytest.mark.parametrize("bad", ["text", None, {"role": "user"}, Ask()])
def test_a_log_takes_only_entries(bad: Any) -> None:
    with pytest.raises(TypeError, match="A log holds entries"):
        asked().plus(bad)
    assert asked().status == "running"


# ---- what a turn comes to ----
def test_calls_left_open_by_a_new_question_are_answered_in_the_history() -> None:
    """J5, IP07: a call never stands without its result, in call order."""
    run = asked(Reply("", (Call("a", "t"), Call("b", "t"))), Result("b", "B"), User("and now?"))
    told = [m["content"] for m in run.messages if m["role"] == "tool"]
    assert told == [LOST, "B"]
    assert lint(run.messages) == []
    assert isinstance(run.todo[0], Ask)
    late = run.plus(Result("a", "too late"))
    assert late.messages == run.messages


@pytest.mark.parametrize("kind", ["capped", "stuck", "over_budget", "failed"])
def test_a_stop_in_the_middle_of_a_turn_leaves_a_sound_history(kind: str) -> None:
    run = asked(Reply("", (Call("a", "t"), Call("b", "t"))), Result("a", "A"), Stop(kind))
    assert lint(run.messages) == []
    assert run.status == ("failed" if kind == "failed" else "running")


def test_an_id_that_comes_again_means_the_later_call() -> None:
    """IP03: ids restart from call_0 in every reply of some endpoints; the second call is no old one."""
    run = asked(
        Reply("", (Call("call_0", "t"),)), Result("call_0", "first"), Ruling("call_0", True), Reply("", (Call("call_0", "u"),))
    )
    assert run.todo == [Call("call_0", "u")]
    assert run.ruling("call_0") is None
    done = run.plus(Result("call_0", "second"))
    assert [m["content"] for m in done.messages if m["role"] == "tool"] == ["first", "second"]


def test_ids_are_made_unique_whatever_the_model_sends() -> None:
    """AP03: one id for two calls would let one yes release both. Ids can be chosen so that the mended one is taken, too."""
    long = "A" * 40
    run = asked(Reply("", (Call("x", "t"),)), Result("x", "1"))
    reply = run.named(
        Reply("", tuple(Call(i, "t") for i in ("x", "x", "", "", f"{long}_1_5", f"{long}_1_5", f"{long}_1_5", "\ud83d")))
    )
    ids = [call.id for call in reply.calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    assert "x" not in ids
    assert lint(run.plus(reply, *(Result(i, "r") for i in ids)).messages) == []


# ---- rulings ----
def test_held_ruled_and_held_again() -> None:
    call = Call("a", "t", {"n": 1})
    waiting = asked(Reply("", (call,)), Held("a", call.digest))
    assert (waiting.status, waiting.todo, waiting.held, waiting.answer) == ("waiting", [], [call], None)
    ruled = waiting.plus(call.ruled(True))
    assert (ruled.status, ruled.todo) == ("running", [call])
    again = ruled.plus(Held("a", call.digest, "the arguments do not fit"))
    assert again.status == "waiting"
    assert again.ruling("a") is None
    assert again.holding("a").why == "the arguments do not fit"  # type: ignore[union-attr]
    assert again.plus(call.ruled(False)).ruling("a").ok is False  # type: ignore[union-attr]


def test_two_held_calls_one_ruled_goes_on_with_that_one() -> None:
    """AP13"""
    calls = (Call("a", "t"), Call("b", "t"))
    run = asked(Reply("", calls), Held("a"), Held("b"), Ruling("b", True))
    assert (run.todo, run.held, run.status) == ([calls[1]], [calls[0]], "running")
    run = run.plus(Result("b", "B"))
    assert (run.todo, run.status) == ([], "waiting")


# ---- endings ----
def test_a_stopped_run_gives_what_was_found_so_far() -> None:
    """D2, LC09: never silently empty."""
    turn = Reply("Let me look.", (Call("a", "search"), Call("b", "broken")))
    run = asked(turn, Result("a", "order 7"), Result("b", "no", error=True), Stop("capped", "the cap is reached"), Stop("failed"))
    assert run.status == "capped"
    assert run.answer == "There is no final answer: the cap is reached.\nLet me look.\nFound so far:\n- search: order 7"
    assert asked(Stop("failed", "no model")).answer == "There is no final answer: no model.\nNothing was found before that."


def test_an_empty_reply_is_not_sent_and_an_interruption_can_be_resumed() -> None:
    """HV15"""
    assert [m["role"] for m in asked(Reply("")).messages] == ["user"]
    run = asked(Stop("interrupted"))
    assert (run.status, run.answer) == ("interrupted", None)
    assert isinstance(run.todo[0], Ask)
    assert run.plus(Reply("after all")).answer == "after all"


def test_an_empty_run_asks_nobody() -> None:
    assert (Run().todo, Run().status, Run().messages, len(Run().log)) == ([], "running", [], 0)
    assert Run([Stop("capped")]).todo == []
