"""A model behind any OpenAI-compatible endpoint, by chat completions: the common denominator.

The request goes out as a raw body: the SDK's typed method checks every message of every request against its types, 0.2 ms each,
which at 200 turns is most of what a hand-written loop costs. A raw body is the same on the wire and is not walked.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..records import Ask, Reply
from ..wire import ModelError, reply_from

if TYPE_CHECKING:
    from openai import AsyncOpenAI

LAB_HOST = "lab.invalid"  # the base URL of lessons: a name that no network resolves
TURN = "x-agentlab-turn"  # tells the scripted transport how many replies the run has; sent to no other endpoint


LONGEST_WAIT = 60.0  # seconds that an endpoint may ask to wait; a person would rather be told
SPENT = re.compile(
    r"quota|used up|\bspent\b|exhausted|month|\brenew|out of credit|no credit|insufficient (?:credit|balance|fund)", re.IGNORECASE
)
SOON = re.compile(r"per (?:second|minute|min|hour)\b|\b[RT]PM\b|try again in|slow down|too many requests", re.IGNORECASE)


class openai:  # used as a function; a class, so that its repr can leave out the key
    """`models.openai("model-name")`, or with an `AsyncOpenAI` client of your own.

    The name comes from `OPENAI_MODEL` where it is not given; key and address from `OPENAI_API_KEY` and `OPENAI_BASE_URL`, as
    the SDK reads them. How often a request is tried again is the client's
    `max_retries`. `options` go into each request as they are (temperature …).
    Raises ValueError without a model name; `ModelError`, without the key in it, when the endpoint cannot be asked.
    """

    def __init__(self, model: str | None = None, client: AsyncOpenAI | None = None, **options: Any) -> None:
        if client is not None and not hasattr(client, "post"):
            raise TypeError(f"client must be an AsyncOpenAI client, not {type(client).__name__}.")
        if client is not None and type(client).__name__ == "OpenAI":
            raise TypeError("client is a sync OpenAI client. Write AsyncOpenAI(…): the loop runs calls together.")
        if model is not None and not isinstance(model, str):
            raise TypeError(f"The model's name must be text, not {type(model).__name__}.")
        name = model or os.environ.get("OPENAI_MODEL") or ("scripted" if client is not None and _is_lab(client) else None)
        if not name:
            raise ValueError(
                'No model name. Write models.openai("the-name"), or set OPENAI_MODEL. Your endpoint lists its names at /models.'
            )
        self.name, self.options, self._client, self._own = name, options, client, client is None

    def __repr__(self) -> str:
        return f"<models.openai {self.name!r}>"

    @property
    def client(self) -> AsyncOpenAI:
        """The client, made at first use: building one costs 60 ms, importing the SDK more."""
        if self._client is None:
            import openai as sdk

            try:
                self._client = sdk.AsyncOpenAI()
            except sdk.OpenAIError:
                raise ModelError(
                    "No API key. Set OPENAI_API_KEY (any text for a local server, with OPENAI_BASE_URL), "
                    "or use models.scripted([…])."
                ) from None
        return self._client

    async def aclose(self) -> None:
        """Close the connections, where the client was made here; the next request makes a new one."""
        if self._own and self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def __call__(self, ask: Ask) -> Reply:
        import openai as sdk

        body: dict[str, Any] = {"model": self.name, "messages": list(ask.messages), **self.options}
        if ask.tools:
            body["tools"] = list(ask.tools)
        else:  # endpoints refuse these where there are no tools
            body.pop("tool_choice", None)
            body.pop("parallel_tool_calls", None)
        if body["messages"][-1:] and body["messages"][-1]["role"] == "tool":
            body.pop("tool_choice", None)  # a forced call is meant for the first step: forced in each, it would never end
        client = self.client
        headers = {TURN: str(ask.turn)} if _is_lab(client) else {}
        try:
            raw = await self._posted(client, body, headers)
        except sdk.OpenAIError as error:
            raise ModelError(masked(self._said(error), client)) from None
        except UnicodeError:  # the header cannot be written; its words would quote the key
            raise ModelError("The API key holds characters that no header can carry. Check OPENAI_API_KEY.") from None
        except RuntimeError as error:
            if "loop" not in str(error):
                raise
            raise ModelError(
                "The client was used in an event loop that has ended. Make a new AsyncOpenAI for each run_sync(), "
                "or leave the client out: models.openai(…) makes its own."
            ) from None
        try:
            completion = raw.json()
        except ValueError:
            raise ModelError(
                f"The endpoint at {client.base_url.host} answered with something that is no JSON. Is its address right (…/v1)?"
            ) from None
        return reply_from(completion if isinstance(completion, Mapping) else {})

    async def _posted(self, client: AsyncOpenAI, body: dict[str, Any], headers: dict[str, str]) -> Any:
        """One request, tried again as often as the client's `max_retries` says. This layer alone tries again: the SDK would do it
        where the quota is used up, too, and would not say so."""
        import httpx2
        import openai as sdk

        tries = 1 + int(getattr(client, "max_retries", 0))
        for tried in range(tries):
            try:
                options: Any = {"headers": headers, "max_retries": 0}
                return await client.post("/chat/completions", cast_to=httpx2.Response, body=body, options=options)
            except sdk.APIError as error:
                wait = patience(error, tried)
                if wait is None or tried == tries - 1:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _said(self, error: Exception) -> str:
        """What happened and what to do, by the kind of error."""
        import openai as sdk

        where = self.client.base_url.host or "The endpoint"
        match error:
            case sdk.APITimeoutError():
                return f"{where} gave no answer in time. Try again, or give the client a longer timeout."
            case sdk.APIConnectionError():
                return f"{where} cannot be reached. Check OPENAI_BASE_URL and the network, or use the scripted model."
            case sdk.AuthenticationError():
                return f"{where} refused the key (401). Check OPENAI_API_KEY; it is read when the client is made."
            case sdk.PermissionDeniedError():
                return f"{where} does not allow this (403): {_detail(error)}"
            case sdk.NotFoundError():
                about = f"{where} knows no model {self.name!r}, or the address is wrong (404): {_detail(error)}."
                return f"{about} Change the model name, or OPENAI_BASE_URL."
            case sdk.RateLimitError() if _is_spent(error):
                return f"{where}: the quota is used up (429): {_detail(error)}. Trying again does not help before it is renewed."
            case sdk.RateLimitError():
                asked = error.response.headers.get("retry-after")
                hint = f" It asks to wait {asked[:40]} s." if asked else ""
                return f"{where} asks to wait, since too much came at once (429): {_detail(error)}.{hint}"
            case sdk.APIStatusError():
                return f"{where} answered {error.status_code}: {_detail(error)}"
        return f"{type(error).__name__}: {error}"


def patience(error: Any, tried: int) -> float | None:
    """How many seconds to wait before the same request is sent again; None where that is of no use.

    What the endpoint asks for (Retry-After) is waited, up to a minute; else half a second, doubled each time. A request that was
    refused is never sent again as it is, nor is one whose quota is used up."""
    import openai as sdk

    if isinstance(error, sdk.APIConnectionError):  # a timeout is one
        return _backoff(tried)
    status, headers = getattr(error, "status_code", 0), getattr(getattr(error, "response", None), "headers", {})
    if _is_spent(error) or headers.get("x-should-retry") == "false":
        return None
    if status not in (408, 409, 429) and status < 500:
        return None
    try:
        asked = float(headers.get("retry-after-ms", "")) / 1000 if "retry-after-ms" in headers else float(headers["retry-after"])
    except (KeyError, ValueError):  # none, or a date
        return _backoff(tried)
    return asked if 0 <= asked <= LONGEST_WAIT else None


def _backoff(tried: int) -> float:
    return float(min(0.5 * 2**tried, 8.0)) * random.uniform(0.75, 1.0)  # many that failed together do not come back together


def _is_spent(error: Any) -> bool:
    """Whether a 429 says that a quota is used up, rather than that too much came at once."""
    if getattr(error, "status_code", 0) != 429:
        return False
    if {getattr(error, "code", None), getattr(error, "type", None)} & {"insufficient_quota", "billing_hard_limit_reached"}:
        return True
    said = _detail(error)
    return bool(SPENT.search(said)) and not SOON.search(said)


def _detail(error: Any) -> str:
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, Mapping) else None
    return str(said or getattr(error, "message", error)).rstrip(". ")[:500]


def masked(text: str, client: Any) -> str:
    """`text` without the client's key, whole or in the parts by which endpoints quote it."""
    key = str(getattr(client, "api_key", "") or "")
    if len(key) >= 4:
        text = text.replace(key, "[key]")
    words = []
    for word in text.split(" "):
        bare = word.strip(".,:;'\"()[]")
        starred = "*" in bare and key and (bare[:3] == key[:3] or bare[-4:] == key[-4:])
        words.append(word.replace(bare, "[key]") if starred else word)
    return " ".join(words)


def _is_lab(client: Any) -> bool:
    return getattr(getattr(client, "base_url", None), "host", "") == LAB_HOST
