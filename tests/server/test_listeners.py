"""Connections that wait to be accepted."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise

import pytest
import uvicorn
import uvloop

from agui_container.server.listeners import LISTENERS, add_listeners
from agui_container.server.uvicorn_protocols import HttpProtocol
from tests.requirements import requirement
from tests.server.doubles import RecordingApp, until

FIRST, SECOND = "127.0.0.1", "127.0.0.2"
FIRST_NETWORK = "::1"
BACKLOG = 2 * LISTENERS
CONNECT_SECONDS = 0.5
"""A client whose first packet is dropped repeats it after a second."""


@asynccontextmanager
async def serving(host: str = "127.0.0.1") -> AsyncIterator[uvicorn.Server]:
    """Serve on a free port."""
    config = uvicorn.Config(
        RecordingApp(), host=host, port=0, http=HttpProtocol, log_config=None, lifespan="off", backlog=BACKLOG
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    await add_listeners(server)
    try:
        yield server
        await until(lambda: not server.server_state.connections)
    finally:
        await server.shutdown()


def address_of(server: uvicorn.Server) -> tuple[str, int]:
    host, port, *_ = server.servers[0].sockets[0].getsockname()
    return host, port


def clients_of(server: uvicorn.Server) -> list[str]:
    """Return the addresses of the clients whose connections have been accepted."""
    connections = [each for each in server.server_state.connections if isinstance(each, HttpProtocol)]
    return [each.client[0] for each in connections if each.client is not None]


@contextmanager
def waiting(server: uvicorn.Server, clients: int, source: str = FIRST) -> Iterator[None]:
    """Connect clients, which wait until the event loop turns. If a queue is full, they are not connected."""
    with contextlib.ExitStack() as stack:
        for _ in range(clients):
            client = stack.enter_context(socket.socket())
            client.settimeout(0)
            client.bind((source, 0))
            client.connect_ex(address_of(server))
        yield


async def accepted_per_turn() -> list[int]:
    """Return the numbers of connections that a server accepts in the turns of the loop, while ``BACKLOG`` wait."""
    async with serving() as server:
        with waiting(server, BACKLOG):
            accepted = [0]
            while accepted[-1] < BACKLOG:
                await asyncio.sleep(0)
                accepted.append(len(server.server_state.connections))
    return [later - earlier for earlier, later in pairwise(accepted)]


@requirement("caller.connections")
def test_several_connections_are_accepted_in_one_turn_of_the_loop() -> None:
    assert max(uvloop.run(accepted_per_turn())) == LISTENERS


async def connect_beside_a_full_queue() -> int:
    """Return the number of connections of a first caller that are accepted before that of a second one."""
    async with serving() as server:
        with waiting(server, 10 * BACKLOG), second_client(server):
            clients = list[str]()
            while SECOND not in clients:
                await asyncio.sleep(0)
                clients = clients_of(server)
            return clients.count(FIRST)


@contextmanager
def second_client(server: uvicorn.Server) -> Iterator[None]:
    with socket.create_connection(address_of(server), timeout=CONNECT_SECONDS, source_address=(SECOND, 0)):
        yield


@requirement("caller.connections")
def test_a_connection_does_not_wait_behind_a_full_queue_of_another_caller() -> None:
    assert uvloop.run(connect_beside_a_full_queue()) <= LISTENERS


async def connect_over(host: str, source: str) -> str:
    """Return the address of the client that a server on ``host`` has accepted."""
    async with serving(host) as server:
        target = source, address_of(server)[1]
        with socket.create_connection(target, timeout=CONNECT_SECONDS):
            await until(lambda: len(server.server_state.connections) == 1)
            (client,) = clients_of(server)
            return client


def has_ipv6() -> bool:
    """True if the loopback of this machine has an address of IPv6."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind((FIRST_NETWORK, 0))
        return True
    return False


IPV6 = pytest.param("::1", FIRST_NETWORK, marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine"))


@pytest.mark.parametrize(("host", "source"), [("127.0.0.1", FIRST), IPV6, ("localhost", FIRST)])
def test_connections_of_both_versions_of_ip_are_accepted(host: str, source: str) -> None:
    assert uvloop.run(connect_over(host, source)) == source


async def bind_again() -> None:
    async with serving() as server:
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="Address already in use"):
                other.bind(address_of(server))


def test_a_second_server_cannot_have_the_address() -> None:
    uvloop.run(bind_again())


async def serve_again_beside_connections_that_are_left() -> None:
    """Leave a connection to each of two queues behind, and bind the address again."""
    with contextlib.ExitStack() as clients:
        async with serving() as server:
            address = address_of(server)
            for source in (FIRST, SECOND):
                clients.enter_context(socket.create_connection(address, CONNECT_SECONDS, (source, 0)))
            await until(lambda: len(server.server_state.connections) == 2)
            for connection in list(server.server_state.connections):
                connection.shutdown()
        with socket.create_server(address):
            pass


def test_connections_that_are_left_do_not_keep_the_next_process_from_the_address() -> None:
    uvloop.run(serve_again_beside_connections_that_are_left())
