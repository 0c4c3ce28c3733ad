"""A helper for tests of your own agents: run one through the engine and collect its events.

Rule: the events are those that a client receives, so order rules, limits and the terminal event hold here, too. Nothing
is read from the environment, and nothing listens on a port.
"""

import uuid

from ag_ui.core import BaseEvent, Event, RunAgentInput, UserMessage
from pydantic import TypeAdapter

from agui_container.main import agent_name, build_service
from agui_container.ports import Caller
from agui_container.settings import Settings

__all__ = ["run_agent", "user_input"]

EVENT: TypeAdapter[BaseEvent] = TypeAdapter(Event)


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
    if isinstance(run_input, str):
        run_input = user_input(run_input)
    settings = (settings or Settings()).model_copy(update={"agent": agent_name(agent)})
    service = build_service(settings, agent)
    await service.open()
    try:
        subscription = await service.admit(run_input, Caller(owner="everybody", request_id=str(uuid.uuid4())))
        return [EVENT.validate_json(data) async for batch in subscription for data in batch.data]
    finally:
        await service.drain(0)
        await service.aclose()


def user_input(text: str) -> RunAgentInput:
    """An input of a new run on a new thread, with one user message."""
    return RunAgentInput(
        thread_id=str(uuid.uuid4()),
        run_id=str(uuid.uuid4()),
        state=None,
        messages=[UserMessage(id=str(uuid.uuid4()), content=text)],
        tools=[],
        context=[],
        forwarded_props=None,
    )
