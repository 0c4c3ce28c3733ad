"""Inputs of runs: those with the ids of a known run, and the merge with the stored messages and state of the thread.

Rule: a retry joins its run. The ids of a run with other messages are refused, because the answer of that run would pass
for the answer to these messages. Each run has a fingerprint of its input, which is stored with it. An input without
messages joins the run. Messages of the assistant at the end do not count, because a client may have them
from the run itself.

Rule: other answers under the ids of a run that has ended are no retry of that run, which would only replay it. They
become a new run (AG-UI spec 1.1, basic/patterns/interrupt-resume: continuing means a new run). CopilotKit's
``useInterrupt`` sends answers in this way (CopilotKit issue 6999). It also answers the interrupts of the new run under
the first id, because it knows no other. The new id is derived from the first id and the answers, so that a retry joins
the new run.

Rule: a merge that takes long is made in a worker thread.
"""

import hashlib
from collections.abc import Collection

from ag_ui.core import ActivityMessage, AssistantMessage, ReasoningMessage, RunAgentInput
from msgspec import Struct
from pydantic_core import to_json

from agui_container.conversation.merge import make_title, merge_after_others, merge_history
from agui_container.conversation.message_json import dump_message
from agui_container.conversation.state import dump_state, load_state
from agui_container.conversation.stored_parts import ResultAuthors
from agui_container.ports.records import Change, StoredMessage, ThreadDelta
from agui_container.protocol.errors import validation_error
from agui_container.threads import offload_if_large
from agui_core.commands import MAX_ID

ANSWERS_BYTES, MESSAGES_BYTES = 6, 16
"""Bytes of a fingerprint: a digest of the answers, and behind it one of the messages if some of them count."""

NO_ANSWERS, ANY_MESSAGES = bytes(ANSWERS_BYTES), b"*"

RUN_PROPS = ("skill",)
"""Names in ``forwardedProps`` that ask for a run of the agent even without messages."""


def is_connect(run_input: RunAgentInput) -> bool:
    """Return True if a client asks for the stored thread."""
    if run_input.messages or run_input.resume:
        return False
    forwarded = run_input.forwarded_props
    return not (isinstance(forwarded, dict) and any(forwarded.get(name) for name in RUN_PROPS))


def fingerprint_of(run_input: RunAgentInput) -> bytes:
    messages, end = run_input.messages, len(run_input.messages)
    while end and isinstance(messages[end - 1], AssistantMessage | ReasoningMessage | ActivityMessage):
        end -= 1
    if not end:
        return answers_of(run_input)
    encoded = [dump_message(message) for message in messages[:end]]
    framed = b"".join([b"%d:%b" % (len(data), data) for data in encoded])
    return answers_of(run_input) + hashlib.blake2b(framed, digest_size=MESSAGES_BYTES).digest()


def check_same_messages(fingerprint: bytes | None, of_run: bytes | None) -> None:
    """Raise ``AppError`` VALIDATION_ERROR for other messages than those of the run, unless one of them is unknown."""
    if fingerprint is None or of_run is None:
        return
    messages = fingerprint[ANSWERS_BYTES:]
    if messages and of_run[ANSWERS_BYTES:] not in {messages, ANY_MESSAGES}:
        raise validation_error("runId: this run began with other messages. Send new messages with a new runId.")


# --- answers ----------------------------------------------------------------------------------------------------------


def answers_of(run_input: RunAgentInput) -> bytes:
    """Return a digest of the answers of an input."""
    if not run_input.resume:
        return NO_ANSWERS
    return hashlib.sha256(to_json(run_input.resume, by_alias=True)).digest()[:ANSWERS_BYTES]


def has_other_answers(run_input: RunAgentInput, of_run: bytes | None) -> bool:
    """Return True if an input answers something else than the run with its ids and this fingerprint."""
    return bool(run_input.resume) and of_run is not None and answers_of(run_input) != of_run[:ANSWERS_BYTES]


def with_derived_run_id(run_input: RunAgentInput) -> RunAgentInput:
    """Return the same input with a run id that depends on its own id and its answers."""
    digest = answers_of(run_input).hex()
    # Shortened, so that the derived id is within MAX_ID and clients can cancel and read the run.
    prefix = run_input.run_id[: MAX_ID - len(digest) - 1]
    return run_input.model_copy(update={"run_id": f"{prefix}.{digest}"})


# --- the merge with the thread ----------------------------------------------------------------------------------------

MESSAGE_BYTES = 100
"""Bytes whose merge takes as long as that of one small message."""

NO_CHANGE = Change()


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
    by_id = {message.id: message.data for message in stored.messages}
    run_messages = {message.id for message in stored.messages if message.run_id is not None}
    authors = ResultAuthors(run_messages, {tool.name for tool in run_input.tools or ()})
    if predecessors:
        final = {message.id for message in stored.messages if message.run_id in predecessors}
        merged = merge_after_others(by_id, run_input.messages, final, authors)
    else:
        merged = merge_history(by_id, run_input.messages, authors)
    state, change = changed_state(run_input, stored.state), NO_CHANGE
    if merged.changed or merged.order is not None or state is not None:
        messages = [StoredMessage(key, data) for key, data in merged.changed.items()]
        title = make_title(merged.messages) if stored.thread.title is None else None
        change = Change(messages=messages, order=merged.order, state=state, title=title)
    if run_input.state is None:
        run_input = run_input.model_copy(update={"state": load_state(stored.state or b"{}")})
    if merged.messages is not run_input.messages:
        run_input = run_input.model_copy(update={"messages": list(merged.messages)})
    return MergedInput(run_input, change)


def changed_state(run_input: RunAgentInput, stored: bytes | None) -> bytes | None:
    """Return None for an equal state, and for an empty one, which clients without shared state send."""
    if run_input.state is None or run_input.state == {}:
        return None
    sent = dump_state(run_input.state)
    return None if sent == stored else sent
