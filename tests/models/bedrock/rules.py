"""Checks of a request as Bedrock makes them: botocore's service model, and rules that no service model states."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import botocore.session  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]

Body = Mapping[str, Any]
MEDIA = {"image": 20, "document": 5}


@cache
def service_model() -> Any:  # noqa: ANN401 - botocore has no types
    return botocore.session.get_session().get_service_model("bedrock-runtime")


@cache
def input_shape() -> Any:  # noqa: ANN401 - botocore has no types
    return service_model().operation_model("ConverseStream").input_shape


def broken_rules(body: Body) -> list[str]:
    report = ParamValidator().validate(body, input_shape())
    schema = [report.generate_report()] if report.has_errors() else []
    return [*schema, *_constraints(body, input_shape(), "$"), *_conversation(body), *_schemas(body)]


def _constraints(value: Any, shape: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    if shape.type_name == "structure" and not shape.is_document_type:
        if shape.is_tagged_union and len(value) != 1:
            yield f"{path}: a union has one member, not {sorted(value)}"
        for name, inner in value.items():
            if name in shape.members:
                yield from _constraints(inner, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for number, inner in enumerate(value):
            yield from _constraints(inner, shape.member, f"{path}[{number}]")
    elif shape.type_name == "string":
        yield from _text(value, shape, path)


def _text(value: str, shape: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    if shape.enum and value not in shape.enum:
        yield f"{path}: {value!r} is none of {shape.enum}"
    if len(value) > shape.metadata.get("max", len(value)):
        yield f"{path}: too long"
    pattern = shape.metadata.get("pattern")
    if pattern and not re.fullmatch(pattern, value):
        yield f"{path}: {value!r} does not match {pattern}"


def _schemas(body: Body) -> Iterator[str]:
    for tool in body.get("toolConfig", {}).get("tools", ()):
        schema = tool.get("toolSpec", {}).get("inputSchema", {}).get("json", {"type": "object", "properties": {}})
        if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
            yield f"a schema is an object with properties: {schema}"
        elif not all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in schema["properties"]):
            yield f"names of properties are plain: {schema}"
        if {"oneOf", "anyOf", "allOf"} & schema.keys():
            yield f"a schema combines nothing at its top level: {schema}"


def _conversation(body: Body) -> Iterator[str]:
    messages = body.get("messages", [])
    roles = [message["role"] for message in messages]
    if not roles or roles[0] != "user" or roles[-1] != "user":
        yield f"the user is first and last: {roles}"
    if any(one == other for one, other in pairwise(roles)):
        yield f"roles take turns: {roles}"
    for message in messages:
        yield from _message(message)
    yield from _pairs(messages)
    names = [block["document"]["name"] for block in _blocks(messages) if "document" in block]
    if len(names) != len(set(names)):
        yield f"document names are unique: {names}"
    if not body.get("toolConfig") and any({"toolUse", "toolResult"} & block.keys() for block in _blocks(messages)):
        yield "a history with calls needs a toolConfig"


def _message(message: Body) -> Iterator[str]:
    content = message["content"]
    kinds = [next(iter(block)) for block in content]
    if not content:
        yield "a message has content"
    if any("text" in block and not block["text"].strip() for block in content):
        yield "text is not blank"
    yield from _said(kinds) if message["role"] == "assistant" else _given(kinds)
    for kind, most in MEDIA.items():
        if sum(kind in block for block in _blocks([message])) > most:
            yield f"too many of {kind}"
    for block in content:
        result = block.get("toolResult", {})
        if result.get("status") == "error" and not all(inner.get("text") for inner in result["content"]):
            yield "a failed result is text"


def _said(kinds: Sequence[str]) -> Iterator[str]:
    if kinds[-1:] == ["reasoningContent"]:
        yield "reasoning is not last"
    if {*kinds} - {"text", "toolUse", "reasoningContent"}:
        yield f"an assistant does not send {kinds}"


def _given(kinds: Sequence[str]) -> Iterator[str]:
    if "document" in kinds and "text" not in kinds:
        yield "a document comes with a text"
    if "toolResult" in kinds[kinds.count("toolResult") :]:
        yield "results come first"
    if {*kinds} & {"toolUse", "reasoningContent"}:
        yield f"a user does not send {kinds}"


def _pairs(messages: Sequence[Body]) -> Iterator[str]:
    used: list[str] = []
    for message, following in zip([{"content": ()}, *messages], [*messages, {"content": ()}], strict=True):
        calls = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
        results = [block["toolResult"]["toolUseId"] for block in following["content"] if "toolResult" in block]
        used.extend(calls)
        if calls != results:
            yield f"every call is answered in the next message: {calls} {results}"
    if len(used) != len(set(used)):
        yield f"ids of calls are unique: {used}"


def _blocks(messages: Sequence[Body]) -> Iterator[Body]:
    for message in messages:
        for block in message["content"]:
            yield block
            yield from block.get("toolResult", {}).get("content", ())
