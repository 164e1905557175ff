"""Tools: what a model is told of a function, what reaches it, and a sentence where something is wrong (G1, G2, H1)."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime
import enum
import functools
import socket
import threading
from typing import Annotated, Any, Literal

import pytest

from agentlab import Agent, Result, climb, models, tool
from agentlab.arguments import BadArguments
from agentlab.schema import target
from agentlab.tools import Toolbox, UnknownTool
from agentlab.validation import checked


class Kind(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclasses.dataclass
class Address:
    street: str
    number: int


@tool
def order(
    city: str,
    when: datetime.date,
    kind: Kind = Kind.SMALL,
    to: Address | None = None,
    many: int | None = None,
    rate: float = 1.0,
    mode: Literal["fast", "slow"] = "fast",
    extra: Annotated[list[int] | None, "numbers"] = None,
) -> str:
    """Order something.

    Use it when asked to. Not for refunds.

    Args:
        city: where to
        when (date): YYYY-MM-DD,
            never in the past
    Returns:
        a text
    """
    return f"{city} {when.year} {kind.name} {to} {many}"


def test_the_schema_is_read_from_the_signature() -> None:
    """G1, G2: the docstring's parts are what the model chooses by."""
    assert order.description == "Order something.\n\nUse it when asked to. Not for refunds."
    assert order.parameters["required"] == ["city", "when"]
    assert order.parameters["additionalProperties"] is False
    properties = order.parameters["properties"]
    assert properties["city"] == {"type": "string", "description": "where to"}
    assert properties["when"] == {"type": "string", "format": "date", "description": "YYYY-MM-DD, never in the past"}
    assert properties["mode"]["enum"] == ["fast", "slow"]
    assert "title" not in str(order.schema)
    assert order.schema["function"]["name"] == "order"


def test_a_tool_is_still_the_function() -> None:
    assert order("Oslo", datetime.date(2026, 1, 2)) == "Oslo 2026 SMALL None None"
    assert order.__doc__ == order.function.__doc__
    assert tool(order) is order
    assert repr(tool(lambda: 1, name="t", dangerous=True)) == "<Tool t(), dangerous>"


async def test_rich_types_arrive_as_what_they_are() -> None:
    args = {"city": "Oslo", "when": "2026-01-02", "kind": "large", "to": {"street": "Long", "number": 3}}
    assert await order.run(args) == "Oslo 2026 LARGE Address(street='Long', number=3) None"
    with pytest.raises(BadArguments, match="Parameter 'when' of order does not fit"):
        await order.run({"city": "Oslo", "when": "tomorrow"})


@pytest.mark.parametrize(
    ("args", "fitted"),
    [
        ({"many": "10"}, {"many": 10}),
        ({"many": 10.0}, {"many": 10}),
        ({"many": None}, {"many": None}),
        ({"rate": "1.5"}, {"rate": 1.5}),
        ({"rate": 2}, {"rate": 2}),
        ({"extra": "[1, 2]"}, {"extra": [1, 2]}),
        ({"extra": ["1"]}, {"extra": [1]}),
        ({"to": '{"street": "a", "number": "4"}'}, {"to": {"street": "a", "number": 4}}),
        ({"city": 5}, {"city": "5"}),
        ({"city": "null"}, {"city": "null"}),
        ({"city": '{"a": 1}'}, {"city": '{"a": 1}'}),
    ],
)
def test_what_is_exactly_convertible_is_converted(args: Any, fitted: Any) -> None:
    """AS02, AS03, AS10"""
    import json

    base = {"city": "Oslo", "when": "2026-01-02"}
    assert json.loads(checked(base | args, order)) == base | fitted


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"many": "ten"}, "Parameter 'many' of order must be of type integer, not \"ten\"."),
        ({"many": 1.5}, "must be of type integer, not 1.5"),
        ({"many": True}, "must be of type integer, not true"),
        ({"rate": "1e999"}, "must be of type number"),
        ({"rate": "1,5"}, "must be of type number"),
        ({"mode": "medium"}, 'must be one of fast, slow, not "medium"'),
        ({"kind": "huge"}, "must be one of small, large"),
        ({"when": "tomorrow"}, 'must be a date (YYYY-MM-DD), not "tomorrow"'),
        ({"when": "2026-02-30"}, "must be a date (YYYY-MM-DD)"),
        ({"to": {"street": "a"}}, "Missing required parameter 'to.number' (integer) of order"),
        ({"extra": ["x"]}, "Parameter 'extra.0' of order must be of type integer"),
        ({"Rate": 1}, "has no parameter 'Rate'. Its parameters are: city, when, kind"),
    ],
)
def test_what_does_not_fit_is_named_with_what_is_expected(args: Any, says: str) -> None:
    """H1, H2, and in a union the option that was meant."""
    with pytest.raises(BadArguments) as error:
        checked({"city": "Oslo", "when": "2026-01-02"} | args, order)
    text = str(error.value)
    assert says in text
    assert "is not valid under any of the given schemas" not in text


# ---- schemas that somebody wrote ----
def with_schema(**schema: Any) -> Any:
    return tool(lambda **given: given, name="t", parameters=schema)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("text", "must be a JSON Schema"),
        ([1], "must be a JSON Schema"),
        ({"type": "array"}, "Arguments are an object"),
        ({"type": "banana"}, "Arguments are an object"),
        ({"properties": [1]}, "properties must be an object of schemas"),
        ({"properties": {"x": 7}}, "parameters.x must be a schema"),
        ({"properties": {"x": {"type": "text"}}}, "parameters.x has the type 'text'; there are array, boolean"),
        ({"properties": {"x": {"type": ["integer", 3]}}}, "has the type 3"),
        ({"properties": {"x": {"enum": "a"}}}, "enum must be a list"),
        ({"required": "x"}, "required must be a list of names"),
        ({"properties": {"x": {"anyOf": {}}}}, "anyOf must be a list"),
        ({"properties": {"x": {"items": 3}}}, "must be a schema"),
        ({"properties": {"x": {"$ref": "https://example.com/s.json"}}}, "Nothing is fetched"),
        ({"properties": {"x": {"$ref": "#/$defs/no"}}}, "points to '#/\\$defs/no', which is not in it"),
        ({"properties": {"x": {"$ref": 3}}}, "points to 3"),
        ({"properties": {"x": {"default": object()}}}, "cannot be written as JSON"),
        ({"properties": {"x": {"default": float("nan")}}}, "cannot be written as JSON"),
    ],
)
def test_a_broken_schema_is_named_when_the_tool_is_made(schema: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        tool(lambda **given: given, name="t", parameters=schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"type": "string", "pattern": "("}}},
        {"properties": {"x": {"type": "string", "minLength": "q"}}},
        {"properties": {"x": {"$dynamicRef": "http://127.0.0.1:9/s"}}},
        {"properties": {"x": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"$ref": "#/$defs/n"}}},
    ],
)
async def test_what_is_only_seen_later_is_a_sentence_and_fetches_nothing(schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda *where: fetched.append(where))
    agent = Agent(models.scripted([models.call("t", x="a"), "done"]), [with_schema(**schema)])
    run = await agent.run("q")
    assert "its JSON Schema cannot be used" in run.of(Result)[0].text
    assert (run.answer, fetched) == ("done", [])


def test_references_inside_a_schema_are_followed() -> None:
    tree = {"type": "object", "properties": {"v": {"type": ["integer", "null"]}, "next": {"$ref": "#/definitions/a~1b"}}}
    one = with_schema(properties={"x": {"$ref": "#/definitions/a~1b"}}, definitions={"a/b": tree})
    assert checked({"x": {"next": {"v": "1"}}}, one) == '{"x": {"next": {"v": 1}}}'
    assert target("#/definitions/a~1b", one.parameters) == tree
    with pytest.raises(BadArguments, match=r"'x.next.v' of t must be of type integer or null"):
        checked({"x": {"next": {"v": "one"}}}, one)


def test_a_given_schema_is_copied() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    one = tool(lambda x: x, name="t", parameters=schema)
    assert one.parameters == schema
    schema["properties"]["x"]["type"] = "string"  # type: ignore[index]
    assert one.parameters["properties"]["x"]["type"] == "integer"


@pytest.mark.timing
def test_a_deep_value_in_a_recursive_schema_is_checked_in_time() -> None:
    import time

    node = {"anyOf": [{"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}, {"type": "integer"}]}
    one = with_schema(properties={"x": {"$ref": "#/$defs/n"}}, **{"$defs": {"n": node}})
    value: Any = "not a number"
    for _ in range(45):
        value = {"next": value}
    began = time.perf_counter()
    with pytest.raises(BadArguments):
        checked({"x": value}, one)
    assert time.perf_counter() - began < 2


# ---- wrong tools ----
class Odd:
    pass


def untyped(a):  # type: ignore[no-untyped-def]
    return a


def stars(*args: int) -> None: ...


def positional(a: int, /) -> None: ...


def unknown_type(a: NoSuchType) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def odd_type(a: Odd) -> None: ...


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: tool(untyped), "parameter 'a' has no type"),
        (lambda: tool(stars), r"cannot be told of \*args"),
        (lambda: tool(positional), "Remove the / from its signature"),
        (lambda: tool("name"), "makes a tool of a function"),
        (lambda: tool(lambda: 1), "cannot be named '<lambda>'.*Pass name=…"),
        (lambda: tool(untyped, name="é"), "use letters, digits"),
        (lambda: tool(untyped, name="x" * 65), "at most 64"),
        (lambda: tool(stars, timeout=0), "timeout=0: give seconds"),
        (lambda: tool(stars, timeout="5"), "timeout='5'"),
        (lambda: tool(int), "its parameters cannot be read"),
        (lambda: Toolbox([tool(unknown_type)]), "the type of a parameter cannot be read.*NoSuchType"),
        (lambda: Toolbox([tool(odd_type)]), "no JSON Schema can be made of its parameters"),
        (lambda: Toolbox([order, order]), "Two tools are named 'order'"),
        (lambda: Toolbox({"a b": lambda: 1}), "cannot be named 'a b'"),
    ],
)
def test_a_wrong_tool_gets_a_sentence(make: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        make()


# ---- names ----
def test_names_resolve_in_the_spelling_that_exists_and_never_by_likeness() -> None:
    box = Toolbox({"look": lambda: 1, "find": lambda: 1, "Find": lambda: 1})
    for name in ("look", " look\n", "LOOK", "functions.look", "look<|channel|>x"):
        assert box.resolve(name) == "look"
    for name in ("loook", "FIND", "", "<|x|>"):
        assert box.resolve(name) == name
    with pytest.raises(UnknownTool, match="ambiguous: find or Find"):
        box["FIND"]
    with pytest.raises(KeyError):
        box["no"]
    assert repr(box) == "<Toolbox: look, find, Find>"


# ---- running ----
class Callable_:
    def __call__(self, a: int) -> int:
        """Call it."""
        return a + 1

    async def method(self, a: int) -> int:
        return a + 2


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def add_later(a: int, b: int) -> int:
    return a + b


def gives_coroutine(a: int) -> Any:
    return add_later(a, 1)


def yields(a: int) -> Any:
    yield from range(a)


async def yields_later(a: int) -> Any:
    for n in range(a):
        yield n


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (Callable_(), 4), (Callable_().method, 5), (functools.partial(add, b=1), 4), (functools.partial(add_later, b=1), 4),
        (gives_coroutine, 4), (yields, [0, 1, 2]), (yields_later, [0, 1, 2]),
    ],
)  # fmt: skip
async def test_whatever_can_be_called_can_be_a_tool(function: Any, value: Any) -> None:
    """TR06: what is awaitable is awaited."""
    assert await tool(function).run({"a": 3}) == value


async def test_an_endless_generator_ends_and_lets_others_run() -> None:
    def endless() -> Any:
        while True:
            yield "again"

    async def endless_later() -> Any:
        while True:
            yield "again"

    for function in (endless, endless_later):
        items = await tool(function).run({})
        assert len(items) == 10_001
        assert items[-1] == "<stopped after 10000 items>"


async def test_sync_tools_and_their_generators_run_off_the_event_loop_with_the_context() -> None:
    """E3, CT05: a blocking tool must not stop the loop; context variables travel with it."""
    who = contextvars.ContextVar("who", default="nobody")
    who.set("me")
    threads: set[int] = set()

    def work() -> str:
        threads.add(threading.get_ident())
        return who.get()

    def generator() -> Any:
        yield work()

    assert await tool(work).run({}) == "me"
    assert await tool(generator).run({}) == ["me"]
    assert threading.get_ident() not in threads


async def test_stars_take_what_a_given_schema_lets_through() -> None:
    def work(*args: int, a: int = 0, **others: Any) -> Any:
        return args, a, others

    one = tool(work, parameters={"type": "object"})
    assert await one.run({"a": 1, "b": 2, "args": 3}) == ((), 1, {"b": 2, "args": 3})


async def test_a_coroutine_that_comes_too_late_is_closed_without_a_warning() -> None:
    free = threading.Event()
    made = threading.Event()

    def late() -> Any:
        free.wait(5)
        made.set()
        return add_later(1, 2)

    task = asyncio.ensure_future(tool(late).run({}))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    free.set()
    await asyncio.to_thread(made.wait, 5)
    await asyncio.to_thread(lambda: None)


async def test_a_schema_that_lets_the_function_down_is_still_a_sentence() -> None:
    one = tool(add, parameters={"type": "object", "properties": {"a": {}, "b": {}, "c": {}}})
    script = [models.call("add", a=1), models.call("add", a=1, b=2, c=3), "done"]
    run = await Agent(models.scripted(script), [one], climb()).run("q")
    assert [r.text.split(".")[0] for r in run.of(Result)] == [
        "Missing required parameter 'b' (value) of add",
        "add has no parameter 'c'",
    ]
