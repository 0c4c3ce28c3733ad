"""Messages and replies of gRPC must arrive and be taken in time."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from ag_ui.core import EventType

from agui_container.protocol.errors import AppError
from agui_container.protocol.wire.envelope import Batch
from agui_container.protocols.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.protocols.grpc import call
from tests.engine.doubles import eventually
from tests.protocols.grpc.streams import SIZE, Reader, call_of

BATCH = Batch("r1", 1, [EventType.TEXT_MESSAGE_CONTENT], [b'{"delta":"' + b"x" * SIZE + b'"}'])


def translate(_: EventType, event: Any) -> Iterator[kontekst.RunEvent]:
    yield kontekst.RunEvent(token=kontekst.TokenDeltaEvent(text=event["delta"]))


async def test_a_client_that_takes_nothing_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "STALLED_SECONDS", 0)
    reader = Reader()
    slow = call_of(reader)
    for _ in range(2):
        with pytest.raises(AppError, match="reads too slowly"):
            await slow.send_events(BATCH, translate)
    assert reader.offered == 1


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
