"""Arguments against a tool's JSON Schema: exact coercion, then the check, then a sentence that the model can act on (H1, H2)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module, util
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .arguments import BadArguments
from .schema import target
from .tools import missing_parameter, unknown_parameter

if TYPE_CHECKING:
    from .tools import Tool

WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?([eE][+-]?\d{1,2})?")


def checked(args: Mapping[str, Any], tool: Tool) -> str:
    """`args` as JSON text that fits the tool. Raises `BadArguments` that names the parameter, what came and what is expected."""
    try:
        validator = _validator(json.dumps(tool.parameters))
        fitted = _fitted(dict(args), validator.schema, validator)
        errors = sorted(validator.iter_errors(fitted), key=lambda e: (len(e.absolute_path), str(e.validator)))
    except Exception as error:  # the schema is at fault, in a way that was not seen when the tool was made
        raise BadArguments(
            f"{tool.name} was not run: its JSON Schema cannot be used ({type(error).__name__}: {str(error)[:200]}). "
            "Go on without it."
        ) from None
    if errors:
        raise BadArguments(_sentence(errors[0], tool))
    return json.dumps(fitted, ensure_ascii=False)


@contextmanager
def _grammars_later() -> Iterator[None]:
    """Let `import jsonschema` not load the grammars of internationalised addresses, which stand beside every JupyterLab.

    They are compiled as they are loaded, for 2.5 s, in which the first call of a run would stand still."""
    name = "rfc3987_syntax"
    if {"jsonschema", name} & sys.modules.keys() or util.find_spec(name) is None:
        yield
        return
    later = ModuleType(name)
    later.is_valid_syntax = lambda term, value: import_module(name).is_valid_syntax(term, value)  # type: ignore[attr-defined]
    sys.modules[name] = later
    try:
        yield
    finally:
        del sys.modules[name]


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    with _grammars_later():
        from jsonschema import FormatChecker
        from jsonschema.validators import validator_for
        from referencing import Registry

    parsed = json.loads(schema)  # an empty registry: what a $ref names elsewhere is never fetched
    return validator_for(parsed)(parsed, format_checker=FormatChecker(), registry=Registry())


def warm_up() -> None:
    """Load what the first check needs."""
    _validator("{}")


def _fitted(value: Any, schema: Any, validator: Any) -> Any:
    """`value` with what is exactly convertible converted: "10" where an integer is wanted, never "ten" or 1.5."""
    if not isinstance(schema, Mapping):
        return value
    if isinstance(ref := schema.get("$ref"), str):
        return _fitted(value, target(ref, validator.schema), validator)
    for several in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(several), list):
            return _fitted_to_one(value, options, validator)
    kind = schema.get("type")
    if isinstance(kind, list):
        return _fitted_to_one(value, [{**schema, "type": one} for one in kind], validator)
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        return {key: _fitted(item, properties.get(key, others), validator) for key, item in value.items()}
    if isinstance(value, list):
        return [_fitted(item, schema.get("items"), validator) for item in value]
    if isinstance(value, str) and isinstance(kind, str):
        return _from_text(value, kind, schema, validator)
    if kind == "string" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if kind == "integer" and isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _from_text(value: str, kind: str, schema: Mapping[str, Any], validator: Any) -> Any:
    text = value.strip()
    if kind == "integer" and WHOLE.fullmatch(text):
        return int(text)
    if kind == "number" and NUMBER.fullmatch(text):
        return int(text) if WHOLE.fullmatch(text) else float(text)
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind in ("array", "object"):
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            return value
        return _fitted(inner, schema, validator) if isinstance(inner, list if kind == "array" else dict) else value
    return value


def _fitted_to_one(value: Any, options: list[Any], validator: Any) -> Any:
    """The value as it is where it fits one of the options; else as converted for the only option that it then fits."""

    def fits(candidate: Any, option: Any) -> bool:
        return bool(validator.evolve(schema=option).is_valid(candidate))

    fitting = [_fitted(value, option, validator) for option in options if fits(value, option)]
    if fitting:  # 1.0 fits where an integer is wanted, and becomes 1 where nothing else is
        return value if any(repr(one) == repr(value) for one in fitting) else fitting[0]
    converted = [one for option in options if fits(one := _fitted(value, option, validator), option)]
    return converted[0] if len(converted) == 1 else value


def _nearest(error: Any) -> Any:
    """Of a value that fits no option of a union, what is wrong with the only option that is not null."""
    while options := {inner.schema_path[0] for inner in error.context or () if inner.validator_value != "null"}:
        if len(options) > 1:
            break
        error = next(inner for inner in error.context if inner.schema_path[0] in options)
    return error


def _sentence(error: Any, tool: Tool) -> str:
    error = _nearest(error)
    where = ".".join(str(part) for part in error.absolute_path)
    known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
    if error.validator == "required":
        missing = next((name for name in error.validator_value if name not in error.instance), error.validator_value[0])
        return missing_parameter(
            f"{where}.{missing}" if where else missing,
            {"properties": {f"{where}.{missing}" if where else missing: known.get(missing, {})}},
            tool.name,
        )
    if error.validator == "additionalProperties":
        extra = next((name for name in error.instance if name not in known), "")
        return unknown_parameter(extra, list(known), tool.name if not where else f"{tool.name}, in {where!r},")
    got = f"{json.dumps(error.instance, ensure_ascii=False, default=str)[:80]}"
    if error.validator == "type":
        wanted = error.validator_value if isinstance(error.validator_value, str) else " or ".join(error.validator_value)
        return f"Parameter {where!r} of {tool.name} must be of type {wanted}, not {got}. Call it again with that."
    if error.validator == "enum":
        return f"Parameter {where!r} of {tool.name} must be one of {', '.join(map(str, error.validator_value))}, not {got}."
    if error.validator == "format":
        shape = {"date": " (YYYY-MM-DD)", "date-time": " (YYYY-MM-DDTHH:MM:SSZ)"}.get(error.validator_value, "")
        return f"Parameter {where!r} of {tool.name} must be a {error.validator_value}{shape}, not {got}."
    if not where:
        return f"The arguments of {tool.name} do not fit: {str(error.message)[:300]}."
    kinds = [inner.validator_value for inner in error.context or ()]
    if kinds and all(inner.validator == "type" and isinstance(inner.validator_value, str) for inner in error.context):
        return f"Parameter {where!r} of {tool.name} must be of type {' or '.join(kinds)}, not {got}. Call it again with that."
    wrong = str(error.message) if not error.context else f"{got} fits none of {json.dumps(error.validator_value)}"
    return f"Parameter {where!r} of {tool.name} does not fit: {wrong[:300]}."
