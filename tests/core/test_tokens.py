"""J6: count with the real vocabulary, offline, and say what is exact and what is an estimate."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab import Agent, Reply, Run, System, User, models, tokens, tool
from agentlab.tokens import Usage, count, count_message, count_messages, count_tools

HOSTILE = {
    "one letter": "a" * 10_000,
    "one sign": "中" * 10_000,
    "Chinese": "订单在哪里请查询客户的地址" * 770,
    "spaces": " " * 10_000,
    "lines": "\n" * 10_000,
    "tabs and lines": "\t\n \r" * 2_500,
    "digits": "7" * 10_000,
    "emoji": "👩‍👩‍👧‍👦" * 1_430,
    "marks": "e\u0301" * 5_000,
    "marks alone": "\u0301" * 10_000,
    "mixed case": "aAaA" * 2_500,
    "quotes": "'s't'll" * 1_430,
    "punctuation": "!?/\\" * 2_500,
    "half signs": "\ud83d" * 10_000,
    "special": "<|endoftext|>" * 770,
    "control": "\x00\x01\x7f" * 3_333,
    "random": "".join(chr(33 + (i * 7919) % 0xD000) for i in range(10_000)),
}


@pytest.mark.timing
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_more_than_fifty_milliseconds(name: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled and not tokens.exact:
        pytest.skip("the compiled counter is not installed here")
    monkeypatch.setattr(tokens, "exact", compiled)
    count("warm up " * 1_000)
    best = 9.0
    for _ in range(3):
        began = time.perf_counter()
        assert count(HOSTILE[name]) >= 0
        best = min(best, time.perf_counter() - began)
    assert best <= 0.05


@pytest.mark.skipif(not tokens.exact, reason="the compiled counter is not installed here")
@pytest.mark.parametrize(("text", "n"), [("", 0), ("hello world", 2), ("Where is order 1042?", 7), ("订单在哪里", 2)])
def test_known_counts(text: str, n: int) -> None:
    assert count(text) == n


def test_without_the_compiled_counter_it_is_an_estimate_in_the_right_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """UT05: characters / 4 counts Chinese at a quarter of its size."""
    monkeypatch.setattr(tokens, "exact", False)
    tokens._count.cache_clear()
    assert count("订单" * 360) >= 0.6 * 720
    english = "The order was sent on Monday and will arrive within three days. " * 20
    assert len(english) / 6 < count(english) < len(english) / 3
    assert "an estimate" in Usage(1, 1, 1, 0).how
    tokens._count.cache_clear()


@given(st.text(st.characters(), max_size=50), st.text(st.characters(), max_size=50))
def test_any_text_is_counted(one: str, other: str) -> None:
    assert count(one + other) <= count(one) + count(other) + 4


@tool
def look(n: int) -> str:
    """Look."""
    return "x" * n


def told(completion: dict[str, Any], prompt: Any, written: Any) -> dict[str, Any]:
    return {**completion, "usage": {"prompt_tokens": prompt, "completion_tokens": written}}


async def test_the_providers_figures_are_exact() -> None:
    script = [told(models.call("look", n=3), 100, 10), told(models.say("done"), 150, 5)]
    usage = (await Agent(models.scripted(script), [look]).run("q")).usage
    assert (usage.prompt, usage.completion, usage.total, usage.requests) == (250, 15, 265, 2)
    assert usage.exact
    assert usage.how == "counted by the provider"
    assert str(usage) == "265 tokens in 2 requests (250 sent, 15 written; counted by the provider)"


@pytest.mark.parametrize(
    "bad", [None, {}, {"prompt_tokens": None, "completion_tokens": 3}, {"prompt_tokens": -1, "completion_tokens": 3}, 7]
)
async def test_without_them_it_is_counted_here_and_said_to_be_an_estimate(bad: Any) -> None:
    """MS25, PB08: some endpoints leave usage out, or send nulls; bookkeeping never fails a run."""
    script = [told(models.call("look", n=3), 100, 10), {**models.say("done"), "usage": bad}]
    run = await Agent(models.scripted(script), [look]).run("q")
    usage = run.usage
    carried = count_messages(run.messages[:3]) + count_tools([look.schema])
    assert (usage.prompt, usage.completion, usage.reported) == (100 + carried, 10 + count("done"), 1)
    assert not usage.exact
    assert "1 of 2 requests counted here" in usage.how
    assert str(usage).startswith("about ")


async def test_usage_grows_with_the_square_of_the_steps() -> None:
    """J1: each request carries everything again."""

    def script(request: dict[str, Any]) -> Any:
        n = sum(m["role"] == "assistant" for m in request["messages"])
        return models.call("look", n=1_000 + n) if n < 6 else "done"

    run = await Agent(models.scripted(script), [look]).run("q")
    carried = [count_messages(reply.sent.messages) for reply in run.of(Reply) if reply.sent]
    steps = [later - earlier for earlier, later in itertools.pairwise(carried)]
    assert min(steps) > 100
    assert run.usage.prompt == sum(carried) + 7 * count_tools([look.schema])


async def test_usage_of_prefixes_and_forks() -> None:
    run = await Agent(models.scripted([models.call("look", n=9), "done"]), [look]).run("q")
    assert run.upto(1).usage == Usage(0, 0, 0, 0)
    assert run.upto(2).usage.requests == 1
    fork = run.upto(3).plus(Reply("other", usage={"prompt": 5, "completion": 1}))
    assert fork.usage.prompt == run.upto(3).usage.prompt + 5
    assert Run().usage.total == 0


def test_messages_of_any_shape_are_counted() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert count_message(parts) > count_message({"role": "user", "content": None})
    assert count_messages([]) == tokens.AROUND_REPLY
    run = Run([System("be brief"), User("q")])
    assert count_messages(run.messages) > 6
