"""Random bodies of requests: valid ones, with a few changes that no client should make.

A body depends on its seed only, which therefore names it.
"""

import copy
import json
import random
from collections.abc import Callable, Sequence

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

NESTED = "nested"
"""Stands for lists in lists, in the encoded body."""

VALUES: Sequence[object] = (
    *(None, True, False, 0, -1, 2**63, 1e308, 0.1, "", "x", "\ud800", "\0", "💥" * 20, "x" * 600),
    NESTED,
    *([], {}, [[]], [None], {"": None}, {"type": "text"}, {"__proto__": {}}, [{"id": "u"}], {"$ref": "#"}),
)

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
    if isinstance(where, dict):
        where[chance.choice([*where, "extra"])] = copy.deepcopy(chance.choice(VALUES))
    elif where:
        where[chance.randrange(len(where))] = copy.deepcopy(chance.choice(VALUES))


def remove_value(chance: random.Random, where: Container) -> None:
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
