"""An object with ``run(input)``: the form that AG-UI's framework packages call an agent, too.

AGUI_AGENT=examples.class_agent:agent make run
"""

from collections.abc import AsyncIterator
from uuid import uuid4

from ag_ui.core import BaseEvent, RunAgentInput, TextMessageContentEvent, TextMessageEndEvent, TextMessageStartEvent


class Parrot:
    """Repeats the last user message, with full control over the events."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    async def run(self, input: RunAgentInput) -> AsyncIterator[BaseEvent]:
        """Yield one message. RUN_STARTED and RUN_FINISHED may be left to the server."""
        said = next((message.content for message in reversed(input.messages) if message.role == "user"), "nothing")
        message_id = str(uuid4())
        yield TextMessageStartEvent(message_id=message_id, role="assistant")
        yield TextMessageContentEvent(message_id=message_id, delta=f"{self.prefix}: {said}")
        yield TextMessageEndEvent(message_id=message_id)


agent = Parrot("You said")
