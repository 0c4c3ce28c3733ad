"""The scripted agents as Pydantic AI has them. Run with AGUI_AGENT."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from ag_ui.core import StateSnapshotEvent
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, RunContext, ToolReturn
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.ui import StateDeps

from agui_container import ports, pydantic_toolset
from tests.frameworks.scripted_model import ARGUMENTS, Use, answer


async def stream(messages: Sequence[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Stream what the script says."""
    parts = [part for message in messages for part in message.parts]
    said = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    result = str(parts[-1].content) if isinstance(parts[-1], ToolReturnPart) else None
    async for piece in answer(said, result):
        yield {0: DeltaToolCall(name=piece.tool, json_args=ARGUMENTS)} if isinstance(piece, Use) else piece


def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


model = FunctionModel(stream_function=stream)


@dataclass
class Needs:
    """Dependencies of a tool."""

    ctx: ports.RunContext


agent = Agent(model, deps_type=Needs, tools=[roll])


@agent.tool
def whoami(call: RunContext[Needs], sides: int) -> str:
    """Return the caller's name."""
    return f"{call.deps.ctx.thread_id} of {call.deps.ctx.caller.session_id}"


equipped = Agent(model, toolsets=[pydantic_toolset()])
asking = Agent(model, output_type=[str, DeferredToolRequests])
asking.tool_plain(requires_approval=True)(roll)


class VisitsState(BaseModel):
    """State of tools and clients."""

    visits: int = 0


stateful = Agent(model, deps_type=StateDeps[VisitsState])


@stateful.tool
def visit(call: RunContext[StateDeps[VisitsState]], sides: int) -> ToolReturn:
    """Count a visit."""
    call.deps.state.visits += 1
    return ToolReturn("counted", metadata=[StateSnapshotEvent(snapshot=call.deps.state.model_dump())])


demanding = Agent(model, deps_type=int)
