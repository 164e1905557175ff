"""F4, C4: whatever a tool returns becomes explicit text, strict JSON where it is data, and says so where it is nothing."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import uuid
from collections import OrderedDict, namedtuple
from types import MappingProxyType
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.results import text_of, words


@dataclasses.dataclass
class Row:
    x: int
    y: float = float("nan")


class Model(pydantic.BaseModel):
    when: datetime.date


class Text(str, enum.Enum):  # noqa: UP042 - str() of it is "Text.OPEN"
    OPEN = "open"


class Number(enum.IntEnum):
    ONE = 1


class Frame:
    """As pandas has it."""

    def to_dict(self, orient: str) -> Any:
        return [{"a": 1}] if orient == "records" else pytest.fail("not by records")


class Array:
    """As numpy has it."""

    def tolist(self) -> Any:
        return [1.0, float("inf")]


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ("", "Nothing was found: the result is an empty text. Try broader terms, or check the spelling."),
        (" \n", "Nothing was found: the result is an empty text. Try broader terms, or check the spelling."),
        (None, "Done. The tool returned no value (None)."),
        ([], "Nothing was found: the result is an empty list, 0 items. Try broader terms, or check the spelling."),
        ((), "Nothing was found: the result is an empty list, 0 items. Try broader terms, or check the spelling."),
        (iter(()), "Nothing was found: the result is an empty list, 0 items. Try broader terms, or check the spelling."),
        ({}, "Nothing was found: the result is an empty object. Try broader terms, or check the spelling."),
        (0, "0"),
        (False, "false"),
        (1.5, "1.5"),
        (float("nan"), "NaN"),
        ([float("inf"), -float("inf")], '["Infinity", "-Infinity"]'),
        ({"a": None, 1: (2, 3)}, '{"a": null, "1": [2, 3]}'),
        ({3, 1, 2}, "[1, 2, 3]"),
        (b"plain", "plain"),
        (b"\xff\x00\x01", "<3 bytes that are not text; they begin ff 00 01>"),
        (b"", "<0 bytes>"),
        ([{"type": "text", "text": "9 C"}, {"type": "text", "text": "foggy"}], "9 C\nfoggy"),
        (Row(1), '{"x": 1, "y": "NaN"}'),
        (Model(when=datetime.date(2026, 1, 2)), '{"when": "2026-01-02"}'),
        (datetime.datetime(2026, 1, 2, 3, 4), "2026-01-02T03:04:00"),
        (decimal.Decimal("1.50"), "1.50"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Text.OPEN, "open"),
        ([Text.OPEN, Number.ONE], '["open", 1]'),
        (MappingProxyType({"a": 1}), '{"a": 1}'),
        (OrderedDict(a=1), '{"a": 1}'),
        (Pair(1, 2), "[1, 2]"),
        (range(3), "range(0, 3)"),
        (Frame(), '[{"a": 1}]'),
        (Array(), '[1.0, "Infinity"]'),
        (ValueError("bad"), "ValueError: bad"),
        ("é" * 3, "ééé"),
        ({"a": "é"}, '{"a": "é"}'),
    ],
)
def test_each_kind_of_result(value: Any, text: str) -> None:
    """TR02, TR04, TR07, TR14, TR16"""
    told = text_of(value)
    assert told == text
    assert type(told) is str


def test_objects_are_named_without_their_address() -> None:
    """IP09: equal histories must be equal texts."""
    assert text_of(object()) == "<object object>"


def test_rings_and_wells_end() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert text_of(ring) == '[1, "<list, already shown above>"]'
    well: Any = []
    for _ in range(5_000):
        well = [well]
    assert "nested too deeply" in text_of(well)
    shared = [1]
    assert text_of([shared, shared]) == "[[1], [1]]"


def test_an_endless_iterator_is_stopped() -> None:
    import itertools

    assert text_of(itertools.count()).endswith('9999, "<stopped after 10000 items>"]')


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_data_becomes_strict_json_that_says_the_same(value: Any) -> None:
    text = text_of(value)
    assert text.strip()
    if isinstance(value, list | dict) and value:
        assert json.dumps(json.loads(text), allow_nan=False)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no."), "ValueError: no"),
        (ValueError(), "ValueError, without a message"),
        (Mute(), "Mute: its message cannot be read"),
        (KeyError("k"), "KeyError: 'k'"),
    ],
)
def test_an_error_in_words(error: BaseException, said: str) -> None:
    """EX08: an empty message is no success."""
    assert words(error) == said
