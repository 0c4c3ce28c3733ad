"""Content parts, tools and clicks as clients send them, in the one form that agents and models read.

Rules for content parts:

- Parts of unknown types are dropped with a warning. The retired type ``binary`` is translated.
- Inline data is a ``data`` source with plain base64, whatever shape it comes in: a ``data:`` URL in any field that
  has a URL or data, base64 with line breaks, without padding, or with the alphabet for URLs.
- A value that is neither is not changed. Whether a part can be used is decided by the model.

Rule for tools: the arguments of a call are an object, so ``parameters`` is an object schema for every agent and model.
Other spellings are translated: no schema, an empty one, JSON as text, a missing ``type``. Anything else is refused with
the name of the tool, because a provider would refuse the whole request.

Rule for clicks: a page sends a click in an A2UI surface in ``forwardedProps.a2uiAction``. It becomes a call of the
assistant and its result, as ``@ag-ui/a2ui-middleware`` 0.0.10 writes them.

Sources: AG-UI spec 1.1, basic/run-input; the official client's ``legacy-content``; RFC 2397; RFC 4648.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from ag_ui.core import AssistantMessage, FunctionCall, Message, ToolCall, ToolMessage

from agui_container.protocol.errors import validation_error
from agui_container.protocol.strict_json import Warn, parse_finite_json

MEDIA = frozenset({"image", "audio", "video"})
KINDS = MEDIA | {"text", "document"}

MAX_LOGGED_TYPE = 32
"""Maximum number of characters of an unknown type in the log."""

DATA_SCHEME = "data:"
DEFAULT_TYPE = "text/plain"
"""Media type of a ``data:`` URL that names none."""

ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
WHITE_SPACE = b" \t\r\n\f\v"
TO_STANDARD = bytes.maketrans(b"-_", b"+/")

Json = dict[str, Any]


def migrate_parts(messages: object, warn: Warn) -> None:
    """Translate the content parts of these messages and drop parts of unknown types, in place."""
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
    if not isinstance(kind, str) or kind == "text":
        return part
    if kind in KINDS:
        source = part.get("source")
        return {**part, "source": inline_source(source)} if isinstance(source, dict) else part
    media = _translate_binary(part) if kind == "binary" else None
    if media is None:
        unknown.append(kind)
    return media


def _translate_binary(part: Json) -> Json | None:
    """Return an image, audio, video or document part; None without a media type, or without data, URL and handle."""
    name = next((name for name in ("data", "url", "id") if part.get(name)), None)
    if name is None:
        return None
    kind = "file" if name == "id" else name
    source = inline_source({"type": kind, "value": part[name], "mimeType": part.get("mimeType")})
    if not isinstance(source["mimeType"], str):
        return None
    kind = source["mimeType"].partition("/")[0]
    media = {"type": kind if kind in MEDIA else "document"}
    filename = {"metadata": {"filename": part["filename"]}} if part.get("filename") else {}
    return {**media, "source": source, **filename}


def inline_source(source: Json) -> Json:
    """Return the source with its inline data as plain base64. Other sources are returned unchanged."""
    kind, value = source.get("type"), source.get("value")
    if kind not in {"data", "url"} or not isinstance(value, str):
        return source
    if value[: len(DATA_SCHEME)].lower() == DATA_SCHEME:
        found = read_data_url(value)
        if found is None:
            return source
        mime_type, data = found
        return {**source, "type": "data", "value": data, "mimeType": source.get("mimeType") or mime_type}
    plain = plain_base64(value) if kind == "data" else None
    return source if plain is None else {**source, "value": plain}


def read_data_url(url: str) -> tuple[str, str] | None:
    """Return the media type and the data, as base64, of a ``data:`` URL. Return None if it is malformed."""
    head, comma, body = url[len(DATA_SCHEME) :].partition(",")
    mime_type, _, encoding = head.rpartition(";")
    is_base64 = encoding.strip().lower() == "base64"
    mime_type = (mime_type if is_base64 else head).strip()
    if mime_type.startswith(";") or not mime_type:
        mime_type = DEFAULT_TYPE + mime_type
    content = unquote_to_bytes(body)
    data = plain_base64(content.decode("latin-1")) if is_base64 else base64.b64encode(content).decode()
    return None if not comma or data is None else (mime_type, data)


def plain_base64(value: str) -> str | None:
    """Return base64 in the standard alphabet, padded and without white space, or None if it is malformed."""
    if not value.isascii():
        return None
    data = value.encode()
    padding = data.translate(None, ALPHABET)
    if padding in {b"", b"=", b"=="} and len(data) % 4 == 0 and data.endswith(padding):
        return value
    data = data.translate(TO_STANDARD, WHITE_SPACE).rstrip(b"=")
    if len(data) % 4 == 1 or data.translate(None, ALPHABET):
        return None
    return (data + b"=" * (-len(data) % 4)).decode()


# --- tools ------------------------------------------------------------------------------------------------------------

MAX_SHOWN_NAME = 64
"""Maximum number of characters of a tool's name in an error message."""


def normalise_tools(tools: object) -> None:
    """Make the ``parameters`` of these tools object schemas, in place. Raises ``AppError`` VALIDATION_ERROR."""
    for at, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict):
            schema = object_schema(tool.get("parameters"))
            if schema is None:
                raise validation_error(f"tools.{at}.parameters: {schema_problem(tool.get('name'))}")
            tool["parameters"] = schema


def schema_problem(name: object) -> str:
    return f'the tool \'{str(name)[:MAX_SHOWN_NAME]}\' needs an object schema ("type": "object") or none.'


def object_schema(parameters: object) -> dict[str, Any] | None:
    """Return None for no schema of an object. An empty list counts as an empty object: PHP encodes both alike."""
    if isinstance(parameters, str):
        parameters = _parsed(parameters)
        if not isinstance(parameters, dict):
            return None
    if parameters in (None, [], {}):
        return {"type": "object", "properties": {}}
    if not isinstance(parameters, dict):
        return None
    kinds, properties = parameters.get("type"), parameters.get("properties", {})
    if kinds != "object":
        if kinds is not None and not (isinstance(kinds, list) and "object" in kinds):
            return None
        parameters = {**parameters, "type": "object"}
    if properties in (None, []):
        return {**parameters, "properties": {}}
    return parameters if isinstance(properties, dict) else None


def _parsed(text: str) -> object:
    try:
        return parse_finite_json(text)
    except ValueError:
        return None


# --- clicks -----------------------------------------------------------------------------------------------------------

CLICK_TOOL = "log_a2ui_event"
CLICK_RESULT = "a2ui-result-"
"""Beginning of the ids of the results that this server writes."""


def action_messages(messages: Sequence[Message], props: object, run_id: str) -> Sequence[Message]:
    """Return a call of the assistant and its result for a click, nothing without one.

    The ids follow from the run, so that a retry of the run has the same messages. The middleware leaves the click in
    the input, so its messages may be there already. Those of an earlier click stay what they are.
    """
    click = props.get("a2uiAction") if isinstance(props, Mapping) else None
    action = click.get("userAction") if isinstance(click, Mapping) else None
    if not isinstance(action, Mapping) or ends_with_click(messages, run_id, describe_click(action)):
        return ()
    function = FunctionCall(name=CLICK_TOOL, arguments=json.dumps(action, ensure_ascii=False))
    call = ToolCall(id=f"a2ui-call-{run_id}", function=function)
    return (
        AssistantMessage(id=f"a2ui-{run_id}", content="", tool_calls=[call]),
        ToolMessage(id=f"{CLICK_RESULT}{run_id}", tool_call_id=call.id, content=describe_click(action)),
    )


def ends_with_click(messages: Sequence[Message], run_id: str, text: str) -> bool:
    match messages[-2:]:
        case [AssistantMessage(tool_calls=calls), ToolMessage(id=id_, content=content)]:
            is_click = any(call.function.name == CLICK_TOOL for call in calls or ())
            return is_click and (
                id_ == f"{CLICK_RESULT}{run_id}" or (not id_.startswith(CLICK_RESULT) and content == text)
            )
    return False


def describe_click(action: Mapping[str, object]) -> str:
    name, surface = action.get("name", "unknown_action"), action.get("surfaceId", "unknown_surface")
    component = f" (component: {action['sourceComponentId']})" if action.get("sourceComponentId") else ""
    context = json.dumps(action.get("context") or {}, ensure_ascii=False)
    return f'User performed action "{name}" on surface "{surface}"{component}. Context: {context}'
