"""The answer to a client that comes back with nothing to say: the thread as it is.

Rule: no agent runs and nothing is written down. What was said before comes as snapshots, and what waits for an answer
as the outcome. Source: AG-UI spec 1.1, basic/threads.
"""

from collections.abc import AsyncIterator, Sequence

from ag_ui.core import (
    Interrupt,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    StateSnapshotEvent,
)
from pydantic_core import from_json

from agui_container.ports import Item, RunContext
from agui_container.ports.records import ThreadDelta
from agui_container.protocol.conversation.merge import MESSAGE
from agui_container.protocol.encoder import MAX_EVENT_BYTES
from agui_container.protocol.errors import AppError, ErrorCode

AROUND = 100
"""Bytes of a snapshot around what it holds."""

ASKS_FOR_MORE = ("goals", "skill")
"""What of ``forwardedProps`` makes a run without messages a run."""


def is_connect(run_input: RunAgentInput) -> bool:
    """Whether there is nothing in it that an agent could answer."""
    if run_input.messages or run_input.resume:
        return False
    forwarded = run_input.forwarded_props
    return not (isinstance(forwarded, dict) and any(forwarded.get(name) for name in ASKS_FOR_MORE))


class SnapshotAgent:
    """Shows a thread, in the way agents do.

    Args:
        thread: all of it; None for one that has not begun.
        waiting: what the agent has asked.
    """

    def __init__(self, thread: ThreadDelta | None, waiting: Sequence[Interrupt]) -> None:
        self._messages = thread.messages if thread else ()
        self._state = (thread.state if thread else None) or b"{}"
        self._pending = waiting

    async def run(self, _: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """Messages, then the state, then what is asked.

        Raises:
            AppError: PAYLOAD_TOO_LARGE for what no event can hold; nothing is shown then.
        """
        check_size(sum(len(message.data) + 1 for message in self._messages), len(self._state))
        yield MessagesSnapshotEvent(messages=[MESSAGE.validate_json(message.data) for message in self._messages])
        yield StateSnapshotEvent(snapshot=from_json(self._state))
        if self._pending:
            outcome = RunFinishedInterruptOutcome(interrupts=list(self._pending))
            yield RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


def check_size(*sizes: int) -> None:
    """Raises ``AppError`` PAYLOAD_TOO_LARGE. What checks every event would blame an agent, and there is none."""
    if max(sizes) > MAX_EVENT_BYTES - AROUND:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, "The thread is too large to be shown in one event.")
