"""Content parts of a kind that AG-UI 1.0 has: the retired ``binary`` is translated, and any other kind is left out.

Rule: what is not recognised does not make an input invalid, and what is left out is told; a known part with a wrong
value stays, to be refused. Sources: AG-UI spec 1.1, basic/processing and basic/run-input; the official client's
``legacy-content``.

Bytes to a ``RunAgentInput`` or a command, or a validation error that names the field.

Rule: malformed input is refused before a run exists, in one sentence that names the field. Unknown fields are kept,
absent optional fields get the value that absence means in AG-UI 1.0, and a body whose meaning is ambiguous (duplicate
keys, NaN, numbers that no double holds, invalid Unicode) is refused. Source: AG-UI spec 1.1, basic/run-input and
basic/versioning.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any, NoReturn

from ag_ui.core import PROTOCOL_VERSION, RunAgentInput
from msgspec import Struct
from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from agui_container.protocol.commands import COMMAND, COMMANDS, MAX_ID, Command, Ping
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.protocol.integers import is_too_large

MEDIA = frozenset({"image", "audio", "video"})
KINDS = MEDIA | {"text", "document"}

SHOWN = 32
"""Characters of a kind that nobody knows."""

Report = Callable[[str], None]
"""Takes a sentence for the log."""


def migrate_parts(messages: object, tell: Report) -> None:
    """Make the parts of these messages such parts, in place."""
    strange: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and isinstance(message.get("content"), list):
            message["content"] = [
                part for old in message["content"] if (part := _migrate_part(old, strange)) is not None
            ]
    if strange:
        tell(f"{len(strange)} content parts of unknown types are left out, the first of {strange[0][:SHOWN]!r}")


def _migrate_part(part: Any, strange: list[str]) -> Any:  # noqa: ANN401 - any JSON
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind in KINDS:
        return part
    media = _media(part) if kind == "binary" else None
    if media is None:
        strange.append(kind)
    return media


def _media(part: dict[str, Any]) -> dict[str, Any] | None:
    """An image, audio, video or document; None where only the application knows where its bytes are."""
    mime_type = part.get("mimeType")
    name = next((name for name in ("data", "url") if part.get(name)), None)
    if name is None or not isinstance(mime_type, str):
        return None
    kind = mime_type.partition("/")[0]
    media = {"type": kind if kind in MEDIA else "document"}
    filename = {"metadata": {"filename": part["filename"]}} if part.get("filename") else {}
    return {**media, "source": {"type": name, "value": part[name], "mimeType": mime_type}, **filename}


LONGEST = {"messages": 20_000, "tools": 1_000, "context": 1_000, "resume": 1_000}
"""Items of the lists in a ``RunAgentInput``."""

MAX_PARTS = 40_000
"""Content parts and tool calls of all messages together."""

SHALLOW = 100
"""A body with fewer brackets than this cannot be deep."""

MAX_BRACKETS = 1_000_000
"""Opening brackets of a body, those in its texts included. ``[]`` takes 3 bytes there and 60 in memory, and the
interpreter is held until all of them are read."""

TOO_LARGE = "the number is too large."

SHOWN_ERRORS = 5
"""Field errors that one message lists."""


class RunRequest(Struct, frozen=True):
    """A run, and the bytes of what asked for it."""

    run_input: RunAgentInput
    size: int


class CommandRequest(Struct, frozen=True):
    """A command, with the ids its answer shall carry where it came inside a ``RunAgentInput``, or a frame's ``id``.

    ``older`` says that this input declared no ``protocolVersion``.
    """

    command: Command
    thread_id: str | None = None
    run_id: str | None = None
    frame_id: object = None
    is_legacy_client: bool = False


Request = RunRequest | CommandRequest


class MalformedRequest(AppError):
    """A refusal of a JSON object that means nothing; ``frame_id`` is what its answer shall be called by, or None."""

    def __init__(self, message: str, frame_id: object) -> None:
        super().__init__(ErrorCode.VALIDATION_ERROR, message)
        self.frame_id = frame_id


def parse(body: bytes, tell: Report = lambda _: None) -> Request:
    """What a client sent; ``resolve`` hears what of it is left out.

    Raises:
        AppError: VALIDATION_ERROR, naming the field where there is one; ``MalformedRequest`` where it is a JSON object.
    """
    document = _document(body)
    if not isinstance(document, dict):
        _validation_error("The body must be a JSON object: a RunAgentInput or a command.")
    try:
        return _request(document, len(body), tell)
    except AppError as error:
        frame_id = document.get("id")
        raise MalformedRequest(error.message, frame_id if _is_short(frame_id) else None) from None


def _request(document: dict[str, object], size: int, tell: Report) -> Request:
    if "messages" not in document:
        if document.get("type") == "ping":
            return CommandRequest(Ping(), frame_id=_frame_id(document))
        if "command" in document:
            return _bare_command(document)
    run_input = _run_input(document, tell)
    command = _embedded_command(run_input)
    if command is None:
        return RunRequest(run_input, size)
    return CommandRequest(
        command, run_input.thread_id, run_input.run_id, is_legacy_client=run_input.protocol_version is None
    )


def parse_fields(body: bytes) -> dict[str, object]:
    """The fields of a body that only adds to what its route says. Raises ``AppError`` VALIDATION_ERROR."""
    document = _document(body)
    if not isinstance(document, dict):
        _validation_error("The body must be a JSON object.")
    return document


def _document(body: bytes) -> object:
    if not body.strip():
        _validation_error("The body is empty; a RunAgentInput is expected.")
    brackets = body.count(b"[") + body.count(b"{")
    if brackets > MAX_BRACKETS:
        _validation_error(f"The body has more than {MAX_BRACKETS} lists and objects.")
    numbers = Numbers()
    try:
        document: object = json.loads(
            body.decode(),
            object_pairs_hook=_object,
            parse_constant=numbers.constant,
            parse_float=numbers.real,
            parse_int=numbers.integer,
        )
    except UnicodeDecodeError:
        _validation_error("The body is not valid UTF-8.")
    except RecursionError:
        _validation_error("The body is nested too deeply.")
    except json.JSONDecodeError as error:
        _validation_error(f"The body is not valid JSON at line {error.lineno}, column {error.colno}.")
    if numbers.refused:
        _validation_error(clip_message(f"{_path_to(numbers.refused[0], document)}: {numbers.refused[0].reason}"))
    if b"\\ud" in body or b"\\uD" in body:
        _check_surrogates(document)
    if brackets >= SHALLOW:
        _check_depth(body)
    return document


def _check_depth(body: bytes) -> None:
    """What is deeper than pydantic's JSON goes could be read, but not sent on or kept."""
    try:
        from_json(body)
    except ValueError:
        _validation_error("The body is nested too deeply.")


def _check_surrogates(document: object) -> None:
    """Half of a surrogate pair cannot be sent on: no UTF-8 holds it."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        _validation_error("The body holds half of a surrogate pair.")
    except RecursionError:
        _validation_error("The body is nested too deeply.")


def _check_lengths(document: Mapping[str, object]) -> None:
    """Before they are validated: a million wrong items would be a million errors, with the interpreter held."""
    parts = 0
    for name, most in LONGEST.items():
        items = document.get(name)
        if isinstance(items, list):
            if len(items) > most:
                _validation_error(f"{name}: has {len(items)} items; at most {most} are taken.")
            parts += sum(map(_parts, items))
    if parts > MAX_PARTS:
        _validation_error(f"messages: have {parts} parts and calls together; at most {MAX_PARTS} are taken.")


def _parts(item: object) -> int:
    """How many items the lists of an item have."""
    parts = 0
    for value in item.values() if isinstance(item, dict) else ():
        if isinstance(value, list):
            parts += len(value)
    return parts


class NoNumber:
    """Stands in a document where a number was refused."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Numbers:
    """Reads the numbers of one body.

    Attributes:
        refused: stands for those that other JSON readers do not take. Where each was is known once all is read.
    """

    def __init__(self) -> None:
        self.refused: list[NoNumber] = []

    def integer(self, text: str) -> int | NoNumber:
        """A whole number that a double can hold."""
        return self._refuse(TOO_LARGE) if is_too_large(text) else int(text)

    def real(self, text: str) -> float | NoNumber:
        """A finite number."""
        number = float(text)
        return number if isfinite(number) else self._refuse(TOO_LARGE)

    def constant(self, name: str) -> NoNumber:
        """NaN or an infinity, which JSON does not have."""
        return self._refuse(f"{name} is not a JSON number.")

    def _refuse(self, reason: str) -> NoNumber:
        stand_in = NoNumber(reason)
        self.refused.append(stand_in)
        return stand_in


def _path_to(wanted: NoNumber, document: object) -> str:
    """The field that holds this very object, such as ``state.count``."""
    path: list[str] = []
    levels = [_members(document)]
    while levels:
        for name, value in levels[-1]:
            if value is wanted:
                return ".".join([*path, str(name)])
            if isinstance(value, dict | list):
                path.append(str(name))
                levels.append(_members(value))
                break
        else:
            levels.pop()
            del path[-1:]
    return "body"


def _members(node: object) -> Iterator[tuple[object, object]]:
    """The names or indexes of what an object or list holds, with their values."""
    if isinstance(node, dict):
        return iter(node.items())
    return enumerate(node) if isinstance(node, list) else iter(())


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        _validation_error("A JSON object in the body has the same key twice.")
    return fields


def _run_input(document: dict[str, object], tell: Report) -> RunAgentInput:
    if document.get("forwardedProps") is None:
        document["forwardedProps"] = {}
    for name in ("tools", "context"):
        if document.get(name) is None:
            document[name] = []
    _check_lengths(document)
    migrate_parts(document.get("messages"), tell)
    try:
        run_input = RunAgentInput.model_validate(document)
    except ValidationError as error:
        raise _field_errors(error, document, "") from None
    for name, value in (("threadId", run_input.thread_id), ("runId", run_input.run_id)):
        if not 0 < len(value) <= MAX_ID:
            _validation_error(f"{name}: must have 1 to {MAX_ID} characters.")
    _check_version(run_input.protocol_version)
    return run_input


def _embedded_command(run_input: RunAgentInput) -> Command | None:
    """``forwardedProps.command`` where it is one of ours; frameworks use that name for their own commands too."""
    forwarded: object = run_input.forwarded_props
    command = forwarded.get("command") if isinstance(forwarded, Mapping) else None
    if not isinstance(command, dict) or command.get("type") not in COMMANDS:
        return None
    return parse_command(command, "forwardedProps.command", run_input.thread_id)


def _bare_command(document: dict[str, object]) -> CommandRequest:
    command = parse_command(document["command"], "command", document.get("threadId"))
    return CommandRequest(command, command.thread_id, None, _frame_id(document))


def _frame_id(document: Mapping[str, object]) -> object:
    """What the answer to a frame repeats."""
    frame_id = document.get("id")
    if not _is_short(frame_id):
        _validation_error(f"id: must have at most {MAX_ID} characters as JSON.")
    return frame_id


def _is_short(frame_id: object) -> bool:
    return len(json.dumps(frame_id)) <= MAX_ID


def parse_command(document: object, path: str = "", thread_id: object = None) -> Command:
    """A command from its JSON.

    Args:
        document: the command.
        path: where it stood, for what is said of a field.
        thread_id: the thread around it, for a command that names none.

    Raises:
        AppError: VALIDATION_ERROR, naming the field where there is one.
    """
    if isinstance(document, dict) and document.get("threadId") is None and thread_id is not None:
        document = {**document, "threadId": thread_id}
    try:
        return COMMAND.validate_python(document)
    except ValidationError as error:
        raise _field_errors(error, document, path) from None


def _check_version(version: str | None) -> None:
    """Newer minors are served; another major is another protocol."""
    major = (version or PROTOCOL_VERSION).split(".")[0]
    if major.isdigit() and major != PROTOCOL_VERSION.split(".")[0]:
        _validation_error(f"protocolVersion: this server speaks {PROTOCOL_VERSION}.")


def _field_errors(error: ValidationError, document: object, prefix: str) -> AppError:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [clip_message(f"{_path(row, document, prefix)}: {row['msg']}") for row in found[:SHOWN_ERRORS]]
    if len(found) > SHOWN_ERRORS:
        lines.append(f"and {len(found) - SHOWN_ERRORS} more")
    return AppError(ErrorCode.VALIDATION_ERROR, "; ".join(lines))


def _path(error: ErrorDetails, document: object, prefix: str) -> str:
    """The field as the client spelled it: pydantic's location without the union members it went through."""
    parts = [prefix] if prefix else []
    loc, node = error["loc"], document
    for depth, part in enumerate(loc, start=1):
        found, node = _step(node, part)
        if found or (depth == len(loc) and error["type"].startswith("missing")):
            parts.append(str(part))
    return ".".join(parts) or "body"


def _step(node: object, part: int | str) -> tuple[bool, object]:
    """One step down the document, or none where ``part`` is not in it."""
    if isinstance(node, dict) and part in node:
        return True, node[part]
    if isinstance(node, list) and isinstance(part, int) and part < len(node):
        return True, node[part]
    return False, node


def _validation_error(message: str) -> NoReturn:
    raise AppError(ErrorCode.VALIDATION_ERROR, message)
