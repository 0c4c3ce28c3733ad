"""Inputs as clients in the field send them: what is understood, and what is refused by the name of its field."""

import base64
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item
from tests.behaviour.client import Refused, outcome
from tests.conftest import Connect
from tests.engine.doubles import Json, ask
from tests.requirements import requirement

BYTES = b"\xfb\xff\xfe image"
PLAIN = base64.b64encode(BYTES).decode()
FOR_URLS = base64.urlsafe_b64encode(BYTES).decode().rstrip("=")


async def show(run_input: RunAgentInput) -> AsyncIterator[Item]:
    """Repeat the messages and the tools that an agent gets."""
    given = run_input.model_dump(by_alias=True, mode="json", exclude_none=True)
    yield CustomEvent(name="given", value={"messages": given["messages"], "tools": given["tools"]})


async def given(connect: Connect, **fields: Any) -> Json:  # noqa: ANN401 - as in JSON
    """Send a run, and return what its agent has got."""
    client = await connect(show)
    events = await client.run(ask(**fields))
    assert outcome(events) == "success"
    (value,) = [event["value"] for event in events if event["type"] == "CUSTOM"]
    found: Json = value
    return found


def user(content: object, message_id: str = "u") -> Json:
    return {"id": message_id, "role": "user", "content": content}


@requirement("input.inline")
async def test_inline_data_is_data_in_every_shape(connect: Connect) -> None:
    url = f"data:image/png;base64,{PLAIN}"
    parts: list[Json] = [
        {"type": "image", "source": {"type": "url", "value": url}},
        {"type": "image", "source": {"type": "data", "value": url, "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "data", "value": FOR_URLS, "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "data", "value": f"{PLAIN[:4]}\r\n{PLAIN[4:]}", "mimeType": "image/png"}},
        {"type": "binary", "mimeType": "image/png", "url": url},
        {"type": "binary", "mimeType": "image/png", "data": url},
    ]
    result = {"id": "t", "role": "tool", "toolCallId": "c", "content": parts}
    found = await given(connect, messages=[user(parts), result])
    source = {"type": "data", "value": PLAIN, "mimeType": "image/png"}
    for message in found["messages"]:
        assert message["content"] == [{"type": "image", "source": source}] * len(parts)


@requirement("assistant.half-pairs")
async def test_half_of_a_surrogate_pair_does_not_end_a_conversation(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    client = await connect(show)
    events = await client.run(ask(messages=[user("cut off: \ud83d"), user("nul \0", "u2")]))
    (value,) = [event["value"] for event in events if event["type"] == "CUSTOM"]
    assert [message["content"] for message in value["messages"]] == ["cut off: \ufffd", "nul \0"]
    if client.transport != "inprocess":
        assert "halves of surrogate pairs replaced texts=1" in caplog.text


@requirement("input.schemas")
async def test_the_parameters_of_a_tool_are_an_object_schema(connect: Connect) -> None:
    schemas: list[object] = [None, {}, {"properties": {}}, '{"type": "object", "properties": {}}']
    tools = [{"name": f"t{at}", "description": "d", "parameters": parameters} for at, parameters in enumerate(schemas)]
    found = await given(connect, tools=tools)
    assert [tool["parameters"] for tool in found["tools"]] == [{"type": "object", "properties": {}}] * len(tools)


REFUSED: dict[str, tuple[Json, str]] = {
    "equal ids": ({"messages": [user("a"), user("b", "v"), user("c")]}, "messages.2.id: "),
    "an empty id": ({"messages": [user("a"), user("b", "v"), user("c", "")]}, "messages.2.id: "),
    "a field like a member": ({"messages": [{"role": "user", "content": "a", "user": 1}]}, "messages.0.id: "),
    "a source like a member": (
        {"messages": [user([{"type": "image", "image": 1, "source": {"type": "url", "url": "https://a.example"}}])]},
        "messages.0.content.0.source.value: ",
    ),
    "a tool of text": (
        {"tools": [{"name": "paint", "description": "d", "parameters": {"type": "string"}}]},
        "tools.0.parameters: the tool 'paint' ",
    ),
    "half a pair beside the messages": ({"state": {"a": ["\ud83d"]}}, "state.a.0: holds half of a surrogate pair."),
}


@requirement("error.body")
@pytest.mark.parametrize(("fields", "message"), REFUSED.values(), ids=REFUSED)
async def test_malformed_fields_are_refused_by_their_path(connect: Connect, fields: Json, message: str) -> None:
    client = await connect(show)
    with pytest.raises(Refused) as refused:
        await client.start(ask(**fields))
    assert refused.value.code == "VALIDATION_ERROR"
    assert refused.value.message.startswith(message)
    assert "should be a valid string" not in refused.value.message
