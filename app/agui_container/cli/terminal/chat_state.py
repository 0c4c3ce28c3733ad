"""A chat with one server: its session, the options of the next message, and this user's files about the server.

Rule: the files are in ``$XDG_STATE_HOME/agui``, in one folder for each server that only this user can read, and hold no
secret but what the user typed.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ag_ui.core import AgentCapabilities

from agui_client import Session
from agui_client.rendering import markdown
from agui_container.cli.failure import CommandFailed
from agui_container.cli.target import AT_ONCE, Target
from agui_container.cli.terminal.screen import Screen


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
        """The conversation that ``--continue`` opens."""
        try:
            return LastConversation(**json.loads(self._last.read_bytes()))
        except (FileNotFoundError, TypeError, ValueError):
            return LastConversation()

    @last.setter
    def last(self, conversation: LastConversation) -> None:
        self._last.write_text(json.dumps(conversation._asdict()), encoding="utf-8")


@dataclass
class ChatState:
    """Server, session and options of a chat at a terminal.

    Attributes:
        capabilities: of the server; None if it does not say.
        forwarded_props: sent with each message, for example the model.
        listed: ids of the threads that were listed last, which the user opens by their numbers.
    """

    target: Target
    screen: Screen
    files: ServerFiles
    session: Session
    capabilities: AgentCapabilities | None = None
    forwarded_props: dict[str, object] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)

    @property
    def models(self) -> Sequence[str]:
        """Names of the models that the server lets its callers choose from."""
        named = ((self.capabilities.custom if self.capabilities else None) or {}).get("models")
        return [str(name) for name in named] if isinstance(named, list) else []

    @property
    def agent_name(self) -> str:
        """Name of the agent, or of its server."""
        identity = self.capabilities.identity if self.capabilities else None
        return (identity.name if identity else None) or self.target.name

    async def load_capabilities(self) -> None:
        """Ask the server what it can do. Raises ``AgentClientError`` if it cannot be reached at once."""
        options = self.target.options.copy()
        options["retry"] = AT_ONCE
        async with Session(self.target.url, **options) as session:
            self.capabilities = await session.capabilities()

    async def change_session(self, session: Session) -> None:
        await self.session.aclose()
        self.session = session

    async def load_thread(self, thread_id: str) -> None:
        """Continue a thread as the server has it. Raises ``AgentClientError``."""
        await self.change_session(await Session.from_id(thread_id, url=self.target.url, **self.target.options))

    async def open_thread(self, thread_id: str) -> None:
        """Continue a thread of the server, and show it. Raises ``AgentClientError``."""
        await self.load_thread(thread_id)
        self.screen.markdown(markdown(self.session.messages))
