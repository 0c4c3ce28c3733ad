"""The scripted agents as Pydantic AI has them. Run with AGUI_AGENT."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from ag_ui.core import StateSnapshotEvent
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, RunContext, ToolReturn
from pydantic_ai.messages import ModelMessage, RetryPromptPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.ui import StateDeps

from agui_container import ports, pydantic_toolset
from tests.agents.frameworks.dice import charge, roll, stumble
from tests.agents.frameworks.scripted_model import Use, answer
from tests.agents.turns import EFFECTS
from tests.agents.turns_of_models import next_calls


async def stream(messages: Sequence[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    parts = [part for message in messages for part in message.parts]
    said = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    result = str(parts[-1].content) if isinstance(parts[-1], ToolReturnPart | RetryPromptPart) else None
    async for piece in answer(said, result):
        yield {0: DeltaToolCall(name=piece.tool, json_args=piece.arguments)} if isinstance(piece, Use) else piece


async def stream_calls(messages: Sequence[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    parts = [part for message in messages for part in message.parts]
    said = next(str(part.content) for part in parts if isinstance(part, UserPromptPart))
    calls = next_calls(said, sum(isinstance(part, ToolReturnPart) for part in parts))
    for index, (name, arguments) in enumerate(calls):
        yield {index: DeltaToolCall(name=name, json_args=arguments)}
    if not calls:
        yield "done"


model = FunctionModel(stream_function=stream)


@dataclass
class Needs:
    ctx: ports.RunContext


agent = Agent(model, deps_type=Needs, tools=[roll, stumble])


@agent.tool_plain
async def hang(sides: int) -> str:
    """Start, and never come back."""
    EFFECTS.append("hang")
    await asyncio.Event().wait()
    return ""


@agent.tool
def whoami(call: RunContext[Needs], sides: int) -> str:
    """Return the caller's name."""
    return f"{call.deps.ctx.thread_id} of {call.deps.ctx.caller.session_id}"


calling = Agent(FunctionModel(stream_function=stream_calls), toolsets=[pydantic_toolset()])
equipped = Agent(model, toolsets=[pydantic_toolset()])
asking = Agent(model, output_type=[str, DeferredToolRequests], tools=[stumble])
asking.tool_plain(requires_approval=True)(roll)
asking.tool_plain(requires_approval=True)(charge)


class VisitsState(BaseModel):
    visits: int = 0


stateful = Agent(model, deps_type=StateDeps[VisitsState])


@stateful.tool
def visit(call: RunContext[StateDeps[VisitsState]], sides: int) -> ToolReturn:
    """Count a visit."""
    call.deps.state.visits += 1
    return ToolReturn("counted", metadata=[StateSnapshotEvent(snapshot=call.deps.state.model_dump())])


demanding = Agent(model, deps_type=int)
