"""Repair of the answers of a server, before the ``mcp`` package validates them.

The package refuses a whole list of tools because of one malformed tool, and a whole result because of one block that it
does not know. A call whose result is refused has been carried out, so a model that is told of a failure would repeat
it.

An answer that reports an error is a failed call, however malformed the error is. The package cannot tell it from a
result that it cannot read, whose call has been carried out.

Rules: only the fields that this server uses are kept, so that no other field can be malformed. Each tool and each block
is validated alone, with the package's own models. Output schemas are not kept, because the package would validate
results with them on the event loop, and a regular expression from a server could block it forever.

Source: "Tools" in the Model Context Protocol specification, 2025-11-25 and 2026-07-28.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mcp_types import INTERNAL_ERROR, CallToolResult, RequestId
from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from agui_container.protocol.strict_json import without_large_integers

RESULT_FIELDS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""Fields that a result must have since 2026-07-28. They are set, because this server uses none of them."""

CALL_FIELDS = ("content", "structuredContent", "isError")
"""Fields that only the result of a call has."""

IS_ERROR = "agui_container/isError"
"""Field of ``_meta`` with the real ``isError``. The package always gets true, because after a call that did not fail it
asks for the list of tools if the session has none yet, and reports the call as failed if that fails."""

TOOL_FIELDS = ("name", "title", "description", "inputSchema")

BLOCK_FIELDS = ("type", "text", "data", "mimeType", "resource", "name", "title", "uri", "description")

RESOURCE_FIELDS = ("uri", "mimeType", "text", "blob")

ERROR_FIRST: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*|"id"\s*:\s*\d+\s*,\s*){0,2}"error"\s*:')
"""Begin of an error of JSON-RPC, also of one that is no JSON further on."""

UNREADABLE_ERROR: Final = "The server reported an error that cannot be read."

NO_ANSWER: Final = "The server sent neither a result nor an error."


class Repair(NamedTuple):
    """A repaired result, and the names of the tools that were removed from it."""

    result: dict[str, object]
    removed_tools: Sequence[str] = ()


def repair_result(result: Mapping[str, object]) -> Repair:
    """Return a list of tools or the result of a call without its malformed parts, and any other result unchanged."""
    tools = result.get("tools")
    if isinstance(tools, list):
        return _repair_listing(result, tools)
    if result.get("resultType", "complete") == "complete" and any(name in result for name in CALL_FIELDS):
        return Repair(_repair_call(result))
    return Repair(dict(result))


# --- messages ---


def repair_message(text: bytes, request: RequestId | None = None) -> bytes:
    """Return a message without integers that are too large and with an error in the form of JSON-RPC.

    Any other text is returned unchanged.

    Args:
        text: perhaps a message.
        request: id of the request that the text answers, or None if only the text can name it.
    """
    with contextlib.suppress(ValueError, RecursionError):  # no JSON
        text = without_large_integers(text)
    if b'"error"' not in text and b'"result"' in text:
        return text
    message = _read(text)
    if not isinstance(message, dict) or "method" in message:
        return text
    error, answered = message.get("error"), message.get("id") if request is None else request
    if answered is None or (not error and "result" in message):
        return text
    repaired = _repair_error(error if "error" in message else NO_ANSWER)
    return to_json({"jsonrpc": "2.0", "id": answered, "error": repaired})


def _read(text: bytes) -> object:
    """Return the JSON of a text, an error in place of one that only begins, or None."""
    try:
        message: object = from_json(text)
    except ValueError:
        return {"error": UNREADABLE_ERROR} if ERROR_FIRST.match(text) else None
    return message


def _repair_error(error: object) -> dict[str, object]:
    """Return an error with a code and a message. An error without a message is its own message."""
    fields = error if isinstance(error, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    if not isinstance(message, str):
        message = error if isinstance(error, str) else to_json(error).decode() if error else ""
    return {**fields, "code": code if type(code) is int else INTERNAL_ERROR, "message": message}


# --- lists of tools ---


def _repair_listing(result: Mapping[str, object], tools: Sequence[object]) -> Repair:
    checked = [_check_tool(tool) for tool in tools]
    removed = [_name_of(tool, at) for at, (tool, good) in enumerate(zip(tools, checked, strict=True)) if good is None]
    repaired: dict[str, object] = {**RESULT_FIELDS, "tools": [tool for tool in checked if tool is not None]}
    cursor = result.get("nextCursor")
    if isinstance(cursor, str):
        repaired["nextCursor"] = cursor
    return Repair(repaired, removed)


def _check_tool(tool: object) -> dict[str, object] | None:
    """Return a tool with the fields that are used, or None if it is malformed."""
    if not isinstance(tool, dict) or not tool.get("name"):
        return None
    checked = _select(tool, TOOL_FIELDS)
    for name in ("title", "description"):
        if not isinstance(checked.get(name, ""), str):
            del checked[name]
    schema = checked.get("inputSchema")
    if isinstance(schema, dict) and _may_be_object(schema.get("type")):
        checked["inputSchema"] = {**schema, "type": "object"}
    return checked if _is_valid("tools/list", {"tools": [checked]}) else None


def _may_be_object(schema_type: object) -> bool:
    """Return true if a type that the specification does not allow includes objects, as arguments always are objects."""
    return schema_type is None or (isinstance(schema_type, list) and "object" in schema_type)


def _name_of(tool: object, at: int) -> str:
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) and name else f"#{at}"


# --- results of calls ---


def _repair_call(result: Mapping[str, object]) -> dict[str, object]:
    content = result.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    kept = [block for block in map(_check_block, blocks) if block is not None]
    removed = len(blocks) - len(kept)
    is_error = result.get("isError") in (True, "true", 1)
    structured = result.get("structuredContent")
    has_text = any(block.get("text") for block in kept)
    if structured is not None and (not kept or (is_error and not has_text)):
        kept.append({"type": "text", "text": to_json(structured, inf_nan_mode="null").decode()})
    if removed:
        kept.append({"type": "text", "text": removal_note(removed)})
    return {**RESULT_FIELDS, "content": kept, "isError": True, "_meta": {IS_ERROR: is_error}}


def is_failed(result: CallToolResult) -> bool:
    """Return true if the tool reported an error."""
    return bool((result.meta or {}).get(IS_ERROR))


def removal_note(count: int) -> str:
    """Return the sentence that tells the model of removed blocks."""
    parts = "One part" if count == 1 else f"{count} parts"
    return f"[{parts} of this result cannot be read and is left out. The call was carried out.]"


def _check_block(block: object) -> dict[str, object] | None:
    """Return a block with the fields that are used, or None if it is malformed or of an unknown kind."""
    if not isinstance(block, dict):
        return None
    checked = _select(block, BLOCK_FIELDS)
    resource = checked.get("resource")
    if isinstance(resource, dict):
        checked["resource"] = _select(resource, RESOURCE_FIELDS)
    return checked if _is_valid("tools/call", {"content": [checked]}) else None


def _select(source: Mapping[str, object], names: Sequence[str]) -> dict[str, object]:
    return {name: source[name] for name in names if source.get(name) is not None}


def _is_valid(method: str, result: Mapping[str, object]) -> bool:
    try:
        validate_server_result(method, LATEST_HANDSHAKE_VERSION, result)
    except ValidationError:
        return False
    return True
