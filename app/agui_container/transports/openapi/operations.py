"""The operations of this server's routes, by path and method.

Parameters and bodies of thread routes are the fields of their commands.
"""

import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from agui_container.protocol import commands
from agui_container.protocol.errors import ERRORS, ErrorCode
from agui_container.transports.caller_middleware import AGENT
from agui_container.transports.formats import EVENT_STREAM, PROTOBUF
from agui_container.transports.openapi.schemas import PREFIX, TEXT, Schema, record, ref

Operation = dict[str, Any]

TAGS = (
    {"name": "Runs", "description": "Start, read and cancel runs."},
    {"name": "Threads", "description": "Conversations of the caller."},
    {"name": "Server", "description": "Health and capabilities."},
    {"name": "Pages", "description": "Pages for people, and this document."},
)
ROBOTO_TAG = {"name": "Roboto", "description": "Agent sessions of the Python package `roboto`. A session is a thread."}
ROBOTO = "/v1/ai/"
"""Prefix of the paths of Roboto's sessions."""

EVERYWHERE = (
    ErrorCode.ACCESS_DENIED,
    ErrorCode.VALIDATION_ERROR,
    ErrorCode.STORE_UNAVAILABLE,
    ErrorCode.INTERNAL_ERROR,
)
"""Errors that every route may answer with."""

WITH_BODY = (ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.SHUTTING_DOWN)
"""Errors of a request with a body."""

REFUSAL: Operation = {EVENT_STREAM: {"schema": ref("Refusal")}}
"""Content of a refusal: one RUN_ERROR."""

ROBOTO_REFUSAL: Operation = {
    "application/json": {
        "schema": record(
            "A refusal.",
            {"error": record("The exception that the package raises.", {"error_code": TEXT, "message": TEXT})},
        )
    }
}
"""Content of a refusal of Roboto's sessions."""

EXAMPLE = {
    "threadId": "t1",
    "runId": "r1",
    "protocolVersion": "1.0",
    "messages": [{"id": "m1", "role": "user", "content": "calculate 2*(3+4)"}],
}

DESCRIPTIONS = {
    "agent": "Name of an agent, from `AGUI_AGENTS`.",
    "runId": "Run ids are unique within a thread.",
    "threadId": "Id of the conversation.",
    "messageId": "Id of a message of the thread.",
    "sessionId": "Id of the session, which is a thread.",
    "index": "Number of a message of the session, from 0.",
    "limit": "Most items of a page: threads of a list, or messages of a thread.",
    "before": "Id of a message: `before` of an earlier answer. The page ends before it.",
    "page": "`next` of an earlier answer.",
    "text": "Only threads whose title or messages contain this text.",
    "messages": "`false` leaves out messages and runs.",
    "since": "`continuationToken` of an earlier answer. Without it the answer has everything.",
}
"""Descriptions of parameters."""


def operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    runs = {**_invocations(), **_runs()}
    paths = {**runs, **_by_agent(runs), **_threads(), **_server(), **_pages(), **_roboto()}
    for path, methods in paths.items():
        for method, each in methods.items():
            each["operationId"] = "_".join((method, *re.findall(r"\w+", path)))
    return paths


# --- building blocks --------------------------------------------------------------------------------------------------


def operation(  # noqa: PLR0913 - the parts of an operation
    tag: str,
    summary: str,
    success: Operation,
    *errors: ErrorCode,
    description: str = "",
    parameters: Iterable[Operation] = (),
    body: Operation | None = None,
    refusal: Operation = REFUSAL,
) -> Operation:
    """Return an operation.

    Args:
        tag: name of its group.
        summary: one line.
        success: responses by status.
        errors: codes of refusals besides those of every route.
        description: more about it, in Markdown.
        parameters: path, query and header parameters.
        body: content of the request body by media type.
        refusal: content of a refusal by media type.
    """
    refusals = (*EVERYWHERE, *(WITH_BODY if body is not None else ()), *errors)
    made: Operation = {"tags": [tag], "summary": summary, "responses": {**success, **_refusals(refusals, refusal)}}
    if description:
        made["description"] = description
    if parameters := list(parameters):
        made["parameters"] = parameters
    if body is not None:
        made["requestBody"] = {"required": True, "content": body}
    return made


def _refusals(codes: Iterable[ErrorCode], content: Operation) -> Operation:
    """Return the responses of refusals by status. Each is for one of the codes."""
    by_status: dict[str, list[ErrorCode]] = {}
    for code in codes:
        by_status.setdefault(str(ERRORS[code].http), []).append(code)
    return {
        status: {"description": " or ".join(f"`{code}`" for code in codes), "content": content}
        for status, codes in sorted(by_status.items())
    }


def _answer(name: str, description: str) -> Operation:
    return {"200": {"description": description, "content": {"application/json": {"schema": ref(name)}}}}


def _text(media_type: str, description: str) -> Operation:
    return {"200": {"description": description, "content": {media_type: {"schema": TEXT}}}}


def _stream() -> Operation:
    content = {
        EVENT_STREAM: {"schema": ref("EventStream")},
        PROTOBUF: {"schema": {"type": "string", "format": "binary"}},
    }
    return {"200": {"description": "The events of a run, as they happen.", "content": content}}


def _in_path(name: str) -> Operation:
    schema = {"type": "string", "minLength": 1, "maxLength": commands.MAX_ID}
    return {"name": name, "in": "path", "required": True, "schema": schema, "description": DESCRIPTIONS[name]}


def _in_query(name: str, schema: Schema, description: str) -> Operation:
    return {"name": name, "in": "query", "schema": schema, "description": description}


def _session() -> Operation:
    description = "Owner of threads and runs. Requests without it share one anonymous scope."
    return {
        "name": "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id",
        "in": "header",
        "schema": TEXT,
        "description": description,
    }


def _last_event_id() -> Operation:
    description = "Number of the last event that the client has, as EventSource sends it; `after` comes before it."
    return {"name": "Last-Event-ID", "in": "header", "schema": TEXT, "description": description}


def _fields(command: type[BaseModel], path: str) -> dict[str, Schema]:
    """Return the schemas of the fields of a command that its path does not contain."""
    schema = command.model_json_schema(ref_template=f"{PREFIX}{{model}}")
    in_path = {"type", "threadId", *(name for name in schema["properties"] if f"{{{name}}}" in path)}
    return {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in schema["properties"].items()
        if name not in in_path
    }


# --- the table --------------------------------------------------------------------------------------------------------


def _invocations() -> dict[str, dict[str, Operation]]:
    body = {
        "application/json": {
            "schema": {"anyOf": [ref("RunAgentInput"), ref("CommandBody")]},
            "examples": {"run": {"value": EXAMPLE}, "command": {"value": {"command": {"type": "capabilities"}}}},
        }
    }
    busy = (ErrorCode.THREAD_BUSY, ErrorCode.RATE_LIMIT_EXCEEDED, ErrorCode.RUN_NOT_FOUND, ErrorCode.THREAD_NOT_FOUND)
    start = operation(
        "Runs",
        "Start a run, or execute a command",
        _stream(),
        *busy,
        description="Any or no Content-Type is accepted. The same thread and run ids again join that run.",
        parameters=[_session(), _last_event_id()],
        body=body,
    )
    return {"/invocations": {"post": start}}


def _runs() -> dict[str, dict[str, Operation]]:
    thread = _in_query("threadId", TEXT, "Tells equal run ids of several threads apart.")
    run = [_in_path("runId"), thread, _session()]
    after = _in_query("after", {"type": "integer", "minimum": 0}, "Number of the last event that the client has.")
    not_found = ErrorCode.RUN_NOT_FOUND
    ended = {"204": {"description": "The run has ended with the event that the client has."}}
    return {
        "/runs": {"get": operation("Runs", "List runs", _answer("RunList", "Runs."), parameters=[_session()])},
        "/runs/{runId}": {
            "get": operation("Runs", "Read the status of a run", _answer("Run", "The run."), not_found, parameters=run)
        },
        "/runs/{runId}/cancel": {
            "post": operation("Runs", "Cancel a run", _answer("Run", "The run."), not_found, parameters=run)
        },
        "/runs/{runId}/events": {
            "get": operation(
                "Runs",
                "Replay a run and follow it",
                {**_stream(), **ended},
                not_found,
                parameters=[*run, after, _last_event_id()],
            )
        },
        "/ws": {
            "get": operation(
                "Runs",
                "Open a WebSocket for runs and commands",
                {
                    "101": {"description": "Each text frame is one JSON object: an input, a command, or an event."},
                    "426": {"description": "The request is no handshake, and a handshake would not be refused."},
                },
                parameters=[_in_query("cursor", {"const": "1"}, "Numbers every event in `metadata.seq`."), _session()],
            )
        },
    }


def _by_agent(runs: dict[str, dict[str, Operation]]) -> dict[str, dict[str, Operation]]:
    """Return the paths that name the agent of a run, from the paths that do not."""
    return {
        f"{AGENT}{path}": {
            method: {
                **runs[path][method],
                "description": f"As `{path}`. The agent that the path names answers the runs.",
                "parameters": [_in_path("agent"), *runs[path][method]["parameters"]],
            }
        }
        for path, method in (("/invocations", "post"), ("/ws", "get"))
    }


def _threads() -> dict[str, dict[str, Operation]]:
    thread = "/threads/{threadId}"
    message = f"{thread}/messages/{{messageId}}/feedback"
    text = _text("text/plain", "The conversation.")
    busy = ErrorCode.THREAD_BUSY
    return {
        "/threads": {"get": _thread_operation(commands.ThreadsList, "/threads", _answer("ThreadList", "A page."))},
        thread: {
            "get": _thread_operation(commands.ThreadsGet, thread, _answer("ThreadContents", "The thread.")),
            "patch": _thread_operation(commands.ThreadsRename, thread, _answer("Thread", "The thread."), has_body=True),
            "delete": _thread_operation(commands.ThreadsDelete, thread, _answer("Deleted", "The thread is deleted.")),
        },
        f"{thread}/transcript": {"get": _thread_operation(commands.ThreadsTranscript, f"{thread}/transcript", text)},
        f"{thread}/delta": {
            "get": _thread_operation(commands.ThreadsDelta, f"{thread}/delta", _answer("ThreadDelta", "The changes."))
        },
        f"{thread}/fork": {
            "post": _thread_operation(
                commands.ThreadsFork, f"{thread}/fork", _answer("Thread", "The new thread."), busy, has_body=True
            )
        },
        message: {
            "post": _thread_operation(
                commands.ThreadsFeedback, message, _answer("StoredFeedback", "The feedback."), has_body=True
            )
        },
    }


def _thread_operation(
    command: type[BaseModel], path: str, success: Operation, *errors: ErrorCode, has_body: bool = False
) -> Operation:
    """Return the operation of a command on threads. Its docstring describes it."""
    summary, _, description = " ".join((command.__doc__ or "").replace("``", "`").split()).partition(". ")
    fields = _fields(command, path)
    in_path = [_in_path(name) for name in ("threadId", "messageId") if f"{{{name}}}" in path]
    required = set(command.model_json_schema().get("required", ())) & fields.keys()
    body = {"type": "object", "properties": fields, **({"required": sorted(required)} if required else {})}
    in_query = () if has_body else [_in_query(name, field, DESCRIPTIONS[name]) for name, field in fields.items()]
    return operation(
        "Threads",
        summary.removesuffix("."),
        success,
        *((ErrorCode.THREAD_NOT_FOUND,) if in_path else ()),
        *errors,
        description=description,
        parameters=[*in_path, *in_query, _session()],
        body={"application/json": {"schema": body}} if has_body else None,
    )


def _server() -> dict[str, dict[str, Operation]]:
    return {
        "/ping": {"get": operation("Server", "Read the health of the process", _answer("Health", "Ready."))},
        "/metrics": {
            "get": operation(
                "Server", "Read the metrics of the process, for Prometheus", _text("text/plain", "All metrics.")
            )
        },
        "/capabilities": {
            "get": operation(
                "Server", "Read the capabilities of this server", _answer("AgentCapabilities", "Capabilities.")
            )
        },
    }


def _pages() -> dict[str, dict[str, Operation]]:
    name = {"name": "name", "in": "path", "required": True, "schema": TEXT, "description": "Path of the file."}
    return {
        "/": {"get": operation("Pages", "Open the chat page", _text("text/html", "The page."))},
        "/console/{name}": {
            "get": operation(
                "Pages",
                "Read a file of the chat page",
                {**_text("*/*", "The file."), "404": {"description": "There is no such file.", "content": REFUSAL}},
                parameters=[name],
            )
        },
        "/docs": {"get": operation("Pages", "Read this document as a page", _text("text/html", "The page."))},
        "/openapi.json": {"get": operation("Pages", "Read this document", _answer("OpenApi", "An OpenAPI document."))},
    }


def _roboto() -> dict[str, dict[str, Operation]]:
    """Return the operations of Roboto's sessions, for clients since 0.46 and for clients before."""
    return {
        f"{ROBOTO}{prefix}{path}": {method: {**each, **({"deprecated": True} if prefix == "chats" else {})}}
        for prefix in ("threads", "chats")
        for path, method, each in _roboto_sessions()
    }


def _roboto_sessions() -> list[tuple[str, str, Operation]]:
    session, feedback = "/{sessionId}", "/{sessionId}/messages/{index}/feedback"
    with_messages = _in_query("load_messages", TEXT, "`False` leaves out the messages.")
    token = _in_query("next_token", TEXT, "`continuation_token` of an earlier answer.")
    return [
        ("", "post", _roboto_operation("Begin a session", "")),
        (session, "get", _roboto_operation("Read a session", session, with_messages)),
        (f"{session}/delta", "get", _roboto_operation("Wait for changes of a session", session, token)),
        (f"{session}/messages", "post", _roboto_operation("Send a message to a session", session)),
        (f"{session}/tool-results", "post", _roboto_operation("Add results of client tools", session)),
        (feedback, "post", _roboto_operation("Store feedback on a message", feedback)),
        (f"{session}/fork", "post", _roboto_operation("Copy a session", session)),
        (f"{session}/visibility", "post", _roboto_operation("Store the visibility of a session", session)),
        (f"{session}/pin", "post", _roboto_operation("Pin or unpin a session", session)),
    ]


def _roboto_operation(summary: str, path: str, *query: Operation) -> Operation:
    """Return an operation of Roboto's sessions. The package `roboto` defines bodies and answers."""
    content = {"application/json": {"schema": record("The result.", {"data": {"description": "Any JSON."}})}}
    return operation(
        ROBOTO_TAG["name"],
        summary,
        {"200": {"description": "The result.", "content": content}},
        ErrorCode.THREAD_NOT_FOUND,
        ErrorCode.RATE_LIMIT_EXCEEDED,
        parameters=[*map(_in_path, re.findall(r"{(\w+)}", path)), *query, _session()],
        body=None if query else {"application/json": {"schema": {"type": "object"}}},
        refusal=ROBOTO_REFUSAL,
    )
