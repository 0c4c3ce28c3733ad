"""Input of a run, merged with the stored messages and the stored state of its thread.

Rule: a merge that takes long is made in a worker thread.
"""

from collections.abc import Collection, Sequence

from ag_ui.core import Message, RunAgentInput
from msgspec import Struct

from agui_container.ports.records import Change, StoredMessage, ThreadDelta
from agui_container.protocol.conversation.merge import MergedHistory, merge_after_others, merge_history
from agui_container.protocol.conversation.state import dump_state, load_state
from agui_container.protocol.conversation.stored_parts import ResultAuthors, restore_call_values
from agui_container.runtime.offload import offload_if_large

MESSAGE_BYTES = 100
"""Bytes whose merge takes as long as that of one small message."""


class MergedInput(Struct, frozen=True):
    """Input of a run with the messages and the state of its thread, and the change of the thread by it, or None."""

    run_input: RunAgentInput
    change: Change | None


async def merge_in_turn(
    identity: str, size: int, run_input: RunAgentInput, stored: ThreadDelta, predecessors: Collection[str]
) -> MergedInput:
    """Merge an input with its stored thread, in a worker thread if the two are large or have many messages.

    Args:
        identity: whose turn a large merge takes.
        size: bytes of the request with the input.
        run_input: what the client has sent.
        stored: messages and state of the thread.
        predecessors: runs that the thread has had since the input was submitted. Their answers are kept and count as
            new, although the client did not send them.
    """
    count = len(stored.messages) + len(run_input.messages)
    size += len(stored.state or b"") + sum([len(message.data) for message in stored.messages])
    size = max(size, MESSAGE_BYTES * count)
    return await offload_if_large(identity, size, merge, run_input, stored, tuple(predecessors))


def merge(run_input: RunAgentInput, stored: ThreadDelta, predecessors: Collection[str]) -> MergedInput:
    """Merge an input with its stored thread. The messages of the runs ``predecessors`` count as new."""
    run_messages = {message.id for message in stored.messages if message.run_id is not None}
    authors = ResultAuthors(run_messages, {tool.name for tool in run_input.tools or ()})
    merged = merge_messages(stored.messages, run_input.messages, predecessors, authors)
    state, change = changed_state(run_input, stored.state), None
    if merged.changed or merged.order is not None or state is not None:
        messages = [StoredMessage(key, data) for key, data in merged.changed.items()]
        change = Change(messages=messages, order=merged.order, state=state)
    run_input = with_state(run_input, stored.state)
    if merged.messages is not run_input.messages:
        run_input = run_input.model_copy(update={"messages": list(merged.messages)})
    return MergedInput(run_input, change)


def merge_messages(
    stored: Sequence[StoredMessage], sent: Sequence[Message], predecessors: Collection[str], authors: ResultAuthors
) -> MergedHistory:
    """Merge stored messages with those of a client. The messages of the runs ``predecessors`` count as new."""
    by_id = {message.id: message.data for message in stored}
    sent = restore_call_values(by_id, sent)
    if not predecessors:
        return merge_history(by_id, sent, authors)
    final = {message.id for message in stored if message.run_id in predecessors}
    return merge_after_others(by_id, sent, final, authors)


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
