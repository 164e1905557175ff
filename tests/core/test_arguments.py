"""H3: arguments are read leniently, and never guessed. What is read is fresh, what is sent again is a JSON object."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.arguments import BadArguments, as_sent, canonical, digest, parse, plain_text


@pytest.mark.parametrize("raw", ["", " \n\t", "null", "{}", " null "])
def test_absent_in_any_form_is_no_arguments(raw: str) -> None:
    assert parse(raw) == {}


@pytest.mark.parametrize(
    ("raw", "args"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2, ],\n}', {"a": [1, 2]}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}```\n', {"a": 1}),
        ("{'a': 'x', 'b': True, 'c': None, 'd': -1}", {"a": "x", "b": True, "c": None, "d": -1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": 1}{"a": 1}', {"a": 1}),
        ('{"a": 1}\n{"a": 1}\n', {"a": 1}),
        ('Here you are: {"a": 1}. Done', {"a": 1}),
        ('{"a": "tab\there\nand a line"}', {"a": "tab\there\nand a line"}),
        ('{"a": 1, "a": 1}', {"a": 1}),
        ('{"n": 4611686018427387905}', {"n": 4611686018427387905}),
        ('{"text": "a, ] } {"}', {"text": "a, ] } {"}),
        (r"{'path': 'C:\d'}", {"path": r"C:\d"}),
    ],
)
def test_what_loses_nothing_is_mended(raw: str, args: dict[str, Any]) -> None:
    assert parse(raw) == args
    assert json.loads(as_sent(raw)) == args


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ('{"a": 1', "cut off"),
        ('{"a": "x', "cut off"),
        ('{"a":', "cut off"),
        ('{"a": tr', "cut off"),
        ('{"a": "\\u12', "cut off"),
        ('{"a": wlist"}', "not valid JSON"),
        ('["a", "b"]', "not a list"),
        ("7", "not a number"),
        ('"hello"', "not valid JSON"),
        ("true", "not true or false"),
        ('{"a": 1}{"a": 2}', "2 different JSON objects"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("{'a': (1, 2)}", "not valid JSON"),
        ("{'a': {1, 2}}", "not valid JSON"),
        ("{'a': b'x'}", "not valid JSON"),
        ("{'a': open('x')}", "not valid JSON"),
        ("{1: 2}", "not valid JSON"),
        ("call me", "not valid JSON"),
        ("{,}", "not valid JSON"),
        ('{"a": ,}', "not valid JSON"),
        ('{"a": ' + "9" * 5_000 + "}", "too long"),
        ('{"a":' * 200 + "1" + "}" * 200, "levels deep"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_would_need_a_guess_is_handed_back(raw: str, says: str) -> None:
    """AM15, AM17: garbage is never `{}`; a text that was cut is not closed for the model."""
    with pytest.raises(BadArguments, match=says):
        parse(raw)
    sent = json.loads(as_sent(raw))
    assert list(sent) == ["unreadable_arguments"]


def test_fifty_levels_are_read() -> None:
    raw = '{"a":' * 50 + "1" + "}" * 50
    assert canonical(raw) == raw


@given(st.text(st.characters()))
def test_any_text_is_read_or_refused_and_can_be_sent_again(raw: str) -> None:
    try:
        args = parse(raw)
    except BadArguments:
        args = {}
    assert isinstance(args, dict)
    sent = as_sent(raw)
    assert isinstance(json.loads(sent), dict)
    sent.encode("utf-8")
    json.dumps(json.loads(sent), allow_nan=False)
    assert len(digest("tool", raw)) == 16


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_strict_json_comes_through_unchanged(args: dict[str, Any]) -> None:
    raw = json.dumps(args)
    assert parse(raw) == args
    assert as_sent(raw) == raw
    backwards = json.dumps(dict(reversed(args.items())), indent=1)
    assert digest("t", backwards) == digest("t", raw) != digest("u", raw)


def test_a_number_that_json_does_not_have_is_never_sent() -> None:
    for raw in ("{'a': 1e999}", '{"a": 1e999,}', '{"a": -1e999}'):
        json.dumps(json.loads(as_sent(raw)), allow_nan=False)
        assert "Infinity" not in as_sent(raw)


def test_what_is_read_is_fresh() -> None:
    one = parse('{"a": [1]}')
    one["a"].append(2)
    assert parse('{"a": [1]}') == {"a": [1]}


def test_half_a_character_is_replaced() -> None:
    """UT02"""
    assert plain_text("a\ud83d") == "a?"
    assert plain_text("é👩‍👧") == "é👩‍👧"


HOSTILE = {
    "commas": '{"a": 1' + ",}" * 20_000,
    "commas in lists": "[,]" * 15_000,
    "spaces": "[" + " " * 50_000 + "]",
    "a fence without an end": "```json\n" + "\n" * 50_000,
    "fences": "```\n" * 12_000,
    "quotes": '"' * 50_000,
    "backslashes": '{"a": "' + "\\" * 50_001,
    "signs": "{" + "-" * 50_000 + "1}",
    "objects": "{}" * 25_000,
    "keys": "{" + ",".join(f'"{i}":1' for i in range(5_000)) + ",}",
}


@pytest.mark.timing
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_of_fifty_thousand_characters_takes_long(name: str) -> None:
    """B6: model output is untrusted. A text that takes quadratic time to refuse holds the whole event loop."""
    began = time.perf_counter()
    with contextlib.suppress(BadArguments):
        parse(HOSTILE[name])
    assert time.perf_counter() - began < 1
