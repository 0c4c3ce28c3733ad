"""The socket of a command that serves. A port that is taken is one line for the person, before anything starts."""

import socket

from agui_container.cli.failure import CommandFailed


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Connections wait in it while the server starts. Raises ``CommandFailed``."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (while ")[0]
        raise CommandFailed(f"cannot listen on {host}:{port}: {reason}. Port 0 takes a free one.") from None
