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

from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.protocol.commands import Attach
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode, IllegalEvent
from agui_container.protocol.parser import CommandRequest, RunRequest
from agui_container.protocol.parser import Request as Asked
from agui_container.protocol.wire import envelope
from agui_container.transports.caller_middleware import INVOCATIONS, caller_of
from agui_container.transports.commands import CommandResponder
from agui_container.transports.event_stream import EventStreamResponse
from agui_container.transports.formats import HEADERS, Format, SseFormat, requested_format
from agui_container.transports.legacy_clients import LegacySseFormat, is_legacy
from agui_container.transports.raw_path_route import RawPathRoute
from agui_container.transports.request_body import parse_body, read_body
from agui_container.transports.stream_monitor import StreamMonitor


class Endpoint(Struct, frozen=True):
    """A route's own ASGI application."""

    answer: Callable[[Request], Awaitable[ASGIApp]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises what the answer raises."""
        response = await self.answer(Request(scope, receive))
        await response(scope, receive, send)


def routes(service: Service, commands: CommandResponder, *, max_body: int, keepalive: float) -> list[BaseRoute]:
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
        asked = await parse_body(await read_body(request, max_body, service))
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
        after = envelope.parse_cursor(request.query_params.get("after") or request.headers.get("last-event-id"))
        subscription = await service.attach(caller, request.query_params.get("threadId"), run_id, after)
        if subscription.is_exhausted:
            subscription.close()
            return no_content_response(caller)
        return EventStreamResponse(subscription, requested_format(request), caller.request_id, monitor)

    return [
        Route(INVOCATIONS, Endpoint(invocations), methods=["POST"]),
        RawPathRoute("/runs/{runId}/events", Endpoint(events), methods=["GET"]),
    ]


def format_for(asked: Asked, request: Request) -> Format:
    """The format of an answer to what was asked."""
    form = requested_format(request)
    return LegacySseFormat() if is_legacy(asked) and isinstance(form, SseFormat) else form


def no_content_response(caller: Caller) -> Response:
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
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, "The answer is too large for one event.") from None
    return Response(form.whole(encoded), headers=headers, media_type=form.media_type)
