"""Messages and replies: large ones are bounded and handled in a thread, and clients must take what is sent."""

import asyncio
import contextlib
import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from ag_ui.core import EventType

from agui_container import threads as offload_module
from agui_container.protocol.envelope import Batch
from agui_container.protocol.errors import AppError
from agui_container.protocol.parser import MAX_MESSAGE_PARTS
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from agui_container.protocols.gen.descriptors import Struct
from agui_container.protocols.grpc import call
from agui_container.protocols.grpc.call import decode
from agui_container.protocols.roz.run_inputs import MAX_CONTEXTS, read_message, read_start
from agui_container.threads import LARGE_BYTES, offload
from tests.engine.doubles import eventually
from tests.protocols.clients import serving_clients
from tests.protocols.grpc.streams import SIZE, Reader, Sender, call_of, start


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


def test_a_document_that_is_too_deep_is_refused() -> None:
    document = inner = Struct()
    for _ in range(100):
        inner = inner.fields["a"].struct_value
    with pytest.raises(AppError, match="cannot be decoded"):
        decode(Struct, document.SerializeToString())


def test_lists_of_a_start_and_of_a_message_are_bounded() -> None:
    with pytest.raises(AppError, match="project_context"):
        read_start(roz.StartSession(project_context=[""] * (MAX_CONTEXTS + 1)), "", 0)
    blocks = [roz.ContentBlock(text="x")] * (MAX_MESSAGE_PARTS + 1)
    with pytest.raises(AppError, match="context: may have"):
        read_message(roz.UserMessage(context=blocks), 0, "m1", "u1")
    with pytest.raises(AppError, match="message_id"):
        read_message(roz.UserMessage(), 0, "m" * 513, "u1")


BATCH = Batch("r1", 1, [EventType.TEXT_MESSAGE_CONTENT], [b'{"delta":"' + b"x" * SIZE + b'"}'])


def translate(_: EventType, event: Any) -> Iterator[kontekst.RunEvent]:
    yield kontekst.RunEvent(token=kontekst.TokenDeltaEvent(text=event["delta"]))


@pytest.mark.parametrize(("window", "is_cut_off"), [(1, True), (0, False)])
async def test_no_reply_follows_a_part_of_one_whose_sending_was_cancelled(
    window: int,
    is_cut_off: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    reader = Reader(window)
    slow = call_of(reader)
    sending = asyncio.create_task(slow.send_events(BATCH, translate))
    await eventually(lambda: reader.offered)
    sending.cancel()
    await asyncio.wait([sending])
    reader.is_reading.set()
    assert slow.is_open is not is_cut_off
    with pytest.raises(AppError, match="reads too slowly") if is_cut_off else contextlib.nullcontext():
        await slow.send_events(BATCH, translate)
    assert reader.offered == (1 if is_cut_off else 5)


async def test_a_large_request_of_a_session_is_translated_in_a_thread(large_work: CountingWork) -> None:
    async def agent(_: object) -> Any:
        yield "hi"

    text = "x" * (LARGE_BYTES + 1)
    part = roz.ContentPart(text=roz.TextContent(text=text))
    async with serving_clients(agent) as clients:
        await clients.start_session()
        assert large_work.count == 0
        await clients.start_session(history=[roz.ConversationMessage(role="user", parts=[part])])
        assert large_work.count == 2, "to decode it and to translate it"
