"""AG-UI servers to put behind the container: ASGI applications that answer by the last message of their input."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

Event = dict[str, object]
Answer = Callable[[dict[str, object]], AsyncIterator[Event | str]]


def started(request: dict[str, object]) -> Event:
    return {"type": "RUN_STARTED", "threadId": request["threadId"], "runId": request["runId"]}


def finished(request: dict[str, object], **fields: object) -> Event:
    return {"type": "RUN_FINISHED", "threadId": request["threadId"], "runId": request["runId"], **fields}


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
            async for event in self._answer(document):
                yield event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n"
        finally:
            self.log.append("answered")


def redirect(path: str, target: str) -> Route:
    def serve(_: Request) -> Response:
        return RedirectResponse(target, status_code=307)

    return Route(path, serve, methods=["POST"])


def refusal(path: str, status: int, text: str) -> Route:
    def serve(_: Request) -> Response:
        return JSONResponse({"detail": text}, status_code=status)

    return Route(path, serve, methods=["POST"])
