"""Tools: a typed function becomes something that a model can choose and a program can run (G1, G2, H1)."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import difflib
import functools
import inspect
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, overload

from .arguments import BadArguments
from .results import drawn, drawn_async, words
from .schema import described, given, hints, is_plain, made, signature_of, unwrapped

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
PREFIX = re.compile(r"^(functions?|tools?|default_api)[.:]")


class UnknownTool(KeyError):
    """The model named a tool that does not exist. The message lists the ones that do (C2)."""

    def __str__(self) -> str:
        return str(self.args[0])


class ToolError(RuntimeError):
    """What a tool did, in a sentence, where the thing itself cannot travel (StopIteration, or an exit from a thread)."""


def is_a_time(seconds: Any) -> bool:
    """Whether a wait can last so many seconds; infinity means for ever."""
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and (0 < seconds < 1e300 or seconds == math.inf)


class Tool:
    """A function with what the model is told of it. Calling it is calling the function; `run` is what the loop does."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        dangerous: bool = False,
        timeout: float | None = None,
        alone: bool = False,
        repeatable: bool = False,
        world: Any = None,
    ) -> None:
        self.function, self.world = function, world
        bare = unwrapped(function)
        self.name: str = name or str(getattr(bare, "__name__", type(bare).__name__))
        self.dangerous, self.timeout, self.alone, self.repeatable = dangerous, timeout, alone, repeatable
        if not isinstance(self.name, str) or not NAME.match(self.name):
            raise ValueError(
                f"A tool cannot be named {self.name!r}: use letters, digits, _ and -, at most 64. Pass name=… to tool()."
            )
        for flag, given_as in (("dangerous", dangerous), ("alone", alone), ("repeatable", repeatable)):
            if not isinstance(given_as, bool):
                raise TypeError(f"Tool {self.name!r} has {flag}={given_as!r:.60}: write True or False.")
        if timeout is not None and not is_a_time(timeout):
            raise ValueError(f"Tool {self.name!r} has timeout={timeout!r:.60}: give seconds above 0, or leave it out.")
        self.description, self._about = described(inspect.getdoc(bare) or "")
        self._given = given(parameters, self.name) if parameters is not None else None
        self.signature = signature_of(function, self.name, checked=parameters is None)
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}{self.signature}{', dangerous' if self.dangerous else ''}>"

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments: from the signature, or as it was given."""
        return made(self.name, self.signature, self._hints, self._about) if self._given is None else self._given

    @functools.cached_property
    def schema(self) -> dict[str, Any]:
        """The tool as a request carries it."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        return hints(self.function, self.name)

    @functools.cached_property
    def _adapters(self) -> dict[str, Any]:
        """What turns JSON values into richer types (dates, enums, models). Plain types are left as they are."""
        if self._given is not None:
            return {}
        rich = {name: kind for name, kind in self._hints.items() if name in self.signature.parameters and not is_plain(kind)}
        if not rich:
            return {}
        from pydantic import TypeAdapter

        return {name: TypeAdapter(kind) for name, kind in rich.items()}

    def bound(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """`args` as the function takes them. Raises `BadArguments` that names what is missing, unknown or of the wrong kind."""
        every = self.signature.parameters.values()
        takes_any = any(p.kind is p.VAR_KEYWORD for p in every)
        known = {p.name: p for p in every if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
        if unknown := [name for name in args if name not in known and not takes_any]:
            raise BadArguments(unknown_parameter(unknown[0], [*known], self.name))
        if missing := [p.name for p in known.values() if p.default is p.empty and p.name not in args]:
            raise BadArguments(missing_parameter(missing[0], self.parameters, self.name))
        return {name: self._rich(name, value) for name, value in args.items()}

    def _rich(self, name: str, value: Any) -> Any:
        if name not in self._adapters:
            return value
        try:
            return self._adapters[name].validate_python(value)
        except ValueError as error:
            why = error.errors()[0]["msg"] if hasattr(error, "errors") else str(error)
            raise BadArguments(f"Parameter {name!r} of {self.name} does not fit: {why}. Got {value!r:.80}.") from None

    async def run(self, args: Mapping[str, Any]) -> Any:
        """Run the function with `args`: an async one is awaited, a sync one gets a thread of its own (E3), or runs in line
        where no thread can be started. Raises whatever it raises."""
        bound = self.bound(args)
        if _is_async(self.function):
            value = self.function(**bound)
        else:  # a generator does its work when it is drawn from: on the thread, too
            value = await in_thread(lambda: drawn(self.function(**bound)))
        while inspect.isawaitable(value):
            value = await value
        return await drawn_async(value) if hasattr(value, "__anext__") else value


async def in_thread(work: Callable[[], Any]) -> Any:
    """Run `work` on a daemon thread: it cannot be killed, but it does not hold the process at exit. The default executor would,
    and has only a few threads. In line where no thread can be started (Pyodide)."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():  # left long ago (C6): the late result goes nowhere
            if inspect.iscoroutine(value):
                value.close()
        elif error is None:
            future.set_result(value)
        elif isinstance(error, Exception | SystemExit) and not isinstance(error, StopIteration):
            future.set_exception(error)
        else:  # a future cannot carry it, or it would look like an order to this process
            future.set_exception(ToolError(words(error)))

    def body() -> None:
        value, error = None, None
        try:
            value = work()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for this any more
            loop.call_soon_threadsafe(settle, value, error)

    try:
        threading.Thread(target=contextvars.copy_context().run, args=(body,), daemon=True, name="agentlab-tool").start()
        threaded = True
    except RuntimeError:
        threaded = False
    return await future if threaded else work()


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    dangerous: bool = False,
    timeout: float | None = None,
    alone: bool = False,
    repeatable: bool = False,
    world: Any = None,
) -> Any: ...
def tool(function: Callable[..., Any] | None = None, /, **about: Any) -> Any:
    """Make a tool of a typed function, sync or async. Use it as `@tool`, `@tool(dangerous=True)` or `tool(function)`.

    The docstring becomes the description: say what it does, when to use it and when not to (G1); lines under `Args:` describe
    the parameters. `parameters` is a JSON Schema in place of the one from the signature. `dangerous` calls wait for a person
    (I1). `timeout` in seconds goes before the guard's. `alone`: never at the same time as another call (E4). `repeatable`: may
    be polled, so equal calls are not refused. `world` is what holds its state, if that can be set back.
    Raises TypeError where a parameter has no type, ValueError for a name that no endpoint takes.
    """
    if function is None:
        return functools.partial(tool, **about)
    if isinstance(function, Tool):
        return function
    if not callable(function):
        raise TypeError(f"tool() makes a tool of a function; {function!r:.60} is {type(function).__name__}.")
    return Tool(function, **about)


class Toolbox(Mapping[str, Tool]):
    """Tools by name. A missing name raises `UnknownTool`, which lists the names that exist."""

    def __init__(self, tools: Iterable[Any] | Mapping[str, Any] = ()) -> None:
        if isinstance(tools, str) or not isinstance(tools, Iterable):
            remedy = " Write tools=[…] around it." if callable(tools) else ""
            raise TypeError(f"tools must be a list of functions or tools, not {type(tools).__name__}.{remedy}")
        found: list[Tool] = []
        if isinstance(tools, Mapping):
            found += [one if isinstance(one, Tool) else Tool(one, name=str(name)) for name, one in tools.items()]
        else:
            found += map(tool, tools)
        self._tools: dict[str, Tool] = {}
        for one in found:
            if one.name in self._tools:
                raise ValueError(
                    f'Two tools are named {one.name!r}. The model could not tell them apart: rename one with tool(…, name="…").'
                )
            self._tools[one.name] = one
        self._offered = tuple(one.schema for one in found)  # now, so that a parameter no schema can be made of is named at once

    def __getitem__(self, name: str) -> Tool:
        if name in self._tools:
            return self._tools[name]
        raise UnknownTool(self._no_such(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"<Toolbox: {', '.join(self) or 'empty'}>"

    def offered(self) -> tuple[dict[str, Any], ...]:
        """The schemas of all tools, as a request carries them."""
        return self._offered

    def resolve(self, name: str) -> str:
        """`name` in the spelling that exists: white space, case, a known prefix or a channel token apart. Never by likeness:
        a name that is only similar stays as it is, and is answered with the names that exist."""
        clean = PREFIX.sub("", name.split("<|")[0].strip())
        for candidate in (name, clean):
            if candidate in self._tools:
                return candidate
        same = [known for known in self._tools if known.casefold() == clean.casefold()]
        return same[0] if len(same) == 1 and clean else name

    def _no_such(self, name: str) -> str:
        names = ", ".join(self._tools) or "none"
        if not name.strip():
            return f"The tool name was empty. Available tools: {names}."
        same = [known for known in self._tools if known.casefold() == name.strip().casefold()]
        if len(same) > 1:
            return f"The tool name {name!r} is ambiguous: {' or '.join(same)}? Call one of them by its exact name."
        harmless = [known for known, one in self._tools.items() if not one.dangerous]  # a hint must not lead to a deletion
        close = difflib.get_close_matches(name, harmless, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"There is no tool {name!r:.120}. Available tools: {names}.{hint}"


# ---- what is said of parameters, here and by the guard that validates ----
def missing_parameter(name: str, schema: Mapping[str, Any], tool_name: str) -> str:
    about = schema.get("properties", {}).get(name, {})
    kind = about.get("type", "value") if isinstance(about, Mapping) else "value"
    extra = f": {about['description']}" if isinstance(about, Mapping) and about.get("description") else ""
    return f"Missing required parameter {name!r} ({kind}{extra}) of {tool_name}. Call it again with {name!r}."


def unknown_parameter(name: str, known: list[str], tool_name: str) -> str:
    near = difflib.get_close_matches(name.lower().replace("_", ""), [k.lower().replace("_", "") for k in known], n=1, cutoff=0.7)
    meant = next((k for k in known if near and k.lower().replace("_", "") == near[0]), None)
    hint = f" Did you mean {meant!r}?" if meant else ""
    return f"{tool_name} has no parameter {name!r:.80}. Its parameters are: {', '.join(known) or 'none'}.{hint}"


def _is_async(function: Any) -> bool:
    return any(
        inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f)
        for f in (function, getattr(function, "func", None), getattr(type(function), "__call__", None))  # noqa: B004 - read, not tested for
    )
