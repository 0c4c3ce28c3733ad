"""Pydantic AI's AG-UI adapter behind FastAPI, as its documentation shows, around a function model that is a loop."""

from collections.abc import AsyncIterator, Sequence

from fastapi import FastAPI, Request
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.responses import Response

from bench.agents import TEXT


async def stream(messages: Sequence[ModelMessage], _: AgentInfo) -> AsyncIterator[str]:
    """``stream N`` gives N text deltas."""
    said = next(part for part in messages[-1].parts if isinstance(part, UserPromptPart))
    for _number in range(int(str(said.content).split()[1])):
        yield TEXT


agent = Agent(FunctionModel(stream_function=stream))
app = FastAPI()


@app.post("/invocations")
async def invocations(request: Request) -> Response:
    """One run."""
    answer: Response = await AGUIAdapter.dispatch_request(request, agent=agent)
    return answer
