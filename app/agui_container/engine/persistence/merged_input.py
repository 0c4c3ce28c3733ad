"""Merge of a run's input with its stored thread.

Rule: a large thread is merged in a worker thread, so that it does not block the event loop. Callers take turns.
"""

from collections.abc import Collection, Sequence

from ag_ui.core import Message, RunAgentInput
from msgspec import Struct

from agui_container.ports.records import Change, StoredMessage, ThreadDelta
from agui_container.protocol.conversation.merge import MergedHistory, append_history, merge_history, without_copies
from agui_container.protocol.conversation.state import dump_state, load_state
from agui_container.runtime.large_work import LargeWork

MERGED_AT_ONCE = 1_000
"""Messages up to which a history is merged on the event loop."""

LARGE_HISTORY = 100_000
"""Bytes of a thread and of the request that continues it, up to which both are merged on the event loop."""

_large_histories = LargeWork("large_history")


class MergedInput(Struct, frozen=True):
    """Input of a run with the messages and the state of its thread, and the change of the thread by it, or None."""

    run_input: RunAgentInput
    change: Change | None


async def merge_input(
    run_input: RunAgentInput, stored: ThreadDelta, predecessors: Collection[str], *, account: str, size: int
) -> MergedInput:
    """Merge an input with its thread, in a worker thread if the two are large or have many messages.

    Args:
        run_input: the input of the client.
        stored: the whole thread.
        predecessors: ids of the runs that ended while this run was queued. The client could not send their answers, so
            these are kept and count as new.
        account: the caller whose turn the work takes.
        size: bytes of the request.
    """
    count = len(stored.messages) + len(run_input.messages)
    size += len(stored.state or b"") + sum(len(message.data) for message in stored.messages)
    if count <= MERGED_AT_ONCE and size <= LARGE_HISTORY:
        return merge(run_input, stored, predecessors)
    return await _large_histories.run(account, merge, run_input, stored, tuple(predecessors))


def merge(run_input: RunAgentInput, stored: ThreadDelta, predecessors: Collection[str]) -> MergedInput:
    """Merge an input with its stored thread. The messages of the runs ``predecessors`` count as new."""
    merged = merge_messages(stored.messages, run_input.messages, predecessors)
    state, change = changed_state(run_input, stored.state), None
    if merged.changed or merged.order is not None or state is not None:
        messages = [StoredMessage(key, data) for key, data in merged.changed.items()]
        change = Change(messages=messages, order=merged.order, state=state)
    run_input = with_state(run_input, stored.state)
    if merged.messages is not run_input.messages:
        run_input = run_input.model_copy(update={"messages": list(merged.messages)})
    return MergedInput(run_input, change)


def merge_messages(
    stored: Sequence[StoredMessage], sent: Sequence[Message], predecessors: Collection[str]
) -> MergedHistory:
    """Merge stored messages with those of a client. The messages of the runs ``predecessors`` count as new."""
    by_id = {message.id: message.data for message in stored}
    if not predecessors:
        return merge_history(by_id, sent)
    final = {message.id for message in stored if message.run_id in predecessors}
    return append_history(by_id, without_copies(by_id, sent), final)


def with_state(run_input: RunAgentInput, stored: bytes | None) -> RunAgentInput:
    """Return the input with the stored state, JSON, if the client has sent none."""
    if run_input.state is not None:
        return run_input
    return run_input.model_copy(update={"state": load_state(stored or b"{}")})


def changed_state(run_input: RunAgentInput, stored: bytes | None) -> bytes | None:
    """Return the state of the client as JSON if it differs from the stored one, else None.

    An empty state is ignored, because clients without shared state send it.
    """
    if run_input.state is None or run_input.state == {}:
        return None
    sent = dump_state(run_input.state)
    return None if sent == stored else sent
