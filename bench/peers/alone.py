"""The agent alone, on plain ASGI: each event it makes is thrown away, and bytes encoded beforehand stand in for it.

Nothing is checked, encoded or kept; what a request asks is validated because the agent needs it, and all of a run is
one write. What a goal has above this is left for a server's own work.
"""

from ag_ui.core import RunAgentInput
from starlette.types import Receive, Scope, Send

from bench.peers.raw import HEADERS, frames, read
from bench.script import agent


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one POST with as many deltas as its run has events; the first and the last two are none."""
    if scope["type"] != "http":
        return
    count = 0
    async for _ in agent(RunAgentInput.model_validate_json(await read(receive))):
        count += 1
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b"".join(frames(count - 4)), "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
