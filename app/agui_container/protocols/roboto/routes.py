"""Routes of Roboto's sessions: begin, continue, poll, copy, annotate.

Rules:

- Every result is ``{"data": …}``, and every error is ``{"error": …}`` with the status of the error table.
- Every change of a session is a command or a run of the engine. A session is therefore a thread like any other, which
  can be read, continued or cancelled through every protocol.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from ag_ui.core import RunAgentInput
from msgspec import Struct
from pydantic_core import from_json, to_json
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agui_container.engine.engine import Engine
from agui_container.log_values import format_fields
from agui_container.ports import Caller
from agui_container.ports.records import ThreadRecord, ThreadStatus
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down
from agui_container.protocols.conversation.events import with_field_names
from agui_container.protocols.conversation.following import is_users
from agui_container.protocols.roboto import records
from agui_container.protocols.roboto.goals import answers_of, begins_turn, calls_awaiting_client, goal_tools, last_turn
from agui_container.protocols.roboto.messages import (
    FIELD_NAMES,
    NewRun,
    Reader,
    message_input,
    results_input,
    start_input,
)
from agui_container.protocols.roboto.records import FACTS, Notes, as_notes, date_of, ids, read
from agui_container.protocols.roboto.turns import SessionClient, SessionReader
from agui_container.protocols.roboto.views import SessionView, digest, validation_error
from agui_container.threads import offload, offload_if_large
from agui_container.web.browser_policy import route_path
from agui_container.web.caller_middleware import caller_of
from agui_container.web.error_responses import internal_error
from agui_container.web.raw_path_route import RawPathRoute
from agui_container.web.registration import Closers, HttpRegistration, read_options
from agui_container.web.request_body import read_fields
from agui_core.commands import ThreadsFeedback, ThreadsFork

PREFIX, OLD_PREFIX, NEW_PREFIX = "/v1/ai/", "/v1/ai/chats", "/v1/ai/threads"
"""Prefixes of all paths, and of those for clients before 0.46, which cannot drop messages, and since then."""

CLASSES: Mapping[int, str] = {
    400: "RobotoInvalidRequestException",
    401: "RobotoUnauthorizedException",
    403: "RobotoUnauthorizedException",
    404: "RobotoNotFoundException",
    409: "RobotoConflictException",
    413: "RobotoInvalidRequestException",
    429: "RobotoLimitExceededException",
    503: "RobotoServiceUnavailableException",
}
"""Exception that a client raises, by status of the error table."""

BUSY = "The session is not waiting for a message: the agent is at work."

CONTEXT_SINCE = "2026-09-30"
"""First version of Roboto's API whose clients know blocks of the type ``client_context``."""

API_VERSION, ORG_ID, REQUESTER = "x-roboto-api-version", "x-roboto-org-id", "x-roboto-requester"
"""Headers with the version of Roboto's API, the organisation, and the program that asks."""

FEEDBACK = ("sentiment", "categories", "notes")
"""Members of a feedback."""

NO_DATA = b"null"
"""Data of an answer that has none, as JSON."""

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

Operation = Callable[[Request], Awaitable[bytes]]
T = TypeVar("T")

logger = logging.getLogger(__name__)


class Sessions:
    """The sessions of one engine. ``max_body`` is the largest request in bytes."""

    def __init__(self, service: Engine, max_body: int) -> None:
        self._service = service
        self._reader = SessionReader(service)
        self._max_body = max_body
        self.aclose = self._reader.aclose

    async def _body(self, request: Request, shape: type[T]) -> tuple[T, int]:
        """Return the body of a request and its size. Raises ``AppError`` VALIDATION_ERROR, naming the field."""
        fields, size = await read_fields(request, self._max_body, self._service)
        return await offload_if_large(size, read, shape, fields), size

    # --- turns ---

    async def start(self, request: Request) -> bytes:
        """Begin a session. Returns its record. Raises ``AppError`` like ``Engine.admit``."""
        client, (start, size) = _client_of(request), await self._body(request, records.StartRequest)
        goals = goal_tools(start.goals or ())
        check_agent(start, self._service.capabilities.custom or {})
        notes = Notes(
            tools=Notes().with_tools(start.client_tools),
            scope=start.analysis_scope,
            model_profile=start.model_profile,
            visibility=start.visibility,
            org_id=request.headers.get(ORG_ID, "")[:128] or Notes().org_id,
        )
        run = NewRun(_new_session_id(), self._service.new_id(), time.time(), notes, goals)
        facts = notes.model_dump() | notes.with_goals(run.run_id if goals else None, run.now)
        await self._begin(client, start_input(run, start), size, facts)
        return await self._reader.read(client, run.thread_id, SessionView.json)

    async def send(self, request: Request) -> bytes:
        """Send a message to a session. Calls that wait for an approval count as denied from then on."""
        client, (message, size) = _client_of(request), await self._body(request, records.SendRequest)
        caller, threads, thread_id = client.caller, self._service.threads, _session_id(request)
        goals = goal_tools(message.goals or ())
        thread, notes = await self._thread(caller, thread_id)
        if self._reader.is_active(thread):
            raise AppError(ErrorCode.VALIDATION_ERROR, BUSY)
        facts: dict[str, object] = {"tools": notes.with_tools(message.client_tools)}
        facts["scope"] = message.analysis_scope or notes.scope
        notes = notes.model_copy(update=facts)
        waiting = [interrupt.id for interrupt in await threads.waiting(caller, thread_id)]
        last = await threads.messages_since(caller, thread_id, is_users) if waiting else ()
        run = NewRun(
            thread_id, self._service.new_id(), time.time(), notes, goals, waiting, [*calls_awaiting_client(last)]
        )
        facts |= notes.with_goals(run.run_id if goals else None, run.now)
        await self._begin(client, message_input(run, message), size, facts)
        return NO_DATA

    async def add_tool_results(self, request: Request) -> bytes:
        """Continue a session with results of client tools. Of two clients that answer, the second one is refused."""
        client, (answer, size) = _client_of(request), await self._body(request, records.ToolResultsRequest)
        caller, thread_id = client.caller, _session_id(request)
        latest = await self._service.runs.find_or_none(caller, thread_id)
        thread, notes = await self._thread(caller, thread_id)
        facts = {"tools": notes.with_tools(answer.client_tools)}
        if not answer.tool_results:
            await self._annotate(caller, thread_id, facts)
            return NO_DATA
        if self._reader.is_active(thread) or thread.status is not ThreadStatus.CLIENT_TOOL_TURN:
            raise AppError(ErrorCode.VALIDATION_ERROR, "The session is not waiting for results of client tools.")
        messages = await self._service.threads.messages_since(caller, thread_id, begins_turn)
        check_results(answer, calls_awaiting_client(messages))
        turn, now = last_turn(messages), time.time()
        answers = await offload(answers_of, turn, self._service.new_id, now) if turn else ()
        notes, tools = notes.model_copy(update=facts), turn.tools if turn else ()
        run_input = results_input(
            NewRun(thread_id, self._service.new_id(), now, notes, tools), answer.tool_results, answers
        )
        await self._begin(client, run_input, size, facts, None if latest is None else latest.key.run_id)
        return NO_DATA

    async def _thread(self, caller: Caller, thread_id: str) -> tuple[ThreadRecord, Notes]:
        """Read a thread and the facts of its session, which can be large because of its client tools."""
        session = await self._service.threads.delta(caller, thread_id, messages=False, notes=(FACTS,))
        return session.thread, await offload_if_large(session.size, Notes.of, session.notes)

    async def _begin(
        self,
        client: SessionClient,
        run_input: RunAgentInput,
        size: int,
        facts: Mapping[str, object],
        latest_run: str | None = None,
    ) -> None:
        """Begin a run, and store facts of the session. Raises ``AppError`` like ``Engine.admit``."""
        with busy_as_validation_error():
            await self._reader.begin(client.caller, run_input, size, latest_run)
        await self._annotate(client.caller, run_input.thread_id, facts)

    # --- other requests ---

    async def get(self, request: Request) -> bytes:
        with_messages = request.query_params.get("load_messages", "True").lower() != "false"
        work = partial(SessionView.json, with_messages=with_messages)
        return await self._reader.read(_client_of(request), _session_id(request), work)

    async def delta(self, request: Request) -> bytes:
        token = request.query_params.get("next_token")
        return await self._reader.delta(_client_of(request), _session_id(request), token)

    async def give_feedback(self, request: Request) -> bytes:
        """Store feedback on a message. Returns its record."""
        client, thread_id, at = _client_of(request), _session_id(request), index(request)
        body, _ = await read_fields(request, self._max_body, self._service)
        answer_id, org_id = await self._reader.read(client, thread_id, partial(SessionView.answer_at, at=at))
        given = {name: body[name] for name in FEEDBACK if name in body}
        command = read(ThreadsFeedback, {"threadId": thread_id, "messageId": answer_id, **given})
        feedback = await self._service.threads.answer(client.caller, command)
        record = {
            **ids(thread_id),
            "feedback_id": f"fb_{digest([client.caller.owner, thread_id, answer_id])}",
            "message_sequence_num": at,
            "org_id": org_id,
            "created": date_of(float(str(feedback["createdAt"]))),
            "created_by": client.caller.owner,
            "modified": date_of(float(str(feedback["changedAt"]))),
            "modified_by": client.caller.owner,
            **{name: feedback.get(name) for name in FEEDBACK},
        }
        return to_json(record)

    async def fork(self, request: Request) -> bytes:
        """Copy a session up to a message, including that message. Returns the record of the copy."""
        client, (body, _) = _client_of(request), await self._body(request, records.ForkRequest)
        thread_id, at = _session_id(request), body.message_sequence_num
        message_id, facts = await self._reader.read(
            client, thread_id, partial(SessionView.fork_at, at=at, now=time.time())
        )
        command = ThreadsFork(thread_id=thread_id, message_id=message_id, new_thread_id=_new_session_id())
        with busy_as_validation_error():
            fork = await self._service.threads.answer(client.caller, command)
        new_id = str(fork["threadId"])
        await self._annotate(client.caller, new_id, {**facts, "forked_from": at})
        return await self._reader.read(client, new_id, SessionView.json)

    async def set_visibility(self, request: Request) -> bytes:
        body, _ = await self._body(request, records.VisibilityRequest)
        await self._annotate(caller_of(request), _session_id(request), {"visibility": body.visibility})
        return NO_DATA

    async def pin(self, request: Request) -> bytes:
        body, _ = await self._body(request, records.PinRequest)
        pinned_at = time.time() if body.pinned else None
        await self._annotate(caller_of(request), _session_id(request), {"pinned_at": pinned_at})
        return NO_DATA

    async def _annotate(self, caller: Caller, thread_id: str, facts: Mapping[str, object]) -> None:
        """Store facts of a session. Raises ``AppError`` THREAD_NOT_FOUND."""
        await self._service.threads.put_notes(caller, thread_id, as_notes(facts))


# --- parts of requests ------------------------------------------------------------------------------------------------


def _client_of(request: Request) -> SessionClient:
    try:
        requester = from_json(request.headers.get(REQUESTER, "{}"))
    except ValueError:
        requester = {}
    is_command = isinstance(requester, dict) and requester.get("roboto_tool") == "cli"
    knows_context = request.headers.get(API_VERSION, "") >= CONTEXT_SINCE  # versions are dates in ISO 8601
    knows_reset = not route_path(request.scope).startswith(OLD_PREFIX)
    return SessionClient(caller_of(request), Reader(knows_context, is_command), knows_reset)


def _session_id(request: Request) -> str:
    return str(request.path_params["sessionId"])


def index(request: Request) -> int:
    """Return the index of a message from the path. Raises ``AppError`` THREAD_NOT_FOUND."""
    text = str(request.path_params["index"])
    if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004 - more digits than messages
        raise AppError(ErrorCode.THREAD_NOT_FOUND, "There is no such message in this session.")
    return int(text)


def _new_session_id() -> str:
    return f"ags_{uuid.uuid4().hex}"


@contextmanager
def busy_as_validation_error() -> Iterator[None]:
    """Turn THREAD_BUSY into VALIDATION_ERROR, as Roboto does for requests during an active turn."""
    try:
        yield
    except AppError as error:
        if error.code is not ErrorCode.THREAD_BUSY:
            raise with_field_names(error, FIELD_NAMES) from None
        raise AppError(ErrorCode.VALIDATION_ERROR, BUSY) from None


def check_agent(request: records.StartRequest, custom: Mapping[str, object]) -> None:
    """Check that an assistant takes the system prompt and has the model of a request. Other agents decide themselves.

    An assistant is known by its model in the ``custom`` capabilities.
    """
    if "model" not in custom:
        return
    if request.system_prompt and not custom.get("trustsInstructions"):
        raise validation_error("system_prompt: this server takes no instructions of callers (AGUI_TRUST_INSTRUCTIONS).")
    models, profile = custom.get("models"), request.model_profile
    names = [str(name) for name in models] if isinstance(models, list) else []
    if profile and profile not in names:
        allowed = f"allowed are {', '.join(names)}" if names else "this server allows no choice (AGUI_MODELS)"
        raise validation_error(f"model_profile: '{profile[:64]}' cannot be chosen; {allowed}.")


def check_results(request: records.ToolResultsRequest, calls: Mapping[str, str]) -> None:
    """Check that each result is the only one of a call that waits, and names the tool of that call."""
    open_calls = dict(calls)
    for at, result in enumerate(request.tool_results):
        name = open_calls.pop(result.tool_use_id, None)
        if name is None:
            raise validation_error(f"tool_results.{at}.tool_use_id: no call of this id is waiting for a result.")
        if name != result.tool_name:
            raise validation_error(f"tool_results.{at}.tool_name: the call of this id is of '{name}'.")


# --- routes -----------------------------------------------------------------------------------------------------------


SESSION = "/{sessionId}"
OPERATIONS = (
    ("POST", "", Sessions.start),
    ("GET", SESSION, Sessions.get),
    ("GET", f"{SESSION}/delta", Sessions.delta),
    ("POST", f"{SESSION}/messages", Sessions.send),
    ("POST", f"{SESSION}/tool-results", Sessions.add_tool_results),
    ("POST", f"{SESSION}/messages/{{index}}/feedback", Sessions.give_feedback),
    ("POST", f"{SESSION}/fork", Sessions.fork),
    ("POST", f"{SESSION}/visibility", Sessions.set_visibility),
    ("POST", f"{SESSION}/pin", Sessions.pin),
)
"""Method, path below each of the two prefixes, and operation."""


class RobotoOptions(Struct, frozen=True):
    """Settings that this protocol reads: the largest request in bytes."""

    max_body_bytes: int


def register(settings: object) -> HttpRegistration:
    """Return the registration with these settings."""
    options = read_options(settings, RobotoOptions)

    def build(service: Engine, closers: Closers) -> list[BaseRoute]:
        sessions = Sessions(service, options.max_body_bytes)
        closers.append(sessions.aclose)
        routes: list[BaseRoute] = [
            RawPathRoute(prefix + path, partial(_respond, service, partial(operation, sessions)), methods=[method])
            for prefix in (OLD_PREFIX, NEW_PREFIX)
            for method, path, operation in OPERATIONS
        ]
        return [*routes, Route(f"{PREFIX}{{path:path}}", _refuse_path, methods=METHODS)]

    return HttpRegistration(PREFIX, {"roboto": PREFIX.rstrip("/")}, build, refusal)


async def _respond(service: Engine, operation: Operation, request: Request) -> Response:
    """Respond with the ``data`` of an operation, or with the ``error`` that it raises."""
    try:
        return _response(request, b'{"data":%b}' % await operation(request), 200)
    except AppError as error:
        return refusal(error, request)
    except asyncio.CancelledError:
        if not service.is_draining:
            raise
        return refusal(shutting_down(), request)
    except Exception:
        logger.exception("roboto request failed %s", format_fields({"path": request.url.path}))
        return refusal(internal_error(), request)


async def _refuse_path(request: Request) -> Response:
    error = AppError(ErrorCode.THREAD_NOT_FOUND, "This server does not serve this part of Roboto's API.")
    return refusal(error, request)


def refusal(error: AppError, request: HTTPConnection) -> Response:
    """Return an error in Roboto's form. The client raises the exception of the status in the error table."""
    logger.info("request refused %s", format_fields({"code": error.code, "message": error.message}))
    name = CLASSES.get(error.code.http, "RobotoInternalException")
    response = _response(request, to_json({"error": {"error_code": name, "message": error.message}}), error.code.http)
    if error.wait_seconds is not None:
        response.headers["Retry-After"] = str(error.wait_seconds)
    return response


def _response(request: HTTPConnection, body: bytes, status: int) -> Response:
    headers = {"Cache-Control": "no-store", "X-Request-Id": caller_of(request).request_id}
    return Response(body, status, headers, media_type="application/json")
