"""Bytes to a run input: accepted forms, defaults, and refusals that name the field."""

import base64
import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from ag_ui.core import RunAgentInput, TokenUsage
from pydantic import BaseModel, Field, TypeAdapter

from agui_container.protocol.client_input import migrate_parts
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import Request, RunRequest, parse, read_forwarded_prop
from agui_container.protocol.token_usage import count_tokens
from tests.engine.doubles import Json, ask
from tests.protocol.samples import without_validation


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


def test_a_body_that_is_not_utf_8_is_refused() -> None:
    # The column is that of pydantic-core: 2.33 counts the invalid byte itself, and 2.50 does not.
    assert "not valid JSON: invalid unicode code point at line 1 column " in refusal(b'{"a":"\xff"}')


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


class Tea(BaseModel):
    cups: Annotated[int, Field(ge=1)]


TEAS = TypeAdapter(list[Tea])


@pytest.mark.parametrize(
    ("teas", "message"),
    [
        (2, "forwardedProps.teas: Input should be a valid list."),
        ([{"cups": 2}, 2], "forwardedProps.teas.1: Input should be an object."),
        ([{"cups": 0}], "forwardedProps.teas.0.cups: Input should be greater than or equal to 1."),
    ],
)
def test_wrong_props_are_refused_by_name(teas: object, message: str) -> None:
    with pytest.raises(AppError) as refused:
        read_forwarded_prop({"teas": teas}, "teas", TEAS)
    assert (refused.value.code, refused.value.message) == (ErrorCode.VALIDATION_ERROR, message)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ([], 0),
        ([TokenUsage(input_tokens=3, output_tokens=2)], 5),
        ([TokenUsage(input_tokens=3, output_tokens=2, total_tokens=9)], 9),
        ([TokenUsage(input_tokens=3), TokenUsage(output_tokens=2)], 5),
        ([{"input_tokens": 3}, 5, None, "many", TokenUsage(input_tokens=1)], 1),
        ([without_validation(TokenUsage, input_tokens="3", output_tokens=-2, total_tokens=None)], 0),
    ],
)
def test_only_numbers_that_make_sense_count(usage: list[object], tokens: int) -> None:
    assert count_tokens(usage) == tokens


BYTES = bytes(range(256)) + b"\xfb\xff"
"""Bytes whose base64 has both symbols that differ between the alphabets."""

PLAIN = base64.b64encode(BYTES).decode()
LINES = base64.encodebytes(BYTES).decode()
FOR_URLS = base64.urlsafe_b64encode(BYTES).decode()
UNPADDED = FOR_URLS.rstrip("=")
PNG = "image/png"


def migrated(*parts: Json) -> list[Json]:
    messages: list[Json] = [{"content": list(parts)}]
    migrate_parts(messages, print)
    found: list[Json] = messages[0]["content"]
    return found


URL = f"data:{PNG};base64,{PLAIN}"
SHAPES: dict[str, Json] = {
    "a URL source": {"type": "image", "source": {"type": "url", "value": URL}},
    "a URL source with its type": {"type": "image", "source": {"type": "url", "value": URL, "mimeType": PNG}},
    "a data source with the prefix": {"type": "image", "source": {"type": "data", "value": URL, "mimeType": PNG}},
    "a data source without its type": {"type": "image", "source": {"type": "data", "value": URL}},
    "a binary part with a URL": {"type": "binary", "url": URL, "mimeType": PNG},
    "a binary part with the prefix": {"type": "binary", "data": URL, "mimeType": PNG},
    "a binary part without its type": {"type": "binary", "url": URL},
    "line breaks in a URL": {"type": "image", "source": {"type": "url", "value": f"DATA:{PNG};BASE64,{LINES}"}},
    "a URL for URLs": {"type": "image", "source": {"type": "url", "value": f"data:{PNG};base64,{UNPADDED}"}},
    "escapes in a URL": {
        "type": "image",
        "source": {"type": "url", "value": f"data:{PNG};base64,{PLAIN.replace('+', '%2B').replace('=', '%3d')}"},
    },
}


@pytest.mark.parametrize("mime_type", [PNG, "audio/wav", "video/mp4", "application/pdf"])
def test_a_binary_part_with_an_id_alone_is_the_handle_of_a_file(mime_type: str) -> None:
    kind = mime_type.partition("/")[0].replace("application", "document")
    source = {"type": "file", "value": "file-1", "mimeType": mime_type}
    assert migrated({"type": "binary", "id": "file-1", "mimeType": mime_type}) == [{"type": kind, "source": source}]


@pytest.mark.parametrize("part", SHAPES.values(), ids=SHAPES)
def test_a_data_url_is_data_in_every_shape(part: Json) -> None:
    assert migrated(part) == [{"type": "image", "source": {"type": "data", "value": PLAIN, "mimeType": PNG}}]


@pytest.mark.parametrize(
    ("url", "mime_type", "data"),
    [
        ("data:,a%20b", "text/plain", b"a b"),
        ("data:;charset=utf-8,%C3%A9", "text/plain;charset=utf-8", "é".encode()),
        ("data:text/csv,a,b", "text/csv", b"a,b"),
        ("data:text/plain;charset=utf-8;base64,aGk", "text/plain;charset=utf-8", b"hi"),
        ("data:;base64,aGk=", "text/plain", b"hi"),
    ],
)
def test_a_data_url_need_not_have_base64_nor_a_type(url: str, mime_type: str, data: bytes) -> None:
    source = {"type": "data", "value": base64.b64encode(data).decode(), "mimeType": mime_type}
    assert migrated({"type": "document", "source": {"type": "url", "value": url}}) == [
        {"type": "document", "source": source}
    ]
