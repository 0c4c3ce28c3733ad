"""Messages of gRPC count as in flight while they arrive, and must arrive in time."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agui_container.engine.caller_ledger import CallerLedgers
from agui_container.engine.policy import CallerLimits, CapacityLimits
from agui_container.protocol.errors import AppError
from agui_container.transports.accounts import Accounts
from agui_container.transports.authentication import NO_AUTHENTICATION
from agui_container.transports.bytes_in_flight import SMALL_BYTES, ByteBudget
from agui_container.transports.grpc import call
from agui_container.transports.grpc.call import PIECE_BYTES, Call, CallAdmission
from agui_container.transports.grpc.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.grpc.messages import PREFIX
from tests.engine.doubles import FakeClock, caller

SIZE = 3 * PIECE_BYTES


class Sender:
    """The stream of a client that sends so many bytes of a message, and then nothing."""

    def __init__(self, sent: int) -> None:
        body = kontekst.RunCommand(start=kontekst.StartRunCommand(prompt="x" * SIZE)).SerializeToString()
        self._data = (PREFIX.pack(0, len(body)) + body)[: PREFIX.size + sent]
        self.headers: list[tuple[str, str]] = []

    async def recv_data(self, size: int) -> bytes:
        if len(self._data) < size:
            await asyncio.Event().wait()
        data, self._data = self._data[:size], self._data[size:]
        return data


def receiving(sent: int, budget: ByteBudget) -> Call[Any, Any]:
    stream: Any = SimpleNamespace(_stream=Sender(sent), _recv_type=kontekst.RunCommand)
    ledgers = CallerLedgers(CapacityLimits(), CallerLimits(), FakeClock())
    admission = CallAdmission(
        10 * SIZE,
        by_session=False,
        origins=(),
        authentication=NO_AUTHENTICATION,
        accounts=Accounts(),
        ledgers=ledgers,
        budget=budget,
    )
    return Call(stream, caller(), admission)


async def test_a_message_counts_until_it_is_decoded() -> None:
    budget = ByteBudget(10 * SIZE)
    message = await receiving(2 * SIZE, budget).receive()
    assert message is not None
    assert len(message.start.prompt) == SIZE
    assert budget.used == 0


async def test_only_bytes_that_have_arrived_count() -> None:
    budget = ByteBudget(10 * SIZE)
    reading = asyncio.create_task(receiving(PIECE_BYTES, budget).receive())
    await asyncio.sleep(0)
    assert budget.used == PIECE_BYTES
    reading.cancel()
    await asyncio.wait([reading])
    assert budget.used == 0


async def test_a_message_for_which_there_is_no_room_is_refused() -> None:
    with pytest.raises(AppError, match="Too many bytes") as raised:
        await receiving(2 * SIZE, ByteBudget(2 * SMALL_BYTES)).receive()
    assert raised.value.code == "RATE_LIMIT_EXCEEDED"


async def test_a_message_that_does_not_arrive_in_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "READ_SECONDS", 0)
    with pytest.raises(AppError, match="ended inside a message"):
        await receiving(PIECE_BYTES, ByteBudget(10 * SIZE)).receive()
