"""Random input is answered by a result or by an error that says what is wrong, and harms nothing."""

import copy
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import parse
from tests.engine.doubles import Json, ask

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = ("threadId", "runId", "messages", "tools", "context", "state", "forwardedProps", "resume", "command", "type")

CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
MESSAGES: list[Json] = [
    {"id": "s", "role": "system", "content": "Be brief."},
    {"id": "u", "role": "user", "content": [{"type": "text", "text": "hi"}]},
    {"id": "a", "role": "assistant", "content": "hello", "toolCalls": [CALL]},
    {"id": "t", "role": "tool", "toolCallId": "c", "content": "1"},
    {"id": "r", "role": "reasoning", "content": "so"},
    {"id": "x", "role": "activity", "activityType": "plan", "content": {"steps": []}},
]
TOOL: Json = {"name": "paint", "description": "Paints.", "parameters": {"type": "object", "properties": {}}}
BODIES: list[Json] = [
    ask(messages=MESSAGES, state={"a": [1, {"b": None}]}, tools=[TOOL], context=[{"description": "d", "value": "v"}]),
    ask(resume=[{"interruptId": "i", "status": "resolved", "payload": {"approved": True}}], parentRunId="p"),
    ask(forwardedProps={"onBusy": "enqueue", "budget": {"seconds": 5}, "command": {"type": "capabilities"}}),
    {"command": {"type": "attach", "threadId": "t", "runId": "r", "after": 3}, "id": 1},
    {"command": {"type": "threads.list", "limit": 10}},
]


def containers(value: object) -> list[dict[str, object] | list[object]]:
    """Return all objects and lists of a document, the document first."""
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(found for each in inner for found in containers(each))]


@st.composite
def changed_bodies(draw: st.DrawFn) -> bytes:
    """Draw a valid body with a few values replaced, removed or added, and sometimes cut or with a byte replaced."""
    document = copy.deepcopy(draw(st.sampled_from(BODIES)))
    for _ in range(draw(st.integers(0, 4))):
        where = draw(st.sampled_from(containers(document)))
        keys: list[object] = [*where, "extra"] if isinstance(where, dict) else [*range(len(where))]
        if keys:
            key = draw(st.sampled_from(keys))
            where[key] = draw(JSON)  # type: ignore[index, call-overload] # a name or a number, as the container takes
            if draw(st.booleans()):
                del where[key]  # type: ignore[arg-type] # as above
    body = json.dumps(document).encode()
    at = draw(st.integers(0, len(body)))
    return draw(st.sampled_from([body, body[:at], body[:at] + draw(st.binary(max_size=2)) + body[at + 1 :]]))


def check_body(body: bytes) -> None:
    """Parse a body as SSE and WebSocket do. It is read, or refused with an error of the caller's."""
    refusals = []
    try:
        parse(body)
    except AppError as error:
        refusals.append(error.code)
    assert {*refusals} <= {ErrorCode.VALIDATION_ERROR, ErrorCode.PAYLOAD_TOO_LARGE}


@settings(max_examples=300)
@given(changed_bodies())
def test_a_valid_body_with_random_changes_is_read_or_refused(body: bytes) -> None:
    check_body(body)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(NAMES), JSON) | JSON)
def test_a_random_document_is_read_or_refused(document: object) -> None:
    check_body(json.dumps(document).encode())


@given(st.binary())
def test_random_bytes_are_read_or_refused(body: bytes) -> None:
    check_body(body)
