"""Read a function: what a model is told of its parameters (G2, H1), and what is wrong where it cannot be told."""

from __future__ import annotations

import functools
import inspect
import json
import re
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

SECTION = re.compile(r"^\s*(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):\s*$")
PLAIN = (str, int, float, bool, list, dict, type(None), Any)
TYPES = {"string", "integer", "number", "boolean", "object", "array", "null"}
DATA = {"default", "const", "enum", "examples"}  # what stands under these keys is no schema


def unwrapped(function: Any) -> Any:
    """What a partial is of."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _typed(function: Any) -> Any:
    """The plain function whose annotations count: in a method, a partial, a class, or an object that can be called."""
    function = unwrapped(function)
    function = getattr(function, "__func__", function)
    if isinstance(function, type):
        return vars(function).get("__init__", function)
    return function if inspect.isroutine(function) else type(function).__call__


def hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """The types of the parameters, those written as text read."""
    try:
        return typing.get_type_hints(_typed(function), include_extras=True)
    except (NameError, TypeError) as error:
        raise TypeError(
            f"Tool {name!r}: the type of a parameter cannot be read ({error}). Import it where the tool is defined."
        ) from None


def made(name: str, signature: inspect.Signature, types: Mapping[str, Any], about: Mapping[str, str]) -> dict[str, Any]:
    """The JSON Schema of a signature."""
    from pydantic import ConfigDict, PydanticUserError, create_model

    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    fields: dict[str, Any] = {f"p_{p.name}": (types[p.name], _field(p, about.get(p.name))) for p in signature.parameters.values()}
    try:
        with warnings.catch_warnings():  # a default that JSON does not have is left out of the schema, and that is all
            warnings.simplefilter("ignore")
            schema = create_model(name, __config__=config, **fields).model_json_schema()
    except (PydanticUserError, TypeError) as error:
        raise TypeError(
            f"Tool {name!r}: no JSON Schema can be made of its parameters ({str(error).splitlines()[0].rstrip('. ')}). "
            "Use plain types, a dataclass or a pydantic model, or pass parameters=…"
        ) from None
    return typing.cast(dict[str, Any], _tidy(schema))


# ---- a schema that somebody wrote ----
def given(schema: Any, name: str) -> dict[str, Any]:
    """A copy of `schema`. Raises with a sentence where it is no JSON Schema of an object, or points outside itself."""
    if not isinstance(schema, Mapping):
        raise TypeError(f"Tool {name!r}: parameters must be a JSON Schema (a dict), not {type(schema).__name__}.")
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(schema), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"Tool {name!r}: its JSON Schema cannot be written as JSON ({error}).") from None
    if copy.setdefault("type", "object") != "object":
        raise ValueError(f"Tool {name!r}: the type of its parameters is {copy['type']!r:.60}. Arguments are an object.")
    for fault in _faults(copy, copy, "parameters"):
        raise ValueError(f"Tool {name!r}: its JSON Schema is broken. {fault}")
    return copy


def _faults(schema: Any, root: Mapping[str, Any], where: str) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        yield f"{where} must be a schema (an object), not {schema!r:.60}."
        return
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind not in TYPES:
            yield f"{where} has the type {kind!r:.60}; there are {', '.join(sorted(TYPES))}."
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        yield f"{where}: required must be a list of names, not {required!r:.60}."
    if "enum" in schema and not isinstance(schema["enum"], list):
        yield f"{where}: enum must be a list of values."
    ref = schema.get("$ref", "#")
    if not isinstance(ref, str) or target(ref, root) is None:
        yield f"{where} points to {ref!r:.100}, which is not in it. Nothing is fetched: put it under $defs and write #/$defs/…"
    for key in ("properties", "$defs", "definitions", "patternProperties"):
        named = schema.get(key, {})
        if not isinstance(named, Mapping):
            yield f"{where}: {key} must be an object of schemas, not {named!r:.60}."
        else:
            for name, one in named.items():
                yield from _faults(one, root, f"{where}.{name}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        several = schema.get(key, [])
        if not isinstance(several, list):
            yield f"{where}: {key} must be a list of schemas, not {several!r:.60}."
        else:
            for one in several:
                yield from _faults(one, root, f"{where}.{key}")
    for key in ("items", "additionalProperties", "not"):
        if key in schema:
            yield from _faults(schema[key], root, f"{where}.{key}")


def target(ref: str, root: Mapping[str, Any]) -> Any:
    """What a `$ref` such as "#/$defs/Address" points to within `root`; None where that is nothing."""
    found: Any = root
    first, *parts = ref.split("/")
    if first != "#":
        return None
    for part in parts:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


# ---- the function ----
def signature_of(function: Callable[..., Any], name: str, checked: bool) -> inspect.Signature:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise TypeError(f"Tool {name!r}: its parameters cannot be read. Wrap it in a typed function.") from None
    for p in signature.parameters.values():
        if p.kind is p.POSITIONAL_ONLY:
            raise TypeError(
                f"Tool {name!r}: parameter {p.name!r} takes no name, and models pass arguments by name. "
                "Remove the / from its signature."
            )
        if checked and p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(
                f"Tool {name!r}: a model cannot be told of *{p.name}. Name each parameter, "
                "or pass parameters=… with a JSON Schema."
            )
        if checked and p.annotation is p.empty:
            raise TypeError(
                f"Tool {name!r}: parameter {p.name!r} has no type. Write for example `{p.name}: str`, "
                "so that the model knows what to send."
            )
    return signature


def described(doc: str) -> tuple[str, dict[str, str]]:
    """The description, and what stands under `Args:` for each parameter."""
    description: list[str] = []
    about: dict[str, str] = {}
    section, current = "", ""
    for line in doc.splitlines():
        if heading := SECTION.match(line):
            section = heading[1]
        elif not section:
            description.append(line)
        elif section in ("Args", "Arguments", "Parameters"):
            if entry := re.match(r"^\s{0,8}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$", line):
                current = entry[1]
                about[current] = entry[2]
            elif current and line.strip():
                about[current] += " " + line.strip()
    return "\n".join(description).strip(), about


def _field(parameter: inspect.Parameter, description: str | None) -> Any:
    from pydantic import Field

    default = ... if parameter.default is parameter.empty else parameter.default
    return Field(default, alias=parameter.name, description=description)


def _tidy(schema: Any) -> Any:
    """Without the titles that pydantic adds: they cost tokens on every request and tell the model nothing (G3)."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {
        key: value if key in DATA else _tidy(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
    if (
        tidy.get("type") == "object"
        and "properties" not in tidy
        and "additionalProperties" in tidy
        and tidy["additionalProperties"] is False
    ):
        tidy["properties"] = {}
    return tidy


def is_plain(kind: Any) -> bool:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return is_plain(inner[0])
    if origin is typing.Literal:
        return True
    if origin is not None:
        is_union = origin is typing.Union or getattr(origin, "__name__", "") == "UnionType"
        return (is_union or origin in (list, dict)) and all(is_plain(k) for k in inner)
    return kind in PLAIN
