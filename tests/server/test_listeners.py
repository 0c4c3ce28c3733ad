"""Connections that wait to be accepted."""

import asyncio
import contextlib
import socket
from itertools import pairwise

import uvicorn
import uvloop

from agui_container.server.run import LISTENERS, add_listeners
from agui_container.server.uvicorn_protocols import HttpProtocol
from tests.requirements import requirement
from tests.server.doubles import RecordingApp, until

CLIENTS = 3 * LISTENERS


async def accepted_per_turn() -> list[int]:
    """Return the numbers of connections that a server accepts in the turns of the loop, while ``CLIENTS`` wait."""
    config = uvicorn.Config(RecordingApp(), port=0, http=HttpProtocol, log_config=None, lifespan="off")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    await add_listeners(server)
    address, connections = server.servers[0].sockets[0].getsockname(), server.server_state.connections
    with contextlib.ExitStack() as clients:
        for _ in range(CLIENTS):
            clients.enter_context(socket.create_connection(address))
        accepted = [0]
        while accepted[-1] < CLIENTS:
            await asyncio.sleep(0)
            accepted.append(len(connections))
    await until(lambda: not connections)
    await server.shutdown()
    return [later - earlier for earlier, later in pairwise(accepted)]


@requirement("caller.connections")
def test_several_connections_are_accepted_in_one_turn_of_the_loop() -> None:
    assert max(uvloop.run(accepted_per_turn())) == LISTENERS
