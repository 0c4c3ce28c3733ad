"""Routes of Roboto's sessions: begin, continue, poll, copy, annotate.

Rules:

- Every result is ``{"data": …}``, and every error is ``{"error": …}`` with the status of the error table.
- Every change of a session is a command or a run of the engine. A session is therefore a thread like any other, which
  can be read, continued or cancelled through every protocol.
"""

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from msgspec import Struct
from msgspec.structs import asdict, replace
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agui_container.engine.engine import Engine
from agui_container.ports import Caller
from agui_container.ports.records import ThreadRecord, ThreadStatus
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.protocol.parser import parse_command
from agui_container.protocols.conversation.following import is_users
from agui_container.protocols.roboto import requests
from agui_container.protocols.roboto.goals import (
    DeclaredGoal,
    Step,
    answer_calls,
    begins_turn,
    conclude,
    declare,
    goals_in,
    goals_of,
    last_turn,
)
from agui_container.protocols.roboto.messages import (
    NewRun,
    date_of,
    message_input,
    question_id,
    results_input,
    start_input,
)
from agui_container.protocols.roboto.requests import FACTS, GOAL, Facts, fact_notes, read
from agui_container.protocols.roboto.turns import BUSY, Turns
from agui_container.protocols.roboto.views import SessionView, digest, ids
from agui_container.threads import offload, offload_if_large
from agui_container.web.browser_policy import route_path
from agui_container.web.caller_middleware import caller_of
from agui_container.web.registration import Closers, HttpRegistration, read_options
from agui_container.web.requests import RawPathRoute, read_fields
from agui_core.commands import ThreadsFeedback, ThreadsFork
from agui_core.turns import unanswered_in_last_turn

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

NO_INSTRUCTIONS = "system_prompt: this server takes no instructions of callers (AGUI_TRUST_INSTRUCTIONS)."

ORG_ID = "x-roboto-org-id"
"""Header with the organisation."""

NO_DATA = b"null"
"""Data of an answer that has none, as JSON."""

MAX_DIGITS = 9
"""Digits of the index of a message. No session has more messages."""

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

Operation = Callable[[Request], Awaitable[bytes]]
T = TypeVar("T")


class Sessions:
    """The sessions of one engine. ``max_body`` is the largest request in bytes."""

    def __init__(self, service: Engine, max_body: int) -> None:
        self._service = service
        self._turns = Turns(service)
        self._max_body = max_body
        self.aclose = self._turns.aclose

    async def _body(self, request: Request, shape: type[T]) -> tuple[T, int]:
        """Return the body of a request and its size. Raises ``AppError`` VALIDATION_ERROR, naming the field."""
        fields, size = await read_fields(request, self._max_body, self._service)
        return await offload_if_large(size, read, shape, fields), size

    # --- turns ---

    async def start(self, request: Request) -> bytes:
        caller, (start, size) = caller_of(request), await self._body(request, requests.StartRequest)
        custom = self._service.capabilities.custom or {}
        if start.system_prompt and "model" in custom and not custom.get("trustsInstructions"):  # it is the assistant
            raise validation_error(NO_INSTRUCTIONS)
        facts = Facts(
            tools=Facts().with_tools(start.client_tools),
            scope=start.analysis_scope,
            model_profile=start.model_profile,
            visibility=start.visibility,
            org_id=request.headers.get(ORG_ID, "")[:128] or Facts().org_id,
        )
        run = self._new_run(f"ags_{uuid.uuid4().hex}", facts, start.goals)
        notes = [*fact_notes(asdict(facts)), *(goal.note for goal in run.goals)]
        await self._turns.begin(caller, start_input(run, start), size, notes)
        question = question_id(run.run_id)
        return await self._turns.read(caller, run.thread_id, lambda it: it.as_begun(question, run.goals).json())

    async def send(self, request: Request) -> bytes:
        """Send a message to a session. Calls that wait for an approval count as denied from then on."""
        caller, (message, size) = caller_of(request), await self._body(request, requests.SendRequest)
        threads = self._service.threads
        thread, facts, goals = await self._session(caller, _session_id(request))
        if self._turns.is_active(thread):
            raise validation_error(BUSY)
        changed = {
            "tools": facts.with_tools(message.client_tools),
            "scope": message.analysis_scope or facts.scope,
        }
        waiting = await threads.waiting(caller, thread.key.thread_id)
        last = await threads.messages_since(caller, thread.key.thread_id, is_users) if waiting else ()
        run = self._new_run(thread.key.thread_id, replace(facts, **changed), message.goals)
        notes = [*fact_notes(changed), *(goal.note for goal in (*conclude(goals, run.now), *run.goals))]
        run_input = message_input(run, message, waiting, unanswered_in_last_turn(last))
        await self._turns.begin(caller, run_input, size, notes)
        return NO_DATA

    async def add_tool_results(self, request: Request) -> bytes:
        """Continue a session with results of client tools. Of two clients that answer, the second one is refused."""
        caller, (answer, size) = caller_of(request), await self._body(request, requests.ToolResultsRequest)
        thread_id, threads = _session_id(request), self._service.threads
        latest = await self._service.runs.find_or_none(caller, thread_id)
        thread, facts, goals = await self._session(caller, thread_id)
        changed = {"tools": facts.with_tools(answer.client_tools)}
        if not answer.tool_results:
            await threads.put_notes(caller, thread_id, fact_notes(changed))
            return NO_DATA
        if self._turns.is_active(thread) or thread.status is not ThreadStatus.CLIENT_TOOL_TURN:
            raise validation_error("The session is not waiting for results of client tools.")
        turn = last_turn(await threads.messages_since(caller, thread_id, begins_turn))
        waiting = {call.id: call.function.name for call in unanswered_in_last_turn(turn)}
        for at, result in enumerate(answer.tool_results):
            if waiting.pop(result.tool_use_id, None) != result.tool_name:
                raise validation_error(f"tool_results.{at}: no call of this id and this tool is waiting for a result.")
        run = self._new_run(thread_id, replace(facts, **changed), goals=goals_of(turn, goals))
        step = await offload(answer_calls, run.goals, turn, self._service.new_id, run.now) if run.goals else Step()
        notes = [*fact_notes(changed), *(goal.note for goal in step.changed)]
        run_input = results_input(run, answer.tool_results, step.messages)
        await self._turns.begin(caller, run_input, size, notes, None if latest is None else latest.key.run_id)
        return NO_DATA

    def _new_run(
        self,
        thread_id: str,
        facts: Facts,
        new: Sequence[requests.Goal] | None = None,
        goals: Sequence[DeclaredGoal] = (),
    ) -> NewRun:
        """Return a run that declares new goals, or that continues a turn with goals."""
        run_id, now = self._service.new_id(), time.time()
        return NewRun(thread_id, run_id, now, facts, goals or declare(new or (), question_id(run_id), now))

    async def _session(self, caller: Caller, thread_id: str) -> tuple[ThreadRecord, Facts, Sequence[DeclaredGoal]]:
        """Read a thread with the facts and goals of its session. Facts can be large because of client tools."""
        session = await self._service.threads.delta(caller, thread_id, messages=False, notes=(FACTS, GOAL))
        facts = await offload_if_large(session.size, Facts.of, session.notes)
        return session.thread, facts, goals_in(session.notes)

    # --- other requests ---

    async def get(self, request: Request) -> bytes:
        with_messages = request.query_params.get("load_messages", "True").lower() != "false"
        work = partial(SessionView.json, with_messages=with_messages)
        return await self._turns.read(caller_of(request), _session_id(request), work)

    async def delta(self, request: Request) -> bytes:
        token = request.query_params.get("next_token")
        knows_reset = not route_path(request.scope).startswith(OLD_PREFIX)
        return await self._turns.delta(caller_of(request), _session_id(request), token, knows_reset=knows_reset)

    async def give_feedback(self, request: Request) -> bytes:
        caller, thread_id, index = caller_of(request), _session_id(request), str(request.path_params["index"])
        at = int(index) if index.isdecimal() and len(index) <= MAX_DIGITS else -1
        body, _ = await read_fields(request, self._max_body, self._service)
        answer_id, org_id = await self._turns.read(caller, thread_id, partial(SessionView.answer_at, at=at))
        command = parse_command({**body, "type": "threads.feedback", "threadId": thread_id, "messageId": answer_id})
        feedback = await self._service.threads.answer(caller, cast("ThreadsFeedback", command))
        record = {
            **ids(thread_id),
            "feedback_id": f"fb_{digest([caller.owner, thread_id, answer_id])}",
            "message_sequence_num": at,
            "org_id": org_id,
            "created": date_of(float(str(feedback["createdAt"]))),
            "created_by": caller.owner,
            "modified": date_of(float(str(feedback["changedAt"]))),
            "modified_by": caller.owner,
            "sentiment": feedback["sentiment"],
            "categories": feedback["categories"],
            "notes": feedback.get("notes"),
        }
        return to_json(record)

    async def fork(self, request: Request) -> bytes:
        caller, (body, _) = caller_of(request), await self._body(request, requests.ForkRequest)
        thread_id, at, threads = _session_id(request), body.message_sequence_num, self._service.threads
        work = partial(SessionView.fork_at, at=at, now=time.time())
        message_id, notes = await self._turns.read(caller, thread_id, work)
        command = ThreadsFork(thread_id=thread_id, message_id=message_id, new_thread_id=f"ags_{uuid.uuid4().hex}")
        new_id = str((await threads.answer(caller, command))["threadId"])
        await threads.put_notes(caller, new_id, notes)
        return await self._turns.read(caller, new_id, SessionView.json)

    async def set_visibility(self, request: Request) -> bytes:
        body, _ = await self._body(request, requests.VisibilityRequest)
        return await self._annotate(request, visibility=body.visibility)

    async def pin(self, request: Request) -> bytes:
        body, _ = await self._body(request, requests.PinRequest)
        return await self._annotate(request, pinned_at=time.time() if body.pinned else None)

    async def _annotate(self, request: Request, **facts: object) -> bytes:
        await self._service.threads.put_notes(caller_of(request), _session_id(request), fact_notes(facts))
        return NO_DATA


def _session_id(request: Request) -> str:
    return str(request.path_params["sessionId"])


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
    options = read_options(settings, RobotoOptions)

    def build(service: Engine, closers: Closers) -> list[BaseRoute]:
        sessions = Sessions(service, options.max_body_bytes)
        closers.append(sessions.aclose)
        routes: list[BaseRoute] = [
            RawPathRoute(prefix + path, partial(_respond, partial(operation, sessions)), methods=[method])
            for prefix in (OLD_PREFIX, NEW_PREFIX)
            for method, path, operation in OPERATIONS
        ]
        return [*routes, Route(f"{PREFIX}{{path:path}}", _refuse_path, methods=METHODS)]

    return HttpRegistration(PREFIX, {"roboto": PREFIX.rstrip("/")}, build, error_form)


async def _respond(operation: Operation, request: Request) -> Response:
    body = b'{"data":%b}' % await operation(request)
    headers = {"Cache-Control": "no-store", "X-Request-Id": caller_of(request).request_id}
    return Response(body, headers=headers, media_type="application/json")


async def _refuse_path(_: Request) -> Response:
    raise AppError(ErrorCode.THREAD_NOT_FOUND, "This server does not serve this part of Roboto's API.")


def error_form(error: AppError) -> bytes:
    """Return an error in Roboto's form. The client raises the exception that it names."""
    name = CLASSES.get(error.code.http, "RobotoInternalException")
    return to_json({"error": {"error_code": name, "message": error.message}})
