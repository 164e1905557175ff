"""The border to chat completions: replies in, messages out. What is kept can always be sent again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .arguments import as_sent, plain_text
from .records import DECLINED, Call, Reply, Result, Stop, System, User

CUT = {"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"}
THINKING = re.compile(r"<(think|thinking|thought)>(.*?)(?:</\1>|\Z)", re.DOTALL)
THOUGHT = re.compile(r"\A(.*?)</(?:think|thinking|thought)>", re.DOTALL)
LEGAL = re.compile(r"[^a-zA-Z0-9_-]")
LAST_WORD = (
    "The run was stopped: {why}. You have no tools now. Give your best answer from what is known above, "
    "and say what is still missing."
)


class ModelError(RuntimeError):
    """The model could not be asked, or what it sent is no reply. The message says what to do."""


# ---- in ----
def reply_from(completion: Any) -> Reply:
    """The reply in a chat completion, in one of its choices, or in a bare assistant message. Raises `ModelError`."""
    if isinstance(completion, Reply):
        return completion
    if isinstance(completion, str):
        text, thought = without_thinking(completion)
        return Reply(text, reasoning=thought)
    if not isinstance(completion, Mapping):
        raise ModelError(f"The model returned {type(completion).__name__}, not a chat completion.")
    if completion.get("error"):
        error = completion["error"]
        raise ModelError(
            f"The endpoint answered with an error: {error.get('message', error) if isinstance(error, Mapping) else error}"
        )
    if "choices" in completion:
        choices = completion["choices"]
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            raise ModelError(
                f"The reply holds no choices (keys: {', '.join(sorted(map(str, completion)))}). Ask again, or ask another model."
            )
        choice = choices[0]
    elif "role" in completion or "content" in completion or "tool_calls" in completion:
        choice = {"message": completion}
    else:
        raise ModelError(f"The reply is no chat completion (keys: {', '.join(sorted(map(str, completion)))}).")
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    finish = str(choice.get("finish_reason") or "")
    if finish == "error":
        raise ModelError("The endpoint broke off while the model was writing (finish_reason: error).")
    text, thought = without_thinking(text_in(message.get("content")))
    text = text if text.strip() else text_in(message.get("refusal")) or text
    given = message.get("reasoning_content", message.get("reasoning"))
    given = given if isinstance(given, str) else ""
    calls = () if finish in DECLINED else tuple(_calls(message, finish in CUT))
    return Reply(
        text, calls, finish, _usage(completion.get("usage")), reasoning=given or thought, replays="reasoning_content" in message
    )


def without_thinking(text: str) -> tuple[str, str]:
    """`text` without what stands in thinking tags, and that. A tag left open goes on to the end, one never opened began it."""
    if "<th" not in text and "</th" not in text:
        return text, ""
    thoughts = [match[2] for match in THINKING.finditer(text)]
    rest = THINKING.sub("", text)
    if never_opened := THOUGHT.match(rest):
        thoughts.insert(0, never_opened[1])
        rest = rest[never_opened.end() :]
    return (rest.strip(), "\n".join(thoughts).strip()) if thoughts else (text, "")


def text_in(content: Any) -> str:
    """The text of a message's content: a string, nothing, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text_in(part.get("text")) if isinstance(part, Mapping) else text_in(part) for part in content)
    return ""


def _calls(message: Mapping[str, Any], cut: bool) -> list[Call]:
    given = message.get("tool_calls")
    if not isinstance(given, list) or not given:
        legacy = message.get("function_call")
        given = [{"function": legacy}] if isinstance(legacy, Mapping) else []
    found = []
    for item in given:
        if not isinstance(item, Mapping):
            continue
        inner = item.get("function")
        inner = inner if isinstance(inner, Mapping) else item  # some endpoints leave the wrapping out
        name, arguments = inner.get("name"), inner.get("arguments")
        found.append(Call(_text(item.get("id")), _text(name), _raw(arguments), cut))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _raw(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _usage(usage: Any) -> dict[str, int] | None:
    """The provider's counts, or None where there are none worth the name."""
    if not isinstance(usage, Mapping):
        return None
    counts = {key: usage.get(f"{key}_tokens") for key in ("prompt", "completion")}
    if not all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts.values()):
        return None
    return {key: int(count) for key, count in counts.items() if count is not None}


# ---- out ----
def message(entry: System | User | Reply | Result | Stop) -> dict[str, Any]:
    """The wire form of one entry, a new dict each time."""
    match entry:
        case System(text):
            return {"role": "system", "content": plain_text(text)}
        case User(text):
            return {"role": "user", "content": plain_text(text)}
        case Stop():
            return {"role": "user", "content": plain_text(LAST_WORD.format(why=entry.why or entry.kind))}
        case Result():
            return {"role": "tool", "tool_call_id": entry.call_id, "content": plain_text(entry.text)}
        case Reply(text, calls):
            if not calls:
                return {"role": "assistant", "content": plain_text(text)}
            sent = {
                "role": "assistant",
                "content": plain_text(text) or None,
                "tool_calls": [_sent(call) for call in calls],
            }
            return {**sent, "reasoning_content": plain_text(entry.reasoning)} if entry.replays else sent


def _sent(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": legal_name(call.name), "arguments": as_sent(call.arguments)},
    }


def legal_name(name: str) -> str:
    """`name` as an endpoint accepts it in a history: letters, digits, _ and -, at most 64."""
    return LEGAL.sub("_", name)[:64] or "unnamed_tool"
