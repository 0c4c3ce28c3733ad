"""Runs over HTTP: ``POST /invocations`` and ``GET /runs/{runId}/events``, in the format that the request asks for.

Rule: one event per frame, and what is ready goes out in one write. A reader that leaves or takes nothing is the same to
the run in every format. Source: AG-UI spec 1.1, basic/transports/http-sse and http-protobuf; reference 7, R17.
"""

from ag_ui.core import PROTOCOL_VERSION, CustomEvent, RunAgentInput, RunFinishedEvent, RunStartedEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from app.core import wire
from app.core.encoder import encode
from app.core.inbound import Attach, CommandRequest
from app.edge.body import read_body, understand
from app.edge.commands import answer
from app.edge.formats import Format, format_of
from app.edge.gate import INVOCATIONS, caller_of
from app.edge.stream import HEADERS, RunStream
from app.engine.service import Service
from app.ports import Caller


def routes(service: Service, *, max_body: int, keepalive: float) -> list[BaseRoute]:
    """The routes that stream.

    Args:
        service: the engine's door.
        max_body: bytes of a request body.
        keepalive: seconds of silence before a comment, where the format has comments.
    """

    async def invocations(request: Request) -> Response:
        caller = caller_of(request)
        form = format_of(request)
        asked = await understand(await read_body(request, max_body))
        if isinstance(asked, RunAgentInput):
            return RunStream(await service.admit(asked, caller), form, caller.request_id, keepalive)
        if isinstance(asked.command, Attach):
            reader = await service.attach(caller, asked.command.thread_id, asked.command.run_id, asked.command.after)
            return RunStream(reader, form, caller.request_id, keepalive)
        return await command_run(service, asked, caller, form)

    async def events(request: Request) -> Response:
        caller, run_id = caller_of(request), request.path_params["run_id"]
        after = wire.cursor(request.query_params.get("after") or request.headers.get("last-event-id"))
        reader = await service.attach(caller, request.query_params.get("threadId"), run_id, after)
        return RunStream(reader, format_of(request), caller.request_id, keepalive)

    return [
        Route(INVOCATIONS, invocations, methods=["POST"]),
        Route("/runs/{run_id:path}/events", events, methods=["GET"]),
    ]


async def command_run(service: Service, asked: CommandRequest, caller: Caller, form: Format) -> Response:
    """The answer to a command as a small legal run, so that the official client can ask."""
    result = await answer(service, asked.command, caller)
    thread_id = asked.thread_id or service.new_id()
    run_id = asked.run_id or service.new_id()
    events = (
        RunStartedEvent(thread_id=thread_id, run_id=run_id, protocol_version=PROTOCOL_VERSION),
        CustomEvent(name="command.result", value={"command": asked.command.type, **result}),
        RunFinishedEvent(thread_id=thread_id, run_id=run_id),
    )
    headers = {**HEADERS, "X-Request-Id": caller.request_id}
    return Response(form.whole(list(map(encode, events))), headers=headers, media_type=form.media_type)
