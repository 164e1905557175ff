"""The guards, one section each: what breaks without it, what it says, and what gets past it (C to I of the lessons)."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from agentlab import (
    Agent,
    Approve,
    Call,
    Cap,
    Held,
    Isolate,
    Repeats,
    Reply,
    Result,
    Ruling,
    Run,
    Stop,
    Timeout,
    Truncate,
    Validate,
    climb,
    guarded,
    lint,
    models,
    perform,
    steps,
    tool,
)
from agentlab.guards import ANNOUNCED, EMPTY
from agentlab.loop import SECONDS_TO_LET_GO
from agentlab.perform import BEGUN_BEFORE
from agentlab.records import Action, Entry
from agentlab.truncation import whole_graphemes


def turn(*names: str) -> dict[str, Any]:
    return models.calls(*((name, {}) for name in names))


async def result_of(tools: Any, completion: Any, guards: Any = None, width: int = 8, **about: Any) -> Result:
    """The first result of a run of one turn."""
    agent = Agent(models.scripted([completion, "done"]), tools, climb() if guards is None else guards, width, **about)
    run = await agent.run("q")
    assert run.status == "answered"
    assert lint(run.messages) == []
    return run.of(Result)[0]


# ---- isolate: C1 to C5 ----
class Rude(BaseException):
    """No Exception, so `except Exception` does not see it."""


class Unsayable(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("no message for you")


RAISED = [
    ValueError("no"),
    KeyError("k"),
    StopIteration(7),
    StopAsyncIteration(),
    SystemExit(3),
    GeneratorExit(),
    asyncio.CancelledError(),
    Rude("rude"),
    Unsayable(),
    TimeoutError("dns"),
    RecursionError(),
    MemoryError(),
    AssertionError(),
    ExceptionGroup("g", [ValueError()]),
]


@pytest.mark.parametrize("guards", [climb(), climb("isolate"), climb("width")], ids=["all", "isolate", "width"])
@pytest.mark.parametrize("how", ["sync", "async", "coroutine", "generator", "async generator"])
@pytest.mark.parametrize("error", RAISED, ids=lambda e: type(e).__name__)
async def test_nothing_that_a_tool_raises_leaves_the_loop(error: BaseException, how: str, guards: Any) -> None:
    """C1, EX01, EX04, EX06: sync and async, with and without a time limit, at widths 1 and 4, and its siblings keep theirs."""

    def sync() -> str:
        raise error

    async def later() -> str:
        await asyncio.sleep(0)
        raise error

    def generator() -> Any:
        yield 1
        raise error

    async def async_generator() -> Any:
        yield 1
        raise error

    bad = {"sync": sync, "async": later, "coroutine": lambda: later(), "generator": generator, "async generator": async_generator}
    tools = [tool(bad[how], name="bad"), tool(lambda: "fine", name="good")]
    for width in (1, 4):
        agent = Agent(models.scripted([turn("bad", "good"), "handled"]), tools, guards, width)
        run = await agent.run("q")
        first, second = run.of(Result)
        assert (first.error, second.text, run.answer) == (True, "fine", "handled")
        assert type(error).__name__ in first.text or "cancelled" in first.text or "Runtime" in first.text
        assert first.notes[0].guard == "Isolate"


@pytest.mark.parametrize(
    ("completion", "says"),
    [
        (models.call("serch"), "There is no tool 'serch'. Available tools: search, count. Did you mean search?"),
        (models.call(""), "The tool name was empty. Available tools: search, count."),
        (models.call("search"), "Missing required parameter 'keyword' (string: words to look for) of search."),
        (models.call("search", keyword="x", page=2), "search has no parameter 'page'. Its parameters are: keyword, limit."),
        (models.call("search", keyword="x", Limit=2), "Did you mean 'limit'?"),
        (models.calls(("search", "{broken")), "not valid JSON"),
        (models.call("count"), "count failed: ZeroDivisionError: division by zero. Change the arguments if they are the reason"),
    ],
)
@pytest.mark.parametrize("guards", [climb(), climb("isolate")], ids=["all", "isolate"])
async def test_an_error_says_what_happened_and_what_to_do(completion: Any, says: str, guards: Any) -> None:
    """C2, C3, C4"""

    @tool
    def search(keyword: str, limit: int = 5) -> str:
        """Search.

        Args:
            keyword: words to look for
        """
        return keyword

    @tool
    def count() -> float:
        return 1 / 0

    result = await result_of([search, count], completion, guards)
    assert result.error
    assert says in result.text


async def test_only_harmless_tools_are_named_as_others() -> None:
    """Told to take another tool, a small model took any, writes too (shared/evidence, B)."""

    @tool(dangerous=True)
    def refund() -> str:
        return ""

    @tool
    def look() -> str:
        return ""

    @tool
    def broken() -> str:
        raise ValueError

    result = await result_of([refund, look, broken], models.call("broken"))
    assert "or use another tool (look)" in result.text
    assert "refund" not in result.text


async def test_a_model_out_of_reach_ends_the_run_politely() -> None:
    """PB05: never recorded as a success, and what was found stays."""
    run = await Agent(models.scripted([models.call("t"), TimeoutError("no answer")]), {"t": lambda: "T"}).run("q")
    assert run.status == "failed"
    assert run.stop is not None
    assert "TimeoutError: no answer" in run.stop.why
    assert run.answer is not None
    assert "- t: T" in run.answer


@pytest.mark.parametrize("blank", ["", " \n", {"content": None}, {"content": "", "tool_calls": []}])
async def test_a_blank_reply_is_no_answer(blank: Any) -> None:
    """The model is told and has another try; blank three times in a row, the run is stuck and says so."""
    run = await Agent(models.scripted([blank, "at last"])).run("q")
    assert (run.status, run.answer) == ("answered", "at last")
    assert [message["role"] for message in run.messages] == ["user", "user", "assistant"]
    assert run.messages[1]["content"] == EMPTY
    run = await Agent(models.scripted([blank] * 4)).run("q")
    assert (run.status, run.requests) == ("stuck", 4)
    assert run.answer is not None
    assert "empty reply, 3 times in a row" in run.answer
    assert lint(run.messages) == []


async def test_a_reply_that_was_cut_before_its_first_word_is_not_asked_for_again() -> None:
    """AT08: asked the same, it would run into its limit again."""
    cut = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    run = await Agent(models.scripted([cut, "at last"])).run("q")
    assert (run.status, run.answer) == ("stuck", "at last")
    assert [type(e).__name__ for e in run.log] == ["User", "Reply", "Stop", "Reply"]


async def test_what_is_no_answer_is_never_given_as_one() -> None:
    """MS06 and its kind: three replies of no use in a row, and the model is asked once more without tools."""

    def look() -> str:
        """Look."""
        return "seen"

    written = '{"name": "look", "arguments": {}}'
    run = await Agent(models.scripted([written, written, written, "It is there."]), [look]).run("q")
    assert (run.status, run.answer) == ("stuck", "It is there.")
    run = await Agent(models.scripted([written] * 4), [look]).run("q")
    assert run.stop is not None
    assert "neither an answer nor a call" in run.stop.why
    assert lint(run.messages) == []
    announced = {"choices": [{"message": {"content": "First I look.", "tool_calls": []}, "finish_reason": "tool_calls"}]}
    run = await Agent(models.scripted([announced, models.call("look"), "Seen."]), [look]).run("q")
    assert run.answer == "Seen."
    assert run.messages[2] == {"role": "user", "content": ANNOUNCED}


async def test_a_filtered_reply_ends_the_run_and_runs_nothing() -> None:
    """MS08. Statuses are the contract's: a reply that was taken away is no answer, so the run failed; its text is kept."""

    def wipe() -> str:
        """Wipe."""
        raise AssertionError("it ran")

    for text, said in (("I can't help with that.", "I can't help with that."), (None, "There is no answer: a filter")):
        reply = models.call("wipe")
        reply["choices"][0]["finish_reason"] = "content_filter"
        reply["choices"][0]["message"]["content"] = text
        run = await Agent(models.scripted([reply]), [wipe]).run("q")
        assert (run.status, run.requests, run.of(Result)) == ("failed", 1, [])
        assert (run.answer or "").startswith(said)
    refusal = {"role": "assistant", "content": None, "refusal": "No, sorry."}
    run = await Agent(models.scripted([refusal])).run("q")
    assert (run.status, run.answer) == ("answered", "No, sorry.")  # the model's own word is an answer


# ---- cap: D1, D2 ----
@pytest.mark.parametrize("cap", [1, 2, 5])
async def test_at_the_cap_the_model_is_asked_once_more_without_tools(cap: int) -> None:
    requests: list[Any] = []

    def never_stops(request: Any) -> Any:
        requests.append((len(request["messages"]), len(request["tools"]), request["messages"][-1]["content"]))
        return models.call("t", n=len(requests)) if request["tools"] else "the best that is known"

    @tool
    def t(n: int) -> int:
        return n

    run = await Agent(models.scripted(never_stops), [t], climb(cap=Cap(cap))).run("q")
    assert (run.status, run.answer, len(requests)) == ("capped", "the best that is known", cap + 1)
    assert "You have no tools now" in requests[-1][2]
    assert run.stop is not None
    assert run.stop.notes[0].guard == "Cap"


async def test_calls_in_the_last_reply_are_dropped() -> None:
    """LC09, and a dangerous call there runs no more than any other."""
    ran: list[int] = []

    @tool(dangerous=True)
    def refund(n: int) -> None:
        ran.append(n)

    script = [models.call("refund", n=1), models.call("refund", n=2)]
    run = await Agent(
        models.scripted(script), [refund], climb(cap=Cap(1)), ask=lambda run, call: call.ruled(call.args["n"] == 2)
    ).run("q")
    assert (run.status, ran) == ("capped", [])
    assert run.of(Reply)[-1].calls == ()
    assert lint(run.messages) == []
    assert run.answer is not None
    assert "cap of 1 request is reached" in run.answer


async def test_a_new_question_has_a_cap_of_its_own() -> None:
    agent = Agent(models.scripted(["one", "two"]), [], climb(cap=Cap(1)))
    from agentlab import User

    run = await agent.run((await agent.run("q")).plus(User("and?")))
    assert (run.status, run.answer) == ("answered", "two")


# ---- repeats: D3, D4 ----
async def test_an_equal_call_is_blocked_after_the_limit_with_its_evidence() -> None:
    """D3: key order and spelling of the JSON do not matter; a re-check within the limit runs."""
    ran: list[str] = []

    @tool
    def look(a: int, b: int) -> str:
        ran.append(f"{a}{b}")
        return "same"

    raw = ['{"a": 1, "b": 2}', '{"b":2,"a":1}', '```json\n{"a":1,"b":2,}\n```']
    script = [models.calls(("look", text)) for text in raw] + ["done"]
    run = await Agent(models.scripted(script), [look, tool(lambda: "x", name="other")]).run("q")
    assert ran == ["12", "12"]
    blocked = run.of(Result)[2]
    assert blocked.error
    assert 'Repeated call blocked: look({"a":1,"b":2}) was not run' in blocked.text
    assert "turns 1, 2" in blocked.text
    assert "other" in blocked.text


async def test_a_limit_of_one_lets_the_first_call_run() -> None:
    """LC12"""
    ran: list[int] = []
    script = [models.call("t"), models.call("t"), "done"]
    await Agent(models.scripted(script), {"t": lambda: ran.append(1)}, climb(repeats=Repeats(1))).run("q")
    assert ran == [1]


async def test_equal_siblings_run_once_and_each_id_gets_a_result() -> None:
    """IP04, IP05: nine copies of one call in one reply."""
    ran: list[int] = []
    run = await Agent(models.scripted([turn(*["t"] * 9), "done"]), {"t": lambda: ran.append(1)}).run("q")
    assert (len(ran), len(run.of(Result))) == (1, 9)
    assert run.status == "answered"


@pytest.mark.parametrize("period", range(1, 9))
async def test_circles_of_every_length_up_to_eight_end_as_stuck(period: int) -> None:
    """D4, LC04: the circle is named."""
    requests = 0

    def circle(request: Any) -> Any:
        nonlocal requests
        requests += 1
        return models.call("t", n=(requests - 1) % period) if request["tools"] else "what I have"

    @tool
    def t(n: int) -> int:
        return n

    run = await Agent(models.scripted(circle), [t], climb(cap=Cap(100))).run("q")
    assert (run.status, run.answer) == ("stuck", "what I have")
    assert requests == 2 * period + 3
    assert run.stop is not None
    assert f"circle of {period}" in run.stop.why


async def test_what_is_meant_to_be_polled_may_be_polled() -> None:
    """LC04: input-only comparison stops legitimate polling."""
    state = iter(["busy", "busy", "busy", "busy", "ready"])

    @tool(repeatable=True)
    def poll() -> str:
        return next(state)

    run = await Agent(models.scripted([models.call("poll")] * 5 + ["ready"]), [poll]).run("q")
    assert [r.text for r in run.of(Result)][-1] == "ready"
    assert not any(r.error for r in run.of(Result))


async def test_a_new_question_may_ask_for_the_same_again() -> None:
    from agentlab import User

    ran: list[int] = []
    agent = Agent(
        models.scripted([models.call("t"), "a", models.call("t"), "b"]), {"t": lambda: ran.append(1)}, climb(repeats=Repeats(1))
    )
    await agent.run((await agent.run("q")).plus(User("again")))
    assert ran == [1, 1]


async def test_calls_of_tools_that_do_not_exist_count_as_repeats_too() -> None:
    """LC13"""
    run = await Agent(models.scripted(lambda r: models.call("no_such") if r["tools"] else "sorry"), {"t": lambda: 1}).run("q")
    assert run.status == "stuck"


# ---- truncate: F1, F2, F5 ----
def paged(text: Any, *parameters: str) -> Any:
    properties = {name: {"type": "integer"} for name in parameters}
    return tool(lambda **_: text, name="t", parameters={"type": "object", "properties": properties})


async def test_a_long_result_is_cut_said_to_be_and_kept_whole() -> None:
    text = "line of text\n" * 1_000
    result = await result_of([paged(text)], models.call("t"))
    assert len(result.text) <= 2_000
    assert "13,000 characters shown" in result.text
    assert "The same call gives the same cut" in result.text
    assert result.full == text
    assert [note.guard for note in result.notes] == ["Truncate"]
    assert not result.error


@pytest.mark.parametrize(
    ("parameters", "given", "says"),
    [
        (("offset",), {}, 't({"offset": 20})'),
        (("offset",), {"offset": 20}, 't({"offset": 40})'),
        (("offset", "page"), {}, 't({"offset": 20})'),
        (("page",), {}, 't({"page": 2})'),
        (("page",), {"page": 2}, 't({"page": 3})'),
        (("page",), {"page": "2"}, 't({"page": 3})'),
        (("limit",), {}, 't({"limit": 20})'),
        (("limit",), {"limit": 100}, 't({"limit": 20})'),
        (("city",), {}, "call t again with narrower arguments (city)"),
        ((), {}, "Work with this part"),
    ],
)
async def test_the_notice_prints_the_literal_next_call(parameters: Any, given: Any, says: str) -> None:
    """Evidence: told the literal next call, a small model made it 16 of 16 times."""
    rows = [{"row": i, "text": "x" * 40} for i in range(60)]
    result = await result_of([paged(rows, *parameters)], models.call("t", **given), [Truncate(2_000), Isolate()])
    assert says in result.text
    assert "20 of 60 rows" in result.text
    assert len(json.loads(result.text.split("\n[cut")[0])) == 20
    assert result.text.startswith('[{"row": 0')


async def test_a_next_call_too_long_to_print_is_said_in_words() -> None:
    result = await result_of([paged("x" * 5_000, "page")], models.call("t", page=1, q="y" * 400), [Truncate(), Isolate()])
    assert "call t with the same arguments and page=2" in result.text


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 40, 80, 200, 400, 1_000])
@pytest.mark.parametrize(
    "text",
    [
        "x" * 5_000,
        "👩‍👩‍👧‍👦" * 700,
        "🇩🇪" * 2_500,
        "e\u0301" * 2_500,
        json.dumps([{"a": "y" * 30}] * 90),
        "a\r\n" * 1_700,
        "[" + "1" * 5_000,
    ],
)
async def test_every_limit_is_kept_and_no_sign_is_cut(text: str, limit: int) -> None:
    """UT09: at a limit too small for the notice, a shorter one."""
    result = await result_of([paged(text, "page")], models.call("t"), [Truncate(limit), Isolate()])
    assert len(result.text) <= limit
    assert "…" in result.text or "[cut" in result.text
    kept = result.text.split("\n[cut")[0].rstrip("…")
    assert kept == "" or text.startswith(kept) or kept.startswith("[{")
    if text.startswith(kept):
        assert len(kept) in {0, len(text), *(match.end() for match in regex.finditer(r"\X", text))} or kept.endswith("a")


@given(st.text(st.sampled_from("a\n\r👩\u200d👧🇩🇪e\u0301각ᄀ"), max_size=60), st.integers(0, 70))
@settings(deadline=None)
def test_whole_graphemes_ends_where_a_sign_ends(text: str, chars: int) -> None:
    kept = whole_graphemes(text, chars)
    ends = [0, *(match.end() for match in regex.finditer(r"\X", text))]
    assert text.startswith(kept)
    assert len(kept) == max(end for end in ends if end <= chars)


def test_flags_are_pairs_however_far_in() -> None:
    flags = "🇩🇪" * 1_000
    assert [len(whole_graphemes(flags, n)) for n in (1_000, 1_001, 1_002, 1_003)] == [1_000, 1_000, 1_002, 1_002]


async def test_cutting_twice_does_not_stack() -> None:
    text = "word " * 4_000
    once = await result_of([paged(text)], models.call("t"), [Truncate(1_000), Isolate()])
    twice = await result_of([paged(text)], models.call("t"), [Truncate(1_000), Truncate(3_000), Isolate()])
    assert twice.text == once.text
    assert twice.full == text
    assert len(twice.notes) == 1


async def test_a_raised_error_of_a_million_characters_is_cut_too() -> None:
    def loud() -> str:
        raise ValueError("x" * 1_000_000)

    result = await result_of({"loud": loud}, models.call("loud"))
    assert result.error
    assert len(result.text) <= 2_000


# ---- validate: H1, H2 ----
async def test_a_wrong_argument_never_reaches_the_tool_and_an_exact_one_is_mended() -> None:
    ran: list[Any] = []

    @tool
    def order(n: int, note: str | None = None, sizes: list[int] | None = None) -> str:
        ran.append((n, note, sizes))
        return "ok"

    agent = Agent(
        models.scripted(
            [
                models.call("order", n="ten"),
                models.call("order", n=1.5),
                models.call("order", n=True),
                models.call("order", n=None),
                models.call("order", n="10", sizes="[1, 2]"),
                models.call("order", n=2.0, note="null", sizes=["3"]),
                "done",
            ]
        ),
        [order],
    )
    run = await agent.run("q")
    assert ran == [(10, None, [1, 2]), (2, "null", [3])]
    assert all("must be of type integer" in r.text for r in run.of(Result)[:4])
    assert [c.arguments for reply in run.of(Reply) for c in reply.calls][4] == '{"n": "10", "sizes": "[1, 2]"}', (
        "the log keeps what came"
    )


async def test_a_cut_reply_is_never_run_even_where_its_json_looks_whole() -> None:
    """AT06, AT07"""
    ran: list[int] = []
    for finish in ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS"):
        completion = models.call("t")
        completion["choices"][0]["finish_reason"] = finish
        for guards in (climb(), climb("isolate")):
            result = await result_of({"t": lambda: ran.append(1)}, completion, guards)
            assert "cut off at the output limit" in result.text
    assert ran == []


# ---- timeout: C6 ----
@pytest.mark.timing
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_call_that_hangs_is_left_and_its_late_result_goes_nowhere(is_async: bool) -> None:
    """C6, CT01, CT02: the outcome is unknown, which is not the same as failed."""
    free, finished = threading.Event(), threading.Event()

    def hang() -> str:
        free.wait(20)
        finished.set()
        return "too late"

    async def hang_async() -> str:
        await asyncio.sleep(20)
        return "never"

    started = asyncio.get_running_loop().time()
    tools = {"hang": hang_async if is_async else hang, "quick": lambda: "quick"}
    agent = Agent(models.scripted([turn("hang", "quick"), "went on"]), tools, climb(timeout=Timeout(0.05)))
    run = await agent.run("q")
    assert asyncio.get_running_loop().time() - started < SECONDS_TO_LET_GO
    free.set()
    if not is_async:
        await asyncio.to_thread(finished.wait, 5)
    await asyncio.sleep(0.01)
    slow, quick = run.of(Result)
    assert "gave no result within 0.05 s" in slow.text
    assert "outcome is unknown" in slow.text
    assert (quick.text, run.answer) == ("quick", "went on")


@pytest.mark.timing
async def test_the_tools_own_limit_goes_before_the_guards() -> None:
    @tool(timeout=0.02)
    async def hang() -> None:
        await asyncio.sleep(20)

    assert "within 0.02 s" in (await result_of([hang], models.call("hang"), climb(timeout=Timeout(60)))).text


async def test_a_timeout_of_the_tools_own_making_is_a_failure_like_others() -> None:
    """CT08"""

    def dns() -> str:
        raise TimeoutError("dns")

    result = await result_of({"dns": dns}, models.call("dns"))
    assert "TimeoutError: dns" in result.text
    assert "was left" not in result.text


@pytest.mark.timing
async def test_without_threads_tools_run_in_line_and_a_limit_that_was_not_held_is_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in Pyodide."""
    import time

    def no_thread(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    tools = {"slow": lambda: time.sleep(0.03) or "slow result", "stops": lambda: next(iter(())), "exits": lambda: exit(1)}
    agent = Agent(models.scripted([turn("slow", "stops", "exits"), "done"]), tools, climb(timeout=Timeout(0.01)))
    run = await agent.run("q")
    slow, stops, exits = run.of(Result)
    assert (slow.text, slow.error) == ("slow result", False)
    assert [n.guard for n in slow.notes] == ["Timeout"]
    assert "could not be held" in slow.notes[0].why
    assert stops.error
    assert "SystemExit" in exits.text


# ---- approve: I1, I2, I3 ----
class Desk:
    """A dangerous tool, and what it did."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.tool = tool(self.refund, dangerous=True)

    def refund(self, eur: int) -> str:
        """Pay money back."""
        self.paid.append(eur)
        return f"{eur} paid"

    def agent(self, *script: Any, **about: Any) -> Agent:
        about.setdefault("ask", lambda run, call: None)
        return Agent(models.scripted([*script, "done"]), [self.tool], **about)


async def ends(agent: Agent, run: Run) -> Run:
    async for later in agent.steps(run):
        run = later
    return run


async def test_a_dangerous_call_waits_and_no_answer_is_not_a_yes() -> None:
    desk = Desk()
    agent = desk.agent(models.call("refund", eur=20))
    run = await agent.run("q")
    assert (run.status, desk.paid) == ("waiting", [])
    assert run.holding(run.held[0].id).digest == run.held[0].digest  # type: ignore[union-attr]
    assert (await agent.run(run)).status == "waiting"
    call = run.held[0]
    expired = await ends(agent, run.plus(Ruling(call.id, False, expired=True)))
    assert "nobody answered in time" in expired.of(Result)[0].text
    expired = await ends(agent, run.plus(Ruling(call.id, True, expired=True)))
    refused = await ends(agent, run.plus(call.ruled(False, "too much.")))
    assert "this call was refused. Reason: too much. Do not repeat it" in refused.of(Result)[0].text
    for odd in ("no", 1, None):
        await ends(agent, run.plus(Ruling(call.id, odd)))  # type: ignore[arg-type]
    assert desk.paid == []
    assert (await ends(agent, run.plus(call.ruled(True)))).answer == "done"
    assert desk.paid == [20]


async def test_a_ruling_holds_for_exactly_the_call_that_was_shown() -> None:
    """AP03, AP06: another id, other arguments, another tool: not this call."""
    desk = Desk()
    agent = desk.agent(models.calls(("refund", {"eur": 1}), ("refund", {"eur": 900})))
    run = await agent.run("q")
    small, large = run.held
    for wrong in (
        Ruling(small.id, True, digest=large.digest),
        Ruling("call_9", True),
        Ruling(small.id, True, digest=Call("x", "other", small.arguments).digest),
    ):
        again = await ends(agent, run.plus(wrong))
        assert (again.status, desk.paid) == ("waiting", [])
    assert agent.tools
    run = await ends(agent, run.plus(small.ruled(True)))
    assert (run.status, desk.paid, run.held) == ("waiting", [1], [large])
    await ends(agent, run.plus(large.ruled(True)))
    assert desk.paid == [1, 900]


async def test_a_yes_is_spent_once_across_forks_and_again_needs_a_new_one() -> None:
    """AP01, I3: a value cannot know that another branch used its yes."""
    desk = Desk()
    agent = desk.agent(models.call("refund", eur=5))
    run = await agent.run("q")
    ruled = run.plus(run.held[0].ruled(True))
    one, other = await ends(agent, ruled), await ends(agent, ruled)
    assert desk.paid == [5]
    assert one.of(Result)[0].text == "5 paid"
    assert other.of(Result)[0].text == BEGUN_BEFORE
    await ends(agent, run.plus(run.held[0].ruled(True)))
    assert desk.paid == [5, 5]


async def test_a_person_can_change_the_arguments_and_the_model_is_told() -> None:
    """AP05, I2: they pass the schema like others."""
    desk = Desk()
    agent = desk.agent(models.call("refund", eur=20))
    run = await agent.run("q")
    call = run.held[0]
    done = await ends(agent, run.plus(call.ruled(True, arguments={"eur": "15"})))
    assert desk.paid == [15]
    assert 'A person changed the arguments from {"eur": 20} to {"eur": 15}. 15 paid' in done.of(Result)[0].text
    for wrong in ({"eur": "many"}, {"euros": 3}, "{broken", {}):
        held = await ends(agent, run.plus(call.ruled(True, arguments=wrong)))
        assert held.status == "waiting"
        assert "the edited arguments do not fit" in held.holding(call.id).why  # type: ignore[union-attr]
    assert desk.paid == [15]


@pytest.mark.parametrize("wrong", [lambda c: Ruling(c.id, True, digest="other"), lambda c: c.ruled(True, arguments={"eur": "x"})])
async def test_who_keeps_answering_wrongly_is_not_asked_for_ever(wrong: Any) -> None:
    desk = Desk()
    asked: list[str] = []

    def ask(run: Run, call: Call) -> Ruling:
        asked.append(call.id)
        return wrong(call)  # type: ignore[no-any-return]

    run = await desk.agent(models.call("refund", eur=1), ask=ask).run("q")
    assert (run.status, len(asked), desk.paid) == ("waiting", 3, [])


@pytest.mark.parametrize(
    "name",
    ["refund", " refund\n", "REFUND", "functions.refund", "tools:refund", "refund<|channel|>x", "Refund ", "reﬁnd", "re_fund"],
)
@pytest.mark.parametrize("width", [1, 4])
async def test_no_spelling_of_the_name_slips_past(name: str, width: int) -> None:
    """B6, TN03 to TN12: what resolves to the tool is held as the tool; what does not is not run."""
    desk = Desk()
    run = await desk.agent(models.calls((name, {"eur": 1}), (name, {"eur": 1})), width=width).run("q")
    assert desk.paid == []
    assert all(call.name == "refund" for call in run.held)


async def test_a_dangerous_call_does_not_run_in_duplicates_cut_replies_or_after_an_interruption() -> None:
    desk = Desk()
    asked: list[str] = []

    def yes_once(run: Run, call: Call) -> Ruling:
        asked.append(call.id)
        return call.ruled(len(asked) == 1)

    run = await desk.agent(models.calls(*[("refund", {"eur": 7})] * 5), ask=yes_once).run("q")
    assert (desk.paid, len(asked), len(run.of(Result))) == ([7], 1, 5)

    cut = models.call("refund", eur=8)
    cut["choices"][0]["finish_reason"] = "length"
    run = await desk.agent(cut, ask=lambda run, call: pytest.fail("half a call was shown to a person")).run("q")
    assert "cut off" in run.of(Result)[0].text

    agent = desk.agent(models.call("refund", eur=9))
    waiting = await agent.run("q")
    ruled = waiting.plus(
        waiting.held[0].ruled(True), Result(waiting.held[0].id, "interrupted, outcome unknown", error=True), Stop("interrupted")
    )
    await ends(agent, ruled)
    assert desk.paid == [7]


async def test_an_interrupted_turn_with_a_held_call_is_asked_about_when_it_goes_on() -> None:
    desk = Desk()
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.sleep(600)

    script = models.scripted([models.calls(("refund", {"eur": 3}), ("hang", {})), "done"])
    agent = Agent(script, [desk.tool, tool(hang)], ask=lambda run, call: True)
    task = asyncio.ensure_future(agent.run("q"))
    await begun.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert agent.last is not None
    assert (agent.last.status, desk.paid) == ("waiting", [])  # what is next is the person's word, not a request
    run = await agent.run(agent.last)
    assert (run.answer, desk.paid) == ("done", [3])
    assert lint(run.messages) == []


async def test_interrupted_while_the_person_is_asked_the_run_waits() -> None:
    desk = Desk()
    asked = asyncio.Event()

    async def ask(run: Run, call: Call) -> bool:
        asked.set()
        await asyncio.sleep(600)
        return True

    agent = desk.agent(models.call("refund", eur=1), ask=ask)
    task = asyncio.ensure_future(agent.run("q"))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert agent.last is not None
    assert (agent.last.status, desk.paid) == ("waiting", [])


async def test_an_act_of_ones_own_between_the_guards_and_perform_does_not_open_the_gate() -> None:
    """Approve cannot see there which tools are dangerous: it says so to the innermost act, which then refuses."""
    desk = Desk()
    base = perform(models.scripted([models.call("refund", eur=1), "done"]), [desk.tool])

    async def logged(run: Run, action: Action) -> Entry:
        return await base(run, action)

    run = Run.start("q")
    async for later in steps(run, guarded(logged, climb())):
        run = later
    assert desk.paid == []
    assert "the guard Approve could not see that" in run.of(Result)[0].text


async def test_held_is_what_a_guard_may_answer_too() -> None:
    async def holds(run: Run, action: Action, act: Any) -> Entry:
        if isinstance(action, Call) and run.ruling(action.id) is None:
            return Held(action.id, action.digest, "house rule")
        return await act(run, action)

    agent = Agent(models.scripted([models.call("t"), "done"]), {"t": lambda: "T"}, [holds], ask=lambda run, call: True)
    assert [type(e).__name__ for e in (await agent.run("q")).log] == ["User", "Reply", "Held", "Ruling", "Result", "Reply"]


# ---- values ----
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Cap(0),
        lambda: Cap(1.5),
        lambda: Cap(True),
        lambda: Cap("8"),
        lambda: Repeats(0),
        lambda: Repeats(2, 0),
        lambda: Truncate(0),
        lambda: Timeout(0),
        lambda: Timeout(-1),
        lambda: Timeout(float("nan")),
        lambda: Timeout("30"),
    ],
)
def test_a_guard_with_a_senseless_number_says_so(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^(Cap|Repeats|Truncate|Timeout)\(.*: give "):
        wrong()


def test_guards_are_values() -> None:
    assert Cap(3) == Cap(3) != Cap(4)
    assert len({Isolate(), Isolate(), Validate(), Approve()}) == 3
