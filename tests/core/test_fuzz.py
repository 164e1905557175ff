"""A few thousand of the adversarial turns that `tools/fuzz.py` plays by the million."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def fuzz() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("fuzz", Path(__file__).parents[2] / "tools/fuzz.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    logging.disable(logging.NOTSET)


@pytest.mark.filterwarnings("ignore")  # coroutines and generators that a tool's author forgot are part of it
def test_nothing_leaves_a_guarded_run(fuzz: ModuleType) -> None:
    played, ends, failed = fuzz.many(7_000, 4_000)
    assert failed == []
    assert played >= 4_000
    assert {"answered", "capped", "stuck", "failed"} <= ends.keys()


def message(role: str, content: Any = "x", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def calls(*ids: str, name: str = "f", arguments: str = "{}") -> dict[str, Any]:
    return message("assistant", None, tool_calls=[{"id": id, "function": {"name": name, "arguments": arguments}} for id in ids])


@pytest.mark.parametrize(
    "messages",
    [
        [calls("a")],
        [calls("a", "b"), message("tool", tool_call_id="b"), message("tool", tool_call_id="a")],
        [calls("a"), message("user"), message("tool", tool_call_id="a")],
        [message("tool", tool_call_id="a")],
        [calls("a"), message("tool", tool_call_id="a"), calls("a"), message("tool", tool_call_id="a")],
        [calls(""), message("tool", tool_call_id="")],
        [calls("a", name="a b"), message("tool", tool_call_id="a")],
        [calls("a", arguments="[]"), message("tool", tool_call_id="a")],
        [calls("a", arguments='{"n": NaN}'), message("tool", tool_call_id="a")],
        [calls("a"), message("tool", "", tool_call_id="a")],
        [message("assistant", "")],
        [message("assistant", "x", tool_calls=[])],
        [message("critic")],
        [message("user", "\ud800")],
    ],
)
def test_the_strict_endpoint_is_strict(fuzz: ModuleType, messages: list[Any]) -> None:
    with pytest.raises((fuzz.Fault, UnicodeEncodeError)):
        fuzz.judge(messages)
    fuzz.judge([message("system"), message("user"), calls("a"), message("tool", tool_call_id="a"), message("assistant")])
