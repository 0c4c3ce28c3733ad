"""Input of a run, merged with the stored messages and the stored state of its thread.

Rule: a merge that takes long is made in a worker thread.
"""

from collections.abc import Collection, Sequence

from ag_ui.core import ActivityMessage, Message, RunAgentInput
from msgspec import Struct

from agui_container.conversation.merge import MergedHistory, make_title, merge_after_others, merge_history
from agui_container.conversation.state import dump_state, load_state
from agui_container.conversation.stored_parts import ResultAuthors
from agui_container.ports.records import Change, StoredMessage, ThreadDelta
from agui_container.threads import offload_if_large

NO_CHANGE = Change()

MESSAGE_BYTES = 100
"""Bytes whose merge takes as long as that of one small message."""


class MergedInput(Struct, frozen=True):
    """Input of a run with the messages and the state of its thread, and the change of the thread by it."""

    run_input: RunAgentInput
    change: Change


async def merge_in_turn(
    size: int, run_input: RunAgentInput, stored: ThreadDelta, predecessors: Collection[str]
) -> MergedInput:
    """Merge an input with its stored thread, in a worker thread if the two are large or have many messages."""
    count = len(stored.messages) + len(run_input.messages)
    size += len(stored.state or b"") + sum([len(message.data) for message in stored.messages])
    size = max(size, MESSAGE_BYTES * count)
    return await offload_if_large(size, merge, run_input, stored, tuple(predecessors))


def merge(run_input: RunAgentInput, stored: ThreadDelta, predecessors: Collection[str]) -> MergedInput:
    """Merge an input with its stored thread. The messages of the runs ``predecessors`` count as new."""
    run_messages = {message.id for message in stored.messages if message.run_id is not None}
    authors = ResultAuthors(run_messages, {tool.name for tool in run_input.tools or ()})
    merged = merge_messages(stored.messages, run_input.messages, predecessors, authors)
    state, change = changed_state(run_input, stored.state), NO_CHANGE
    if merged.changed or merged.order is not None or state is not None:
        messages = [StoredMessage(key, data) for key, data in merged.changed.items()]
        title = make_title(merged.messages) if stored.thread.title is None else None
        change = Change(messages=messages, order=merged.order, state=state, title=title)
    run_input = with_state(run_input, stored.state)
    if merged.messages is not run_input.messages:
        run_input = run_input.model_copy(update={"messages": list(merged.messages)})
    return MergedInput(run_input, change)


def merge_messages(
    stored: Sequence[StoredMessage], sent: Sequence[Message], predecessors: Collection[str], authors: ResultAuthors
) -> MergedHistory:
    by_id = {message.id: message.data for message in stored}
    if not predecessors:
        return merge_history(by_id, sent, authors)
    final = {message.id for message in stored if message.run_id in predecessors}
    return merge_after_others(by_id, sent, final, authors)


def with_state(run_input: RunAgentInput, stored: bytes | None) -> RunAgentInput:
    if run_input.state is not None:
        return run_input
    return run_input.model_copy(update={"state": load_state(stored or b"{}")})


def changed_state(run_input: RunAgentInput, stored: bytes | None) -> bytes | None:
    """Return None for an equal state, and for an empty one, which clients without shared state send."""
    if run_input.state is None or run_input.state == {}:
        return None
    sent = dump_state(run_input.state)
    return None if sent == stored else sent


def without_activities(run_input: RunAgentInput) -> RunAgentInput:
    """Return the input for the agent. Clients send activities to no agent (``prepareRunAgentInput``), nor do we."""
    messages = [message for message in run_input.messages if not isinstance(message, ActivityMessage)]
    return (
        run_input if len(messages) == len(run_input.messages) else run_input.model_copy(update={"messages": messages})
    )
