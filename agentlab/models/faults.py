"""Faults of an endpoint, on purpose: what goes wrong below the model, whatever it says.

A fault is a transport around another. Most strike at each request once: the client's next try of the same request is let
through, so that one can see whether there is a next try, how many, and how long it waited.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from .offline import refused

FAULTS = {
    "busy": "429 with Retry-After, once for each request; a patient client gets through",
    "quota": "429 that says the quota is used up, always: trying again is of no use",
    "down": "503 once for each request",
    "bad_request": "400 always: the same request again will be refused again",
    "html": "200 with a page of HTML instead of JSON",
    "no_choices": "200 with a completion that holds no choices",
    "cut": "the answer breaks off in the middle, once for each request",
    "cut_calls": "a streamed answer ends before its tool call's arguments are whole, without an error",
    "slow": "the answer comes after 5 seconds",
    "hangs": "the answer never comes",
}


class faulty(httpx2.AsyncBaseTransport):  # used as a function
    """`models.faulty("busy", transport)`: the answers of `transport`, with one of `FAULTS`. Raises ValueError for another."""

    def __init__(self, fault: str, transport: httpx2.AsyncBaseTransport, slow: float = 5.0) -> None:
        if fault not in FAULTS:
            raise ValueError(f"There is no fault {fault!r}. There are: {', '.join(FAULTS)}.")
        self.fault, self._inner, self._slow = fault, transport, slow
        self._seen: set[str] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not request.url.path.rstrip("/").endswith("/chat/completions"):
            return await self._inner.handle_async_request(request)
        first = self._is_first(await request.aread())
        match self.fault:
            case "busy" if first:
                error = {"message": "Too many requests. Wait a second.", "type": "requests", "code": "rate_limit_exceeded"}
                return httpx2.Response(429, json={"error": error}, headers={"retry-after": "1"})
            case "quota":
                error = {"message": "You have used up your quota.", "type": "insufficient_quota", "code": "insufficient_quota"}
                return httpx2.Response(429, json={"error": error})
            case "down" if first:
                return httpx2.Response(503, json={"error": {"message": "Overloaded.", "type": "server_error", "code": None}})
            case "bad_request":
                return refused(400, "This endpoint refuses every request.", "invalid_request_error")
            case "html":
                return httpx2.Response(
                    200, text="<!doctype html><h1>Welcome to the proxy</h1>", headers={"content-type": "text/html"}
                )
            case "slow":
                await asyncio.sleep(self._slow)
            case "hangs":
                await asyncio.Event().wait()
        answer = await self._inner.handle_async_request(request)
        match self.fault:
            case "no_choices" if answer.status_code == 200:
                return httpx2.Response(200, json={"id": "chatcmpl-none", "object": "chat.completion", "choices": []})
            case "cut" if first and answer.status_code == 200:
                whole = await answer.aread()
                return httpx2.Response(200, headers=_kind(answer), stream=_Torn(whole[: len(whole) // 2]))
            case "cut_calls" if _is_stream(answer):
                return httpx2.Response(200, headers=_kind(answer), content=_without_end((await answer.aread()).decode()))
        return answer

    def _is_first(self, body: bytes) -> bool:
        """Whether this request comes for the first time; a client that tries again sends the same bytes."""
        mark = hashlib.sha256(body).hexdigest()
        seen = mark in self._seen
        self._seen.add(mark)
        return not seen

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Torn(httpx2.AsyncByteStream):
    """The first part of an answer, then a broken connection."""

    def __init__(self, part: bytes) -> None:
        self._part = part

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._part
        raise httpx2.ReadError("the connection broke off, on purpose")


def _is_stream(answer: httpx2.Response) -> bool:
    return answer.headers.get("content-type", "").startswith("text/event-stream")


def _kind(answer: httpx2.Response) -> dict[str, str]:
    return {"content-type": answer.headers.get("content-type", "application/json")}


def _without_end(text: str) -> bytes:
    """A stream whose tool calls lose the second half of their arguments, and which ends with nothing said about it."""
    out = []
    for event in text.split("\n\n"):
        if not event.startswith("data: {"):
            continue
        chunk: dict[str, Any] = json.loads(event[6:])
        choice = (chunk.get("choices") or [{}])[0]
        if choice.get("finish_reason"):
            break
        for call in (choice.get("delta") or {}).get("tool_calls") or ():
            function = call.get("function") or {}
            function["arguments"] = function.get("arguments", "")[: len(function.get("arguments", "")) // 2]
        out.append(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n")
    return "".join(out).encode()
