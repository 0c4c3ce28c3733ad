"""Addresses on which a group of processes listens, as Linux shows them in ``/proc``.

Rule: nothing is guessed. On a system without ``/proc/net/tcp`` there is no answer.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LISTENS = "0A"
ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


class Listener(NamedTuple):
    """One listening socket."""

    host: str
    port: int


def listeners_of(group: int) -> Sequence[Listener] | None:
    """Return the listening sockets of all processes of a group, or None where they cannot be read."""
    tables = [table for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if table.exists()]
    if not tables:
        return None
    inodes = {inode for pid in members(group) for inode in socket_inodes(pid)}
    found = (listener for table in tables for inode, listener in listening(table) if inode in inodes)
    return sorted(set(found))


def members(group: int) -> Iterator[int]:
    """Yield the processes of a group."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(entry.name)) == group:
                yield int(entry.name)


def socket_inodes(pid: int) -> Iterator[str]:
    """Yield the inodes of a process's sockets."""
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                target = os.readlink(entry.path)  # noqa: PTH115 - a socket is no path
                if target.startswith("socket:["):
                    yield target[8:-1]


def listening(table: Path) -> Iterator[tuple[str, Listener]]:
    """Yield the inode and the address of each listening socket of a table."""
    for line in table.read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENS:
            address, port = fields[1].split(":")
            yield fields[9], Listener(host_of(address), int(port, 16))


def host_of(address: str) -> str:
    """Return an address of the kernel's table: words of four bytes in the machine's own order."""
    raw = bytes.fromhex(address)
    ordered = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, ordered)  # noqa: PLR2004 - bytes
