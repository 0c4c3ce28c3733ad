"""The OpenAPI document, which FastAPI makes from descriptions of this server's plain routes.

Rule: only routes that the application has are described. Parameters and bodies of thread routes are the fields of their
commands, and the answers are the models of ``answers``. Other protocols have their own documentation.
"""

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal, get_args

from ag_ui.core import AgentCapabilities, Event, RunAgentInput
from fastapi import Body, FastAPI, Header, Path, Query
from fastapi.openapi.utils import get_openapi
from fastapi.responses import PlainTextResponse, Response
from fastapi.routing import APIRoute
from fastapi.sse import EventSourceResponse
from pydantic import BaseModel
from starlette.routing import BaseRoute

from agui_container.web.caller_middleware import AGENT
from agui_container.web.formats import EVENT_STREAM
from agui_container.web.openapi import answers
from agui_container.web.requests import THREAD, THREAD_ROUTES
from agui_core import commands
from agui_core.commands import MAX_ID

Document = dict[str, Any]
"""An OpenAPI document, or a part of it."""

DESCRIPTION = """\
Any Python agent as an AG-UI server. Runs go to `POST /invocations`; everything else is a command there, too.

A refused request gets the status of its error code and one server-sent event, RUN_ERROR. With
`AGUI_ERROR_STATUS=stream`, `/invocations` sends the event with status 200.
"""

EXAMPLES = {
    "run": {
        "value": {
            "threadId": "t1",
            "runId": "r1",
            "protocolVersion": "1.0",
            "messages": [{"id": "m1", "role": "user", "content": "calculate 2*(3+4)"}],
        }
    },
    "command": {"value": {"command": {"type": "capabilities"}}},
}


class CommandBody(BaseModel):
    """A command as a body of its own."""

    command: commands.Command
    threadId: str = ""  # noqa: N815 - the name on the wire
    protocolVersion: str = ""  # noqa: N815 - the name on the wire


EVENTS = AsyncIterator[Event]
Session = Annotated[str, Header(alias="X-Amzn-Bedrock-AgentCore-Runtime-Session-Id", description="Owner of threads.")]
LastEvent = Annotated[str, Header(alias="Last-Event-ID", description="Number of the last event that the client has.")]
RunThread = Annotated[str, Query(description="Tells equal run ids of several threads apart.")]
Input = Annotated[RunAgentInput | CommandBody, Body(openapi_examples=EXAMPLES)]
Cursor = Annotated[Literal["", "1"], Query(description="Numbers every event in `metadata.seq`.")]
FileName = Annotated[str, Query(description="Name of a file that is sent as it is.")]
After = Annotated[int, Query(ge=0, description="Number of the last event that the client has.")]

ANSWERS: Mapping[str, type[BaseModel]] = {
    "threads.list": answers.ThreadList,
    "threads.get": answers.ThreadContents,
    "threads.rename": answers.Thread,
    "threads.delete": answers.Deleted,
    "threads.delta": answers.ThreadDeltaAnswer,
    "threads.fork": answers.Thread,
    "threads.feedback": answers.StoredFeedback,
}
"""Models of the answers of thread routes, by the type of the command."""

COMMANDS: Mapping[str, type[BaseModel]] = {
    kind.model_fields["type"].default: kind for kind in get_args(commands.Command)
}

REFUSAL = {
    "description": "A refusal: one RUN_ERROR with the code of the error.",
    "content": {EVENT_STREAM: {"schema": {"type": "string", "contentMediaType": "application/json"}}},
}

BYTES = {"schema": {"type": "string", "format": "binary"}}
ANY = {"*/*": BYTES}
FORM = {"multipart/form-data": {"schema": {"type": "object", "properties": {"file": BYTES["schema"]}}}}

TAGS = {"threads": "Threads", "files": "Files"}
"""Tags by the first part of a path. All others are of runs."""


def make_document(app: FastAPI) -> Document:
    """Return the document of an application, with the routes that a program has added by FastAPI's decorators."""
    served = {getattr(route, "path", "") for route in app.routes}
    own = [route for route in (*_run_routes(), *_thread_routes(), *_file_routes()) if route.path in served]
    routes: list[BaseRoute] = [*own, *app.routes]
    return get_openapi(title=app.title, version=app.version, description=DESCRIPTION, routes=routes)


def _route(path: str, method: str, summary: str, *parameters: Parameter, returns: object, **options: Any) -> APIRoute:  # noqa: ANN401 - as APIRoute has them
    """Return the description of a route. Its endpoint is never called and has nothing but a signature."""
    is_stream = returns is EVENTS

    async def stream() -> AsyncIterator[None]:
        yield

    async def answer() -> None:
        pass

    in_path = [_parameter(name, Annotated[str, Path(max_length=MAX_ID)]) for name in re.findall(r"{(\w+)}", path)]
    session = _parameter("session", Session, "")
    endpoint: Any = stream if is_stream else answer
    signature = Signature([*in_path, *parameters, session], return_annotation=returns)
    endpoint.__signature__ = signature
    options["responses"] = {"default": REFUSAL, **options.get("responses", {})}
    if is_stream:
        options["response_class"] = EventSourceResponse
    return APIRoute(
        path,
        endpoint,
        methods=[method],
        summary=summary,
        description=options.pop("description", None) or " ",
        tags=[TAGS.get(path.split("/")[1], "Runs")],
        operation_id="_".join((method.lower(), *re.findall(r"\w+", path))),
        **options,
    )


def _parameter(name: str, annotation: object, default: object = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _run_routes() -> Iterable[APIRoute]:
    body, last_event = _parameter("body", Input), _parameter("last_event", LastEvent, "")
    thread, after = _parameter("threadId", RunThread, ""), _parameter("after", After, 0)
    socket = {
        "101": {"description": "Each text frame is one JSON object: an input, a command, or an event."},
        "426": {"description": "The request is no handshake, and a handshake would not be refused."},
    }
    for prefix in ("", AGENT):
        start = f"{prefix}/invocations"
        yield _route(start, "POST", "Start a run, or execute a command", body, last_event, returns=EVENTS)
        cursor = _parameter("cursor", Cursor, "")
        yield _route(f"{prefix}/ws", "GET", "Open a WebSocket", cursor, returns=None, status_code=101, responses=socket)
    yield _route("/ping", "GET", "Read the health of the process", returns=answers.HealthAnswer)
    yield _route("/capabilities", "GET", "Read what the agent can do", returns=AgentCapabilities)
    yield _route("/runs", "GET", "List runs", returns=answers.RunList)
    yield _route("/runs/{runId}", "GET", "Read the status of a run", thread, returns=answers.RunAnswer)
    yield _route("/runs/{runId}/cancel", "POST", "Cancel a run", thread, returns=answers.RunAnswer)
    ended = {"204": {"description": "The run has ended with the event that the client has."}}
    events, title = "/runs/{runId}/events", "Replay a run and follow it"
    yield _route(events, "GET", title, thread, after, last_event, returns=EVENTS, responses=ended)


def _thread_routes() -> Iterable[APIRoute]:
    """Describe the routes of threads. The docstrings of their commands say what they do."""
    for path, method, kind in THREAD_ROUTES:
        yield _thread_route(path, method, COMMANDS[kind], ANSWERS[kind])
    yield _thread_route(
        f"{THREAD}/transcript", "GET", commands.ThreadsTranscript, str, response_class=PlainTextResponse
    )


def _file_routes() -> Iterable[APIRoute]:
    name = _parameter("name", FileName, "")
    sent = {"requestBody": {"required": True, "content": {**ANY, **FORM}}}
    yield _route("/files", "POST", "Store a file", name, returns=answers.StoredFile, openapi_extra=sent)
    read = {"200": {"description": "The bytes, with the type of the file.", "content": ANY}}
    yield _route("/files/{fileId}", "GET", "Read a file", returns=None, response_class=Response, responses=read)
    yield _route("/files/{fileId}", "DELETE", "Delete a file", returns=answers.DeletedFile)


def _thread_route(path: str, method: str, command: type[BaseModel], returns: object, **options: Any) -> APIRoute:  # noqa: ANN401 - as APIRoute has them
    text = " ".join((command.__doc__ or "").replace("``", "`").split())
    summary, _, description = text.partition(". ")
    source: Any = Query if method == "GET" else partial(Body, embed=True)
    parameters = [
        _parameter(
            alias,
            Annotated[(field.annotation, *field.metadata, source())],
            Parameter.empty if field.is_required() else field.default,
        )
        for alias, field in ((field.alias or name, field) for name, field in command.model_fields.items())
        if alias != "type" and f"{{{alias}}}" not in path and alias != "threadId"
    ]
    return _route(
        path, method, summary.removesuffix("."), *parameters, returns=returns, description=description, **options
    )
