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


def shorten(text: str, chars: int, call: Call) -> tuple[str, str]:
    """`text` within about `chars` characters with its notice, and one line on what was done."""
    rows = _rows(text)
    notice = _notice(len(text), len(text), call, None, 0)
    room = max(chars - len(notice) - 2, chars // 2, 1)
    if rows is not None:
        shown, count = _whole_rows(rows, room)
        if count:
            told = _notice(len(shown), len(text), call, len(rows), count)
            return f"{shown}\n{told}", f"{count} of {len(rows)} rows shown, {len(shown):,} of {len(text):,} characters"
    kept = whole_graphemes(text, room)
    line = kept.rfind("\n")
    if line > len(kept) * 3 // 4:
        kept = kept[:line]
    return f"{kept}\n{_notice(len(kept), len(text), call, None, 0)}", f"{len(kept):,} of {len(text):,} characters shown"


def whole_graphemes(text: str, chars: int) -> str:
    """At most `chars` characters of `text`, never a part of what a reader sees as one sign (an emoji family, a letter with its
    accents). A sign of more than 200 characters is no sign: it is cut."""
    if chars >= len(text):
        return text
    import regex

    start = max(0, chars - 200)
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
    for paging in ("page", "offset", "start", "skip"):
        if paging in known:
            now = args.get(paging)
            now = now if isinstance(now, int) else (1 if paging == "page" else 0)
            step = now + 1 if paging == "page" else now + shown_rows if shown_rows else None
            if step is not None:
                return f"For more call {call.name}({json.dumps({**args, paging: step}, ensure_ascii=False)[:300]})."
    for size in ("limit", "top_k", "max_rows", "count", "n"):
        if size in known:
            fewer = max(1, shown_rows or 5)
            if not isinstance(args.get(size), int) or args[size] > fewer:
                smaller = json.dumps({**args, size: fewer}, ensure_ascii=False)[:300]
                return f"For less at a time call {call.name}({smaller}), or narrow its other arguments."
    if known:
        return f"To see another part call {call.name} again with narrower arguments ({', '.join(known)})."
    return "Work with this part, and say that it is one."
