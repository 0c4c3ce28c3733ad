"""Bytes to a run input: accepted forms, defaults, and refusals that name the field."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import PROTOCOL_VERSION, RunAgentInput
from pydantic_core import from_json

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import (
    MESSAGES_AT_ONCE,
    Request,
    RunRequest,
    parse,
)
from agui_container.protocol.strict_json import MAX_BRACKETS, MAX_COMMAS, MAX_DEPTH, MAX_KEYS, MAX_STRINGS
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


# --- run inputs ---


def test_absent_fields_get_the_value_that_absence_means() -> None:
    result = run_of(parse_json({"threadId": "t", "runId": "r", "messages": []}))
    assert (result.tools, result.context, result.state, result.forwarded_props) == ([], [], None, {})
    assert (result.parent_run_id, result.resume, result.protocol_version) == (None, None, None)


@pytest.mark.parametrize("state", [0, "", False, [], "text", {"a": None}])
def test_a_state_of_any_kind_is_kept(state: object) -> None:
    assert run_input(state=state).state == state


def test_unknown_fields_are_kept() -> None:
    result = run_input(novelty=[1], tools=[{"name": "n", "description": "d", "parameters": {}, "own": 1}])
    assert result.model_extra == {"novelty": [1]}
    assert result.tools is not None
    assert result.tools[0].model_extra == {"own": 1}


def content(*parts: object) -> tuple[object, list[str]]:
    """Return the parsed parts of a user message, and the warnings."""
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


@pytest.mark.parametrize("kind", ["image", "audio", "video", "document"])
def test_a_part_of_a_known_kind_is_kept(kind: str) -> None:
    part = {"type": kind, "source": {"type": "url", "value": "https://files.example/1"}}
    assert content(part) == ([part], [])


@pytest.mark.parametrize(
    "part",
    [
        {"type": "binary", "id": "f1"},
        {"type": "binary", "data": "aGk="},
        {"type": "binary"},
        {"type": "x"},
    ],
)
def test_a_part_of_an_unknown_kind_is_left_out_and_told(part: Json) -> None:
    text = {"type": "text", "text": "hi"}
    told = f"content parts of unknown types dropped count=2 first={part['type']!r}"
    assert content(part, text, {"type": "other"}) == ([text], [told])


def test_of_an_unknown_kind_as_much_is_told_as_a_log_line_can_hold() -> None:
    assert content({"type": "x" * 1_000_000}) == (
        [],
        [f"content parts of unknown types dropped count=1 first={'x' * 32!r}"],
    )


@pytest.mark.parametrize("part", [{"type": "text"}, {"type": "image", "source": 1}, {"type": 5}, {}, "hi"])
def test_a_part_that_is_malformed_is_refused(part: object) -> None:
    assert "messages.0.content" in refusal(
        json.dumps(ask(messages=[{"id": "u", "role": "user", "content": [part]}])).encode()
    )


def test_a_byte_order_of_fields_and_spaces_do_not_matter() -> None:
    assert isinstance(parse(b' \n{"messages":[],"runId":"r","threadId":"t"}\n '), RunRequest)


@pytest.mark.parametrize("version", [None, PROTOCOL_VERSION, "1.99", "latest", ""])
def test_newer_minor_versions_are_served(version: str | None) -> None:
    assert run_input(protocolVersion=version).protocol_version == version


@pytest.mark.parametrize("version", ["0.9", "2.0", "2", "11.0"])
def test_another_major_version_is_refused(version: str) -> None:
    assert refusal(json.dumps(ask(protocolVersion=version)).encode()) == "protocolVersion: this server speaks 1.0."


def test_ids_of_the_greatest_length_are_taken() -> None:
    assert len(run_input(thread="t" * 512, run="r" * 512).run_id) == 512


# --- refusals ---

REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "The body is empty; a RunAgentInput is expected."),
    "spaces": (b" \r\n", "The body is empty; a RunAgentInput is expected."),
    "half JSON": (b'{"a":1,\n', "The body is not valid JSON at line 2, column 1."),
    "two documents": (b"{} {}", "The body is not valid JSON at line 1, column 4."),
    "not UTF-8": (b'{"a":"\xff"}', "The body is not valid UTF-8."),
    "UTF-16": ("{}".encode("utf-16"), "The body is not valid UTF-8."),
    "a list": (b"[]", "The body must be a JSON object: a RunAgentInput or a command."),
    "a string": (b'"x"', "The body must be a JSON object: a RunAgentInput or a command."),
    "null": (b"null", "The body must be a JSON object: a RunAgentInput or a command."),
    "NaN": (b'{"state":NaN}', "state: NaN is not a JSON number."),
    "Infinity": (b'{"state":-Infinity}', "state: -Infinity is not a JSON number."),
    "a key twice": (b'{"a":1,"a":2}', "A JSON object in the body has the same key twice."),
    "a key twice, deep": (b'{"a":[{"b":1,"b":1}]}', "A JSON object in the body has the same key twice."),
    "too deep": (b"[" * 100_000, "The body is nested too deeply."),
    "too many": (b"[" + b"[]," * MAX_BRACKETS + b"0]", "The body has more than 250000 lists and objects."),
    "too many values": (b"[" + b"1," * (MAX_COMMAS + 1) + b"0]", "The body has more than 1500000 values."),
    "too many strings": (b"[" + b'"",' * MAX_STRINGS + b'""]', "The body has more than 500000 strings and keys."),
    "too many keys": (
        json.dumps(dict.fromkeys(range(MAX_KEYS + 1))).encode(),
        "A JSON object in the body has more than 100000 keys.",
    ),
    "too deep by one": (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "The body is nested too deeply."),
    "too deep to be kept": (b'{"a":' * 230 + b"1" + b"}" * 230, "The body is nested too deeply."),
    "a number that is none": (b'{"a":1e999}', "a: the number is too large."),
    "an integer of 310 digits": (b'{"a":[0,{"b":' + b"1" * 310 + b"}]}", "a.1.b: the number is too large."),
    "a negative one": (b'{"a":{},"b":[[1],-1' + b"0" * 309 + b"]}", "b.1: the number is too large."),
    "a huge number": (b'{"a":' + b"1" * 5_000 + b"}", "a: the number is too large."),
    "a number alone": (b"1" * 310, "body: the number is too large."),
    "half a surrogate pair": (b'{"a":["",{"b":"\\uD83D"}]}', "a.1.b: holds half of a surrogate pair."),
    "half a pair as a name": (b'{"a":{"\\uDE00":1}}', "a.\ufffd: holds half of a surrogate pair."),
    "half a pair alone": (b'"\\uD83D"', "body: holds half of a surrogate pair."),
    "half a pair beside messages": (
        b'{"messages":[],"threadId":"\\uD83D"}',
        "threadId: holds half of a surrogate pair.",
    ),
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


def test_a_whole_surrogate_pair_is_text() -> None:
    result = run_of(parse(b'{"threadId":"\\uD83D\\uDE00","runId":"r","messages":[]}'))
    assert result.thread_id == "\N{GRINNING FACE}"


IMAGE_VALUE = "messages.0.content.0.source.value"


def image_message(source: object, image: object = None, **fields: object) -> Json:
    """Return a message with one image part."""
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


def test_an_error_inside_a_list_of_parts_is_the_only_one() -> None:
    message = refusal(json.dumps(ask(messages=[image_message({"type": "url", "url": "x"})])).encode())
    assert message == f"{IMAGE_VALUE}: Field required"


def test_content_that_is_neither_text_nor_a_list_may_be_both() -> None:
    message = refusal(json.dumps(ask(messages=[{"id": "u", "role": "user", "content": 5}])).encode())
    path = "messages.0.content: Input should be a valid"
    assert message == f"{path} string; {path} list"


def test_messages_beyond_the_first_hundred_have_the_same_paths() -> None:
    good = [{"id": f"m{at}", "role": "user", "content": "x"} for at in range(MESSAGES_AT_ONCE)]
    message = refusal(json.dumps(ask(messages=[*good, image_message({"type": "url", "url": "x"})])).encode())
    assert message == f"messages.{MESSAGES_AT_ONCE}.content.0.source.value: Field required"


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


def test_halves_of_surrogate_pairs_in_messages_are_replaced_and_told() -> None:
    told: list[str] = []
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "\udc00"}}
    messages = [
        {"id": "a", "role": "assistant", "content": "cut \ud83d", "toolCalls": [call], "metadata": {"\ud83d": "fine"}},
        {"id": "t", "role": "tool", "toolCallId": "c", "content": [{"type": "text", "text": "\ud83d \U0001f600 \0"}]},
    ]
    run = run_of(parse(json.dumps(ask(messages=messages)).encode(), told.append))
    found = run.model_dump(by_alias=True, mode="json", exclude_none=True)["messages"]
    assert found[0]["content"] == "cut \ufffd"
    assert found[0]["toolCalls"][0]["function"]["arguments"] == "\ufffd"
    assert found[0]["metadata"] == {"\ufffd": "fine"}
    assert found[1]["content"][0]["text"] == "\ufffd \U0001f600 \0"
    assert told == ["halves of surrogate pairs replaced texts=4"]


def test_of_many_messages_the_first_wrong_one_is_named_and_no_other_is_looked_at() -> None:
    good, bad = {"id": "m", "role": "user", "content": "x"}, {"id": 1, "role": "user", "content": 1}
    messages = [good, *[bad] * (MESSAGES_AT_ONCE + 1)]
    message = refusal(json.dumps(ask(messages=messages)).encode())
    assert message.startswith("messages.1.id: Input should be a valid string; messages.1.content: ")
    assert "messages.2" not in message
    many = [{**good, "id": f"m{at}"} for at in range(MESSAGES_AT_ONCE + 1)]
    request = parse(json.dumps(ask(messages=many)).encode())
    assert isinstance(request, RunRequest)
    assert len(request.run_input.messages) == MESSAGES_AT_ONCE + 1


@pytest.mark.parametrize("symbol", ["[", "{", ",", '"'])
def test_symbols_inside_of_text_are_not_counted(symbol: str) -> None:
    text = f'"quoted" {symbol * (MAX_COMMAS + 1)}'
    request = parse(json.dumps(ask(text=text)).encode())
    assert isinstance(request, RunRequest)


def test_a_document_may_be_as_deep_as_stores_can_read() -> None:
    deep = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1)
    body = json.dumps(ask()).encode()[:-1] + b',"state":' + deep + b"}"
    assert isinstance(parse(body), RunRequest)
    assert from_json(body)


def test_a_refusal_lists_a_few_errors_and_counts_the_rest() -> None:
    message = refusal(json.dumps(ask(messages=[{"id": number} for number in range(9)])).encode())
    assert message.count("; ") == 5
    assert message.endswith("and 4 more")


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    assert "hunter2" not in refusal(json.dumps(ask(tools=[{"name": {"password": "hunter2"}}])).encode())
