"""Messages and replies of gRPC count as in flight, and must arrive and be taken in time."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from ag_ui.core import EventType

from agui_container.engine.admission import quota as quota_module
from agui_container.engine.admission.quota import SMALL_BYTES, Limit, Quota
from agui_container.engine.policy import CapacityLimits
from agui_container.protocol.errors import AppError
from agui_container.protocol.wire.envelope import Batch
from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.grpc import call
from agui_container.transports.grpc.call import PIECE_BYTES, REPLY_COPIES, Call
from tests.engine.doubles import eventually, make_quota
from tests.grpc.streams import SIZE, Reader, Sender, call_of, start
from tests.requirements import requirement

# --- messages ---------------------------------------------------------------------------------------------------------


def room_for(most: int) -> Quota:
    """Return a quota of so many bytes in flight."""
    return make_quota(CapacityLimits(bytes_in_flight=most))


def receiving(sent: int, budget: Quota) -> Call[Any, Any]:
    return call_of(Sender(start(), sent), budget)


async def test_a_message_counts_until_it_is_decoded() -> None:
    budget = room_for(10 * SIZE)
    message = await receiving(2 * SIZE, budget).receive()
    assert message is not None
    assert len(message.start.prompt) == SIZE
    assert budget.amounts[Limit.BYTES_IN_FLIGHT].used == 0


async def test_only_bytes_that_have_arrived_count() -> None:
    budget = room_for(10 * SIZE)
    reading = asyncio.create_task(receiving(PIECE_BYTES, budget).receive())
    await eventually(lambda: budget.amounts[Limit.BYTES_IN_FLIGHT].used == PIECE_BYTES)
    assert budget.amounts[Limit.BYTES_IN_FLIGHT].used == PIECE_BYTES
    reading.cancel()
    await asyncio.wait([reading])
    assert budget.amounts[Limit.BYTES_IN_FLIGHT].used == 0


async def test_a_message_for_which_there_is_no_room_is_refused() -> None:
    with pytest.raises(AppError, match="Too many bytes") as raised:
        await receiving(2 * SIZE, room_for(2 * SMALL_BYTES)).receive()
    assert raised.value.code == "RATE_LIMIT_EXCEEDED"


async def test_a_message_that_does_not_arrive_in_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "READ_SECONDS", 0)
    with pytest.raises(AppError, match="did not arrive in full"):
        await receiving(PIECE_BYTES, room_for(10 * SIZE)).receive()


# --- replies ----------------------------------------------------------------------------------------------------------

BATCH = Batch("r1", 1, [EventType.TEXT_MESSAGE_CONTENT], [b'{"delta":"' + b"x" * SIZE + b'"}'])
REPLY = REPLY_COPIES * len(BATCH.data[0])


class Translation:
    """A translation of events that counts them."""

    count = 0

    def feed(self, _: EventType, event: Any) -> Iterator[kontekst.RunEvent]:
        self.count += 1
        yield kontekst.RunEvent(token=kontekst.TokenDeltaEvent(text=event["delta"]))


@requirement("grpc.slow", "grpc.memory")
async def test_unread_replies_count_in_the_budget_of_their_caller_and_further_ones_are_not_made() -> None:
    budget, readers, translation = room_for(5 * REPLY), [Reader() for _ in range(6)], Translation()
    async with asyncio.TaskGroup() as tasks:
        for reader in readers:
            tasks.create_task(call_of(reader, budget, "first").send_events(BATCH, translation.feed))
        await eventually(lambda: sum(reader.offered for reader in readers) == 2)
        assert (budget.amounts[Limit.BYTES_IN_FLIGHT].used, translation.count) == (2 * REPLY, 2)
        other = Reader()
        other.is_reading.set()
        await call_of(other, budget, "second").send_events(BATCH, translation.feed)
        assert (other.offered, budget.amounts[Limit.BYTES_IN_FLIGHT].used) == (4, 2 * REPLY)
        for reader in readers:
            reader.is_reading.set()
    assert (budget.amounts[Limit.BYTES_IN_FLIGHT].used, translation.count) == (0, 7)


@requirement("grpc.slow")
async def test_replies_that_find_no_room_in_time_end_their_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_module, "WAIT_SECONDS", 0)
    with pytest.raises(AppError, match="Too many bytes") as raised:
        await call_of(Reader(), room_for(REPLY)).send_events(BATCH, Translation().feed)
    assert raised.value.code == "RATE_LIMIT_EXCEEDED"


@requirement("grpc.slow")
async def test_a_client_that_takes_nothing_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "STALLED_SECONDS", 0)
    reader = Reader()
    slow = call_of(reader, room_for(10 * REPLY))
    for _ in range(2):
        with pytest.raises(AppError, match="reads too slowly"):
            await slow.send_events(BATCH, Translation().feed)
    assert reader.offered == 1


@requirement("grpc.slow", "grpc.drain")
@pytest.mark.parametrize(("window", "is_cut_off"), [(1, True), (0, False)])
async def test_no_reply_follows_a_part_of_one_whose_sending_was_cancelled(
    window: int,
    is_cut_off: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    reader = Reader(window)
    slow = call_of(reader, room_for(10 * REPLY))
    sending = asyncio.create_task(slow.send_events(BATCH, Translation().feed))
    await eventually(lambda: reader.offered)
    sending.cancel()
    await asyncio.wait([sending])
    reader.is_reading.set()
    assert slow.is_open is not is_cut_off
    with pytest.raises(AppError, match="reads too slowly") if is_cut_off else contextlib.nullcontext():
        await slow.send_events(BATCH, Translation().feed)
    assert reader.offered == (1 if is_cut_off else 5)
