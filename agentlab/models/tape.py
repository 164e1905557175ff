"""A tape of what an endpoint said. It answers until the first request that differs, and says that it left the tape.

A tape is a file of JSON lines, each a request's body and the completion that it got. Only answers that went well are kept, and
no header: a key never gets in, and where a text quotes it, it is masked. How an answer was wanted (streamed or whole) does not
count: it is played in the form that is asked for. Equal requests are played in the order in which they were recorded, the last
one again and again; so going back and forking find what they found before.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2

from ..records import Ask, Reply
from ..streams import completion_in
from ..wire import ModelError
from .endpoint import openai
from .offline import BASE_URL, refused, streamed

TAPE = "x-agentlab-tape"  # says of each answer whether it was "played", "recorded" or only "passed" on
FORM = ("stream", "stream_options")  # how an answer is wanted, which does not count


class network(httpx2.AsyncBaseTransport):  # used as a function
    """The real network as a transport: an ordinary client, so that proxies and certificates are read from the environment."""

    _client: httpx2.AsyncClient | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._client is None:
            self._client = httpx2.AsyncClient()
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()


class recorded(httpx2.AsyncBaseTransport):
    """`models.recorded("run.jsonl")` is a model that plays a tape, and an `httpx2` transport that does.

    Without `upstream`, a request that is not on the tape is refused, with the first difference. With one (an address such as
    "https://api.openai.com/v1", or a transport), it is passed on and the answer is recorded. `left` is None, or says where the
    requests left the tape. Raises FileNotFoundError where there is no tape and no upstream, ValueError where the file is none.
    """

    def __init__(
        self, tape: str | Path, upstream: str | httpx2.AsyncBaseTransport | None = None, model: str | None = None
    ) -> None:
        self.path = Path(tape)
        self.address = upstream.rstrip("/") if isinstance(upstream, str) else BASE_URL
        self._upstream = network() if isinstance(upstream, str) else upstream
        self.left: str | None = None
        self.exchanges = list(self._read())
        self._played: dict[str, int] = {}
        self._model = model
        self._asker: openai | None = None

    def __repr__(self) -> str:
        return f"<models.recorded {self.path.name!r}: {len(self.exchanges)} exchanges>"

    def _read(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            if self._upstream is None:
                raise FileNotFoundError(f"There is no tape {self.path}. Record one: models.recorded(path, upstream=…).")
            return
        lines = self.path.read_text("utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                exchange = json.loads(line)
            except ValueError:
                if number == len(lines):  # the process died while it wrote
                    self.path.write_text("".join(f"{whole}\n" for whole in lines[:-1]), "utf-8")
                    return
                raise ValueError(f"{self.path} is no tape: line {number} is no JSON.") from None
            if not isinstance(exchange, dict) or not all(isinstance(exchange.get(key), dict) for key in ("request", "answer")):
                raise ValueError(f"{self.path} is no tape: line {number} holds no request and answer.")
            yield exchange

    # ---- as a model ----
    async def __call__(self, ask: Ask) -> Reply:
        if self._asker is None:
            import openai as sdk

            name = self._model or next((str(one["request"].get("model")) for one in self.exchanges), None)
            name = name or os.environ.get("OPENAI_MODEL")
            if not name:
                raise ModelError("The tape is empty, so the model has no name yet: models.recorded(path, upstream=…, model=…).")
            client = sdk.AsyncOpenAI(
                api_key=os.environ.get("OPENAI_API_KEY") or "offline",
                base_url=self.address,
                http_client=httpx2.AsyncClient(transport=self),
            )
            self._asker = openai(name, client=client)
        return await self._asker(ask)

    # ---- as a transport ----
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not request.url.path.rstrip("/").endswith("/chat/completions"):
            if self._upstream is None:
                return refused(404, f"A tape answers /chat/completions only, not {request.url.path}.")
            return await self._upstream.handle_async_request(request)
        key = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        try:
            body = json.loads(_masked((await request.aread()).decode("utf-8"), key))
            if not isinstance(body["messages"], list):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            return refused(400, "The request holds no messages.")
        wanted = {key: body.pop(key, None) for key in FORM}
        found = self._next(body)
        if found is not None:
            return _played(found["answer"], wanted)
        if self.left is None:
            self.left = self._difference(body)
        if self._upstream is None:
            return refused(409, f"The run left the tape. {self.left} Record it anew, or give an upstream.")
        answer = await self._upstream.handle_async_request(request)
        if answer.status_code != 200:  # what went wrong is passed on, not kept: played again, it would never come right
            answer.headers[TAPE] = "passed"
            return answer
        headers = {"content-type": answer.headers.get("content-type", "application/json"), TAPE: "recorded"}
        return httpx2.Response(200, headers=headers, stream=_Recorder(answer, self, body, key))

    def _next(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        same = _canonical(body)
        found = [one for one in self.exchanges if _canonical(one["request"]) == same]
        if not found:
            return None
        at = self._played.get(same, 0)
        self._played[same] = at + 1
        return found[min(at, len(found) - 1)]

    def _difference(self, body: Mapping[str, Any]) -> str:
        if not self.exchanges:
            return "The tape is empty."
        nearest = max(self.exchanges, key=lambda one: _alike(one["request"].get("messages"), body.get("messages")))
        where = difference(nearest["request"], body)
        number = self.exchanges.index(nearest) + 1
        return f"The nearest of its {len(self.exchanges)} requests is number {number}; {where}."

    def keep(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Write one exchange down at once: a line is whole, or it is the last and torn."""
        exchange = {"request": request, "answer": answer}
        self.exchanges.append(exchange)
        same = _canonical(exchange["request"])
        self._played[same] = self._played.get(same, 0) + 1
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(exchange, ensure_ascii=False) + "\n")

    async def aclose(self) -> None:
        if self._upstream is not None:
            await self._upstream.aclose()


class _Recorder(httpx2.AsyncByteStream):
    """An answer on its way through: passed on as it comes, kept when it came whole."""

    def __init__(self, answer: httpx2.Response, tape: recorded, request: dict[str, Any], key: str) -> None:
        self._answer, self._tape, self._request, self._key = answer, tape, request, key

    async def __aiter__(self) -> AsyncIterator[bytes]:
        said = bytearray()
        async for piece in self._answer.aiter_bytes():  # decoded: what is passed on says nothing of an encoding
            said += piece
            yield piece
        whole = _whole(said.decode("utf-8", "replace"), self._answer.headers.get("content-type", ""))
        if whole is not None:  # masked as a whole: in pieces, a key stands in none of them
            self._tape.keep(self._request, json.loads(_masked(json.dumps(whole, ensure_ascii=False), self._key)))

    async def aclose(self) -> None:
        await self._answer.aclose()


def _whole(text: str, kind: str) -> dict[str, Any] | None:
    """The completion in an answer, streamed or not; None where it is none, or broke off."""
    try:
        if kind.startswith("text/event-stream"):
            return completion_in(text)
        answer = json.loads(text)
    except (ValueError, RecursionError, ModelError):
        return None
    return answer if isinstance(answer, dict) and answer.get("choices") else None


def _played(answer: Mapping[str, Any], wanted: Mapping[str, Any]) -> httpx2.Response:
    options = wanted.get("stream_options")
    with_usage = isinstance(options, Mapping) and bool(options.get("include_usage"))
    played = streamed(dict(answer), with_usage) if wanted.get("stream") else httpx2.Response(200, json=answer)
    played.headers[TAPE] = "played"
    return played


def _masked(text: str, key: str) -> str:
    return text.replace(key, "[key]") if len(key) >= 8 else text


def _canonical(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, ensure_ascii=False)


def _alike(one: Any, other: Any) -> int:
    """How many messages two histories have in common at their beginning."""
    if not isinstance(one, list) or not isinstance(other, list):
        return 0
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def difference(then: Any, now: Any, path: str = "") -> str | None:
    """The first place where two JSON values part, in words; None where they are the same."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys([*then, *now]):
            inner = f"{path}.{key}" if path else str(key)
            if key not in now:
                return f"{inner} is missing, it was {_brief(then[key])}"
            if key not in then:
                return f"{inner} is new: {_brief(now[key])}"
            if found := difference(then[key], now[key], inner):
                return found
        return None
    if isinstance(then, list) and isinstance(now, list):
        for at, (a, b) in enumerate(zip(then, now, strict=False)):
            if found := difference(a, b, f"{path}[{at}]"):
                return found
        return None if len(then) == len(now) else f"{path} has {len(now)} entries, it had {len(then)}"
    return None if then == now and type(then) is type(now) else f"{path} is {_brief(now)}, it was {_brief(then)}"


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"
