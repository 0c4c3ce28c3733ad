"""Checks of a request as AgentCore Memory makes them, by botocore's service model of every operation."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import botocore.session  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]


class OperationCall(NamedTuple):
    operation: str
    params: dict[str, Any]


def call_of(method: str, path: str, body: bytes) -> OperationCall:
    for name, verb, pattern in operations():
        found = pattern.fullmatch(path)
        if found and verb == method:
            named = {key: unquote(value) for key, value in found.groupdict().items()}
            return OperationCall(name, {**(json.loads(body) if body else {}), **named})
    raise AssertionError(f"no operation is {method} {path}")


def broken_rules(call: OperationCall) -> list[str]:
    shape = model().operation_model(call.operation).input_shape
    report = ParamValidator().validate(call.params, shape)
    return [*([report.generate_report()] if report.has_errors() else []), *_constraints(call.params, shape, "$")]


@cache
def model() -> Any:  # noqa: ANN401 - botocore has no types
    return botocore.session.get_session().get_service_model("bedrock-agentcore")


@cache
def operations() -> list[tuple[str, str, re.Pattern[str]]]:
    found = []
    for name in ("CreateEvent", "ListEvents", "GetEvent", "DeleteEvent", "ListSessions"):
        http = model().operation_model(name).http
        path = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", http["requestUri"])
        found.append((name, http["method"], re.compile(path)))
    return found


def _constraints(value: Any, shape: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    kind = shape.type_name
    if kind == "structure" and not shape.is_document_type:
        for name in value.keys() & shape.members.keys():
            yield from _constraints(value[name], shape.members[name], f"{path}.{name}")
    elif kind == "list":
        yield from _bounds(len(value), shape, path)
        for number, inner in enumerate(value):
            yield from _constraints(inner, shape.member, f"{path}[{number}]")
    elif kind == "map":
        yield from _bounds(len(value), shape, path)
        for name, inner in value.items():
            yield from _constraints(name, shape.key, f"{path}.{name}")
            yield from _constraints(inner, shape.value, f"{path}.{name}")
    elif kind == "string":
        yield from _bounds(len(value), shape, path)
        yield from _text(value, shape, path)
    elif kind == "integer":
        yield from _bounds(value, shape, path)


def _bounds(size: int, shape: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    if not shape.metadata.get("min", size) <= size <= shape.metadata.get("max", size):
        yield f"{path}: {size} is out of bounds"


def _text(value: str, shape: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    if shape.enum and value not in shape.enum:
        yield f"{path}: {value!r} is none of {shape.enum}"
    pattern = shape.metadata.get("pattern")
    if pattern and not re.fullmatch(pattern, value):
        yield f"{path}: {value!r} does not match {pattern}"
