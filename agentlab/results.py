"""Anything a tool returns becomes explicit text for the model (F4, C4): never a raw object, never an empty line."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import itertools
import json
import math
import re
from collections.abc import Mapping
from typing import Any

NOTHING_FOUND = "Nothing was found: the result is {empty}. Try broader terms, or check the spelling."
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
ITEMS = 10_000  # of an endless iterator
STOPPED = f"<stopped after {ITEMS} items>"
DEPTH = 60


def text_of(value: Any) -> str:
    """`value` as the model is told it. Text stays as it is; data becomes JSON; nothing says that it is nothing."""
    value = drawn(value.value if isinstance(value, enum.Enum) else value)
    if isinstance(value, str):
        return value if value.strip() else NOTHING_FOUND.format(empty="an empty text")
    if value is None:
        return "Done. The tool returned no value (None)."
    parts = _text_parts(value)
    if parts is not None:
        return parts
    plain = _plain(value, ())
    if plain in ([], {}) and isinstance(plain, list | dict):
        return NOTHING_FOUND.format(empty="an empty list, 0 items" if isinstance(plain, list) else "an empty object")
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, allow_nan=False)


def _text_parts(value: Any) -> str | None:
    """The text in a list of content parts such as [{"type": "text", "text": "…"}]."""
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str) for part in value):
        return "\n".join(part["text"] for part in value) or None
    return None


def drawn(value: Any) -> Any:
    """What an iterator yields, as a list; it may be endless. Other values are left as they are."""
    if not hasattr(value, "__next__"):
        return value
    items = list(itertools.islice(value, ITEMS))
    return [*items, STOPPED] if len(items) == ITEMS else items


async def drawn_async(value: Any) -> list[Any]:
    """The same of an async iterator. Others run between two items: an endless one may never wait by itself."""
    items: list[Any] = []
    async for item in value:
        items.append(item)
        if len(items) == ITEMS:
            return [*items, STOPPED]
        await asyncio.sleep(0)
    return items


def words(error: BaseException) -> str:
    """Type and message of an error, whatever its own __str__ does."""
    try:
        said = str(error).strip().rstrip(".!?")
    except Exception:
        said = "its message cannot be read"
    return f"{type(error).__name__}: {said}" if said else f"{type(error).__name__}, without a message"


def _plain(value: Any, above: tuple[int, ...]) -> Any:
    """`value` out of what strict JSON has: text, numbers, lists, objects, true, false and null."""
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value)).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    if id(value) in above or len(above) > DEPTH:
        return f"<{type(value).__name__}, already shown above>" if id(value) in above else "<nested too deeply>"
    above = (*above, id(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), above) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(key): _plain(item, above) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, above) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, above) for item in value), key=lambda item: (str(type(item)), str(item)))
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return _other(value, above)


def _other(value: Any, above: tuple[int, ...]) -> Any:
    """Objects of libraries by what they offer, without importing the libraries; the rest by name."""
    for offer, arguments in (
        ("model_dump", {"mode": "json"}),
        ("to_dict", {"orient": "records"}),
        ("isoformat", {}),
        ("tolist", {}),
    ):
        method = getattr(value, offer, None)
        if callable(method) and not isinstance(value, type):
            try:
                return _plain(method(**arguments), above)
            except (TypeError, ValueError):
                continue
    if hasattr(value, "__next__"):
        return _plain(drawn(value), above)
    return ADDRESS.sub("", str(value))


def _bytes(value: bytes) -> str:
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return text
    return f"<{len(value)} bytes that are not text; they begin {value[:16].hex(' ')}>" if value else "<0 bytes>"
