"""A client that takes nothing holds back its own call: the server takes no more of the run's events for it."""

import asyncio
from collections.abc import AsyncIterator

import h2.events
import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.log.event_log import BATCH_BYTES, EventLog
from agui_container.ports import Item
from agui_container.protocol.wire.envelope import Batch
from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.engine.doubles import wait_for_event
from tests.grpc.h2 import message
from tests.grpc.in_loop_clients import answers, beside, port_of, raw
from tests.requirements import requirement

PIECES, PIECE = 3_000, "x" * 1_000
WINDOW = 1_000
KONTEKST = kontekst.RunCommand(start=kontekst.StartRunCommand(prompt="hi"))
ROZ = (roz.SessionRequest(start=roz.StartSession()), roz.SessionRequest(user_message=roz.UserMessage(content="hi")))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the batches that readers have taken."""
    sizes: list[int] = []
    batch = EventLog.batch

    def counted(self: EventLog, after: int, last: int) -> Batch:
        found = batch(self, after, last)
        sizes.append(sum(map(len, found.data)))
        return found

    monkeypatch.setattr(EventLog, "batch", counted)
    return sizes


@requirement("grpc.slow")
@pytest.mark.parametrize(
    ("path", "requests"),
    [("/kontekst.AgentService/Run", (KONTEKST,)), ("/roz.v1.AgentService/StreamSession", ROZ)],
    ids=["kontekst", "roz"],
)
async def test_a_client_that_takes_nothing_is_given_no_more_than_one_batch(
    taken: list[int], path: str, requests: tuple[kontekst.RunCommand | roz.SessionRequest, ...]
) -> None:
    has_ended = asyncio.Event()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for piece in [PIECE] * PIECES:
            yield piece
        has_ended.set()

    async with port_of(agent) as port, raw(port, window=WINDOW) as slow:
        stream = slow.call(path)
        for request in requests:
            slow.data(stream, message(request.SerializeToString()))
        await wait_for_event(has_ended)  # the client does not hold the run
        assert await answers(port)
        assert 0 < sum(taken) <= 2 * BATCH_BYTES < PIECES * len(PIECE)
        before = sum(taken)
        while not any(isinstance(event, h2.events.DataReceived) for event in slow.events):
            await beside(slow.read)
        assert await answers(port)
        assert len(slow.body(stream)) <= WINDOW
        assert sum(taken) == before
