"""Filters of every framework's events, and values that belong to a thread."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
from ag_ui.core import BaseEvent, CustomEvent, RunErrorEvent, StateSnapshotEvent, TokenUsage

from agui_container.agents.frameworks.per_thread import PerThread
from agui_container.agents.frameworks.translation import FrameworkError, check_events
from agui_container.protocol.errors import AppError, ErrorCode
from tests.contexts import collect_items, run_context

pytestmark = pytest.mark.packages

SNAPSHOT = StateSnapshotEvent(snapshot={})


class TrackedEvents:
    def __init__(self, *events: BaseEvent) -> None:
        self.closed = False
        self._events = events

    async def __call__(self) -> AsyncIterator[BaseEvent]:
        try:
            for event in self._events:
                yield event
        finally:
            self.closed = True


async def test_a_failure_is_raised_and_its_usage_kept() -> None:
    ctx, usage = run_context(), TokenUsage(model="m", input_tokens=1)
    stream = TrackedEvents(SNAPSHOT, RunErrorEvent(message="secret", usage=[usage]), SNAPSHOT)
    with pytest.raises(FrameworkError, match="RUN_ERROR: secret"):
        await collect_items(check_events(stream(), ctx))
    assert ctx.usage == [usage]
    assert stream.closed


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("PENDING_INTERRUPTS", "The thread waits for answers: send resume."),
        ("INTERRUPT_RESUME_ERROR", "The answers do not fit what the thread waits for."),
    ],
)
async def test_a_refusal_that_a_client_can_act_on_is_told_in_our_words(code: str, message: str) -> None:
    stream = TrackedEvents(RunErrorEvent(message="secret", code=code))
    with pytest.raises(AppError) as caught:
        await collect_items(check_events(stream(), run_context()))
    assert (caught.value.code, caught.value.message) == (ErrorCode.VALIDATION_ERROR, message)


async def test_the_error_of_a_hook_is_not_sent() -> None:
    told = {"hook": "state_from_args", "tool": "roll", "error": "secret"}
    stream = TrackedEvents(CustomEvent(name="hook_error", value=told), CustomEvent(name="other", value=told))
    first, second = await collect_items(check_events(stream(), run_context()))
    assert first == CustomEvent(
        name="hook_error", value={**told, "error": "The hook failed; the server's log has why."}
    )
    assert second == CustomEvent(name="other", value=told)


async def test_leaving_half_way_closes_the_framework() -> None:
    stream = TrackedEvents(SNAPSHOT, SNAPSHOT)
    events = check_events(stream(), run_context())
    assert await anext(events) == SNAPSHOT
    await events.aclose()
    assert stream.closed


def numbers_per_thread(room: int) -> PerThread[int]:
    numbers = count()
    return PerThread(lambda: next(numbers), room)


async def use_value(kept: PerThread[int], thread: str) -> int:
    async with kept.acquire(thread) as value:
        return value


async def test_a_thread_keeps_its_own_until_others_need_the_room() -> None:
    kept = numbers_per_thread(2)
    assert [await use_value(kept, thread) for thread in "abacab"] == [0, 1, 0, 2, 0, 3]
