"""Large messages are decoded and translated in a thread, and bounded by what they hold before they are decoded."""

import gzip
from typing import Any

import pytest
from google.protobuf.message import Message

from agui_container import threads as offload_module
from agui_container.protocol.errors import AppError
from agui_container.protocol.parser import MAX_MESSAGE_PARTS
from agui_container.protocols.gen.descriptors import Struct
from agui_container.protocols.gen.roz.v1 import agent_pb2 as roz
from agui_container.protocols.grpc import call, messages
from agui_container.protocols.grpc.messages import check_fields, decode
from agui_container.protocols.roz.run_inputs import MAX_CONTEXTS, read_message, read_start
from agui_container.threads import LARGE_BYTES, offload
from tests.protocols.grpc.streams import Sender, call_of, start

EMPTY_HISTORY, EMPTY_CONTEXT = b"\x2a\x00", b"\x32\x00"
"""Encoded fields of a ``StartSession``: an empty message, and an empty text."""

EMPTY_OBJECT = b"\x0a\x02\x2a\x00"
"""An encoded ``ListValue`` with one empty object."""


class CountingWork:
    count = 0

    async def __call__(self, work: Any, *args: Any) -> Any:
        self.count += 1
        return await offload(work, *args)


@pytest.fixture
def large_work(monkeypatch: pytest.MonkeyPatch) -> CountingWork:
    work = CountingWork()
    for module in (call, offload_module):
        monkeypatch.setattr(module, "offload", work)
    return work


def list_of_objects(count: int) -> Struct:
    document = Struct()
    document.fields["a"].list_value.MergeFromString(EMPTY_OBJECT * count)
    return document


@pytest.mark.parametrize(
    ("size", "encoding", "count"), [(LARGE_BYTES - 100, "", 0), (LARGE_BYTES + 1, "", 1), (LARGE_BYTES + 1, "gzip", 1)]
)
async def test_large_messages_are_decoded_in_a_thread(
    large_work: CountingWork, size: int, encoding: str, count: int
) -> None:
    body = gzip.compress(start(size)) if encoding else start(size)
    message = await call_of(Sender(body, encoding=encoding)).receive()
    assert message is not None
    assert (len(message.start.prompt), large_work.count) == (size, count)


@pytest.mark.parametrize("field", [EMPTY_HISTORY, EMPTY_CONTEXT])
def test_a_message_with_too_many_fields_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch, field: bytes
) -> None:
    monkeypatch.setattr(messages, "MAX_FIELDS", LARGE_BYTES)
    assert decode(roz.StartSession, field * LARGE_BYTES) is not None
    with pytest.raises(AppError, match=f"A message may have {LARGE_BYTES} fields at most") as raised:
        decode(roz.StartSession, field * (LARGE_BYTES + 1))
    assert raised.value.code == "VALIDATION_ERROR"


def test_fields_are_counted_at_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    start = roz.StartSession(tools=[roz.ToolSchema(name="f", parameters_schema=list_of_objects(100))])
    request = roz.SessionRequest(start=start)
    fields = 100 * 2 + len(["start", "tools", "name", "parameters_schema", "fields", "key", "value", "list_value"])
    monkeypatch.setattr(messages, "MAX_FIELDS", fields)
    check(request)
    monkeypatch.setattr(messages, "MAX_FIELDS", fields - 1)
    with pytest.raises(AppError, match="fields at most"):
        check(request)


def check(message: Message) -> None:
    check_fields(message.SerializeToString(), message.DESCRIPTOR)


def test_a_document_that_is_too_deep_is_refused() -> None:
    document = inner = Struct()
    for _ in range(100):
        inner = inner.fields["a"].struct_value
    with pytest.raises(AppError, match="cannot be decoded"):
        decode(Struct, document.SerializeToString())


def test_lists_of_a_start_and_of_a_message_are_bounded() -> None:
    with pytest.raises(AppError, match="project_context"):
        read_start(roz.StartSession(project_context=[""] * (MAX_CONTEXTS + 1)))
    blocks = [roz.ContentBlock(text="x")] * (MAX_MESSAGE_PARTS + 1)
    with pytest.raises(AppError, match="context: may have"):
        read_message(roz.UserMessage(context=blocks), 0, "m1", "u1")
    with pytest.raises(AppError, match="message_id"):
        read_message(roz.UserMessage(), 0, "m" * 513, "u1")
