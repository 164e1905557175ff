"""A streamed reply put together again. Pieces are for the eye; only the whole is a reply, and a part never is.

What endpoints do: send the calls of a turn in turns, by index; send no index, or the same index for every call; repeat id and
name in each piece, or send the name once; send arguments as an object; send a usage piece without choices; break off without
an error. A stream that ends before its finish reason was cut: nothing of it may run (C1, H3).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .wire import ModelError, text_in

BROKE_OFF = "The stream broke off before the reply was whole. Nothing of it was used. Ask again."


class Assembly:
    """`add` takes one chunk and returns the text in it; `completion` is the whole as a chat completion."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._at: dict[Any, int] = {}  # index on the wire -> which call it means now
        self._message: Mapping[str, Any] | None = None
        self.finish: str | None = None

    def add(self, chunk: Any) -> str:
        """Take in one chunk. Raises `ModelError` where it says that something went wrong."""
        if not isinstance(chunk, Mapping):
            raise ModelError(f"The stream held {type(chunk).__name__} where a chunk was due. {BROKE_OFF}")
        if error := chunk.get("error"):
            said = error.get("message", error) if isinstance(error, Mapping) else error
            raise ModelError(f"The endpoint broke the stream off: {said}")
        for key in ("id", "created", "model", "usage"):
            if chunk.get(key) is not None:
                self._head[key] = chunk[key]
        text = ""
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and choice.get("index") in (0, None):  # one answer was asked for
                text += self._choice(choice)
        return text

    def _choice(self, choice: Mapping[str, Any]) -> str:
        if isinstance(choice.get("message"), Mapping):  # some send the whole at the end, or instead
            self._message = choice["message"]
        if choice.get("finish_reason"):
            self.finish = str(choice["finish_reason"])
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            return ""
        text = text_in(delta.get("content"))
        self._text.append(text)
        self._refusal.append(text_in(delta.get("refusal")))
        pieces = delta.get("tool_calls")
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, Mapping):
                self._piece(piece)
        if isinstance(legacy := delta.get("function_call"), Mapping):
            self._piece({"index": "legacy", "function": legacy})
        return text

    def _piece(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        call = self._which(piece.get("index"), piece.get("id"), function.get("name"))
        call["id"] = call["id"] or piece.get("id") or ""
        name, arguments = function.get("name"), function.get("arguments")
        if isinstance(name, str) and name != call["name"]:
            call["name"] += name
        if isinstance(arguments, str):
            call["arguments"].append(arguments)
        elif arguments is not None:  # an object: it is whole
            call["arguments"].append(json.dumps(arguments, ensure_ascii=False))

    def _which(self, index: Any, id: Any, name: Any) -> dict[str, Any]:
        """The call that a piece belongs to. An id counts more than an index, and a piece without a head goes on with the last."""
        by_id = next((call for call in self._calls if id and call["id"] == id), None)
        at = self._at.get(index) if isinstance(index, int | str) else None
        if by_id is not None:
            call = by_id
        elif at is not None and not (id and self._calls[at]["id"]):  # a new id under a known index is another call
            call = self._calls[at]
        elif self._calls and not id and not name:
            call = self._calls[-1]
        else:
            call = {"id": "", "name": "", "arguments": []}
            self._calls.append(call)
        if isinstance(index, int | str):
            self._at[index] = next(k for k, one in enumerate(self._calls) if one is call)
        return call

    def completion(self) -> dict[str, Any]:
        """The whole. Raises `ModelError` where the stream ended before the reply did."""
        if self.finish is None:
            raise ModelError(BROKE_OFF)
        said: dict[str, Any] = {"role": "assistant", "content": "".join(self._text) or None}
        if refusal := "".join(self._refusal):
            said["refusal"] = refusal
        if self._calls:
            said["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": "".join(call["arguments"])},
                }
                for call in self._calls
            ]
        if self._message is not None and not self._calls and not said["content"]:
            said = dict(self._message)
        choice = {"index": 0, "message": said, "finish_reason": self.finish}
        return {"id": "chatcmpl-stream", "object": "chat.completion", "created": 0, **self._head, "choices": [choice]}


def completion_in(text: str) -> dict[str, Any]:
    """The completion in a whole body of server-sent events. Raises `ModelError` where it broke off or cannot be read."""
    put_together = Assembly()
    for chunk in events(text):
        put_together.add(chunk)
    return put_together.completion()


def events(text: str) -> Iterator[Any]:
    """The chunks in a whole body of server-sent events. Raises `ModelError` for one that cannot be read."""
    for line in text.splitlines():
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            return
        try:
            yield json.loads(data)
        except (ValueError, RecursionError):
            raise ModelError(f"The stream held something that is no JSON: {data[:60]!r}. {BROKE_OFF}") from None
