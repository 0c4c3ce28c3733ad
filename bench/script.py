"""The agent that every contestant serves: a generator of official events. The last user message is its command.

    deltas N [S]     N text deltas, each event made when it is yielded, after S seconds
    ready N          the same events, made beforehand: what is left is the server's own work
    paced N S        N text deltas, one every S seconds, each saying when it was sent (monotonic nanoseconds)
    state BYTES N    a state of that size, and N small changes to it

Rule: this module imports neither ``agui_container`` nor any peer, so that all of them run the same lines.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import lru_cache

from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    UserMessage,
)

TEXT = "hello world, "
MESSAGE = "2f1d7c0e-4a52-4f2e-9d6f-0d7e3b1c5a90"
ENTRY = {"name": "an entry of the state", "tags": ["one", "two"], "count": 1}


async def agent(run_input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    """Yield one run, from RUN_STARTED to RUN_FINISHED."""
    yield RunStartedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)
    kind, *numbers = last_text(run_input).split()
    async for event in SCRIPTS[kind](*map(float, numbers)):
        yield event
    yield RunFinishedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)


async def strings(run_input: RunAgentInput) -> AsyncIterator[str]:
    """Yield ``deltas N`` as strings, from which the server makes the events."""
    _, count = last_text(run_input).split()
    for _number in range(int(count)):
        yield TEXT


def last_text(run_input: RunAgentInput) -> str:
    """Return the text of the last message."""
    last = run_input.messages[-1]
    return last.content if isinstance(last, UserMessage) and isinstance(last.content, str) else "deltas 1"


async def deltas(count: float, delay: float = 0.0) -> AsyncIterator[BaseEvent]:
    """Yield deltas without pauses."""
    if delay:
        await asyncio.sleep(delay)
    yield TextMessageStartEvent(message_id=MESSAGE)
    for _ in range(int(count)):
        yield TextMessageContentEvent(message_id=MESSAGE, delta=TEXT)
    yield TextMessageEndEvent(message_id=MESSAGE)


async def ready(count: float) -> AsyncIterator[BaseEvent]:
    """Yield prebuilt events without pauses."""
    for event in text_events(int(count)):
        yield event


@lru_cache(maxsize=4)
def text_events(count: int) -> tuple[BaseEvent, ...]:
    """Return the events of a text message with this number of deltas."""
    contents = (TextMessageContentEvent(message_id=MESSAGE, delta=TEXT) for _ in range(count))
    return (TextMessageStartEvent(message_id=MESSAGE), *contents, TextMessageEndEvent(message_id=MESSAGE))


async def paced(count: float, seconds: float) -> AsyncIterator[BaseEvent]:
    """Yield deltas at the pace of a model."""
    yield TextMessageStartEvent(message_id=MESSAGE)
    for _ in range(int(count)):
        yield TextMessageContentEvent(message_id=MESSAGE, delta=f"at {time.monotonic_ns()}")
        await asyncio.sleep(seconds)
    yield TextMessageEndEvent(message_id=MESSAGE)


async def state(size: float, count: float) -> AsyncIterator[BaseEvent]:
    """Yield a snapshot, and deltas of one operation each."""
    yield StateSnapshotEvent(snapshot={"counter": 0, "entries": [ENTRY] * (int(size) // 70)})
    for event in changes(int(count)):
        yield event


def changes(count: int) -> Iterator[BaseEvent]:
    """Yield deltas that count up."""
    for number in range(count):
        yield StateDeltaEvent.model_validate({"delta": [{"op": "replace", "path": "/counter", "value": number}]})


SCRIPTS: Mapping[str, Callable[..., AsyncIterator[BaseEvent]]] = {
    "deltas": deltas,
    "ready": ready,
    "paced": paced,
    "state": state,
}
