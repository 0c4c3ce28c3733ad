"""The tools of the assistant in the gRPC tests, ``AGUI_TOOLS=tests.protocols.grpc.tools:tools``, and agents."""

from collections.abc import AsyncIterator

from ag_ui.core import (
    AgentCapabilities,
    IdentityCapabilities,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
)

from agui_container.assistant.assistant import Assistant
from agui_container.models import OfflineModel
from agui_container.ports import Item
from agui_container.tools.function_tool import tool
from tests.behaviour import approval_tools


def preview_write(path: str, text: str) -> str:
    return f"{path}: +{text}"


@tool(preview=preview_write)
async def write_file(path: str, text: str) -> str:
    """Write a file, as far as the model knows."""
    return f"wrote {len(text)} characters to {path}"


tools = [*approval_tools.tools, write_file]


class Poet:
    """An agent with a name: ``AGUI_AGENT=tests.protocols.grpc.tools:poet``."""

    def capabilities(self) -> AgentCapabilities:
        return AgentCapabilities(identity=IdentityCapabilities(name="poet"))

    async def run(self, _: RunAgentInput) -> AsyncIterator[Item]:
        yield "Roses are red."


poet = Poet()


async def asker(input: RunAgentInput) -> AsyncIterator[Item]:
    yield "Let me ask."
    if input.resume:
        return
    question = Interrupt(id="q1", reason="choice", message="Which city?")
    outcome = RunFinishedInterruptOutcome(interrupts=[question])
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=outcome)


class WindowedOfflineModel(OfflineModel):
    context_window = 1_000


windowed = Assistant(model=WindowedOfflineModel())
