"""Read the arguments that a model wrote: strict JSON first, then only repairs that invent nothing (H3).

Absent in any form (None, "", white space, "null") is `{}`; garbage never is. A text that was cut is refused, not closed for
it. What is read is always a fresh object; what is sent again is always a JSON object.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

LANGUAGE = re.compile(r"```[\w-]*[ \t]*\n")
LITERALS = ("true", "false", "null", "-")
DEPTH = 50  # far deeper than any tool asks for; what walks arguments may then recurse without fear
ASK_AGAIN = "Send the call again with one complete JSON object."
CUT_OFF = "The reply was cut off at the output limit, so this call may be incomplete. It was not run. Send it again, shorter."


class BadArguments(ValueError):
    """The model's arguments cannot be used; the message tells the model what to send instead (C2, H2)."""


def written(arguments: Mapping[str, Any] | str | None) -> str:
    """Arguments as text: text as it is, a dict as JSON, None as no arguments. Raises TypeError for anything else."""
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps({**(arguments or {})}, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Arguments are a dict of what JSON has, or its text, not {arguments!r:.80} ({error}).") from None


def parse(text: str) -> dict[str, Any]:
    """The arguments in `text` as a new dict. Raises `BadArguments` with a sentence for the model."""
    if not text.strip() or text.strip() == "null":
        return {}
    try:
        value = _read(text)
        if isinstance(value, str):  # encoded twice: the object stands inside a JSON string
            value = _read(value)
    except RecursionError:
        raise BadArguments(f"The arguments are nested too deeply. {ASK_AGAIN}") from None
    if text.count("{") + text.count("[") > DEPTH and _is_deep(value):
        raise BadArguments(f"The arguments are nested more than {DEPTH} levels deep. {ASK_AGAIN}")
    if not isinstance(value, dict):
        raise BadArguments(f'The arguments must be a JSON object such as {{"name": value}}, not {_kind(value)}. {ASK_AGAIN}')
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH + 1):
        level = [
            inner for one in level if isinstance(one, dict | list) for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def _unfenced(text: str) -> str:
    """What stands inside a markdown fence."""
    bare = text.strip()
    opening = LANGUAGE.match(bare)
    return bare[opening.end() : -3] if opening and len(bare) >= opening.end() + 3 and bare.endswith("```") else text


def _read(text: str) -> Any:
    body = _unfenced(text)
    try:
        return _load(body)
    except json.JSONDecodeError as error:
        first = error
    whole = _same_object_repeated(body)
    if whole is not None:
        return whole
    for mended in (_without_trailing_commas(body), _from_python(body), _from_prose(body)):
        if mended is not None:
            return mended
    if _is_cut(body, first):
        raise BadArguments(
            f"The arguments are cut off: the JSON ends before it is complete (after {len(body)} characters). "
            f"The call was not run. {ASK_AGAIN} Make it shorter if need be."
        )
    near = body[max(0, first.pos - 20) : first.pos + 20]
    raise BadArguments(f"The arguments are not valid JSON ({first.msg} near {near!r}). The call was not run. {ASK_AGAIN}")


def _load(text: str) -> Any:
    try:  # strict=False: models put raw tabs and line breaks inside strings, and lose nothing by it
        return json.loads(text, strict=False, object_pairs_hook=_pairs, parse_constant=_no_constant)
    except (json.JSONDecodeError, BadArguments):
        raise
    except ValueError:
        raise BadArguments(f"The arguments hold a number that is too long to read. {ASK_AGAIN}") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and not _equal(found[key], value):
            raise BadArguments(f"The key {key!r} stands twice in the arguments with different values. Send it once.")
        found[key] = value
    return found


def _equal(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _no_constant(name: str) -> NoReturn:
    raise BadArguments(f"{name} is not a JSON value. Send a number, or leave the parameter out.")


def _same_object_repeated(text: str) -> Any | None:
    """Some endpoints send the same object twice in a row. Equal copies are one; different ones are refused."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_pairs, parse_constant=_no_constant)
    found: list[Any] = []
    at = 0
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            found.append(value)
            while at < len(text) and text[at].isspace():
                at += 1
    except (json.JSONDecodeError, RecursionError):
        return None
    if len(found) < 2 or not all(isinstance(value, dict) for value in found):
        return None
    if all(_equal(value, found[0]) for value in found):
        return found[0]
    raise BadArguments(f"The arguments hold {len(found)} different JSON objects. Send one call for each.")


def _outside_strings(text: str) -> tuple[str, bool, int]:
    """`text` without the commas that stand just before a closer; whether it ends inside a string; how deep it ends."""
    out: list[str] = []
    inside, escaped, depth = False, False, 0
    for sign in text:
        if inside:
            escaped, inside = (False, True) if escaped else (sign == "\\", sign != '"')
        elif sign == '"':
            inside = True
        elif sign in "{[":
            depth += 1
        elif sign in "}]":
            depth -= 1
            at = _last_sign(out, len(out))
            if at >= 1 and out[at] == "," and (before := _last_sign(out, at)) >= 0 and out[before] not in ",{[:":
                del out[at]
        out.append(sign)
    return "".join(out), inside, depth


def _last_sign(signs: list[str], end: int) -> int:
    """Where the last of `signs` before `end` stands that is no white space; -1 where there is none."""
    end -= 1
    while end >= 0 and signs[end].isspace():
        end -= 1
    return end


def _without_trailing_commas(text: str) -> Any | None:
    if not re.search(r",\s*[}\]]", text):
        return None
    mended, inside, depth = _outside_strings(text)
    if inside or depth:
        return None
    try:
        return _load(mended)
    except json.JSONDecodeError:
        return None


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the JSON is well so far, and only its end is missing. A quote forgotten in the middle is another fault."""
    _, inside, depth = _outside_strings(text)
    if text.lstrip()[:1] not in ("{", "[", '"') or not (inside or depth > 0):
        return False
    rest = text[error.pos :].strip()
    return not rest or error.msg.startswith(("Unterminated", "Invalid \\u")) or any(w.startswith(rest) for w in LITERALS)


def _from_python(text: str) -> Any | None:
    """A Python literal such as {'city': 'Oslo', 'metric': True}: complete, only its spelling is foreign."""
    if text.lstrip()[:1] != "{" or len(text) > 100_000:
        return None
    try:
        with warnings.catch_warnings():  # "\d" in a literal is a warning to Python: whoever reads the run has no use for it
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    try:
        return _plain(tree.body)
    except (_Unplain, RecursionError):
        return None


class _Unplain(Exception):
    pass


def _plain(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value) if value is None or isinstance(value, str | bool | int | float):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if isinstance(value, int | float):
            return -value
        case ast.List(elts=items):
            return [_plain(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            named = [(_plain(key), _plain(value)) for key, value in zip(keys, values, strict=True) if key is not None]
            if len(named) < len(keys) or not all(isinstance(name, str) for name, _ in named):
                raise _Unplain
            return _pairs(named)
    raise _Unplain


def _from_prose(text: str) -> Any | None:
    """One complete JSON object with words around it."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end <= start or (start == 0 and end == len(text.rstrip()) - 1):
        return None
    if set(text[:start] + text[end + 1 :]) & set("{}[]\"'"):  # more than words: do not guess
        return None
    try:
        return _load(text[start : end + 1])
    except json.JSONDecodeError:
        return None


def _kind(value: Any) -> str:
    names = {
        list: "a list",
        str: "a text",
        int: "a number",
        float: "a number",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)


def plain_text(text: str) -> str:
    """`text` without lone surrogates, which no endpoint can be sent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=256)
def as_sent(raw: str) -> str:
    """The form of `raw` that may stand in a history: unchanged where it is a strict JSON object, else an object."""
    try:
        written = json.dumps(parse(raw), ensure_ascii=False, allow_nan=False)
    except ValueError:  # unreadable, or a number beyond what JSON has
        return json.dumps({"unreadable_arguments": plain_text(raw[:2_000])}, ensure_ascii=False)
    try:
        if isinstance(json.loads(raw), dict):
            return plain_text(raw)
    except ValueError:
        pass
    return plain_text(written)


@lru_cache(maxsize=256)
def canonical(raw: str) -> str:
    """One spelling for equal arguments: sorted keys, no spaces (D3). A text that cannot be read stands for itself."""
    try:
        return json.dumps(parse(raw), sort_keys=True, separators=(",", ":"))
    except BadArguments:
        return raw


def digest(name: str, raw: str) -> str:
    """A short fingerprint of one call: what a person's yes is bound to (I1)."""
    return hashlib.sha256(f"{name}\0{canonical(raw)}".encode("utf-8", "replace")).hexdigest()[:16]
