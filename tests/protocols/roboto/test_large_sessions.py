"""Large sessions are built and written off the event loop."""

import threading

import pytest

from agui_container.protocols.roboto.turns import Turns
from agui_container.threads import LARGE_BYTES
from tests.engine.conversations import QUESTION, store_conversation
from tests.engine.doubles import caller, forever, make_service

pytestmark = pytest.mark.wire


async def reader_of(size: int) -> Turns:
    service = make_service(forever)
    await store_conversation(service.cluster.store, {**QUESTION, "content": "x" * size})
    return Turns(service)


@pytest.mark.parametrize(("size", "apart"), [(LARGE_BYTES // 2, False), (2 * LARGE_BYTES, True)])
async def test_a_large_session_is_built_and_written_off_the_event_loop(size: int, *, apart: bool) -> None:
    reader = await reader_of(size)
    thread = await reader.read(caller(), "t1", lambda _: threading.get_ident())
    assert (thread != threading.get_ident()) == apart
