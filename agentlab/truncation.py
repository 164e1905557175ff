"""Cut a long result so that the model knows that it was cut, and what to call for more (F2).

A silent cut makes a model take the part for the whole. Asked to "narrow the request" a small one copied the wrong number into
the arguments; told the literal next call it made it. So the notice says shown/total and prints the next call.
"""

from __future__ import annotations

import json
from typing import Any

from .arguments import BadArguments
from .records import Call

ROWS = 20  # F2: of a longer list, this many are shown
FLAG_LETTERS = {chr(sign) for sign in range(0x1F1E6, 0x1F200)}


def shorten(text: str, chars: int, call: Call) -> tuple[str, str]:
    """`text` within `chars` characters, its notice included, and one line on what was done."""
    notice = _notice(len(text), len(text), call, None, 0)
    if len(notice) + 30 > chars * 3 // 4:  # a notice that leaves no room for what it speaks of
        return _barely(text, chars)
    room = chars - len(notice) - 30  # the counts of rows in the final notice may be longer
    if (rows := _rows(text)) is not None:
        shown, count = _whole_rows(rows, room)
        told = _notice(len(shown), len(text), call, len(rows), count)
        if count and len(shown) + 1 + len(told) <= chars:
            return f"{shown}\n{told}", f"{count} of {len(rows)} rows shown, {len(shown):,} of {len(text):,} characters"
    kept = whole_graphemes(text, room)
    line = kept.rfind("\n")
    if line > len(kept) * 3 // 4:
        kept = kept[:line].rstrip("\r")
    return f"{kept}\n{_notice(len(kept), len(text), call, None, 0)}", f"{len(kept):,} of {len(text):,} characters shown"


def _barely(text: str, chars: int) -> tuple[str, str]:
    """The same where the limit has no room for the long notice: a short one, or no more than a sign that it was cut."""
    notice = f"\n[cut: a part of {len(text):,} characters]"
    if len(notice) > chars // 2:
        notice = "…"
    kept = whole_graphemes(text, chars - len(notice))
    return kept + notice, f"{len(kept):,} of {len(text):,} characters shown"


def whole_graphemes(text: str, chars: int) -> str:
    """At most `chars` characters of `text`, never a part of what a reader sees as one sign (an emoji family, a letter with its
    accents). A sign of more than 200 characters is no sign: it is cut."""
    if chars >= len(text):
        return text
    import regex

    start = max(0, chars - 200)
    while start and text[start] in FLAG_LETTERS:  # flags are pairs: count them from where they begin
        start -= 1
    end = start
    for sign in regex.finditer(r"\X", text[start : chars + 200]):
        if start + sign.end() > chars:
            break
        end = start + sign.end()
    return text[:end] if end > start or start == 0 else text[:chars]


def _rows(text: str) -> list[Any] | None:
    if text[:1] != "[":
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) and len(value) > 1 else None


def _whole_rows(rows: list[Any], room: int) -> tuple[str, int]:
    shown: list[str] = []
    used = 2
    for row in rows[:ROWS] if len(rows) > 50 else rows:
        piece = json.dumps(row, ensure_ascii=False)
        if used + len(piece) + 2 > room:
            break
        shown.append(piece)
        used += len(piece) + 2
    return f"[{', '.join(shown)}]", len(shown)


def _notice(shown: int, total: int, call: Call, rows: int | None, shown_rows: int) -> str:
    what = f"{shown_rows} of {rows} rows, " if rows is not None else ""
    return (
        f"[cut: {what}{shown:,} of {total:,} characters shown. This is a part, not the whole. "
        f"The same call gives the same cut. {_next_call(call, shown_rows)}]"
    )


def _next_call(call: Call, shown_rows: int) -> str:
    """The literal next call where the tool's parameters tell what it would be."""
    try:
        args = call.args
    except BadArguments:
        args = {}
    known = list((call.tool.parameters.get("properties") or {}) if call.tool is not None else args)
    for start in ("offset", "start", "skip"):
        if start in known and shown_rows:
            return f"For more call {_with(call, args, start, _whole(args.get(start), 0) + shown_rows)}."
    if "page" in known:
        return f"For more call {_with(call, args, 'page', _whole(args.get('page'), 1) + 1)}; the rest of this page is not shown."
    for size in ("limit", "top_k", "max_rows", "count", "n"):
        fewer = max(1, shown_rows or 5)
        if size in known and _whole(args.get(size), fewer + 1) > fewer:
            return f"For less at a time call {_with(call, args, size, fewer)}, or narrow its other arguments."
    if known:
        return f"To see another part call {call.name} again with narrower arguments ({', '.join(known)[:200]})."
    return "Work with this part, and say that it is one."


def _with(call: Call, args: dict[str, Any], name: str, value: int) -> str:
    """The call with one argument put in; where that is too long to print, in words."""
    literal = json.dumps({**args, name: value}, ensure_ascii=False)
    return f"{call.name}({literal})" if len(literal) <= 300 else f"{call.name} with the same arguments and {name}={value}"


def _whole(value: Any, otherwise: int) -> int:
    """`value` as a whole number; models write "2" for 2."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
