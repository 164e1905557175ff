"""Calls that a model wrote into its text, where nothing runs them: recognised, and never run (M1, B6).

Small models and broken gateways do it: bare JSON, an envelope in the middle of prose, the tags of a chat template, a header of
another protocol. Taken for an answer, it claims what never happened. What stands in a code block is an example, and left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

FENCE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
WHOLE_FENCE = re.compile(r"\A\s*```[\w-]*\s*\n?(.*?)\n?```\s*\Z", re.DOTALL)
ENVELOPE = re.compile(r'"(?:tool_calls|function_call)"\s*:\s*[\[{]')
TAGS = re.compile(
    r"</?tool_call\b|<\|?tool_calls?(?:_begin|_section_begin)?\|?>|<function=|</function>|<invoke\s+name=|<function_calls?>"
    r"|\[TOOL_CALLS?\]|<\|python_tag\|>|<｜tool▁call"
)
HEADER = re.compile(r"\bto=functions\.([\w.-]+)")
MARKS = re.compile(r"<\|(?:channel|start|message|call)\|>")
ACTION = re.compile(r"^\s*Action\s*:\s*([\w.-]+)\s*$\s*^\s*Action Input\s*:", re.MULTILINE | re.IGNORECASE)
NAMED = re.compile(r'(?:"name"\s*:\s*"|<function=|<invoke\s+name=")([\w.-]{1,64})')
CALL_KEYS = {"name", "arguments", "parameters", "id", "type", "function", "tool_calls", "function_call", "role", "content"}


def written_call(text: str, names: Collection[str]) -> str | None:
    """The name of the call that stands in `text` ("" where none can be read); None where there is no call."""
    if not text or not any(sign in text for sign in "{<[:="):
        return None
    fenced = WHOLE_FENCE.match(text)
    whole = _only_a_call((fenced[1] if fenced else text).strip())
    if whole is not None:
        return whole
    bare = FENCE.sub(" ", text)
    if action := ACTION.search(bare):
        return action[1] if action[1] in names else None
    if header := HEADER.search(bare):
        return header[1]
    return _name_in(bare) if any(sign.search(bare) for sign in (ENVELOPE, TAGS, MARKS)) else None


def _name_in(text: str) -> str:
    found = NAMED.search(text)
    return found[1] if found else ""


def _only_a_call(text: str) -> str | None:
    """The name in a text that is nothing but a call, or a list of calls, as JSON."""
    if text[:1] not in ("{", "["):
        return None
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        value = value[0] if value and all(isinstance(one, Mapping) for one in value) else None
    if not isinstance(value, Mapping) or not value.keys() <= CALL_KEYS:
        return None
    for key in ("tool_calls", "function_call"):
        if value.get(key):
            return _name_in(text)
    inner = value.get("function", value)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        return None
    arguments = inner.get("arguments", inner.get("parameters"))
    return inner["name"] if isinstance(arguments, Mapping | str) else None
