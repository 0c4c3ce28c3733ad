"""Peers for ``agui platform check``: ``python -m bench.peers.conformance NAME``, on the port that PORT names.

Rule: each peer is served as its documentation shows, around an agent whose run takes a second and whose ids are new.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from uuid import uuid4

import uvicorn
from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from starlette.types import ASGIApp

from bench.script import TEXT

HOST = "0.0.0.0"  # noqa: S104 - as AgentCore asks
DELTAS, PAUSE = 10, 0.1


async def paced_texts() -> AsyncIterator[str]:
    """Yield the texts of one answer."""
    for _ in range(DELTAS):
        await asyncio.sleep(PAUSE)
        yield TEXT


async def agent(run_input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    """Yield the events of one run."""
    yield RunStartedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)
    message = str(uuid4())
    yield TextMessageStartEvent(message_id=message)
    async for text in paced_texts():
        yield TextMessageContentEvent(message_id=message, delta=text)
    yield TextMessageEndEvent(message_id=message)
    yield RunFinishedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)


def agentcore_app() -> ASGIApp:
    """Return the AWS SDK's ``AGUIApp``."""
    from bedrock_agentcore.runtime import AGUIApp  # noqa: PLC0415 - only one peer runs in a process

    app = AGUIApp()
    app.entrypoint(agent)
    served: ASGIApp = app
    return served


def strands_app() -> ASGIApp:
    """Return ag-ui-strands' own application."""
    from ag_ui_strands import StrandsAgent, create_strands_app  # noqa: PLC0415
    from strands import Agent  # noqa: PLC0415

    from bench.peers.strands_fake import FakeModel  # noqa: PLC0415

    class PacedModel(FakeModel):
        """A model whose answer takes a second."""

        async def stream(self, *_: object, **__: object) -> AsyncIterator[dict[str, object]]:
            """Yield the events of one answer."""
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockStart": {"start": {}}}
            async for text in paced_texts():
                yield {"contentBlockDelta": {"delta": {"text": text}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    served = StrandsAgent(Agent(model=PacedModel(), callback_handler=None), name="paced")
    app: ASGIApp = create_strands_app(served, "/invocations", cors_enabled=False)
    return app


def pydantic_app() -> ASGIApp:
    """Return Pydantic AI's adapter behind FastAPI, with the least ``/ping``, because the adapter has none."""
    from fastapi import FastAPI, Request  # noqa: PLC0415
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.models.function import AgentInfo, FunctionModel  # noqa: PLC0415
    from pydantic_ai.ui.ag_ui import AGUIAdapter  # noqa: PLC0415
    from starlette.responses import Response  # noqa: PLC0415

    def stream(_: Sequence[object], __: AgentInfo) -> AsyncIterator[str]:
        return paced_texts()

    paced: Agent[None, str] = Agent(FunctionModel(stream_function=stream))
    app = FastAPI()

    @app.post("/invocations")
    async def invocations(request: Request) -> Response:
        answer: Response = await AGUIAdapter.dispatch_request(request, agent=paced)
        return answer

    @app.get("/ping")
    async def ping() -> dict[str, str]:
        return {"status": "Healthy"}

    return app


PEERS: dict[str, Callable[[], ASGIApp]] = {
    "agentcore": agentcore_app,
    "strands": strands_app,
    "pydantic-ai": pydantic_app,
}

if __name__ == "__main__":
    uvicorn.run(PEERS[sys.argv[1]](), host=HOST, port=int(os.environ["PORT"]), access_log=False, log_level="warning")
