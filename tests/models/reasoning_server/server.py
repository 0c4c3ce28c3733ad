"""A server process: ``python -m tests.models.reasoning_server.server`` listens on a free port and prints that port.

Besides ConverseStream it returns the prompts of a model, by the name in its requests, and waits for its calls.
"""

import asyncio
import json
import socket
from collections import defaultdict
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from tests.models.bedrock import reasoning as bedrock
from tests.models.reasoning_server.watched_model import Json, WatchedModel, prompts_as_json

EVENT_STREAM = "application/vnd.amazon.eventstream"


def make_app() -> FastAPI:
    """The application; each model name has a memory of its own."""
    app = FastAPI(openapi_url=None)
    models: defaultdict[str, WatchedModel] = defaultdict(WatchedModel)

    @app.post("/model/{name}/converse-stream")
    async def converse(name: str, request: Request) -> Response:
        if not request.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256"):
            return _exception(403, "MissingAuthenticationTokenException", "no signature")
        body: dict[str, Any] = {**json.loads(await request.body()), "modelId": name}
        if broken := bedrock.broken_rules(body):
            return _exception(400, "ValidationException", "; ".join(broken))
        deltas = models[name].stream(bedrock.prompt_of(body))
        return StreamingResponse(bedrock.answer(deltas), media_type=EVENT_STREAM)

    @app.get("/prompts/{name}")
    async def prompts(name: str) -> list[Json]:
        return prompts_as_json(models[name].prompts)

    @app.get("/idle/{name}")
    async def wait_idle(name: str) -> None:
        await models[name].idle.wait()

    return app


def _exception(status: int, kind: str, message: str) -> Response:
    body = json.dumps({"message": message})
    return Response(body, status, {"x-amzn-ErrorType": kind}, "application/json")


class ReasoningServer(uvicorn.Server):
    """Says where it listens once it does."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)  # noqa: T201 - whoever started it reads this


async def serve() -> None:
    config = uvicorn.Config(make_app(), "127.0.0.1", 0, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    await ReasoningServer(config).serve()


if __name__ == "__main__":
    asyncio.run(serve())
