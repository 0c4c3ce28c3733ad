"""A session as the store and its active run have it, and the view that is built from it.

Rule: pure functions, which may run in a thread. Nothing changes a snapshot: a run replaces messages and never changes
them.
"""

from collections.abc import Sequence

from ag_ui.core import Message, UserMessage
from msgspec import Struct

from agui_container.ports.records import ThreadDelta, ThreadStatus
from agui_container.protocol.conversation.merge import MESSAGE
from agui_container.transports.roboto.messages import OpenItems, session_messages
from agui_container.transports.roboto.notes import MessageNotes, Notes
from agui_container.transports.roboto.records import JSON, SessionView, goal_records

WAITING_NOTE = "Waiting for an answer through another protocol: {calls}"


class SessionSnapshot(Struct, frozen=True):
    """A session at one moment.

    Attributes:
        delta: the thread, without messages if ``messages`` is not None.
        size: estimated bytes of the session.
        messages: messages of the thread and of the active run so far; None if the store has them all.
        open_items: messages and calls of the active run that have not ended.
        waiting: names of the calls that wait for an answer through another protocol, or an empty text.
    """

    delta: ThreadDelta
    status: ThreadStatus
    size: int
    messages: Sequence[Message] | None = None
    open_items: OpenItems = OpenItems()
    waiting: str = ""

    def view(self, *, knows_context: bool, errors_as_text: bool) -> SessionView:
        """Return the session as a client sees it. See ``session_messages`` for the arguments."""
        thread, goals = self.delta.thread, self.delta.goals or ()
        messages = parse_history(self.delta) if self.messages is None else self.messages
        active = self.open_items if self.status is ThreadStatus.AGENT_TURN else None
        notes = Notes.of(thread.metadata)
        rows = session_messages(
            messages, notes, thread.created_at, active, knows_context=knows_context, errors_as_text=errors_as_text
        )
        records = goal_records(goals, rows, declared_in(messages))
        activity = WAITING_NOTE.format(calls=self.waiting) if self.waiting else None
        return SessionView(thread, notes, self.status, rows, records, activity)


def parse_history(delta: ThreadDelta) -> list[Message]:
    """Parse a thread's messages."""
    return [MESSAGE.validate_json(message.data) for message in delta.messages]


def declared_in(messages: Sequence[Message]) -> dict[str, tuple[str, Sequence[JSON]]]:
    """Return the goals that messages declare, by run id: the id of the message, and the goals."""
    declared: dict[str, tuple[str, Sequence[JSON]]] = {}
    for message in messages:
        if isinstance(message, UserMessage):
            notes = MessageNotes.of(message.metadata)
            if notes.run_id is not None:
                declared[notes.run_id] = message.id, notes.goals
    return declared
