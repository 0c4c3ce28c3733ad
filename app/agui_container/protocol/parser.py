"""Parser from bytes to a ``RunAgentInput`` or a command, and reader of this server's fields in ``forwardedProps``.

Rule: malformed input is refused before a run exists, with one sentence that names the field. Unknown fields are kept.
Absent optional fields get the value that absence means in AG-UI 1.0. ``strict_json`` refuses an ambiguous body.

Content parts of unknown types are dropped with a warning. The retired type ``binary`` is translated. A part of a known
type with a wrong value is refused. Unknown fields in ``forwardedProps`` are ignored, because frameworks put their own
fields there.

Sources: AG-UI spec 1.1, basic/run-input, basic/processing and basic/versioning; the official client's
``legacy-content``.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ag_ui.core import PROTOCOL_VERSION, Message, RunAgentInput
from msgspec import Struct
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from agui_container.protocol.commands import COMMAND, COMMANDS, MAX_ID, Command, Ping
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.protocol.strict_json import memory_size, parse_json, raise_validation_error

MEDIA = frozenset({"image", "audio", "video"})
KINDS = MEDIA | {"text", "document"}

MAX_LOGGED_TYPE = 32
"""Maximum number of characters of an unknown type in the log."""

MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)

Warn = Callable[[str], None]
"""Function that logs a warning."""


def migrate_parts(messages: object, warn: Warn) -> None:
    """Translate retired content parts of these messages and drop parts of unknown types, in place."""
    unknown: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and isinstance(message.get("content"), list):
            message["content"] = [
                part for old in message["content"] if (part := _migrate_part(old, unknown)) is not None
            ]
    if unknown:
        warn(f"content parts of unknown types dropped count={len(unknown)} first={unknown[0][:MAX_LOGGED_TYPE]!r}")


def _migrate_part(part: Any, unknown: list[str]) -> Any:  # noqa: ANN401 - any JSON
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind in KINDS:
        return part
    media = _translate_binary(part) if kind == "binary" else None
    if media is None:
        unknown.append(kind)
    return media


def _translate_binary(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a ``binary`` part as an image, audio, video or document part, or None if it has no data and no URL."""
    mime_type = part.get("mimeType")
    name = next((name for name in ("data", "url") if part.get(name)), None)
    if name is None or not isinstance(mime_type, str):
        return None
    kind = mime_type.partition("/")[0]
    media = {"type": kind if kind in MEDIA else "document"}
    filename = {"metadata": {"filename": part["filename"]}} if part.get("filename") else {}
    return {**media, "source": {"type": name, "value": part[name], "mimeType": mime_type}, **filename}


MAX_ITEMS = {"messages": 10_000, "tools": 1_000, "context": 1_000, "resume": 1_000}
"""Maximum number of items of each list in a ``RunAgentInput``."""

MAX_PARTS = 10_000
"""Maximum number of content parts and tool calls of all messages together."""

MAX_MESSAGE_PARTS = 4_000
"""Maximum number of content parts and tool calls of one message."""

MESSAGES_AT_ONCE = 100
"""Number of messages up to which all errors in them are collected."""

SHOWN_ERRORS = 5
"""Maximum number of field errors in one message."""


class RunRequest(Struct, frozen=True):
    """A request to start a run. ``size`` is an estimate of its memory, in bytes."""

    run_input: RunAgentInput
    size: int

    @property
    def protocol_version(self) -> str | None:
        """The ``protocolVersion`` that the body declares."""
        return self.run_input.protocol_version


class CommandRequest(Struct, frozen=True):
    """A request to execute a command.

    Attributes:
        thread_id, run_id: ids for the answer, from the ``RunAgentInput`` that contained the command.
        frame_id: ``id`` of the frame, which the answer repeats; any JSON value.
        protocol_version: the ``protocolVersion`` of that ``RunAgentInput``.
    """

    command: Command
    thread_id: str | None = None
    run_id: str | None = None
    frame_id: object = None
    protocol_version: str | None = None

    @property
    def is_bare(self) -> bool:
        """True if the command is a body of its own. Only a ``RunAgentInput`` has a run id."""
        return self.run_id is None


Request = RunRequest | CommandRequest


class MalformedRequest(AppError):
    """Refusal of a JSON object.

    Attributes:
        frame_id: ``id`` of the frame, which the answer repeats; None if it has none that can be repeated.
    """

    def __init__(self, message: str, document: Mapping[str, object]) -> None:
        super().__init__(ErrorCode.VALIDATION_ERROR, message)
        frame_id = document.get("id")
        self.frame_id = frame_id if _is_short(frame_id) else None


def parse(body: bytes, warn: Warn = lambda _: None) -> Request:
    """Parse the body of a request or a WebSocket frame.

    Args:
        body: UTF-8 JSON.
        warn: logs that content parts were dropped.

    Raises:
        AppError: VALIDATION_ERROR. The message names the field if one is at fault. For a JSON object the error is a
            ``MalformedRequest``.
    """
    document = parse_json(body)
    if not isinstance(document, dict):
        raise_validation_error("The body must be a JSON object: a RunAgentInput or a command.")
    try:
        return _request(document, memory_size(body), warn)
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


def parse_fields(body: bytes) -> dict[str, object]:
    """Parse the JSON object in the body of a REST route. Raises ``AppError`` VALIDATION_ERROR."""
    document = parse_json(body)
    if not isinstance(document, dict):
        raise_validation_error("The body must be a JSON object.")
    return document


def _check_lengths(document: Mapping[str, object]) -> None:
    """Refuse lists that are too long.

    This runs before the validation, because a million wrong items would build a million errors and block the process.
    """
    parts = largest = 0
    for name, limit in MAX_ITEMS.items():
        items = document.get(name)
        if isinstance(items, list):
            if len(items) > limit:
                raise_validation_error(f"{name}: has {len(items)} items; at most {limit} are taken.")
            counts = list(map(_count_parts, items))
            parts += sum(counts)
            largest = max(largest, *counts, 0)
    if largest > MAX_MESSAGE_PARTS:
        raise_validation_error(f"messages: one has {largest} parts and calls; at most {MAX_MESSAGE_PARTS} are taken.")
    if parts > MAX_PARTS:
        raise_validation_error(f"messages: have {parts} parts and calls together; at most {MAX_PARTS} are taken.")


def _count_parts(item: object) -> int:
    """Return the number of items in all lists of a JSON object."""
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
    try:
        run_input = RunAgentInput.model_validate(_with_validated_messages(document))
    except ValidationError as error:
        raise _field_errors(error, document, "") from None
    for name, value in (("threadId", run_input.thread_id), ("runId", run_input.run_id)):
        if not 0 < len(value) <= MAX_ID:
            raise_validation_error(f"{name}: must have 1 to {MAX_ID} characters.")
    _check_version(run_input.protocol_version)
    return run_input


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
            raise _field_errors(error, message, f"messages.{index}") from None
    return {**document, "messages": validated}


def _embedded_command(run_input: RunAgentInput) -> Command | None:
    """Return the command in ``forwardedProps.command``, or None if it is absent or has an unknown type.

    Unknown types are ignored, because frameworks use the same field for their own commands.
    """
    forwarded: object = run_input.forwarded_props
    command = forwarded.get("command") if isinstance(forwarded, Mapping) else None
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
        raise_validation_error(f"id: must have at most {MAX_ID} characters as JSON.")
    return frame_id


def _is_short(frame_id: object) -> bool:
    return len(json.dumps(frame_id)) <= MAX_ID


def parse_command(document: object, path: str = "", thread_id: object = None) -> Command:
    """Validate a command.

    Args:
        document: the command as parsed JSON.
        path: path of the command in the request. Error messages put it before the names of fields.
        thread_id: default for a command without ``threadId``.

    Raises:
        AppError: VALIDATION_ERROR. The message names the field if one is at fault.
    """
    if isinstance(document, dict) and document.get("threadId") is None and thread_id is not None:
        document = {**document, "threadId": thread_id}
    try:
        return COMMAND.validate_python(document)
    except ValidationError as error:
        raise _field_errors(error, document, path) from None


def _check_version(version: str | None) -> None:
    """Refuse another major version of the protocol. Newer minor versions are accepted."""
    major = (version or PROTOCOL_VERSION).split(".")[0]
    if major.isdigit() and major != PROTOCOL_VERSION.split(".")[0]:
        raise_validation_error(f"protocolVersion: this server speaks {PROTOCOL_VERSION}.")


def _field_errors(error: ValidationError, document: object, prefix: str) -> AppError:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [clip_message(f"{_path(each, document, prefix)}: {each['msg']}") for each in errors[:SHOWN_ERRORS]]
    if len(errors) > SHOWN_ERRORS:
        lines.append(f"and {len(errors) - SHOWN_ERRORS} more")
    return AppError(ErrorCode.VALIDATION_ERROR, "; ".join(lines))


def _path(error: ErrorDetails, document: object, prefix: str) -> str:
    """Return the path of a field in the client's spelling: pydantic's location without names of union members."""
    parts = [prefix] if prefix else []
    loc, node = error["loc"], document
    for depth, part in enumerate(loc, start=1):
        is_present, node = _step(node, part)
        if is_present or (depth == len(loc) and error["type"].startswith("missing")):
            parts.append(str(part))
    return ".".join(parts) or "body"


def _step(node: object, part: int | str) -> tuple[bool, object]:
    """Return (True, child) if the node has the key or index ``part``, else (False, node)."""
    if isinstance(node, dict) and part in node:
        return True, node[part]
    if isinstance(node, list) and isinstance(part, int) and part < len(node):
        return True, node[part]
    return False, node


T = TypeVar("T")


def read_forwarded_prop(props: object, name: str, shape: TypeAdapter[T]) -> T | None:
    """Return the validated field ``name`` of ``forwardedProps``, or None if it is absent or null.

    Args:
        props: ``forwardedProps`` as the client sent it, any JSON value.
        name: the field.
        shape: validator of the field's value.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    value = props.get(name) if isinstance(props, Mapping) else None
    if value is None:
        return None
    try:
        return shape.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(map(str, ("forwardedProps", name, *first["loc"])))
        message = "Input should be an object" if first["type"] == "model_type" else first["msg"]
        raise AppError(ErrorCode.VALIDATION_ERROR, clip_message(f"{path}: {message}.")) from None
