"""Checks of a request as the strictest servers of the chat completions API make them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Body = Mapping[str, Any]


def broken_rules(body: Body) -> list[str]:
    messages = [message for message in body["messages"] if message["role"] != "system"]
    roles = [message["role"] for message in body["messages"]]
    return [
        *_order(messages),
        *("two messages of the assistant in a row" for pair in pairwise(roles) if {*pair} == {"assistant"}),
        *_pairs(body["messages"]),
        *(fault for message in messages for fault in _content(message)),
        *(fault for message in messages for call in message.get("tool_calls", ()) for fault in _call(call)),
    ]


def _order(messages: Sequence[Body]) -> Iterator[str]:
    for one, other in pairwise(message["role"] for message in messages):
        if (one, other) == ("tool", "user"):
            yield "an assistant stands between a result and a user"
    if messages and messages[-1]["role"] != "user":
        yield "the user is last"


def _pairs(messages: Sequence[Body]) -> Iterator[str]:
    waiting: list[str] = []
    used: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if not waiting or waiting.pop(0) != message["tool_call_id"]:
                yield "a result answers no call before it"
            continue
        if waiting:
            yield f"calls without a result: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        used += waiting
    if len(used) != len(set(used)) or not all(re.fullmatch("[a-zA-Z0-9]{9}", id_) for id_ in used):
        yield f"ids of calls are unique and short: {used}"


def _content(message: Body) -> Iterator[str]:
    content = message["content"]
    if isinstance(content, list):
        if message["role"] != "user":
            yield "only a user sends parts"
        for part in content:
            if part["type"] == "text" and not part["text"].strip():
                yield "text is not blank"
            if part["type"] != "text" and "http" in json.dumps(part):
                yield "media are inline"
    elif message["role"] == "user" and not (content or "").strip():
        yield "a user says something"
    elif message["role"] == "assistant" and not content and not message.get("tool_calls"):
        yield "an assistant says something"
    elif message["role"] == "tool" and not isinstance(content, str):
        yield "a result is text"


def _call(call: Body) -> Iterator[str]:
    function = call["function"]
    if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", function["name"]):
        yield f"names of tools are plain: {function['name']}"
    if not isinstance(json.loads(function["arguments"]), dict):
        yield f"arguments are an object: {function['arguments']}"
