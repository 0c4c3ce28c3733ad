"""Runs over HTTP: ``POST /invocations`` and ``GET /runs/{runId}/events``, as Server-Sent Events.

Rule: one event per frame, and one write for all events that are ready.
Source: AG-UI spec 1.1, basic/transports/http-sse.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from ag_ui.core import PROTOCOL_VERSION, CustomEvent, RunFinishedEvent, RunStartedEvent
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_container.engine.engine import Engine
from agui_container.ports import Caller
from agui_container.protocol import envelope
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import CommandRequest, RunRequest
from agui_container.web.caller_middleware import AGENT, INVOCATIONS, caller_of
from agui_container.web.event_stream import EventStreamResponse, StreamMonitor
from agui_container.web.formats import EVENT_STREAM, HEADERS, is_legacy_client, sse_frames
from agui_container.web.requests import RawPathRoute, answer_command, read_request
from agui_core.commands import Attach
from agui_core.expander import IllegalEvent


class Endpoint(Struct, frozen=True):
    respond: Callable[[Request], Awaitable[ASGIApp]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.respond(Request(scope, receive))
        await response(scope, receive, send)


def routes(service: Engine, *, max_body: int, keepalive: float, by_agent: bool = False) -> list[BaseRoute]:
    """Return the routes that stream runs. With ``by_agent`` each agent has a path of its own, too."""
    monitor = StreamMonitor(keepalive)

    async def invocations(request: Request) -> Response | EventStreamResponse:
        caller = caller_of(request)
        agent_request = (await read_request(request, max_body, service)).for_agent(request.path_params.get("agent"))
        stream = partial(
            EventStreamResponse,
            caller=caller,
            monitor=monitor,
            is_of_legacy_client=is_legacy_client(agent_request),
        )
        if isinstance(agent_request, RunRequest):
            return stream(await service.admit(agent_request.run_input, caller, agent_request.size))
        command = agent_request.command
        if isinstance(command, Attach):
            after = command.after or envelope.parse_cursor(request.headers.get("last-event-id"))
            return stream(await service.attach(caller, command.thread_id, command.run_id, after))
        return await execute(agent_request, caller)

    async def execute(request: CommandRequest, caller: Caller) -> Response:
        result = await answer_command(service, request.command, caller)
        ids = request.thread_id or service.new_id(), request.run_id or service.new_id()
        return command_run(*ids, {"command": request.command.type, **result}, caller)

    async def events(request: Request) -> Response | EventStreamResponse:
        caller, run_id = caller_of(request), request.path_params["runId"]
        after = envelope.parse_cursor(request.query_params.get("after") or request.headers.get("last-event-id"))
        subscription = await service.attach(caller, request.query_params.get("threadId"), run_id, after)
        if subscription.is_exhausted:
            subscription.close()
            # A browser's EventSource reconnects after any stream that ends, unless it gets this status.
            return Response(status_code=204, headers={**HEADERS, "X-Request-Id": caller.request_id})
        return EventStreamResponse(subscription, caller, monitor)

    return [
        Route(INVOCATIONS, Endpoint(invocations), methods=["POST"]),
        *([RawPathRoute(AGENT + INVOCATIONS, Endpoint(invocations), methods=["POST"])] if by_agent else ()),
        RawPathRoute("/runs/{runId}/events", Endpoint(events), methods=["GET"]),
    ]


def command_run(thread_id: str, run_id: str, result: dict[str, object], caller: Caller) -> Response:
    """Return the result of a command as a complete run of three events. Raises ``AppError`` PAYLOAD_TOO_LARGE."""
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
    return Response(sse_frames(encoded, 1), headers=headers, media_type=EVENT_STREAM)
