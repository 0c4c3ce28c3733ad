"""Operations on sessions: begin, continue, copy, annotate. Each takes a request and returns the data of its answer.

Rule: every change of a session is a command or a run of the engine. A session is therefore a thread like any other,
which can be read, continued or cancelled through every protocol.

Sessions are serialised where they are built, which is a worker thread if they are large.
"""

import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from ag_ui.core import BaseEvent, Message, UserMessage
from pydantic_core import from_json, to_json
from starlette.requests import Request

from agui_container.engine.policy import ThreadCondition
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import ThreadKey, ThreadRecord, ThreadStatus
from agui_container.protocol.commands import ThreadsFeedback, ThreadsFork
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.runtime.offload import offload_if_large
from agui_container.transports.browser_policy import route_path
from agui_container.transports.caller_middleware import caller_of, quota_of
from agui_container.transports.conversation.translator import Opening
from agui_container.transports.request_body import read_fields
from agui_container.transports.roboto import OLD_PREFIX
from agui_container.transports.roboto.messages import ASSISTANT, SessionMessage, calls_awaiting_client
from agui_container.transports.roboto.notes import APPROVAL_REQUIRED, LOCAL, Notes, as_metadata
from agui_container.transports.roboto.records import SessionView, feedback_record, session_json
from agui_container.transports.roboto.requests import (
    FeedbackRequest,
    ForkRequest,
    PinRequest,
    SendRequest,
    StartRequest,
    ToolResultsRequest,
    VisibilityRequest,
    goals_of,
    read,
)
from agui_container.transports.roboto.run_inputs import NewRun, message_input, results_input, start_input
from agui_container.transports.roboto.views import SessionClient, SessionReader

BUSY = "The session is not waiting for a message: the agent is at work."

CONTEXT_SINCE = "2026-09-30"
"""First version of Roboto's API whose clients know blocks of the type ``client_context``."""

API_VERSION, ORG_ID = "x-roboto-api-version", "x-roboto-org-id"
REQUESTER, COMMAND = "x-roboto-requester", "cli"
"""Header with the program that asks, and the name of the command ``roboto`` in it."""

MAX_ORG_ID = 128

NO_DATA = b"null"
"""Data of an answer that has none, as JSON."""


class Sessions:
    """The sessions of one engine. Implements ``routes.LoadedSessions``.

    Args:
        max_body: largest request in bytes.
    """

    def __init__(self, service: Service, max_body: int) -> None:
        self._service = service
        self._reader = SessionReader(service)
        self._max_body = max_body
        self.operations: Mapping[str, Callable[[Request], Awaitable[bytes]]] = {
            "start": self.start,
            "get": self.get,
            "delta": self.delta,
            "send": self.send,
            "tool_results": self.add_tool_results,
            "feedback": self.give_feedback,
            "fork": self.fork,
            "visibility": self.set_visibility,
            "pin": self.pin,
        }

    async def aclose(self) -> None:
        """Stop following runs."""
        await self._reader.aclose()

    async def _body(self, request: Request) -> tuple[dict[str, object], int]:
        return await read_fields(request, self._max_body, self._service)

    # --- turns ---

    async def start(self, request: Request) -> bytes:
        """Begin a session. Returns its record. Raises ``AppError`` like ``Service.admit``."""
        client, (body, size) = client_of(request), await self._body(request)
        start = read(StartRequest, body)
        goals = goals_of(start)
        check_agent(start, self._service.capabilities.custom or {})
        notes = Notes(
            tools=Notes().with_tools(start.client_tools),
            scope=start.analysis_scope,
            model_profile=start.model_profile,
            visibility=start.visibility,
            org_id=request.headers.get(ORG_ID, "")[:MAX_ORG_ID] or LOCAL,
        )
        thread_id, run_id = new_session_id(), self._service.new_id()
        run_input = start_input(NewRun(thread_id, run_id, time.time(), notes, goals), start)
        await self._begin(client, Opening(run_input, size), notes.model_dump(mode="json"))
        return await self._reader.read(client, thread_id, session_json)

    async def send(self, request: Request) -> bytes:
        """Send a message to a session. Calls that wait for an approval count as denied from then on.

        Raises:
            AppError: VALIDATION_ERROR while a run is active, and like ``start``.
        """
        client, thread_id, (body, size) = client_of(request), session_id(request), await self._body(request)
        message, caller = read(SendRequest, body), client.caller
        goals = goals_of(message)
        thread = await self._service.threads.record(caller, thread_id)
        if self._reader.is_active(thread):
            raise AppError(ErrorCode.VALIDATION_ERROR, BUSY)
        notes = await read_notes(caller, thread)
        facts = {"tools": notes.with_tools(message.client_tools), "scope": message.analysis_scope or notes.scope}
        notes = notes.model_copy(update=facts)
        waiting = [interrupt.id for interrupt in await self._service.threads.waiting(caller, thread_id)]
        denied = list(await self._open_calls(caller, thread_id)) if waiting else []
        run_id, now = self._service.new_id(), time.time()
        run_input = message_input(NewRun(thread_id, run_id, now, notes, goals, waiting, denied), message)
        await self._begin(client, Opening(run_input, size), facts)
        return NO_DATA

    async def add_tool_results(self, request: Request) -> bytes:
        """Continue a session with results of client tools.

        Of two clients that answer, the first one continues the session. The results of the other are refused.

        Raises:
            AppError: VALIDATION_ERROR for a result of a call that is not waiting, and like ``start``.
        """
        client, thread_id, (body, size) = client_of(request), session_id(request), await self._body(request)
        answer, caller = read(ToolResultsRequest, body), client.caller
        latest = await self._service.runs.find_or_none(caller, thread_id)
        thread = await self._service.threads.record(caller, thread_id)
        notes = await read_notes(caller, thread)
        facts = {"tools": notes.with_tools(answer.client_tools)}
        notes = notes.model_copy(update=facts)
        if not answer.tool_results:
            await self._annotate(caller, thread_id, **facts)
            return NO_DATA
        if self._reader.is_active(thread) or thread.status is not ThreadStatus.CLIENT_TOOL_TURN:
            raise AppError(ErrorCode.VALIDATION_ERROR, "The session is not waiting for results of client tools.")
        check_results(answer, await self._open_calls(caller, thread_id))
        run = NewRun(thread_id, self._service.new_id(), time.time(), notes)
        condition = ThreadCondition(latest_run=None if latest is None else latest.key.run_id)
        await self._begin(client, Opening(results_input(run, answer.tool_results), size, condition=condition), facts)
        return NO_DATA

    async def _open_calls(self, caller: Caller, thread_id: str) -> Mapping[str, str]:
        """Return the names of the calls of a session that wait for a result, by id."""
        return calls_awaiting_client(await self._service.threads.messages_since(caller, thread_id, is_of_user))

    async def _begin(self, client: SessionClient, request: Opening[BaseEvent], facts: Mapping[str, object]) -> None:
        """Begin the run of a request, and store the request's facts. Raises ``AppError`` like ``Service.admit``."""
        with busy_as_validation_error():
            await self._reader.begin(client, request)
        await self._annotate(client.caller, request.run_input.thread_id, **facts)

    # --- other requests ---

    async def get(self, request: Request) -> bytes:
        """Read a session."""
        with_messages = request.query_params.get("load_messages", "True").lower() != "false"
        work = partial(session_json, with_messages=with_messages)
        return await self._reader.read(client_of(request), session_id(request), work)

    async def delta(self, request: Request) -> bytes:
        """Read the changes of a session."""
        token = request.query_params.get("next_token")
        return await self._reader.delta(client_of(request), session_id(request), token)

    async def give_feedback(self, request: Request) -> bytes:
        """Store feedback on a message. Returns its record."""
        client, thread_id, (body, _) = client_of(request), session_id(request), await self._body(request)
        at, owner = index(request), client.caller.owner
        given = read(FeedbackRequest, body)
        message_id, org_id = await self._reader.read(client, thread_id, partial(find_answer, at=at))
        fields = {"threadId": thread_id, "messageId": message_id, **given.model_dump(mode="json")}
        async with self._service.threads.answer(client.caller, read(ThreadsFeedback, fields)) as feedback:
            return to_json(feedback_record(ThreadKey(owner, thread_id), org_id, at, message_id, feedback))

    async def fork(self, request: Request) -> bytes:
        """Copy a session up to a message, including that message. Returns the record of the copy."""
        client, (body, _) = client_of(request), await self._body(request)
        thread_id, at = session_id(request), read(ForkRequest, body).message_sequence_num
        message_id, facts = await self._reader.read(client, thread_id, partial(find_fork, at=at))
        command = ThreadsFork(thread_id=thread_id, message_id=message_id, new_thread_id=new_session_id())
        with busy_as_validation_error():
            async with self._service.threads.answer(client.caller, command) as fork:
                new_id = str(fork["threadId"])
        await self._annotate(client.caller, new_id, **facts, forked_from=at)
        return await self._reader.read(client, new_id, session_json)

    async def set_visibility(self, request: Request) -> bytes:
        """Store the visibility of a session."""
        body, _ = await self._body(request)
        visibility = read(VisibilityRequest, body).visibility
        await self._annotate(caller_of(request), session_id(request), visibility=visibility)
        return NO_DATA

    async def pin(self, request: Request) -> bytes:
        """Pin a session, or unpin it."""
        body, _ = await self._body(request)
        pinned_at = time.time() if read(PinRequest, body).pinned else None
        await self._annotate(caller_of(request), session_id(request), pinned_at=pinned_at)
        return NO_DATA

    async def _annotate(self, caller: Caller, thread_id: str, **facts: object) -> None:
        """Store facts of a session. Raises ``AppError`` THREAD_NOT_FOUND."""
        await self._service.threads.annotate(caller, thread_id, as_metadata(**facts))


# --- requests ---------------------------------------------------------------------------------------------------------


def client_of(request: Request) -> SessionClient:
    """Return the client that a request comes from."""
    knows_context = request.headers.get(API_VERSION, "") >= CONTEXT_SINCE  # versions are dates in ISO 8601
    knows_reset = not route_path(request.scope).startswith(OLD_PREFIX)
    is_command = tool_of(request.headers.get(REQUESTER, "")) == COMMAND
    return SessionClient(caller_of(request), quota_of(request), knows_context, knows_reset, is_command)


def tool_of(requester: str) -> object:
    """Return the name of the program in the header of a request, or None."""
    try:
        fields = from_json(requester)
    except ValueError:
        return None
    return fields.get("roboto_tool") if isinstance(fields, dict) else None


def session_id(request: Request) -> str:
    """Return the session's id from the path."""
    return str(request.path_params["sessionId"])


def index(request: Request) -> int:
    """Return the index of a message from the path. Raises ``AppError`` THREAD_NOT_FOUND."""
    text = str(request.path_params["index"])
    if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004 - more digits than messages
        raise AppError(ErrorCode.THREAD_NOT_FOUND, "There is no such message in this session.")
    return int(text)


def check_agent(request: StartRequest, custom: Mapping[str, object]) -> None:
    """Check that an assistant takes the system prompt and has the model of a request.

    Other agents decide for themselves. An assistant is known by its goals. Its capabilities name the models and the
    trust in instructions only where they are configured.

    Args:
        request: a request to begin a session.
        custom: the agent's ``custom`` capabilities.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    if "goals" not in custom:
        return
    if request.system_prompt and not custom.get("trustsInstructions"):
        message = "system_prompt: this server takes no instructions of callers (AGUI_TRUST_INSTRUCTIONS)."
        raise AppError(ErrorCode.VALIDATION_ERROR, message)
    models, profile = custom.get("models"), request.model_profile
    names = [str(name) for name in models] if isinstance(models, list) else []
    if profile and profile not in names:
        allowed = f"allowed are {', '.join(names)}" if names else "this server allows no choice (AGUI_MODELS)"
        message = clip_message(f"model_profile: '{profile[:64]}' cannot be chosen; {allowed}.")
        raise AppError(ErrorCode.VALIDATION_ERROR, message)


@contextmanager
def busy_as_validation_error() -> Iterator[None]:
    """Turn THREAD_BUSY into VALIDATION_ERROR, as Roboto does for requests during an active turn."""
    try:
        yield
    except AppError as error:
        if error.code is not ErrorCode.THREAD_BUSY:
            raise
        raise AppError(ErrorCode.VALIDATION_ERROR, BUSY) from None


def new_session_id() -> str:
    """Return a new id in Roboto's form."""
    return f"ags_{uuid.uuid4().hex}"


def message_at(view: SessionView, at: int, code: ErrorCode) -> SessionMessage:
    """Return a complete message by index. Raises ``AppError`` with ``code`` if there is no such message."""
    if not 0 <= at < len(view.messages):
        raise AppError(code, "message_sequence_num: there is no such message in this session.")
    message = view.messages[at]
    if not message.is_final:
        raise AppError(ErrorCode.VALIDATION_ERROR, "message_sequence_num: this message is still being generated.")
    return message


def find_answer(view: SessionView, at: int) -> tuple[str, str]:
    """Return the id of the assistant's message at an index, and the session's organisation."""
    message = message_at(view, at, ErrorCode.THREAD_NOT_FOUND)
    if message.role != ASSISTANT or not message.ids:
        raise AppError(ErrorCode.VALIDATION_ERROR, "message_sequence_num: is not an answer of the assistant.")
    return message.ids[-1], view.notes.org_id


def find_fork(view: SessionView, at: int) -> tuple[str, dict[str, object]]:
    """Return the id of the last AG-UI message up to an index, and the facts that a copy of the session has, too."""
    message_at(view, at, ErrorCode.VALIDATION_ERROR)
    last = next(message.ids[-1] for message in reversed(view.messages[: at + 1]) if message.ids)
    notes = view.notes
    settled = {key: failure for key, failure in notes.failures.items() if failure.code != APPROVAL_REQUIRED}
    notes = notes.model_copy(update={"failures": settled})  # nothing waits for an approval in a copy
    return last, notes.model_dump(mode="json", exclude={"visibility", "pinned_at", "forked_from"})


def is_of_user(message: Message) -> bool:
    """True if no call before this message waits for a result."""
    return isinstance(message, UserMessage)


async def read_notes(caller: Caller, thread: ThreadRecord) -> Notes:
    """Read the facts of a session, which can be large because of its client tools."""
    return await offload_if_large(caller.identity, len(thread.metadata or b""), Notes.of, thread.metadata)


def check_results(request: ToolResultsRequest, calls: Mapping[str, str]) -> None:
    """Check that each result is the only one of a call that waits, and names the tool of that call.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    open_calls = dict(calls)
    for at, result in enumerate(request.tool_results):
        name = open_calls.pop(result.tool_use_id, None)
        if name is None:
            message = f"tool_results.{at}.tool_use_id: no call of this id is waiting for a result."
            raise AppError(ErrorCode.VALIDATION_ERROR, message)
        if name != result.tool_name:
            message = clip_message(f"tool_results.{at}.tool_name: the call of this id is of '{name}'.")
            raise AppError(ErrorCode.VALIDATION_ERROR, message)
