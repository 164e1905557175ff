"""The second door: hold the requests of a loop that somebody else wrote, until the person lets them through (I, N6).

Every loop that talks to a model passes its HTTP client. `Door` is a transport that waits there: first with the request,
then with the reply. It finds its stepper by a context variable and passes straight through outside one, so a client made
with it works everywhere. The request's body is the message history, and the frame above the gate is the learner's own line.

What it lacks: sync clients (their wait would block the kernel), and endpoints other than chat completions, which pass.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import linecache
import os
import re
import reprlib
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, CoroutineType, FrameType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from .streams import completion_in
from .wire import ModelError

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport, Request, Response
else:  # httpx2 is loaded when the first request comes: a transport needs no more than the three methods below
    AsyncBaseTransport = object

HERE = str(Path(__file__).resolve().parent) + os.sep
SOLUTIONS = os.path.join(HERE, "teach", "solutions") + os.sep
LIBRARIES = tuple(sorted({sysconfig.get_paths()[key] + os.sep for key in ("stdlib", "platstdlib", "purelib", "platlib")}))
SECRET = re.compile(r"key|token(?!s)|secret|passw|credential|authori[sz]ation|cookie", re.IGNORECASE)
NAMED_SECRET = re.compile(r"((?:key|token|secret|password|authorization)['\"]?\s*[:=]\s*)(['\"][^'\"]*['\"])", re.IGNORECASE)
LOOKS_SECRET = re.compile(r"\b(?:sk|pk|ghp|gho|hf|xox[abp])[-_][\w-]{8,}|\beyJ[\w-]{20,}|\bBearer\s+\S+")
MASK = "•••"


# ---- the line at which the learner's function waits ----
@dataclass(frozen=True)
class Line:
    """A line of the learner's code, with its neighbours and a few of its locals."""

    file: str
    lineno: int
    text: str
    around: tuple[tuple[int, str], ...] = ()
    locals: tuple[tuple[str, str], ...] = ()

    def wire(self) -> dict[str, Any]:
        return {
            "file": self.file, "lineno": self.lineno, "text": self.text,
            "around": [list(pair) for pair in self.around], "locals": [list(pair) for pair in self.locals],
        }  # fmt: skip


def paused_line(frame: FrameType | None, root: object = None) -> Line | None:
    """The learner's line that led here: up from `frame`, else down the chain of awaits that begins at `root`."""
    while frame is not None and not _is_event_loop(frame.f_code):  # below it stands whoever runs the loop, not the caller
        if is_theirs(frame.f_code):
            return line_of(frame, frame.f_lineno)
        frame = frame.f_back
    return line_in(root)


def _is_event_loop(code: CodeType) -> bool:
    return code.co_name == "_run" and code.co_filename.endswith(os.path.join("asyncio", "events.py"))


def line_in(root: object) -> Line | None:
    """Where the coroutine `root` stands: its innermost frame that is the learner's own, else its own frame."""
    found: FrameType | None = None
    first: FrameType | None = None
    while isinstance(root, CoroutineType):
        at = root.cr_frame
        if at is not None:
            first = first or at
            found = at if is_theirs(at.f_code) else found
        root = root.cr_await
    at = found or first
    return line_of(at, at.f_lineno) if at is not None else None


def crashed_line(error: BaseException) -> Line | None:
    """The innermost line of the learner's own code that `error` came through."""
    found: TracebackType | None = None
    at = error.__traceback__
    while at is not None:
        if is_theirs(at.tb_frame.f_code):
            found = at
        at = at.tb_next
    return line_of(found.tb_frame, found.tb_lineno) if found is not None else None


def is_theirs(code: CodeType) -> bool:
    """Whether this code is the person's: not a library's, not Python's, not agentlab's."""
    name = code.co_filename
    if name.startswith(SOLUTIONS):  # a lesson runs on its solution in place of the learner's function: that is theirs too
        return True
    if name.startswith(("<frozen", HERE)) or f"{os.sep}site-packages{os.sep}" in name:
        return False
    return not name.startswith(LIBRARIES)


def line_of(frame: FrameType, lineno: int) -> Line:
    code = frame.f_code
    first = max(1, code.co_firstlineno, lineno - 2)
    lines = ((number, linecache.getline(code.co_filename, number).rstrip()[:160]) for number in range(first, lineno + 3))
    around = tuple((number, text) for number, text in lines if text or number == lineno)
    text = linecache.getline(code.co_filename, lineno).strip()[:160]
    return Line(short_name(code), lineno, text, around, tuple(some_locals(frame.f_locals)))


def short_name(code: CodeType) -> str:
    """What to call the file: never its path."""
    name = code.co_filename
    if name.startswith("<") or re.search(r"ipykernel_\d+", name):
        return f"your cell, {code.co_name}"
    return f"{Path(name).name}, {code.co_name}"


def some_locals(names: Mapping[str, Any], at_most: int = 6) -> Iterator[tuple[str, str]]:
    """A few locals in short: what the person named, no modules, functions or clients, and nothing secret."""
    shown = 0
    for name, value in names.items():
        if shown == at_most:
            return
        if name.startswith("_") or isinstance(value, ModuleType | type) or callable(value) or hasattr(value, "aclose"):
            continue
        if type(value).__module__.partition(".")[0] == "openai" and hasattr(value, "chat"):
            continue
        yield name, MASK if SECRET.search(name) else masked(briefly(value))
        shown += 1


_short = reprlib.Repr()
_short.maxlevel, _short.maxdict, _short.maxlist, _short.maxtuple, _short.maxstring, _short.maxother = 3, 4, 3, 3, 60, 80


def briefly(value: object) -> str:
    try:  # a text is masked before it is cut: half a key would no longer be known as one
        text = _short.repr(masked(value) if type(value) is str else value)
    except Exception as error:  # a learner's __repr__ may raise; the stepper must not
        text = f"<{type(value).__name__}: repr raised {type(error).__name__}>"
    return text if len(text) <= 160 else text[:157] + "…"


_keys: set[str] = set()  # those that passed a door: kept in memory only, to be recognised


def masked(text: str) -> str:
    """`text` without what looks like a key, the key that is in the environment, and those that passed a door."""
    for key in (os.environ.get("OPENAI_API_KEY", ""), *_keys):
        if len(key) >= 6:
            text = text.replace(key, MASK)
    text = NAMED_SECRET.sub(rf"\1'{MASK}'", text)
    return LOOKS_SECRET.sub(MASK, text)


# ---- what goes through ----
@dataclass(frozen=True)
class Answer:
    """A reply as it came over the wire: kept, so that a fork can be given it again."""

    status: int
    headers: tuple[tuple[str, str], ...]
    content: bytes

    @property
    def streamed(self) -> bool:
        return any(name.lower() == "content-type" and "event-stream" in value for name, value in self.headers)

    def completion(self) -> dict[str, Any]:
        """The chat completion in it; a stream is put together. What is no completion comes as {"error": …}."""
        text = self.content.decode("utf-8", "replace")
        if self.streamed:
            try:
                return completion_in(text)
            except ModelError as error:
                return {"error": {"message": str(error)}}
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict) and (self.status < 400 or found.get("error")):
            return found
        return {"error": {"message": f"HTTP {self.status}: {text[:300]}"}}

    def with_message(self, message: Mapping[str, Any]) -> Answer:
        """The same answer with another message in it, as if the model had said that."""
        body = self.completion()
        choice: dict[str, Any] = {"index": 0, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}
        kept = {key: value for key, value in body.items() if key not in ("choices", "error")}
        if self.streamed:
            delta = dict(message)
            delta["tool_calls"] = [{"index": n, **call} for n, call in enumerate(message.get("tool_calls") or [])]
            chunk = {**kept, "object": "chat.completion.chunk", "choices": [{**choice, "delta": delta}]}
            return Answer(200, self.headers, f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())
        whole = {**kept, "choices": [{**choice, "message": dict(message)}]}
        return Answer(200, self.headers or (("content-type", "application/json"),), json.dumps(whole).encode())

    def response(self, request: Request) -> Response:
        import httpx2

        return httpx2.Response(self.status, headers=list(self.headers), content=self.content, request=request)


@dataclass(eq=False)
class Ticket:
    """One request that waits at the gate: first for leave to go, then with its reply for leave to return."""

    number: int
    body: dict[str, Any]
    line: Line | None
    leave: asyncio.Future[tuple[dict[str, Any], Answer | None]]  # the body to send, or a reply to give in its place
    back: asyncio.Future[Answer]
    answer: Answer | None = None
    failure: BaseException | None = None
    sent: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return "reply" if self.answer is not None else "request"


class Gate:
    """Where the requests of one run of the learner's function wait, oldest first. Several may wait at once."""

    def __init__(self, root: object = None) -> None:
        self.root = root
        self.waiting: list[Ticket] = []
        self.count = 0
        self.given_up = False  # the run is over: nothing goes through on its account any more
        self._bell = asyncio.Event()

    async def hold(self, request: Request, body: dict[str, Any], inner: AsyncBaseTransport) -> Response:
        loop = asyncio.get_running_loop()
        line = paused_line(sys._getframe(), self.root)
        ticket = Ticket(self.count, body, line, loop.create_future(), loop.create_future())
        self.count += 1
        self.waiting.append(ticket)
        self.ring()
        try:
            ticket.sent, given = await ticket.leave
            ticket.answer = given or await self._fetch(request, ticket, inner)
            self.ring()
            return (await ticket.back).response(request)
        except BaseException as error:
            ticket.failure = error
            raise
        finally:
            self.waiting.remove(ticket)
            self.ring()

    async def _fetch(self, request: Request, ticket: Ticket, inner: AsyncBaseTransport) -> Answer:
        import httpx2

        if ticket.sent is not ticket.body:  # the person edited a message: another body, another length
            length = ("content-length", "transfer-encoding")
            headers = [(k, v) for k, v in request.headers.multi_items() if k.lower() not in length]
            content = json.dumps(ticket.sent, ensure_ascii=False).encode()
            request = httpx2.Request(request.method, request.url, headers=headers, content=content, extensions=request.extensions)
        response = await inner.handle_async_request(request)
        content = await response.aread()
        await response.aclose()
        # `aread` unpacked it, so the headers that describe the packing no longer hold
        packing = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(k, v) for k, v in response.headers.multi_items() if k.lower() not in packing]
        return Answer(response.status_code, tuple(headers), content)

    def ring(self) -> None:
        self._bell.set()

    async def rung(self) -> None:
        """Return when something at the gate has changed."""
        await self._bell.wait()
        self._bell.clear()

    def give_up(self) -> None:
        """Let nothing through from here on: who was stopped must not go on asking unseen."""
        self.given_up = True
        for ticket in self.waiting:
            ticket.leave.cancel()
            ticket.back.cancel()


at_gate: contextvars.ContextVar[Gate | None] = contextvars.ContextVar("agentlab_gate", default=None)


class Door(AsyncBaseTransport):
    """An httpx2 transport that lets a stepper hold what passes; outside a stepper it is the transport inside it."""

    def __init__(self, inner: AsyncBaseTransport) -> None:
        self.inner = inner

    async def handle_async_request(self, request: Request) -> Response:
        gate = at_gate.get()
        if gate is None:
            return await self.inner.handle_async_request(request)
        if gate.given_up:
            import httpx2

            raise httpx2.ConnectError("The stepper gave this run up: it was stopped, or it had come to its end.", request=request)
        _keys.add(request.headers.get("authorization", "").removeprefix("Bearer ").strip())
        body = chat_body(await request.aread())
        if body is None:
            return await self.inner.handle_async_request(request)
        return await gate.hold(request, body, self.inner)

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def __aenter__(self) -> Door:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Through(AsyncBaseTransport):
    """The way that a client of somebody's own takes: its proxies, certificates and hooks stay."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def handle_async_request(self, request: Request) -> Response:
        response: Response = await self._client.send(request, stream=True)
        return response

    async def aclose(self) -> None:
        await self._client.aclose()


def with_door(client: Any) -> Any:
    """`client` as it is where its requests pass a door, else a copy of it whose requests do. What is no client of the SDK stays.

    Raises TypeError for a sync one: its wait at the door would block the kernel."""
    import httpx2

    http = getattr(client, "_client", None)
    if isinstance(http, httpx2.Client):
        raise TypeError("client is a sync OpenAI client, which cannot wait for you. Use AsyncOpenAI(…), or lab.client().")
    if not isinstance(http, httpx2.AsyncClient) or isinstance(getattr(http, "_transport", None), Door):
        return client
    return client.with_options(http_client=httpx2.AsyncClient(transport=Door(_Through(http)), timeout=http.timeout))


def chat_body(content: bytes) -> dict[str, Any] | None:
    """The body of a chat completion request, or None where this is another kind of request."""
    try:
        body = json.loads(content)
    except ValueError:
        return None
    return body if isinstance(body, dict) and isinstance(body.get("messages"), list) else None
