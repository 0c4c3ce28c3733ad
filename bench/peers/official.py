"""FastAPI with the official ``EventEncoder``: the server of AG-UI's own quickstart, with the common agent."""

from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput
from ag_ui.encoder import EventEncoder
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from bench.script import agent

app = FastAPI()


@app.post("/invocations")
async def invocations(run_input: RunAgentInput, request: Request) -> StreamingResponse:
    """One run as Server-Sent Events."""
    encoder = EventEncoder(accept=request.headers.get("accept") or "")

    async def frames() -> AsyncIterator[str]:
        async for event in agent(run_input):
            yield encoder.encode(event)

    return StreamingResponse(frames(), media_type=encoder.get_content_type())
