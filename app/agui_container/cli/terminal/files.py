"""This user's files about a server: the last conversation with it, and the history of messages.

Rule: they are in ``$XDG_STATE_HOME/agui``, in one folder for each server that only this user can read, and hold no
secret but what the user typed.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from agui_container.cli.failure import CommandFailed


class LastConversation(NamedTuple):
    """The thread in which the user has written last, and the session of AgentCore that has it, if there is one."""

    thread_id: str | None = None
    session_id: str | None = None


class ServerFiles:
    """Files about the server that ``place_of`` identifies. Raises ``CommandFailed`` if the folder cannot be made."""

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
    def last(self) -> LastConversation:
        try:
            return LastConversation(**json.loads(self._last.read_bytes()))
        except (FileNotFoundError, TypeError, ValueError):
            return LastConversation()

    @last.setter
    def last(self, conversation: LastConversation) -> None:
        self._last.write_text(json.dumps(conversation._asdict()), encoding="utf-8")
