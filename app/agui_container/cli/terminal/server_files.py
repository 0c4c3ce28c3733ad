"""Files of this user about a server: the history of messages, and the last conversation.

Rule: they are in ``$XDG_STATE_HOME/agui``, in one folder for each server that only this user can read, and hold no
secret but what the user typed.
"""

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from agui_container.cli.failure import CommandFailed


class LastConversation(Struct, frozen=True):
    """The conversation to continue.

    Attributes:
        thread_id: its thread.
        session_id: session of AgentCore that has the thread, if there is one.
    """

    thread_id: str
    session_id: str | None = None


class ServerFiles:
    """Files about one server.

    Args:
        place: identifies the server, as ``place_of`` returns it.

    Raises:
        CommandFailed: the folder cannot be made.
    """

    def __init__(self, place: str) -> None:
        state = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
        folder = state / "agui" / hashlib.sha256(place.encode()).hexdigest()[:16]
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            advice = "Set XDG_STATE_HOME to a folder that you can write to."
            raise CommandFailed(f"cannot make {folder}: {error.strerror}. {advice}") from None
        self.history = folder / "history"
        self._last = folder / "last.json"

    @property
    def last(self) -> LastConversation | None:
        """The conversation in which the user has written last."""
        try:
            return msgspec.json.decode(self._last.read_bytes(), type=LastConversation)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    @last.setter
    def last(self, conversation: LastConversation) -> None:
        self._last.write_bytes(msgspec.json.encode(conversation))
