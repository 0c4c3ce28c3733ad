"""A framework's own translation into AG-UI's events as the source of an agent's answers.

Rules:

- The translation gets the messages of the whole thread, ``ctx.thread_key`` as thread, and a value for every field.
- An approval has this server's form: an interrupt for a tool call, with its JSON Schema, that ``{"approved": true}``
  answers. ``decide`` makes of a decision what the framework expects. Arguments cannot be edited.
- The framework's RUN_STARTED, which has ids of its own, is left out, and so are RAW events, which show internals.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    Interrupt,
    RawEvent,
    ResumeEntry,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
)
from msgspec import Struct

from agui_container.agents.frameworks.translation import awaits_client, check_events, own_input
from agui_container.agents.gate.approval import RESPONSE_SCHEMA, TOOL_CALL, read_decision
from agui_container.ports import RunContext, thread_key
from agui_container.ports.agent import maybe_aclosing

NAMES_THREAD = (CustomEvent, StateDeltaEvent, StateSnapshotEvent)

Translate = Callable[[RunAgentInput, RunContext], AsyncIterator[BaseEvent]]


async def keep(_: str) -> None:
    """The framework keeps nothing of a thread."""


class AdapterSource(Struct, frozen=True):
    """Implements ``Upstream`` and ``ports.ThreadCleanup`` with a framework's translation.

    Attributes:
        translate: yields the framework's events.
        decide: returns the payload of a resume entry for the framework.
        forget: deletes what the framework has of a thread, by ``ctx.thread_key``.
    """

    translate: Translate
    decide: Callable[[bool], object] = bool
    forget: Callable[[str], Awaitable[None]] = keep

    async def answer(self, request: RunAgentInput, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
        """Yield nothing until the client has sent all results of the last turn. Raises ``AppError``."""
        if awaits_client(request):
            return
        own = own_input(request, ctx)
        given = {
            "state": {} if own.state is None else own.state,
            "tools": own.tools or [],
            "context": own.context or [],
            "forwarded_props": own.forwarded_props or {},
            "resume": [self._decided(at, entry) for at, entry in enumerate(own.resume or ())] or None,
        }
        events = check_events(self.translate(own.model_copy(update=given), ctx), ctx)
        async with maybe_aclosing(events) as stream:
            async for event in stream:
                if not isinstance(event, RunStartedEvent | RawEvent):
                    yield with_approvals(with_client_thread(event, ctx))

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        await self.forget(thread_key(owner, thread_id))

    def _decided(self, at: int, entry: ResumeEntry) -> ResumeEntry:
        approved = read_decision(at, entry)
        return entry if approved is None else entry.model_copy(update={"payload": self.decide(approved)})


def with_client_thread(event: BaseEvent, ctx: RunContext) -> BaseEvent:
    """Return the event with the client's id of the thread, which frameworks put into a state."""
    if not isinstance(event, NAMES_THREAD):
        return event
    text = event.model_dump_json(by_alias=True, exclude_none=True)
    if ctx.thread_key not in text:
        return event
    return type(event).model_validate_json(text.replace(ctx.thread_key, json.dumps(ctx.thread_id)[1:-1]))


def with_approvals(event: BaseEvent) -> BaseEvent:
    """Return the event with the interrupts of tool calls in this server's form."""
    if not (isinstance(event, RunFinishedEvent) and isinstance(event.outcome, RunFinishedInterruptOutcome)):
        return event
    interrupts = [approval(each) if each.tool_call_id else each for each in event.outcome.interrupts]
    return event.model_copy(update={"outcome": RunFinishedInterruptOutcome(interrupts=interrupts)})


def end_asking(interrupts: list[Interrupt], ctx: RunContext) -> RunFinishedEvent:
    outcome = RunFinishedInterruptOutcome(interrupts=interrupts)
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


def approval(interrupt: Interrupt) -> Interrupt:
    message = interrupt.message or "Allow this call?"
    return interrupt.model_copy(update={"reason": TOOL_CALL, "message": message, "response_schema": RESPONSE_SCHEMA})
