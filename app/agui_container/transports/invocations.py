"""Runs over HTTP: ``POST /invocations`` and ``GET /runs/{runId}/events``, in the format that the request asks for.

Rule: one event per frame, and one write for all events that are ready. A client that disconnects or reads slowly
affects its run in the same way in every format.

Source: AG-UI spec 1.1, basic/transports/http-sse and http-protobuf.
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
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.protocol.wire import envelope
from agui_container.transports.caller_middleware import INVOCATIONS, caller_of
from agui_container.transports.commands import CommandResponder
from agui_container.transports.event_stream import EventStreamResponse, StreamMonitor
from agui_container.transports.formats import HEADERS, Format, SseFormat, requested_format
from agui_container.transports.legacy_clients import LegacySseFormat, is_legacy_client
from agui_container.transports.plain_response import PlainResponse
from agui_container.transports.raw_path_route import RawPathRoute
from agui_container.transports.request_body import read_request


class Endpoint(Struct, frozen=True):
    """ASGI application of one route.

    Attributes:
        respond: makes the response, itself an ASGI application, for a request.
    """

    respond: Callable[[Request], Awaitable[ASGIApp]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request. Exceptions of the response are raised."""
        response = await self.respond(Request(scope, receive))
        await response(scope, receive, send)


def routes(service: Service, commands: CommandResponder, *, max_body: int, keepalive: float) -> list[BaseRoute]:
    """Return the routes that stream runs.

    Args:
        service: the engine.
        commands: answers to commands.
        max_body: largest request body, in bytes.
        keepalive: seconds of silence before a comment, if the format has comments.
    """
    monitor = StreamMonitor(keepalive)

    async def invocations(request: Request) -> Response | EventStreamResponse:
        caller = caller_of(request)
        agent_request = await read_request(request, max_body, service)
        event_format = format_for(agent_request, request)
        if isinstance(agent_request, RunRequest):
            subscription = await service.admit(agent_request.run_input, caller, agent_request.size)
            return EventStreamResponse(subscription, event_format, caller.request_id, monitor)
        command = agent_request.command
        if isinstance(command, Attach):
            after = command.after or envelope.parse_cursor(request.headers.get("last-event-id"))
            subscription = await service.attach(caller, command.thread_id, command.run_id, after)
            return EventStreamResponse(subscription, event_format, caller.request_id, monitor)
        return await execute(agent_request, caller, event_format)

    async def execute(request: CommandRequest, caller: Caller, event_format: Format) -> Response:
        async with commands.answer(request.command, caller) as result:
            ids = request.thread_id or service.new_id(), request.run_id or service.new_id()
            return command_run(*ids, {"command": request.command.type, **result}, caller, event_format)

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


def format_for(agent_request: AgentRequest, request: Request) -> Format:
    """Return the format of the response. Legacy clients that read SSE get reduced events."""
    event_format = requested_format(request)
    is_sse = isinstance(event_format, SseFormat)
    return LegacySseFormat() if is_sse and is_legacy_client(agent_request) else event_format


def no_content_response(caller: Caller) -> Response:
    """Return status 204. A browser's EventSource reconnects after any stream that ends, unless it gets this status."""
    return Response(status_code=204, headers={**HEADERS, "X-Request-Id": caller.request_id})


def command_run(
    thread_id: str, run_id: str, result: dict[str, object], caller: Caller, event_format: Format
) -> Response:
    """Return the result of a command as a complete run of three events, which the official client can read.

    Raises:
        AppError: PAYLOAD_TOO_LARGE if the result exceeds the size of an event.
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
    return PlainResponse(event_format.complete_body(encoded), headers=headers, media_type=event_format.media_type)
