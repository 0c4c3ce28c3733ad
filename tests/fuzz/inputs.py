"""Random bodies of requests and random gRPC messages: valid ones, with a few changes that no client should make.

A body depends on its seed only, which therefore names it.
"""

import copy
import json
import random
from collections.abc import Callable, Mapping, Sequence

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.engine.doubles import Json, ask

CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
MESSAGES: list[Json] = [
    {"id": "s", "role": "system", "content": "Be brief."},
    {"id": "u", "role": "user", "content": [{"type": "text", "text": "hi"}]},
    {"id": "a", "role": "assistant", "content": "hello", "toolCalls": [CALL]},
    {"id": "t", "role": "tool", "toolCallId": "c", "content": "1"},
    {"id": "r", "role": "reasoning", "content": "so"},
    {"id": "x", "role": "activity", "activityType": "plan", "content": {"steps": []}},
]
TOOL: Json = {"name": "paint", "description": "Paints.", "parameters": {"type": "object", "properties": {}}}
SAMPLES: list[Json] = [
    ask(),
    ask(messages=MESSAGES, state={"a": [1, {"b": None}]}, tools=[TOOL], context=[{"description": "d", "value": "v"}]),
    ask(resume=[{"interruptId": "i", "status": "resolved", "payload": {"approved": True}}], parentRunId="p"),
    ask(forwardedProps={"onBusy": "enqueue", "budget": {"seconds": 5}, "command": {"type": "capabilities"}}),
    {"command": {"type": "cancel", "threadId": "t", "runId": "r"}, "id": 1},
    {"command": {"type": "attach", "threadId": "t", "runId": "r", "after": 3}},
    {"command": {"type": "threads.list", "limit": 10}},
    {"type": "ping"},
]
"""One body of each kind."""

NESTED = "nested"
"""Stands for lists in lists, in the encoded body."""

VALUES: Sequence[object] = (
    *(None, True, False, 0, -1, 2**63, 1e308, 0.1, "", "x", "\ud800", "\0", "💥" * 20, "x" * 600),
    NESTED,
    *([], {}, [[]], [None], {"": None}, {"type": "text"}, {"__proto__": {}}, [{"id": "u"}], {"$ref": "#"}),
)
"""Values that take the place of others."""

TOOLS = [{"name": "paint", "description": "Paints.", "parameters_schema": {"type": "object"}, "timeout_ms": 9}]
PARTS: list[Json] = [
    {"text": {"text": "hi"}},
    {"tool_use": {"id": "c", "name": "paint", "input": {"a": [1, None]}}},
    {"tool_result": {"tool_use_id": "c", "name": "paint", "content": "1", "is_error": True}},
    {"thinking": {"thinking": "so", "signature": "s"}},
    {"image": {"media_type": "image/png", "data": "AAAA"}},
]
BLOCKS: list[Json] = [{"text": "x", "label": "l"}, {"binary": {"mime_type": "image/png", "data": "AAAA"}}]
MESSAGE_SAMPLES: Mapping[type[Message], Sequence[Json]] = {
    roz.SessionRequest: (
        {"start": {"environment_id": "e", "tools": TOOLS, "history": [{"role": "user", "parts": PARTS}]}},
        {"user_message": {"content": "hi", "message_id": "m", "context": BLOCKS, "tools": TOOLS}},
        {"tool_result": {"tool_call_id": "c", "success": True, "result": "1", "exit_code": -1, "duration_ms": 5}},
        {"cancel_turn": {"reason": "r"}},
        {"cancel_session": {"reason": "r"}},
        {"ping": {}},
        {"feedback": {"session_id": "t", "message_id": "m", "rating": "positive"}},
        {"permission_decision": {"tool_call_id": "c", "approved": True, "modifier": {"a": 1}}},
        {"register_tools": {"source": "s", "tools": TOOLS, "system_context": "c"}},
        {"webrtc_answer": {"host_id": "h", "sdp": "v=0", "ice_candidates": ["i"], "peer_id": "p"}},
        {"ice_candidate": {"host_id": "h", "peer_id": "p", "candidate": "i", "sdp_m_line_index": 1}},
        {"camera_request": {"host_id": "h", "camera_ids": ["c"]}},
    ),
    roz.WatchTeamRequest: ({"task_id": "t"},),
    kontekst.RunCommand: (
        {"start": {"prompt": "hi", "session_id": "s", "agent_name": "a"}},
        {"approve_tool": {"call_id": "c"}},
        {"deny_tool": {"call_id": "c", "reason": "r"}},
        {"cancel": {}},
    ),
}
"""Messages that clients of gRPC send: one of each type and of each of its variants, as JSON."""

Container = dict[str, object] | list[object]


def random_body(seed: int) -> bytes:
    """Return a body: a valid one with up to four changes of its values, and some with changes of their bytes."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    document = copy.deepcopy(chance.choice(SAMPLES))
    for _ in range(chance.randrange(5)):
        chance.choice(CHANGES)(chance, chance.choice(containers(document)))
    depth = chance.choice((1, 10, 250))
    text = json.dumps(document).replace(f'"{NESTED}"', depth * "[" + depth * "]")
    data = bytearray(text.encode())
    if chance.random() < 0.3:
        for _ in range(chance.randrange(1, 4)):
            change_byte(chance, data)
    return bytes(data)


def containers(value: object) -> list[Container]:
    """Return all objects and lists of a document, the document first."""
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(found for each in inner for found in containers(each))]


def replace_value(chance: random.Random, where: Container) -> None:
    """Put another value in the place of one."""
    if isinstance(where, dict):
        where[chance.choice([*where, "extra"])] = copy.deepcopy(chance.choice(VALUES))
    elif where:
        where[chance.randrange(len(where))] = copy.deepcopy(chance.choice(VALUES))


def remove_value(chance: random.Random, where: Container) -> None:
    """Remove a value."""
    if isinstance(where, dict) and where:
        del where[chance.choice(list(where))]
    elif isinstance(where, list) and where:
        del where[chance.randrange(len(where))]


def repeat_value(chance: random.Random, where: Container) -> None:
    """Add a value again: to a list, or under another name."""
    if isinstance(where, dict) and where:
        where[f"{chance.choice(list(where))}s"] = copy.deepcopy(chance.choice(list(where.values())))
    elif isinstance(where, list) and where:
        where.append(copy.deepcopy(chance.choice(where)))


CHANGES: Sequence[Callable[[random.Random, Container], None]] = (replace_value, remove_value, repeat_value)


def change_byte(chance: random.Random, data: bytearray) -> None:
    """Replace, remove or add a byte, or cut the rest off."""
    at = chance.randrange(len(data) or 1)
    match chance.randrange(4):
        case 0:
            data[at : at + 1] = bytes([chance.randrange(256)])
        case 1:
            del data[at : at + 1]
        case 2:
            data[at:at] = chance.choice((b"\\u", b'"', b"{", b"]", b"\xff", b"\0", b"e9999", b"\\ud83d"))
        case _:
            del data[at:]


def random_message(seed: int) -> tuple[type[Message], bytes]:
    """Return a type of gRPC messages, and the bytes of a valid message of it with up to five changes."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    kind = chance.choice(list(MESSAGE_SAMPLES))
    data = bytearray(ParseDict(chance.choice(MESSAGE_SAMPLES[kind]), kind()).SerializeToString())
    for _ in range(chance.randrange(6)):
        change_byte(chance, data)
    return kind, bytes(data)
