"""Pydantic AI's AG-UI adapter behind FastAPI, as its documentation shows, with the scripted model."""

from collections.abc import AsyncIterator, Sequence

from fastapi import FastAPI, Request
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.responses import Response

from tests.agents.frameworks.scripted_model import ARGUMENTS, Use, answer


async def stream(messages: Sequence[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    parts = [part for message in messages for part in message.parts]
    said = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    result = str(parts[-1].content) if isinstance(parts[-1], ToolReturnPart) else None
    async for piece in answer(said, result):
        yield {0: DeltaToolCall(name=piece.tool, json_args=ARGUMENTS)} if isinstance(piece, Use) else piece


agent = Agent(FunctionModel(stream_function=stream))
app = FastAPI()


@agent.tool_plain
def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


@app.post("/invocations")
async def invocations(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=agent)
