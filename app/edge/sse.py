"""Runs over HTTP: ``POST /invocations`` and ``GET /runs/{runId}/events``, in the format that the request asks for.

Rule: one event per frame, and what is ready goes out in one write. A reader that leaves or takes nothing is the same
to the run in every format. Source: AG-UI spec 1.1, basic/transports/http-sse and http-protobuf.
"""

from collections.abc import Awaitable, Callable

from ag_ui.core import PROTOCOL_VERSION, CustomEvent, RunFinishedEvent, RunStartedEvent
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core import wire
from app.core.commands import Attach
from app.core.encoder import encode
from app.core.errors import AppError, Code, IllegalEvent
from app.core.inbound import CommandRequest, RunRequest
from app.core.inbound import Request as Asked
from app.edge.body import read_body, understand
from app.edge.commands import Commands
from app.edge.event_stream import EventStreamResponse
from app.edge.exact import ExactRoute
from app.edge.formats import HEADERS, EventStream, Format, format_of
from app.edge.gate import INVOCATIONS, caller_of
from app.edge.older import OlderEventStream, is_older
from app.edge.stream_monitor import StreamMonitor
from app.engine.service import Service
from app.ports import Caller


class Endpoint(Struct, frozen=True):
    """A route's own ASGI application."""

    answer: Callable[[Request], Awaitable[ASGIApp]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises what the answer raises."""
        response = await self.answer(Request(scope, receive))
        await response(scope, receive, send)


def routes(service: Service, commands: Commands, *, max_body: int, keepalive: float) -> list[BaseRoute]:
    """The routes that stream.

    Args:
        service: the engine's door.
        commands: what else can be asked.
        max_body: bytes of a request body.
        keepalive: seconds of silence before a comment, where the format has comments.
    """
    monitor = StreamMonitor(keepalive)

    async def invocations(request: Request) -> Response | EventStreamResponse:
        caller = caller_of(request)
        asked = await understand(await read_body(request, max_body, service))
        form = format_for(asked, request)
        if isinstance(asked, RunRequest):
            subscription = await service.admit(asked.run_input, caller, asked.size)
            return EventStreamResponse(subscription, form, caller.request_id, monitor)
        if isinstance(asked.command, Attach):
            subscription = await service.attach(
                caller, asked.command.thread_id, asked.command.run_id, asked.command.after
            )
            return EventStreamResponse(subscription, form, caller.request_id, monitor)
        return await answered(asked, caller, form)

    async def answered(asked: CommandRequest, caller: Caller, form: Format) -> Response:
        result = await commands.answer(asked.command, caller)
        ids = asked.thread_id or service.new_id(), asked.run_id or service.new_id()
        return command_run(*ids, {"command": asked.command.type, **result}, caller, form)

    async def events(request: Request) -> Response | EventStreamResponse:
        caller, run_id = caller_of(request), request.path_params["runId"]
        after = wire.cursor(request.query_params.get("after") or request.headers.get("last-event-id"))
        subscription = await service.attach(caller, request.query_params.get("threadId"), run_id, after)
        if subscription.is_exhausted:
            subscription.close()
            return nothing_follows(caller)
        return EventStreamResponse(subscription, format_of(request), caller.request_id, monitor)

    return [
        Route(INVOCATIONS, Endpoint(invocations), methods=["POST"]),
        ExactRoute("/runs/{runId}/events", Endpoint(events), methods=["GET"]),
    ]


def format_for(asked: Asked, request: Request) -> Format:
    """The format of an answer to what was asked."""
    form = format_of(request)
    return OlderEventStream() if is_older(asked) and isinstance(form, EventStream) else form


def nothing_follows(caller: Caller) -> Response:
    """204, which tells a browser's EventSource to stop: after a stream that ends, empty or not, it comes back."""
    return Response(status_code=204, headers={**HEADERS, "X-Request-Id": caller.request_id})


def command_run(thread_id: str, run_id: str, result: dict[str, object], caller: Caller, form: Format) -> Response:
    """The answer to a command as a small legal run, so that the official client can ask.

    Raises:
        AppError: PAYLOAD_TOO_LARGE for an answer that no event can hold.
    """
    events = (
        RunStartedEvent(thread_id=thread_id, run_id=run_id, protocol_version=PROTOCOL_VERSION),
        CustomEvent(name="command.result", value=result),
        RunFinishedEvent(thread_id=thread_id, run_id=run_id),
    )
    headers = {**HEADERS, "X-Request-Id": caller.request_id}
    try:
        encoded = [encode(event) for event in events]
    except IllegalEvent:
        raise AppError(Code.PAYLOAD_TOO_LARGE, "The answer is too large for one event.") from None
    return Response(form.whole(encoded), headers=headers, media_type=form.media_type)
