"""A transport as a server on this machine, so that any agent in any framework can talk to it: `agentlab serve`.

What answers is an `httpx2` transport: a model of the zoo, a tape, the way to a real endpoint, a fault around one of them. The
server only carries bytes. It listens on the loopback address, refuses what comes from web pages, and keeps no header.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2

HOST = "127.0.0.1"
LOCAL = {"127.0.0.1", "localhost", "[::1]"}
AT_MOST = 64 * 2**20  # bytes of one request
PASSED_ON = ("authorization", "content-type", "accept", "openai-organization", "openai-project", "x-api-key")
KEPT_BACK = {"content-length", "transfer-encoding", "content-encoding", "connection", "date", "server"}

Say = Callable[[str], None]


class Server(ThreadingHTTPServer):
    """`transport` at `url`. Requests come in on threads and are answered on one event loop, which the transport needs."""

    daemon_threads = True

    def __init__(
        self, transport: httpx2.AsyncBaseTransport, port: int = 0, upstream: str | None = None, say: Say | None = None
    ) -> None:
        super().__init__((HOST, port), _Handler)
        self.transport, self.say = transport, say or (lambda line: None)
        self.url = f"http://{HOST}:{self.server_address[1]}/v1"
        self.upstream = (upstream or self.url).rstrip("/")
        self.count = 0
        self.lock = threading.Lock()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="agentlab-serve", daemon=True)
        self._thread.start()

    def server_close(self) -> None:
        super().server_close()
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._end(), self.loop).result(2)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(2)
        if not self._thread.is_alive():
            self.loop.close()

    async def _end(self) -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await self.transport.aclose()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no news."""


@contextlib.contextmanager
def serving(
    transport: httpx2.AsyncBaseTransport, port: int = 0, upstream: str | None = None, say: Say | None = None
) -> Iterator[Server]:
    """The server, running until the block ends. Port 0 means any that is free. Raises OSError where the port is taken."""
    server = Server(transport, port, upstream, say)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(2)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        try:
            length = int(self.headers.get("content-length") or "")
        except ValueError:
            return self._refuse(411, "The request has no Content-Length.")
        if not 0 <= length <= AT_MOST:
            return self._refuse(413, f"The request is longer than {AT_MOST:,} bytes.")
        return self._answer(self.rfile.read(length))

    def _answer(self, body: bytes) -> None:
        host = (self.headers.get("host") or "").rpartition(":")[0] or self.headers.get("host") or ""
        if host not in LOCAL or self.headers.get("origin"):
            # A web page may reach this port through the person's browser, under a name of its own.
            return self._refuse(403, "This server answers programs on this machine only, not web pages.")
        if not self.path.startswith("/v1/"):
            return self._refuse(404, f"The address ends in /v1: {self.server.url}. There is nothing at {self.path!r:.80}.")
        with self.server.lock:
            self.server.count += 1
            number = self.server.count
        headers = {name: value for name in PASSED_ON if (value := self.headers.get(name))}
        request = httpx2.Request(self.command, self.server.upstream + self.path[3:], headers=headers, content=body or None)
        answer = self._wait(self.server.transport.handle_async_request(request))
        if answer is None:
            self.close_connection = True
            return None
        self._send(answer)
        if self.command == "POST":
            self.server.say(f"{number:>4}  {_asked(body)} -> {answer.status_code}{_tape(answer)}")
        return None

    def _wait(self, work: Any) -> Any:
        """What the coroutine comes to, on the event loop; None where it fails or the server ends."""
        future = asyncio.run_coroutine_threadsafe(work, self.server.loop)
        try:
            return future.result()
        except Exception as error:
            if isinstance(error, httpx2.HTTPError):
                self._refuse(502, f"The endpoint behind this one cannot be reached ({type(error).__name__}).")
            return None

    def _send(self, answer: httpx2.Response) -> None:
        self.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower() not in KEPT_BACK:
                self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        pieces = answer.aiter_bytes()
        try:
            while (piece := asyncio.run_coroutine_threadsafe(_next(pieces), self.server.loop).result()) is not None:
                if piece:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except Exception:  # broken off, by either side: an answer that is not whole must not look whole
            self.close_connection = True
        finally:
            with contextlib.suppress(Exception):
                asyncio.run_coroutine_threadsafe(answer.aclose(), self.server.loop).result(2)

    def _refuse(self, status: int, why: str) -> None:
        said = json.dumps({"error": {"message": why, "type": "agentlab", "code": None}}).encode()
        self.close_connection = True
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.send_header("x-should-retry", "false")
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:
        """The server says what it does in its own words."""


async def _next(pieces: Any) -> bytes | None:
    return await anext(pieces, None)


def _asked(body: bytes) -> str:
    """What a request carries, without a word of its content."""
    try:
        asked = json.loads(body)
        messages, tools = len(asked["messages"]), len(asked.get("tools") or ())
    except (ValueError, KeyError, TypeError, RecursionError):
        return "a request that cannot be read"
    return (
        f"{messages} message{'s' * (messages != 1)}, {tools} tool{'s' * (tools != 1)}{', streamed' * bool(asked.get('stream'))}"
    )


def _tape(answer: httpx2.Response) -> str:
    from .models.tape import TAPE

    return f" ({answer.headers[TAPE]})" if TAPE in answer.headers else ""
