"""Retries: the same thread, run and messages again.

Rule: a retry joins its run. The ids of a run with other messages are refused, because the answer of that run would pass
for the answer to these messages. Each run has a fingerprint of its messages, which is stored with it. An input without
messages joins the run. Messages of the assistant at the end do not count, because a client may have them
from the run itself.
"""

import hashlib
from collections.abc import Sequence

from ag_ui.core import ActivityMessage, AssistantMessage, Message, ReasoningMessage

from agui_container.protocol.conversation.merge import dump_message
from agui_container.protocol.errors import AppError, ErrorCode

FINGERPRINT_BYTES = 16


def fingerprint_of(messages: Sequence[Message]) -> bytes:
    """Return the fingerprint of the messages of an input. It is empty if there are none."""
    end = len(messages)
    while end and isinstance(messages[end - 1], AssistantMessage | ReasoningMessage | ActivityMessage):
        end -= 1
    if not end:
        return b""
    hashed = hashlib.blake2b(digest_size=FINGERPRINT_BYTES)
    for message in messages[:end]:
        data = dump_message(message)
        hashed.update(b"%d:" % len(data))
        hashed.update(data)
    return hashed.digest()


def check_same_messages(fingerprint: bytes | None, of_run: bytes | None) -> None:
    """Check that an input with the ids of a run is a retry of it.

    Args:
        fingerprint: fingerprint of the input. It is a retry if this is empty or None.
        of_run: fingerprint of the run; None for a run without one, which any input joins.

    Raises:
        AppError: VALIDATION_ERROR.
    """
    if fingerprint and of_run is not None and fingerprint != of_run:
        text = "runId: this run began with other messages. Send new messages with a new runId."
        raise AppError(ErrorCode.VALIDATION_ERROR, text)
