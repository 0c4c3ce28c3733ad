"""Files of this user about a server: the history of messages, and the last thread.

Rule: they are in ``$XDG_STATE_HOME/agui``, in one folder for each server, and hold no secret but what the user typed.
"""

import hashlib
import os
from pathlib import Path


class ServerFiles:
    """Files about the server of one name: its URL, its ARN, or the agent that is served."""

    def __init__(self, name: str) -> None:
        state = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
        self._folder = state / "agui" / hashlib.sha256(name.encode()).hexdigest()[:16]

    @property
    def history(self) -> Path:
        """The messages that the user has typed."""
        return self._folder / "history"

    @property
    def last_thread(self) -> str | None:
        """The thread of the last conversation."""
        try:
            return (self._folder / "last_thread").read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return None

    @last_thread.setter
    def last_thread(self, thread_id: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self._folder / "last_thread").write_text(thread_id, encoding="utf-8")
