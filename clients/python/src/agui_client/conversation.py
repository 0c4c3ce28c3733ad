"""A conversation, made of the events of its runs: messages, state and token usage.

Rule: an event that does not fit changes nothing, and the log says so. The server checks the order of events; a client
shows what it gets.
"""

import logging
from collections.abc import Iterable

from ag_ui.core import (
    BaseEvent,
    Message,
    ReasoningMessage,
    RunErrorEvent,
    RunFinishedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCall,
    aggregate_token_usage,
)

from agui_core.json_patch import apply_patch, copy_json
from agui_core.transcript import Transcript
from agui_core.turns import calls_of, unanswered_in_last_turn

logger = logging.getLogger(__name__)


class Conversation:
    """Messages and state, changed by events.

    Attributes:
        state: the shared state, any JSON value. None if it is not known.
        title: of the thread, where the server gives one.
    """

    def __init__(self, messages: Iterable[Message] = (), state: object = None) -> None:
        self.state = state
        self.title: str | None = None
        self._usage: list[TokenUsage] = []
        self._transcript = Transcript(messages)

    @property
    def messages(self) -> list[Message]:
        """All messages, in order, as they are now."""
        return self._transcript.messages

    @property
    def usage(self) -> list[TokenUsage]:
        """Tokens of all runs that were read, one entry for each model."""
        return aggregate_token_usage(self._usage) or []

    @property
    def open_calls(self) -> list[ToolCall]:
        """Calls without a result, since the last message of the user."""
        return list(unanswered_in_last_turn(self.messages))

    def call(self, call_id: str) -> ToolCall | None:
        """Return the last call with this id, or None if there is none."""
        calls = (call for message in reversed(self.messages) for call in calls_of(message))
        return next((call for call in calls if call.id == call_id), None)

    def add(self, *messages: Message) -> None:
        """Add messages at the end, and results behind their calls."""
        for message in messages:
            self._transcript.add(message)

    def remove(self, messages: Iterable[Message]) -> None:
        """Remove messages that were added."""
        ids = {message.id for message in messages}
        self.replace(message for message in self.messages if message.id not in ids)

    def replace(self, messages: Iterable[Message]) -> None:
        """Replace all messages."""
        self._transcript = Transcript(messages)

    def apply(self, event: BaseEvent) -> None:
        """Change the conversation as the event says. Events that concern nothing of it change nothing."""
        match event:
            case StateSnapshotEvent():
                self.state = event.snapshot
            case StateDeltaEvent():
                try:
                    self.state = apply_patch({} if self.state is None else copy_json(self.state), event)
                except ValueError as error:
                    logger.warning("JSON patch does not apply error=%s", error)
            case RunFinishedEvent() | RunErrorEvent():
                self._usage += event.usage or ()
            case TextMessageStartEvent():
                self._separate_reasoning(event.message_id)
        self._transcript.feed(event)

    def _separate_reasoning(self, message_id: str) -> None:
        """Give reasoning another id if its answer has the same one, as some servers do."""
        messages = self.messages
        for at, message in enumerate(messages):
            if isinstance(message, ReasoningMessage) and message.id == message_id:
                messages[at] = message.model_copy(update={"id": f"{message_id}-reasoning"})
                self.replace(messages)
