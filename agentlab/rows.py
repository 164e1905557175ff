"""What the stepper shows of a history: one row per entry, one bar per request, in short. Pure functions of entries.

A row holds at most 600 characters of a message, so a step costs the same on the wire however long the texts are; the whole
text stands beside it and is fetched on demand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from . import tokens
from .records import Call, Entry, Held, Note, Reply, Result, Ruling, Stop, System, User
from .wire import message, reply_from, text_in

Row = dict[str, Any]
Bar = dict[str, Any]
Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
SHOWN = 600
HALF = re.compile("[\ud800-\udfff]")


def row_of(i: int, entry: Entry, names: Mapping[str, str], edited: bool = False) -> Row:
    """The row of one entry. `names` says which tool a call id belongs to."""
    match entry:
        case System(text):
            row = _row(i, "system", text)
        case User(text):
            row = _row(i, "user", text)
        case Reply(text, calls):
            row = _row(i, "assistant", text)
            row["calls"] = [_call(call) for call in calls]
        case Result(call_id, text):
            row = {**_row(i, "tool", text), "call_id": call_id, "name": names.get(call_id, "")}
            if entry.error:
                row["error"] = True
            if entry.full is not None:
                row["full_chars"] = len(entry.full)
        case _:
            row = note_row(i, sentence_of(entry, names))
            if isinstance(entry, Stop):
                row["error"] = entry.kind != "interrupted"
    row["tokens"] = sum(count for _, count in weights(entry))
    notes = getattr(entry, "notes", ())
    if notes:
        row["notes"] = notes_wire(notes)
    if edited:
        row["edited"] = True
    return row


def note_row(i: int, text: str) -> Row:
    """A row that is no message: it is never sent to the model, so it counts no tokens."""
    return {**_row(i, "note", text), "exact": True}


def sentence_of(entry: Held | Ruling | Stop, names: Mapping[str, str]) -> str:
    """What a held call, a ruling or a stop says in the history."""
    name = names.get(getattr(entry, "call_id", ""), "this call")
    match entry:
        case Held():
            return f"{name} waits for a person. {entry.why}".strip()
        case Ruling(ok=True):
            return f"A person approved {name}" + (" with other arguments." if entry.arguments is not None else ".")
        case Ruling(expired=True):
            return f"Nobody ruled on {name} in time. No answer means no."
        case Ruling():
            return f"{name} was refused" + (f": {entry.why}" if entry.why else ".")
        case Stop():
            return f"{entry.kind.replace('_', ' ').capitalize()}: {entry.why or 'the run was ended'}"


def _row(i: int, role: str, text: str) -> Row:
    shown, more = cut(text)
    return {"i": i, "role": role, "text": shown, "more": more, "tokens": 0, "exact": tokens.exact}


def _call(call: Call) -> dict[str, Any]:
    shown, more = cut(call.arguments)
    return {"id": call.id, "name": call.name, "arguments": shown, "more": more}


def cut(text: str, at_most: int = SHOWN) -> tuple[str, int]:
    """The beginning of `text`, and how many characters are left out."""
    return (text, 0) if len(text) <= at_most else (text[:at_most], len(text) - at_most)


def whole(entry: Entry, names: Mapping[str, str]) -> dict[str, Any]:
    """Everything that a row left out: the text as sent, each call's arguments, and a result's text before it was cut."""
    match entry:
        case Reply(text, calls):
            return {"text": text, "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]}
        case Result(text=text, full=full):
            return {"text": text, **({"whole": full} if full is not None else {})}
        case System(text) | User(text):
            return {"text": text}
    return {"text": sentence_of(entry, names)}


def notes_wire(notes: Iterable[Note]) -> list[dict[str, str]]:
    return [{"guard": note.guard, "why": note.why} for note in notes]


def sendable(value: Any) -> Any:
    """`value` as a message of Jupyter's can carry it: half a character (a lone surrogate) is written out, \\ud800."""
    if isinstance(value, str):
        return value if value.isascii() else HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
    if isinstance(value, Mapping):
        return {sendable(key): sendable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(inner) for inner in value]
    return value


# ---- tokens of a request ----
def weights(entry: Entry) -> list[tuple[Role, int]]:
    """Which parts of a request this entry adds to, and how many tokens to each; nothing for what is not sent."""
    wire: list[dict[str, Any]] = []
    match entry:
        case System() | User() | Result() | Stop(kind="capped" | "stuck" | "over_budget"):
            wire = [message(entry)]
        case Reply(text, calls):
            wire = [message(entry)] if calls or text.strip() else []
            wire += [message(User(entry.fault))] if entry.fault else []
    return [(sent["role"], tokens.count_message(sent)) for sent in wire]


def weigh(messages: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Tokens by role of the messages of a request, counted afresh."""
    sums: dict[str, int] = dict.fromkeys(ROLES, 0)
    for wire in messages:
        role = {"developer": "system", "function": "tool"}.get(str(wire.get("role")), wire.get("role"))
        sums[role if role in ROLES else "user"] += tokens.count_message(wire)
    return sums


# "exact" is never true of a bar: what a provider adds around messages and schemas is an estimate until it reports its count.
def bar_of(n: int, sums: Mapping[str, int], tool_tokens: int) -> Bar:
    return {"request": n, **{role: sums[role] for role in ROLES}, "tools": tool_tokens, "exact": False}


def entry_of(wire: Mapping[str, Any]) -> System | User | Reply | Result:
    """The entry that a message on the wire stands for. A role that is not known is shown as the user's."""
    text = text_in(wire.get("content"))
    match wire.get("role"):
        case "system" | "developer":
            return System(text)
        case "assistant":
            return reply_from(dict(wire))
        case "tool":
            return Result(str(wire.get("tool_call_id") or ""), text)
        case "function":
            return Result(str(wire.get("name") or ""), text)
    return User(text or ("" if isinstance(wire.get("content"), str) else json.dumps(wire.get("content"), ensure_ascii=False)))
