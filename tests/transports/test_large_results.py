"""A large result counts as in flight from the time at which it is read until its client has it, on every transport."""

from collections.abc import Awaitable, Callable
from itertools import dropwhile

import pytest

from agui_container.main import build_app
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.counted_bytes import record_used_bytes
from tests.engine.conversations import QUESTION, store_conversation
from tests.engine.doubles import eventually, forever, make_service
from tests.requirements import requirement
from tests.sse import http_client
from tests.websocket import send, socket_to

SIZE = 500_000
GET = {"type": "threads.get", "threadId": "t1"}

Read = Callable[[str], Awaitable[str]]


def over_http(path: str) -> Read:
    """A read of a path."""

    async def read(url: str) -> str:
        async with http_client(url) as http:
            return (await http.get(path)).text

    return read


async def over_sse(url: str) -> str:
    """The result of a command."""
    async with http_client(url) as http:
        return (await http.post("/invocations", json={"command": GET})).text


async def over_socket(url: str) -> str:
    """The result of a command on a socket."""
    async with socket_to(url) as socket:
        await send(socket, {"command": GET})
        return str(await socket.recv())


READS = {
    "thread": over_http("/threads/t1"),
    "delta": over_http("/threads/t1/delta"),
    "transcript": over_http("/threads/t1/transcript"),
    "session": over_http("/v1/ai/threads/t1"),
    "changes of a session": over_http("/v1/ai/threads/t1/delta"),
    "sse": over_sse,
    "socket": over_socket,
}


@requirement("caller.loop")
@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_a_result_counts_without_a_gap_from_its_read_to_its_end(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = record_used_bytes(monkeypatch)
    settings = Settings(roboto=True)
    service = make_service(forever, settings)
    await store_conversation(service.cluster.store, {**QUESTION, "content": "x" * SIZE})
    async with serving(build_app(settings, service)) as url:
        assert "x" * SIZE in await read(url)
        await eventually(lambda: used[-1] == 0)
    counted = list(dropwhile(lambda size: size == 0, used))
    assert min(counted[:-1]) >= SIZE
