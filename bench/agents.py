"""The agent that every transport serves: a generator of official events. The last user message is its command.

    deltas N         N text deltas, each event made when it is yielded
    paced N S        N text deltas, one every S seconds, each saying when it was sent (monotonic nanoseconds)

Rule: this module imports neither ``agui_container`` nor any peer, so that all of them run the same lines.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from functools import lru_cache

from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    UserMessage,
)

TEXT = "hello world, "
MESSAGE = "2f1d7c0e-4a52-4f2e-9d6f-0d7e3b1c5a90"


async def agent(run_input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    """Yield one run, from RUN_STARTED to RUN_FINISHED."""
    yield RunStartedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)
    kind, count, *seconds = last_text(run_input).split()
    yield TextMessageStartEvent(message_id=MESSAGE)
    for _ in range(int(count)):
        if kind == "paced":
            yield TextMessageContentEvent(message_id=MESSAGE, delta=f"at {time.monotonic_ns()}")
            await asyncio.sleep(float(*seconds))
        else:
            yield TextMessageContentEvent(message_id=MESSAGE, delta=TEXT)
    yield TextMessageEndEvent(message_id=MESSAGE)
    yield RunFinishedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)


def last_text(run_input: RunAgentInput) -> str:
    """Return the text of the last message."""
    last = run_input.messages[-1]
    return last.content if isinstance(last, UserMessage) and isinstance(last.content, str) else "deltas 1"


@lru_cache(maxsize=4)
def text_events(count: int) -> tuple[BaseEvent, ...]:
    """Return the events of a text message with this number of deltas."""
    contents = (TextMessageContentEvent(message_id=MESSAGE, delta=TEXT) for _ in range(count))
    return (TextMessageStartEvent(message_id=MESSAGE), *contents, TextMessageEndEvent(message_id=MESSAGE))
