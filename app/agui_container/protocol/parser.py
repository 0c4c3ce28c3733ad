"""Parser from bytes to a ``RunAgentInput`` or a command, and reader of this server's fields in ``forwardedProps``.

Rule: malformed input is refused before a run exists, with one sentence that names the field. Unknown fields are kept.
Absent optional fields get the value that absence means in AG-UI 1.0.

Content parts and schemas of tools are translated by ``client_input``. A part of a known type with
a wrong value is refused. Unknown fields in ``forwardedProps`` are ignored, because frameworks put their own fields
there.

Source: AG-UI spec 1.1, basic/run-input, basic/processing and basic/versioning.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ag_ui.core import PROTOCOL_VERSION, Message, RunAgentInput
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from agui_container.protocol.client_input import action_messages, migrate_parts, normalise_tools
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.protocol.field_errors import field_errors, located_messages
from agui_container.protocol.strict_json import Warn, parse_json
from agui_core.commands import COMMAND, COMMANDS, MAX_ID, Command, Ping

MAX_ITEMS = {"messages": 10_000, "tools": 1_000, "context": 1_000, "resume": 1_000}
"""Maximum number of items of each list in a ``RunAgentInput``."""

MAX_PARTS = 10_000
"""Maximum number of content parts and tool calls of all messages together."""

MAX_MESSAGE_PARTS = 4_000
"""Maximum number of content parts and tool calls of one message."""

MESSAGES_AT_ONCE = 100
"""Number of messages up to which all errors in them are collected."""

MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
RUN_INPUT = TypeAdapter(RunAgentInput)


AGENT = "agent"
"""Field of ``forwardedProps`` that names the agent, where a server has several."""


class RunRequest(Struct, frozen=True):
    """A request to start a run, of ``size`` bytes."""

    run_input: RunAgentInput
    size: int

    def for_agent(self, name: str | None) -> "RunRequest":
        """Return the request with the agent of its path, if any. Raises ``AppError`` if the body names another one."""
        if name is None:
            return self
        props: object = {} if self.run_input.forwarded_props is None else self.run_input.forwarded_props
        if not isinstance(props, dict):
            raise validation_error("forwardedProps: must be an object.")
        if props.get(AGENT, name) != name:
            raise validation_error(f"forwardedProps.{AGENT}: must be absent or the name in the path.")
        return RunRequest(self.run_input.model_copy(update={"forwarded_props": {**props, AGENT: name}}), self.size)

    @property
    def protocol_version(self) -> str | None:
        return self.run_input.protocol_version


class CommandRequest(Struct, frozen=True):
    """A request to execute a command. The answer repeats its ids and ``frame_id``, which may be any JSON value."""

    command: Command
    thread_id: str | None = None
    run_id: str | None = None
    frame_id: object = None
    protocol_version: str | None = None

    def for_agent(self, _name: str | None) -> "CommandRequest":
        """Return itself: a command concerns runs and threads, not an agent."""
        return self

    @property
    def is_bare(self) -> bool:
        """True if the command is a body of its own. Only a ``RunAgentInput`` has a run id."""
        return self.run_id is None


Request = RunRequest | CommandRequest


class MalformedRequest(AppError):
    """Refusal of a JSON object. ``frame_id`` is None if it has none that can be repeated."""

    def __init__(self, message: str, document: Mapping[str, object]) -> None:
        super().__init__(ErrorCode.VALIDATION_ERROR, message)
        frame_id = document.get("id")
        self.frame_id = frame_id if _is_short(frame_id) else None


def parse(body: bytes, warn: Warn = lambda _: None) -> Request:
    """Parse a request or a frame. Raises ``AppError`` VALIDATION_ERROR, for a JSON object as ``MalformedRequest``."""
    document = parse_json(body, warn)
    if not isinstance(document, dict):
        raise validation_error("The body must be a JSON object: a RunAgentInput or a command.")
    try:
        return _request(document, len(body), warn)
    except AppError as error:
        raise MalformedRequest(error.message, document) from None


def _request(document: dict[str, object], size: int, warn: Warn) -> Request:
    if "messages" not in document:
        if document.get("type") == "ping":
            return CommandRequest(Ping(), frame_id=_frame_id(document))
        if "command" in document:
            return _bare_command(document)
    run_input = _run_input(document, warn)
    command = _embedded_command(run_input)
    if command is None:
        return RunRequest(run_input, size)
    return CommandRequest(command, run_input.thread_id, run_input.run_id, protocol_version=run_input.protocol_version)


def parse_fields(body: bytes, warn: Warn = lambda _: None) -> dict[str, object]:
    """Parse the JSON object in the body of a REST route."""
    document = parse_json(body, warn)
    if not isinstance(document, dict):
        raise validation_error("The body must be a JSON object.")
    return document


def _check_lengths(document: Mapping[str, object]) -> None:
    """Refuse lists that are too long before the validation, because a million errors would block the process."""
    parts = largest = 0
    for name, limit in MAX_ITEMS.items():
        items = document.get(name)
        if isinstance(items, list):
            if len(items) > limit:
                raise validation_error(f"{name}: has {len(items)} items; at most {limit} are taken.")
            counts = list(map(_count_parts, items))
            parts += sum(counts)
            largest = max(largest, *counts, 0)
    if largest > MAX_MESSAGE_PARTS:
        raise validation_error(f"messages: one has {largest} parts and calls; at most {MAX_MESSAGE_PARTS} are taken.")
    if parts > MAX_PARTS:
        raise validation_error(f"messages: have {parts} parts and calls together; at most {MAX_PARTS} are taken.")


def _count_parts(item: object) -> int:
    parts = 0
    for value in item.values() if isinstance(item, dict) else ():
        if isinstance(value, list):
            parts += len(value)
    return parts


def _run_input(document: dict[str, object], warn: Warn) -> RunAgentInput:
    if document.get("forwardedProps") is None:
        document["forwardedProps"] = {}
    for name in ("tools", "context"):
        if document.get(name) is None:
            document[name] = []
    _check_lengths(document)
    migrate_parts(document.get("messages"), warn)
    normalise_tools(document["tools"])
    try:
        run_input = RUN_INPUT.validate_python(_with_validated_messages(document))
    except ValidationError as error:
        raise field_errors(error, RUN_INPUT) from None
    for name, value in (("threadId", run_input.thread_id), ("runId", run_input.run_id)):
        if not 0 < len(value) <= MAX_ID:
            raise validation_error(f"{name}: must have 1 to {MAX_ID} characters.")
    _check_version(run_input.protocol_version)
    _check_message_ids(run_input.messages)
    clicked = action_messages(run_input.messages, run_input.forwarded_props, run_input.run_id)
    return run_input.model_copy(update={"messages": [*run_input.messages, *clicked]}) if clicked else run_input


def _check_message_ids(messages: Sequence[Message]) -> None:
    """Refuse empty and equal ids, because a thread keeps one message for each id."""
    seen: dict[str, int] = {}
    for at, message in enumerate(messages):
        if not message.id:
            raise validation_error(f"messages.{at}.id: must not be empty.")
        first = seen.setdefault(message.id, at)
        if first != at:
            raise validation_error(f"messages.{at}.id: is that of messages.{first}, too; every message needs its own.")


def _with_validated_messages(document: dict[str, object]) -> dict[str, object]:
    """Validate the messages one by one if there are many. Other messages are validated with the rest.

    All errors of many messages would be too many to build, and one validation of them all would hold the interpreter
    lock too long.

    Raises:
        AppError: VALIDATION_ERROR for the first message with errors.
    """
    messages = document.get("messages")
    if not isinstance(messages, list) or len(messages) <= MESSAGES_AT_ONCE:
        return document
    validated = []
    for index, message in enumerate(messages):
        try:
            validated.append(MESSAGE.validate_python(message))
        except ValidationError as error:
            raise field_errors(error, MESSAGE, f"messages.{index}") from None
    return {**document, "messages": validated}


def _embedded_command(run_input: RunAgentInput) -> Command | None:
    """Return None for an unknown type, because frameworks use the same field for their own commands."""
    forwarded: object = run_input.forwarded_props
    command = forwarded.get("command") if isinstance(forwarded, dict) else None
    if not isinstance(command, dict) or command.get("type") not in COMMANDS:
        return None
    return parse_command(command, "forwardedProps.command", run_input.thread_id)


def _bare_command(document: dict[str, object]) -> CommandRequest:
    command = parse_command(document["command"], "command", document.get("threadId"))
    return CommandRequest(command, command.thread_id, None, _frame_id(document))


def _frame_id(document: Mapping[str, object]) -> object:
    """Return the frame's ``id``, which the answer repeats. Raises ``AppError`` if it is too long."""
    frame_id = document.get("id")
    if not _is_short(frame_id):
        raise validation_error(f"id: must have at most {MAX_ID} characters as JSON.")
    return frame_id


def _is_short(frame_id: object) -> bool:
    return len(json.dumps(frame_id)) <= MAX_ID


def parse_command(document: object, path: str = "", thread_id: object = None) -> Command:
    """Validate a command. ``path`` is its place in the request, for the names of fields in error messages."""
    if isinstance(document, dict) and document.get("threadId") is None and thread_id is not None:
        document = {**document, "threadId": thread_id}
    try:
        return COMMAND.validate_python(document)
    except ValidationError as error:
        raise field_errors(error, COMMAND, path) from None


def _check_version(version: str | None) -> None:
    """Refuse another major version of the protocol. Newer minor versions are accepted."""
    major = (version or PROTOCOL_VERSION).split(".")[0]
    if major.isdigit() and major != PROTOCOL_VERSION.split(".")[0]:
        raise validation_error(f"protocolVersion: this server speaks {PROTOCOL_VERSION}.")


T = TypeVar("T")


def read_forwarded_prop(props: object, name: str, shape: TypeAdapter[T]) -> T | None:
    """Return the field, or None if it is absent or null. Raises ``AppError`` VALIDATION_ERROR, naming it."""
    value = props.get(name) if isinstance(props, dict) else None
    if value is None:
        return None
    try:
        return shape.validate_python(value)
    except ValidationError as error:
        path, message = located_messages(error, shape)[0]
        where = ".".join(filter(None, ("forwardedProps", name, path)))
        raise validation_error(f"{where}: {message}.") from None


class AppRequest(BaseModel):
    """Request of an MCP App to its server, which a page passes on in a run.

    The middleware names a server by a hash of its address, and by an id if it has one. Source:
    ``@ag-ui/mcp-apps-middleware`` 0.1.1.
    """

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)

    method: str
    params: dict[str, Any] | None = None
    server_hash: str | None = None
    server_id: str | None = None

    @property
    def server(self) -> str:
        return self.server_id or self.server_hash or ""


APP_REQUEST = TypeAdapter(AppRequest)


def read_app_request(run_input: RunAgentInput) -> AppRequest | None:
    """Return None for the input of any other run. Raises ``AppError`` VALIDATION_ERROR, naming the field."""
    return read_forwarded_prop(run_input.forwarded_props, "__proxiedMCPRequest", APP_REQUEST)
