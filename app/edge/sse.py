"""Runs over HTTP: ``POST /invocations`` and ``GET /runs/{runId}/events``, in the format that the request asks for.

Rule: one event per frame, and what is ready goes out in one write. A reader that leaves or takes nothing is the same to
the run in every format. Source: AG-UI spec 1.1, basic/transports/http-sse and http-protobuf; reference 7, R17.
"""

import logging

from ag_ui.core import PROTOCOL_VERSION, CustomEvent, RunAgentInput, RunFinishedEvent, RunStartedEvent
from fastapi import APIRouter
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.core import wire
from app.core.inbound import Attach, CommandRequest
from app.edge.body import read_body, understand
from app.edge.commands import answer
from app.edge.formats import Format, format_of
from app.edge.gate import INVOCATIONS, caller_of
from app.engine.service import Reader, Service
from app.ports import Caller

SEND_SECONDS = 60.0
"""A reader that takes nothing for so long is let go, because what it has not read yet is kept for it. It may come back
and read on."""

HEADERS = {"Cache-Control": "no-cache, no-transform", "Vary": "Accept", "X-Accel-Buffering": "no"}

logger = logging.getLogger(__name__)


class RunStream(EventSourceResponse):
    """A run's events from a reader's position on. The reader is closed however the response ends."""

    def __init__(self, reader: Reader, form: Format, request_id: str, keepalive: float) -> None:
        self._reader = reader
        super().__init__(
            form.stream(reader),
            headers={**HEADERS, "X-Request-Id": request_id},
            media_type=form.media_type,
            sep="\n",
            ping=keepalive if form.has_comments else 0,
            ping_message_factory=lambda: ServerSentEvent(comment="keep-alive", sep="\n"),
            send_timeout=SEND_SECONDS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the run ends or the client leaves."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            logger.info("a reader took nothing for %s s and is let go", SEND_SECONDS)
        finally:
            self._reader.close()


def routes(service: Service, *, max_body: int, keepalive: float) -> APIRouter:
    """The routes that stream.

    Args:
        service: the engine's door.
        max_body: bytes of a request body.
        keepalive: seconds of silence before a comment, where the format has comments.
    """
    router = APIRouter()

    @router.post(INVOCATIONS)
    async def invocations(request: Request) -> Response:
        caller = caller_of(request)
        form = format_of(request)
        asked = await understand(await read_body(request, max_body))
        if isinstance(asked, RunAgentInput):
            return RunStream(await service.admit(asked, caller), form, caller.request_id, keepalive)
        if isinstance(asked.command, Attach):
            reader = service.attach(caller, asked.command.thread_id, asked.command.run_id, asked.command.after)
            return RunStream(reader, form, caller.request_id, keepalive)
        return command_run(service, asked, caller, form)

    @router.get("/runs/{run_id:path}/events")
    async def events(request: Request, run_id: str) -> Response:
        caller = caller_of(request)
        after = wire.cursor(request.query_params.get("after") or request.headers.get("last-event-id"))
        reader = service.attach(caller, request.query_params.get("threadId"), run_id, after)
        return RunStream(reader, format_of(request), caller.request_id, keepalive)

    return router


def command_run(service: Service, asked: CommandRequest, caller: Caller, form: Format) -> Response:
    """The answer to a command as a small legal run, so that the official client can ask."""
    result = answer(service, asked.command, caller)
    thread_id = asked.thread_id or service.new_id()
    run_id = asked.run_id or service.new_id()
    events = (
        RunStartedEvent(thread_id=thread_id, run_id=run_id, protocol_version=PROTOCOL_VERSION),
        CustomEvent(name="command.result", value={"command": asked.command.type, **result}),
        RunFinishedEvent(thread_id=thread_id, run_id=run_id),
    )
    envelopes = [wire.Envelope(run_id, seq, event.type, wire.encode(event)) for seq, event in enumerate(events, 1)]
    headers = {**HEADERS, "X-Request-Id": caller.request_id}
    return Response(form.whole(envelopes), headers=headers, media_type=form.media_type)
