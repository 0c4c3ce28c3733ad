"""Bytes to a run input: accepted forms, defaults, and refusals that name the field."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import RunAgentInput

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import Request, RunRequest, parse
from tests.engine.doubles import Json, ask


def parse_json(body: object) -> Request:
    return parse(json.dumps(body).encode())


def run_of(result: Request) -> RunAgentInput:
    assert isinstance(result, RunRequest)
    return result.run_input


def run_input(**fields: Any) -> RunAgentInput:  # noqa: ANN401 - as in JSON
    return run_of(parse_json(ask(**fields)))


def refusal(body: bytes) -> str:
    with pytest.raises(AppError) as refused:
        parse(body)
    assert refused.value.code is ErrorCode.VALIDATION_ERROR
    return refused.value.message


def content(*parts: object) -> tuple[object, list[str]]:
    told: list[str] = []
    body = json.dumps(ask(messages=[{"id": "u", "role": "user", "content": list(parts)}])).encode()
    result = run_of(parse(body, told.append))
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)["messages"][0]["content"], told


@pytest.mark.parametrize(
    ("mime_type", "kind"),
    [
        ("image/png", "image"),
        ("audio/wav", "audio"),
        ("video/mp4", "video"),
        ("text/csv", "document"),
        ("", "document"),
    ],
)
@pytest.mark.parametrize("name", ["data", "url"])
def test_a_binary_part_is_the_media_that_it_names(name: str, mime_type: str, kind: str) -> None:
    media = {"type": kind, "source": {"type": name, "value": "aGk=", "mimeType": mime_type}}
    assert content({"type": "binary", "mimeType": mime_type, name: "aGk="}) == ([media], [])
    named = {**media, "metadata": {"filename": "hi.txt"}}
    assert content({"type": "binary", "mimeType": mime_type, name: "aGk=", "filename": "hi.txt"}) == ([named], [])


@pytest.mark.parametrize("part", [{"type": "text"}, {"type": "image", "source": 1}, {"type": 5}, {}, "hi"])
def test_a_part_that_is_malformed_is_refused(part: object) -> None:
    assert "messages.0.content" in refusal(
        json.dumps(ask(messages=[{"id": "u", "role": "user", "content": [part]}])).encode()
    )


REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "The body is empty; a RunAgentInput is expected."),
    "spaces": (b" \r\n", "The body is empty; a RunAgentInput is expected."),
    "half JSON": (b'{"a":1,\n', "The body is not valid JSON: EOF while parsing a value at line 2 column 0."),
    "two documents": (b"{} {}", "The body is not valid JSON: trailing characters at line 1 column 4."),
    "not UTF-8": (b'{"a":"\xff"}', "The body is not valid JSON: invalid unicode code point at line 1 column 7."),
    "UTF-16": ("{}".encode("utf-16"), "The body is not valid JSON: expected value at line 1 column 1."),
    "a list": (b"[]", "The body must be a JSON object: a RunAgentInput or a command."),
    "a string": (b'"x"', "The body must be a JSON object: a RunAgentInput or a command."),
    "null": (b"null", "The body must be a JSON object: a RunAgentInput or a command."),
    "NaN": (b'{"state":NaN}', "The body is not valid JSON: expected value at line 1 column 10."),
    "Infinity": (b'{"state":-Infinity}', "The body is not valid JSON: invalid number at line 1 column 11."),
    "too deep": (b"[" * 100_000, "The body is not valid JSON: recursion limit exceeded at line 1 column 202."),
    "too many": (b"[" + b"[]," * 250_000 + b"0]", "The body has more than 250000 lists and objects."),
    "too many values": (b"[" + b"1," * 1_000_001 + b"0]", "The body has more than 1000000 values."),
    "too many strings": (b"[" + b'"",' * 200_000 + b'""]', "The body has more than 200000 strings and keys."),
    "too many strings with commas": (
        json.dumps([",["] * 300_000).encode(),
        "The body has more than 200000 strings and keys.",
    ),
    "a number that is none": (b'{"a":1e999}', "a: the number is too large."),
    "a negative one": (b'{"a":{},"b":[[1],-1E+0999]}', "b.1: the number is too large."),
    "an integer of 310 digits": (b'{"a":[0,{"b":' + b"1" * 310 + b"}]}", "a.1.b: the number is too large."),
    "a negative integer": (b'{"a":{},"b":[[1],-1' + b"0" * 309 + b"]}", "b.1: the number is too large."),
    "a huge number": (
        b'{"a":' + b"1" * 5_000 + b"}",
        "a: the number is too large.",
    ),
    "a number alone": (b"1" * 310, "body: the number is too large."),
    "an empty threadId": (json.dumps(ask("", "r")).encode(), "threadId: must have 1 to 512 characters."),
    "an empty runId": (json.dumps(ask("t", "")).encode(), "runId: must have 1 to 512 characters."),
    "a long threadId": (json.dumps(ask("t" * 513, "r")).encode(), "threadId: must have 1 to 512 characters."),
}


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=REFUSED)
def test_a_malformed_body_is_refused_in_one_sentence(body: bytes, message: str) -> None:
    assert refusal(body) == message


def test_the_largest_integer_that_a_double_holds_is_taken() -> None:
    largest = int(sys.float_info.max)
    assert run_input(state={"a": [largest, -largest]}).state == {"a": [largest, -largest]}


def test_a_refusal_does_not_say_back_all_that_was_sent() -> None:
    assert len(refusal(json.dumps({"command": {"type": "x" * 1_000_000}}).encode())) < 600
    assert len(refusal(b'{"' + b"x" * 1_000_000 + b'":NaN}')) < 600
    assert len(refusal(json.dumps({"messages": [{"x" * 100: {}, "role": "y" * 1_000_000}]}).encode())) < 2_000


IMAGE_VALUE = "messages.0.content.0.source.value"


def image_message(source: object, image: object = None, **fields: object) -> Json:
    return {"id": "u", "role": "user", "content": [{"type": "image", "image": image, "source": source}], **fields}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"threadId": 7}, "threadId"),
        ({"runId": None}, "runId"),
        ({"messages": "none"}, "messages"),
        ({"messages": ["none"]}, "messages.0"),
        ({"messages": [{"id": "u", "role": "user"}]}, "messages.0.content"),
        ({"messages": [{"id": "u", "role": "king", "content": ""}]}, "messages.0"),
        ({"messages": [{"id": "u", "role": "user", "content": 5}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": "x"}]}, "messages.0.id"),
        ({"messages": [{"role": "user", "content": "x", "user": 1}]}, "messages.0.id"),
        ({"messages": [image_message({"type": "url", "url": "https://a.example/b"})]}, IMAGE_VALUE),
        ({"messages": [image_message({"type": "data", "data": "aGk=", "mimeType": "image/png"})]}, IMAGE_VALUE),
        ({"messages": [image_message({"type": "file", "file": "f1"}, image=1)]}, IMAGE_VALUE),
        ({"messages": [image_message(5)]}, "messages.0.content.0.source"),
        ({"messages": [image_message(5, role="tool", toolCallId="c")]}, "messages.0.content.0.source"),
        (
            {"messages": [{"id": "u", "role": "user", "content": [{"type": "text", "str": 1}]}]},
            "messages.0.content.0.text",
        ),
        (
            {"messages": [{"id": "a", "role": "assistant", "toolCalls": [{"id": "c"}]}]},
            "messages.0.toolCalls.0.function",
        ),
        ({"tools": [{"name": 1, "description": "d", "parameters": {}}]}, "tools.0.name"),
        ({"context": [{"description": "d"}]}, "context.0.value"),
        ({"parentRunId": 5}, "parentRunId"),
        ({"resume": [{"status": "resolved"}]}, "resume.0.interruptId"),
    ],
)
def test_a_refusal_names_the_field_as_it_was_spelled(fields: Json, path: str) -> None:
    assert refusal(json.dumps({**ask(), **fields}).encode()).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a"], "messages.2.id: is that of messages.0, too; every message needs its own."),
        (["a", "b", ""], "messages.2.id: must not be empty."),
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant", "system", "reasoning"])
def test_messages_have_ids_of_their_own(role: str, ids: Sequence[str], message: str) -> None:
    messages = [{"id": each, "role": role, "content": "x"} for each in ids]
    assert refusal(json.dumps(ask(messages=messages)).encode()) == message


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    assert "hunter2" not in refusal(json.dumps(ask(tools=[{"name": {"password": "hunter2"}}])).encode())
