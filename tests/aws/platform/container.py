"""A small container that breaks the rules that its arguments name; a process of its own.

python tests/aws/platform/container.py [FAULT ...]
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

FAULTS = {*sys.argv[1:]}
RUN_SECONDS = 0.4
PINGS = 0 if "no-ping" in FAULTS else int(os.environ.get("PINGS", "0"))
"""Pings that a run waits for before it ends, so that a check on a slow machine sees them during the run."""

STARTED_AT = int(time.time())

open_runs = 0
changed_at = STARTED_AT
pings = 0


async def ping(_: Request) -> Response:
    global pings  # noqa: PLW0603 - a small container
    pings += 1
    if "ping-type" in FAULTS:
        return PlainTextResponse("ok")
    if "ping-blocks" in FAULTS and open_runs:
        await asyncio.sleep(60)
    status = "HealthyBusy" if open_runs and "never-busy" not in FAULTS else "Healthy"
    if "ping-status" in FAULTS:
        status = status.lower()
    at: object = changed_at
    if "moves" in FAULTS:
        at = STARTED_AT - 1000 + pings
    if "milliseconds" in FAULTS:
        at = changed_at * 1000
    fields = {} if "no-time" in FAULTS else {"time_of_last_update": at}
    return JSONResponse({"status": status, **fields})


async def invocations(request: Request) -> Response:
    if "other-path" in FAULTS:
        return JSONResponse({"detail": "Not Found"}, 404)
    if "json-only" in FAULTS and request.headers.get("content-type") != "application/json":
        return JSONResponse({"detail": "Unsupported Media Type"}, 415)
    try:
        body = await request.json()
        thread, run = str(body["threadId"]), str(body["runId"])
    except (ValueError, TypeError, KeyError):
        if "http-errors" in FAULTS:
            return JSONResponse({"detail": "bad"}, 422)
        return StreamingResponse(
            iter([frame('{"type":"RUN_ERROR","code":"BAD","message":"No input."}')]), media_type="text/event-stream"
        )
    media_type = "application/json" if "json-answer" in FAULTS else "text/event-stream"
    frames = events(thread, run)
    return StreamingResponse(held_back(frames) if "holds-back" in FAULTS else frames, media_type=media_type)


async def held_back(frames: AsyncIterator[str]) -> AsyncIterator[str]:
    yield "".join([each async for each in frames])


async def events(thread: str, run: str) -> AsyncIterator[str]:
    global open_runs, changed_at  # noqa: PLW0603 - a small container
    if "breaks-off" in FAULTS:
        raise OSError
    open_runs += 1
    changed_at = max(changed_at, int(time.time())) if open_runs == 1 else changed_at
    try:
        yield frame(f'{{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}}')
        message = "always-the-same" if "same-ids" in FAULTS else f"{run}-1" if "ids-of-run" in FAULTS else new_id()
        yield frame(f'{{"type":"TEXT_MESSAGE_START","messageId":"{message}","role":"assistant"}}')
        enough = pings + PINGS
        await asyncio.sleep(RUN_SECONDS)
        while pings < enough:  # noqa: ASYNC110 - a ping comes ten times a second
            await asyncio.sleep(0.01)
        yield frame(f'{{"type":"TEXT_MESSAGE_END","messageId":"{message}"}}')
        if "no-end" not in FAULTS:
            yield frame(f'{{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}}')
    finally:
        open_runs -= 1
        changed_at = max(changed_at, int(time.time()))


def new_id() -> str:
    return os.urandom(8).hex()


def frame(event: str) -> str:
    if "many-lines" in FAULTS:
        event = event.replace(",", ",\ndata: ")
    return f"data: {event}\n\n"


async def talk(websocket: WebSocket) -> None:
    await websocket.accept()
    body = await websocket.receive_json()
    if "large-frames" in FAULTS:
        await websocket.send_json({"control": "x" * 70_000})
    if "many-frames" in FAULTS:
        for number in range(400):
            await websocket.send_json({"control": number})
    async for each in events(body["threadId"], body["runId"]):
        if "socket-no-end" in FAULTS and "RUN_FINISHED" in each:
            continue
        await websocket.send_text(each if "sse-frames" in FAULTS else each.replace("data: ", "").strip())
    await websocket.close()


def main() -> None:
    if "exits" in FAULTS:
        sys.exit(3)
    port = 0 if "wrong-port" in FAULTS else int(os.environ["PORT"])
    host = "127.0.0.1" if "loopback" in FAULTS else "0.0.0.0"  # noqa: S104 - as in AgentCore
    routes: list[BaseRoute] = [Route("/invocations", invocations, methods=["POST"])]
    if "no-ping" not in FAULTS:
        routes.append(Route("/ping", ping))
    if "no-socket" not in FAULTS:
        routes.append(WebSocketRoute("/ws", talk))
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), host=host, port=port, log_level="warning"))
    if "ignores-sigterm" in FAULTS:
        server.capture_signals = contextlib.nullcontext  # type: ignore[assignment]
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server.run()


if __name__ == "__main__":
    main()
