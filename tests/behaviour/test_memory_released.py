"""A client that leaves amid a run leaves nothing behind that waits for the garbage collector."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.ports import Item
from agui_container.run.policy import CapacityLimits
from agui_container.run.run import Run
from agui_container.web.websocket import WebSocketConnection
from tests.behaviour.client import Client, begin_run
from tests.conftest import Connect, Serve
from tests.engine.doubles import eventually


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """Turn off the garbage collector, so that only reference counts release memory."""
    gc.disable()
    yield
    gc.enable()


class TrackedObjects:
    def __init__(self, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seen: list[weakref.ref[object]] = []
        make = kind.__init__  # type: ignore[misc] # of the class itself

        def recording_init(made: object, *args: object, **kwargs: object) -> None:
            self._seen.append(weakref.ref(made))
            make(made, *args, **kwargs)

        monkeypatch.setattr(kind, "__init__", recording_init)

    async def wait_until_collected(self) -> None:
        """Wait until all recorded objects are released. Fail if none was recorded."""
        assert self._seen
        await eventually(lambda: not any(made() for made in self._seen))


async def wait_forever(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hi"
    await asyncio.Event().wait()


async def leave_run(client: Client) -> None:
    stream = await begin_run(client)
    await stream.leave()


@pytest.mark.wire
async def test_a_run_whose_reader_has_left_is_gone(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    client, runs = (
        await connect(wait_forever, CapacityLimits(kept_runs=0), on_disconnect="cancel"),
        TrackedObjects(Run, monkeypatch),
    )
    await leave_run(client)
    client.streams.clear()
    await runs.wait_until_collected()


async def test_a_socket_that_is_closed_amid_a_run_is_gone(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = await serve(wait_forever, on_disconnect="cancel")
    connections = TrackedObjects(WebSocketConnection, monkeypatch)
    await leave_run(client)
    await connections.wait_until_collected()
