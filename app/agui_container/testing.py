"""Helpers for tests of your own agents: run them through the engine and collect their events.

Rule: the events are those that a client receives, so order rules, limits and the terminal event hold here, too. Nothing
listens on a port, and nothing is read from the environment.
"""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ag_ui.core import (
    BaseEvent,
    Event,
    Interrupt,
    ResumeEntry,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextMessageContentEvent,
    UserMessage,
)
from pydantic import TypeAdapter

from agui_container.engine.engine import Engine
from agui_container.main import agent_name, build_service
from agui_container.ports import EVERYBODY, Caller
from agui_container.settings import Settings

__all__ = ["AgentThread", "open_thread", "run_agent", "user_input"]

EVENT: TypeAdapter[BaseEvent] = TypeAdapter(Event)


class AgentThread:
    """One conversation with an agent. ``open_thread`` makes it. ``events`` are all events of the last run."""

    def __init__(self, service: Engine) -> None:
        self._service = service
        self._id = str(uuid.uuid4())
        self.events: list[BaseEvent] = []

    @property
    def text(self) -> str:
        """The text of the assistant in the last run."""
        return "".join(event.delta for event in self.events if isinstance(event, TextMessageContentEvent))

    @property
    def interrupts(self) -> list[Interrupt]:
        """The questions, such as approvals, with which the last run ended."""
        last = self.events[-1] if self.events else None
        outcome = last.outcome if isinstance(last, RunFinishedEvent) else None
        return list(outcome.interrupts) if isinstance(outcome, RunFinishedInterruptOutcome) else []

    async def send(self, text: str, forwarded_props: object = None) -> list[BaseEvent]:
        """Run the agent with a user message, and return the events. Raises ``AppError`` if the run is refused."""
        return await self._run(user_input(text).model_copy(update={"forwarded_props": forwarded_props}))

    async def answer(self, payload: object) -> list[BaseEvent]:
        """Answer all interrupts of the last run, such as by ``{"approved": True}``. Returns and raises as ``send``."""
        entries = [ResumeEntry(interrupt_id=each.id, status="resolved", payload=payload) for each in self.interrupts]
        return await self._resume(entries)

    async def decline(self) -> list[BaseEvent]:
        """Abandon all interrupts of the last run. Returns and raises as ``send``."""
        return await self._resume([ResumeEntry(interrupt_id=each.id, status="cancelled") for each in self.interrupts])

    async def _resume(self, entries: list[ResumeEntry]) -> list[BaseEvent]:
        return await self._run(user_input("").model_copy(update={"messages": [], "resume": entries}))

    async def _run(self, run_input: RunAgentInput) -> list[BaseEvent]:
        self.events = await _events_of(self._service, run_input.model_copy(update={"thread_id": self._id}))
        return self.events


@asynccontextmanager
async def open_thread(agent: object = None, settings: Settings | None = None) -> AsyncIterator[AgentThread]:
    """Talk to an agent on a new thread, as a client does over several runs.

    Args:
        agent: an agent in any form that ``create_app`` accepts as an object. None is the agent of the settings.
        settings: None takes the defaults. ``load_settings()`` of ``agui_container`` takes those of the project.

    Raises:
        SettingsError: a setting cannot be used.
        AgentLoadError, ToolLoadError: the agent or the tools cannot be loaded.
    """
    async with _open_service(agent, settings) as service:
        yield AgentThread(service)


async def run_agent(agent: object, run_input: RunAgentInput | str, settings: Settings | None = None) -> list[BaseEvent]:
    """Run an agent once, and return all events from RUN_STARTED to RUN_FINISHED or RUN_ERROR.

    Args:
        agent: an agent in any form that ``create_app`` accepts as an object.
        run_input: the input of the run, or the text of its only user message.
        settings: None takes the defaults.

    Raises:
        AgentLoadError: the object is not an agent.
        AppError: the run was refused before it began.
    """
    async with _open_service(agent, settings) as service:
        return await _events_of(service, user_input(run_input) if isinstance(run_input, str) else run_input)


@asynccontextmanager
async def _open_service(agent: object, settings: Settings | None) -> AsyncIterator[Engine]:
    settings = settings or Settings()
    if agent is not None:
        settings = settings.model_copy(update={"agent": agent_name(agent)})
    service = build_service(settings, agent)
    await service.open()
    try:
        yield service
    finally:
        await service.drain(0)
        await service.aclose()


async def _events_of(service: Engine, run_input: RunAgentInput) -> list[BaseEvent]:
    subscription = await service.admit(run_input, Caller(owner=EVERYBODY, request_id=str(uuid.uuid4())))
    return [EVENT.validate_json(data) async for batch in subscription for data in batch.data]


def user_input(text: str) -> RunAgentInput:
    return RunAgentInput(
        thread_id=str(uuid.uuid4()),
        run_id=str(uuid.uuid4()),
        state=None,
        messages=[UserMessage(id=str(uuid.uuid4()), content=text)],
        tools=[],
        context=[],
        forwarded_props=None,
    )
