"""The scripted model as an `httpx2` transport: a plain `AsyncOpenAI` client talks to it, without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx2

from ..arguments import plain_text
from ..records import Reply
from ..wire import ModelError, message
from .endpoint import LAB_HOST, TURN
from .scripted import NAME, Script, scripted

BASE_URL = f"http://{LAB_HOST}/v1"


class transport(httpx2.AsyncBaseTransport):
    """`httpx2.AsyncClient(transport=models.transport(script))` answers `/chat/completions` from a script, streaming too.

    Which reply comes next is told by a header of our own client, else counted by the assistant messages in the request. What
    goes wrong in the script comes back as an HTTP error with a sentence, as an endpoint would answer."""

    def __init__(self, script: Script | scripted) -> None:
        self.model = script if isinstance(script, scripted) else scripted(script)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.rstrip("/")
        if path.endswith("/models"):
            return httpx2.Response(
                200, json={"object": "list", "data": [{"id": NAME, "object": "model", "owned_by": "agentlab"}]}
            )
        if not path.endswith("/chat/completions"):
            return refused(404, f"The scripted model answers /chat/completions only, not {path}.")
        try:
            body = json.loads(await request.aread())
            counted = sum(isinstance(m, Mapping) and m.get("role") == "assistant" for m in body["messages"])
            turn = int(request.headers.get(TURN, counted))
        except (ValueError, KeyError, TypeError, RecursionError):
            return refused(400, "The request holds no messages.")
        try:
            reply = await self.model.reply(body, turn)
        except asyncio.CancelledError:
            raise
        except ModelError as error:
            return refused(400, str(error))
        except Exception as error:
            return refused(400, f"The script raised {type(error).__name__}: {error}")
        completion = completion_of(reply, str(body.get("model") or NAME))
        if not body.get("stream"):
            return httpx2.Response(200, json=completion)
        wanted = body.get("stream_options")
        return streamed(completion, isinstance(wanted, Mapping) and bool(wanted.get("include_usage")))


def completion_of(reply: Reply, model: str) -> dict[str, Any]:
    """The wire form of a reply. Arguments go out as raw as the script has them: learners' loops must meet broken ones too."""
    said: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.calls:
        said = message(reply)
        for sent, call in zip(said["tool_calls"], reply.calls, strict=True):
            sent["function"] = {"name": call.name, "arguments": plain_text(call.arguments)}
    choice = {"index": 0, "message": said, "finish_reason": reply.finish or ("tool_calls" if reply.calls else "stop")}
    done: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
    }
    if reply.usage:
        prompt, written = reply.usage.get("prompt", 0), reply.usage.get("completion", 0)
        done["usage"] = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
    return done


def streamed(completion: dict[str, Any], with_usage: bool) -> httpx2.Response:
    """A completion as a stream of chunks, in pieces as an endpoint sends them."""
    choice = completion["choices"][0]
    said = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "" if said.get("content") else None}]
    text = said.get("content") or ""
    deltas += [{"content": text[at : at + 20]} for at in range(0, len(text), 20)]
    deltas += [{"tool_calls": [{"index": k, **call}]} for k, call in enumerate(said.get("tool_calls", ()))]
    usage = completion.pop("usage", None)
    frame = {**completion, "object": "chat.completion.chunk"}
    chunks = [{**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if with_usage and usage:
        chunks.append({**frame, "choices": [], "usage": usage})
    lines = "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=lines.encode())


def refused(status: int, why: str, kind: str = "agentlab") -> httpx2.Response:
    """An error as an endpoint words it, not to be tried again."""
    error = {"message": why, "type": kind, "code": None}
    return httpx2.Response(status, json={"error": error}, headers={"x-should-retry": "false"})
