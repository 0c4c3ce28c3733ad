"""Prompts as requests, one file each: what is sent, and that it is what a socket gets."""

import json
from typing import Any

import pytest
from ag_ui.core import Message, Tool
from pydantic import TypeAdapter

from agui_container.models.openai import OpenAIOptions
from agui_container.models.openai.request import ToolNames, request_of
from agui_container.models.tool_schemas import wire_name
from agui_container.ports import Prompt
from tests.models.openai.conftest import KEY, Models
from tests.models.openai.server import OpenAIServer, speaks
from tests.models.openai.stream_reader import PROMPT, data, files, read_deltas

MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])
TOOLS = TypeAdapter(list[Tool])


@pytest.mark.parametrize("name", files("requests"))
def test_a_prompt_is_a_request(name: str, caplog: pytest.LogCaptureFixture) -> None:
    case = data("requests", name)
    prompt, options = parts_of(case)
    assert json.loads(request_of("m", prompt, options).body) == case["body"]
    assert len(caplog.records) == case.get("warnings", 0)


def parts_of(case: dict[str, Any]) -> tuple[Prompt, OpenAIOptions]:
    messages = MESSAGES.validate_python(case["messages"])
    prompt = Prompt(case.get("system", ""), messages, TOOLS.validate_python(case.get("tools", [])))
    return prompt, OpenAIOptions(**case.get("options", {}))


async def test_the_request_on_the_wire(wire: OpenAIServer, models: Models) -> None:
    wire.gives(speaks("Hello"))
    model = models(options=OpenAIOptions(body={"temperature": 0}, headers={"x-title": "container"}))
    assert await read_deltas(model.stream(PROMPT)) == ([{"text": "Hello"}, {"stop": "end"}], None)
    (request,) = wire.requests
    assert request.line == "POST /v1/chat/completions HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "text/event-stream"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["x-title"] == "container"
    assert request.json == {
        "model": "m",
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
    }


async def test_without_a_key_there_is_no_authorization(wire: OpenAIServer, models: Models) -> None:
    wire.gives(speaks("Hello"))
    await read_deltas(models(key=None).stream(PROMPT))
    assert "authorization" not in wire.requests[0].headers


def test_text_that_is_no_unicode_is_sent_all_the_same() -> None:
    body = request_of("m", Prompt("a\ud800b", []), OpenAIOptions()).body
    assert json.loads(body)["messages"] == [{"role": "system", "content": "a?b"}]


def test_a_request_is_the_beginning_of_the_next_one() -> None:
    case = data("requests", "calls")
    prompt, options = parts_of(case)
    requests = [request_of("m", Prompt("", prompt.messages[:end]), options) for end in (4, 5)]
    bodies = [json.loads(request.body)["messages"] for request in requests]
    assert bodies[1][: len(bodies[0])] == bodies[0]


def test_a_tool_cannot_take_the_place_of_an_earlier_one() -> None:
    names = ToolNames(["files.read", wire_name("files.read")])
    assert names.original(wire_name("files.read")) == "files.read"


def test_a_name_that_no_tool_has_stays_as_it_is() -> None:
    assert ToolNames([]).original("unknown") == "unknown"


def test_options_do_not_show_their_headers() -> None:
    assert "secret" not in repr(OpenAIOptions(headers={"api-key": "secret"}))
