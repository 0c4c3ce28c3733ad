"""AG-UI servers to put behind the container: ASGI applications that answer by the last message of their input."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

Event = dict[str, object]
Item = Event | str
"""An event, or a piece of the stream as it is written."""

Answer = Callable[[dict[str, object]], AsyncIterator[Item]]
"""Gives what comes behind RUN_STARTED. RUN_FINISHED follows, unless the last item ends the run or is ``CUT``."""

CUT = ": the end\n\n"
WAIT = ": wait\n\n"
"""The server says nothing more behind it, and keeps the stream open."""


def run_event(kind: str, request: dict[str, object], **fields: object) -> Event:
    return {"type": kind, "threadId": request["threadId"], "runId": request["runId"], **fields}


def playing(*items: Item | Exception) -> Answer:
    async def answer(_: dict[str, object]) -> AsyncIterator[Item]:
        for item in items:
            if isinstance(item, Exception):
                raise item
            yield item
            if item is WAIT:
                await asyncio.Event().wait()

    return answer


def said(text: str, message_id: str = "m-1") -> Sequence[Event]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": text},
        {"type": "TEXT_MESSAGE_END", "messageId": message_id},
    ]


def called(name: str, arguments: object, call_id: str) -> Sequence[Event]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name},
        {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": json.dumps(arguments)},
        {"type": "TOOL_CALL_END", "toolCallId": call_id},
    ]


class Server:
    """An AG-UI server with a route ``/agent``. ``log`` has what happened to its lifespan and to its clients."""

    def __init__(self, answer: Answer, *more: Route) -> None:
        self.requests: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self.log: list[str] = []
        self._answer = answer
        routes = [Route("/agent", self._serve, methods=["POST"]), *more]
        self.app = Starlette(routes=routes, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.log.append("opened")
        yield
        self.log.append("closed")

    async def _serve(self, request: Request) -> Response:
        document = await request.json()
        self.requests.append(document)
        self.headers.append(dict(request.headers))
        return StreamingResponse(self._stream(document), media_type="text/event-stream")

    async def _stream(self, document: dict[str, object]) -> AsyncIterator[str]:
        try:
            yield frame(run_event("RUN_STARTED", document))
            item: Item = ""
            async for item in self._answer(document):
                yield frame(item)
            if item != CUT and not (isinstance(item, dict) and item["type"] in {"RUN_FINISHED", "RUN_ERROR"}):
                yield frame(run_event("RUN_FINISHED", document))
        finally:
            self.log.append("answered")


def frame(item: Item) -> str:
    return item if isinstance(item, str) else f"data: {json.dumps(item)}\n\n"


def redirect(path: str, target: str) -> Route:
    def serve(_: Request) -> Response:
        return RedirectResponse(target, status_code=307)

    return Route(path, serve, methods=["POST"])


def refusal(path: str, status: int, text: str) -> Route:
    def serve(_: Request) -> Response:
        return JSONResponse({"detail": text}, status_code=status)

    return Route(path, serve, methods=["POST"])
