"""Sockets that listen on one address, each with a queue of connections that wait to be accepted.

Rule: the system chooses the queue of a connection by the network address of its client. A caller that opens connections
without a pause fills one queue, and the connections of most others wait in another one. A full queue would make all
others repeat their first packet after a second.

Linux and uvloop do this. Elsewhere the connections of all callers may come to one queue.
"""

import asyncio
import contextlib
import ctypes
import logging
import socket
import struct
from functools import partial

import uvicorn

from agui_container.runtime.log_values import format_fields
from agui_container.server.uvicorn_protocols import HttpProtocol

QUEUES = 16
"""Queues of each address. A power of two. Two callers have the same one if their addresses happen to choose it."""

LISTENERS = 2
"""Listeners of each queue. uvloop accepts one connection of a listener in a turn of the loop. A turn is long while
there is much work, and with one listener a connection would wait a turn for each one that another caller opens."""

SO_ATTACH_REUSEPORT_CBPF = 51
"""Option of Linux: a program chooses among the sockets that listen on one address."""

IP_HEADER = 0xFFF00000
"""Offset of the IP header in such a program."""

LOAD_BYTE, LOAD_WORD, COPY, AND, XOR_COPY, SHIFT_RIGHT = 0x30, 0x20, 0x07, 0x54, 0xAC, 0x74
JUMP_IF_EQUAL, JUMP, RETURN = 0x15, 0x05, 0x16
"""Operations of such a program, by their numbers in ``linux/bpf_common.h``."""

logger = logging.getLogger(__name__)

CHOICE_BY_ADDRESS = (
    (LOAD_BYTE, 0, 0, IP_HEADER),
    (AND, 0, 0, 0xF0),
    (JUMP_IF_EQUAL, 0, 5, 0x60),  # IPv6: both words of the client's network
    (LOAD_WORD, 0, 0, IP_HEADER + 8),
    (COPY, 0, 0, 0),
    (LOAD_WORD, 0, 0, IP_HEADER + 12),
    (XOR_COPY, 0, 0, 0),
    (JUMP, 0, 0, 1),
    (LOAD_WORD, 0, 0, IP_HEADER + 12),  # IPv4: the client's address
    (COPY, 0, 0, 0),
    (SHIFT_RIGHT, 0, 0, 16),
    (XOR_COPY, 0, 0, 0),
    (COPY, 0, 0, 0),
    (SHIFT_RIGHT, 0, 0, 8),
    (XOR_COPY, 0, 0, 0),
    (AND, 0, 0, QUEUES - 1),
    (RETURN, 0, 0, 0),
)
"""Instructions of the program: the address of the client, with its bytes combined by XOR, names the queue."""


async def add_listeners(server: uvicorn.Server) -> None:
    """Listen on each address of a server with ``QUEUES`` sockets, ``LISTENERS`` times with each."""
    config, loop = server.config, asyncio.get_running_loop()
    make_protocol = partial(HttpProtocol, config, server.server_state, server.lifespan.state)
    for first in [each for listener in server.servers for each in listener.sockets]:
        with contextlib.ExitStack() as stack:
            own = stack.enter_context(socket.fromfd(first.fileno(), first.family, first.type, first.proto))
            queues = [stack.enter_context(each) for each in add_queues(own, config.backlog)]
            for each in [own] * (LISTENERS - 1) + queues * LISTENERS:
                listener = await loop.create_server(make_protocol, sock=each.dup(), backlog=config.backlog)
                server.servers.append(listener)


def add_queues(first: socket.socket, backlog: int) -> list[socket.socket]:
    """Return more sockets that listen on the address of the first one, or none if the system cannot choose among them.

    The first one is bound already, so a second server on the same address still fails to start.
    """
    queues = list[socket.socket]()
    try:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        for _ in range(QUEUES - 1):
            queues.append(socket.socket(first.family, first.type, first.proto))
            copy_options(first, queues[-1])
            queues[-1].bind(first.getsockname())
            queues[-1].listen(backlog)
        choose_by_address(first)
    except OSError as error:
        logger.info("one queue for the connections of all callers %s", format_fields({"cause": error}))
        for queue in queues:
            queue.close()
        return []
    return queues


def copy_options(first: socket.socket, other: socket.socket) -> None:
    """Give a socket the options that it needs to be bound to the address of the first one.

    Connections inherit ``SO_REUSEADDR``. Without it, those that are left would keep the next process from the address.
    """
    options = [(socket.SOL_SOCKET, socket.SO_REUSEPORT), (socket.SOL_SOCKET, socket.SO_REUSEADDR)]
    if first.family == socket.AF_INET6:
        options.append((socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))
    for level, option in options:
        other.setsockopt(level, option, first.getsockopt(level, option))


def choose_by_address(sock: socket.socket) -> None:
    """Make the client's address choose among the sockets that listen on the address of this one."""
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in CHOICE_BY_ADDRESS))
    option = struct.pack("HP", len(CHOICE_BY_ADDRESS), ctypes.addressof(program))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, option)
