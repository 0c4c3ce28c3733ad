"""State of a chat: its server, its session, and the options of the next message."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ag_ui.core import AgentCapabilities

from agui_client import Session
from agui_client.rendering import markdown
from agui_container.cli.target import AT_ONCE, Target
from agui_container.cli.terminal.server_files import LastConversation, ServerFiles
from agui_container.cli.terminal.view import View


@dataclass
class ChatState:
    """A chat.

    Attributes:
        capabilities: of the server; None if it does not say.
        forwarded_props: sent with each message, for example the model.
        listed: ids of the threads that were listed last, which the user opens by their numbers.
    """

    target: Target
    files: ServerFiles
    view: View
    session: Session
    capabilities: AgentCapabilities | None = None
    forwarded_props: dict[str, object] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)

    @property
    def models(self) -> Sequence[str]:
        """Names of the models that the server lets its callers choose from."""
        named = self._custom("models")
        return [str(name) for name in named] if isinstance(named, list) else []

    @property
    def agent_name(self) -> str:
        """Name of the agent, or of its server."""
        identity = self.capabilities.identity if self.capabilities else None
        return (identity.name if identity else None) or self.target.name

    def _custom(self, name: str) -> object:
        return ((self.capabilities.custom if self.capabilities else None) or {}).get(name)

    async def load_capabilities(self) -> None:
        """Ask the server what it can do. Raises ``AgentClientError`` if it cannot be reached at once."""
        options = self.target.options.copy()
        options["retry"] = AT_ONCE
        async with Session(self.target.url, **options) as session:
            self.capabilities = await session.capabilities()

    def remember(self) -> None:
        """Keep which conversation ``agui chat --continue`` continues."""
        self.files.last = LastConversation(self.session.thread_id, self.target.options.get("session_id"))

    async def change_session(self, session: Session) -> None:
        """Continue with another session."""
        await self.session.aclose()
        self.session = session

    async def load_thread(self, thread_id: str) -> None:
        """Continue a thread as the server has it. Raises ``AgentClientError``."""
        await self.change_session(await Session.from_id(thread_id, url=self.target.url, **self.target.options))

    async def open_thread(self, thread_id: str) -> None:
        """Continue a thread of the server, and show it. Raises ``AgentClientError``."""
        await self.load_thread(thread_id)
        self.view.markdown(markdown(self.session.messages))
