"""Snapshot of a stored thread, for a client that connects to it without new messages.

Rule: no agent is called and nothing is stored. The history is sent as snapshots, and pending interrupts as the outcome
of the run. Source: AG-UI spec 1.1, basic/threads.
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

from agui_container.ports import Item, RunContext
from agui_container.ports.records import ThreadDelta
from agui_container.protocol.conversation.merge import MESSAGE
from agui_container.protocol.conversation.state import load_state
from agui_container.protocol.encoder import MAX_EVENT_BYTES
from agui_container.protocol.errors import AppError, ErrorCode

SNAPSHOT_OVERHEAD = 100
"""Bytes of a snapshot event besides its content, at most."""

RUN_PROPS = ("goals", "skill")
"""Names in ``forwardedProps`` that ask for a run of the agent even without messages."""


def is_connect(run_input: RunAgentInput) -> bool:
    """Return True if the input has nothing that an agent could answer."""
    if run_input.messages or run_input.resume:
        return False
    forwarded = run_input.forwarded_props
    return not (isinstance(forwarded, dict) and any(forwarded.get(name) for name in RUN_PROPS))


class SnapshotAgent:
    """An ``Agent`` that sends a stored thread.

    Args:
        thread: the complete thread; None if it does not exist yet.
        interrupts: the unanswered interrupts of the thread.
    """

    def __init__(self, thread: ThreadDelta | None, interrupts: Sequence[Interrupt]) -> None:
        self._messages = thread.messages if thread else ()
        self._state = (thread.state if thread else None) or b"{}"
        self._interrupts = interrupts

    async def run(self, _: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """Yield the messages, then the state, then the pending interrupts.

        Raises:
            AppError: PAYLOAD_TOO_LARGE if a snapshot does not fit into one event. Nothing is sent then.
        """
        check_size(sum(len(message.data) + 1 for message in self._messages), len(self._state))
        yield MessagesSnapshotEvent(messages=[MESSAGE.validate_json(message.data) for message in self._messages])
        yield StateSnapshotEvent(snapshot=load_state(self._state))
        if self._interrupts:
            outcome = RunFinishedInterruptOutcome(interrupts=list(self._interrupts))
            yield RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


def check_size(*sizes: int) -> None:
    """Check the bytes of each snapshot. Raises ``AppError`` PAYLOAD_TOO_LARGE.

    The check of the event pipeline would report an error of the agent.
    """
    if max(sizes) > MAX_EVENT_BYTES - SNAPSHOT_OVERHEAD:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, "The thread is too large to be shown in one event.")
