"""A part that a model cannot take: the model reads a note, and the client gets one event before the model is called."""

import base64
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from ag_ui import core as ag

from agui_container.assistant.assistant import Assistant
from agui_container.models import OpenAIModel, RetryPolicy
from agui_container.ports import Tool
from agui_container.testing import run_agent
from agui_container.tools.function_tool import FunctionTool
from tests.contexts import of_type, run_input, types
from tests.models.openai.server import refuses, sends, speaks, sse
from tests.models.wire import WireServer, serving

pytestmark = pytest.mark.wire

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()


async def no_sleep(_: float) -> None: ...


@dataclass
class Provider:
    """A model behind a server that calls the tool ``draw`` if it is told to, then fails once, then answers."""

    model: OpenAIModel
    wire: WireServer

    def script(self, *, calls: bool = False, fails: bool = False) -> None:
        call = {"index": 0, "id": "x", "function": {"name": "draw", "arguments": "{}"}}
        chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
        self.wire.gives(*([sends(*sse(chunk, "[DONE]"))] if calls else []))
        self.wire.gives(*([refuses(503)] if fails else []), speaks("Hello"))

    def requests(self) -> Sequence[str]:
        return [str(request.json["messages"]) for request in self.wire.requests]


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with serving(WireServer()) as server:
        model = OpenAIModel("m", server.url, retry_policy=RetryPolicy(sleep=no_sleep))
        yield Provider(model, server)
        await model.aclose()


def user(*parts: ag.ContentPart, message_id: str = "u") -> ag.UserMessage:
    return ag.UserMessage(id=message_id, content=[ag.TextPart(text="Look"), *parts])


def reports(events: Sequence[ag.BaseEvent]) -> list[Any]:
    found = [event for event in of_type(events, ag.CustomEvent) if event.name == "media.dropped"]
    return [event.value for event in found]


async def run(provider: Provider, *messages: ag.Message, tools: Sequence[Tool] = ()) -> list[ag.BaseEvent]:
    return await run_agent(Assistant(provider.model, tools), run_input(*messages))


URL = ag.ImagePart(source=ag.UrlSource(value="http://169.254.169.254/", mime_type="image/png"))
VIDEO = ag.VideoPart(source=ag.DataSource(value="dg==", mime_type="video/mp4"))
EMPTY = ag.ImagePart(source=ag.DataSource(value="", mime_type="image/png"))


async def test_a_part_is_reported_to_model_and_client(provider: Provider) -> None:
    provider.script()
    events = await run(provider, user(URL, ag.ImagePart(source=ag.DataSource(value=PNG, mime_type="image/png"))))
    (report,) = reports(events)
    assert (report["part"], report["messageId"]) == ("image", "u")
    assert "nothing is fetched" in report["reason"]
    assert types(events)[:3] == ["RUN_STARTED", "CUSTOM", "TEXT_MESSAGE_START"]
    (request,) = provider.requests()
    assert request.count("[image left out: this model cannot be given it]") == 1
    assert "169.254" not in request


async def test_a_part_is_reported_once_in_all_steps_and_retries_of_a_run(provider: Provider) -> None:
    part = URL
    provider.script(calls=True, fails=True)
    draw = FunctionTool("draw", "Draw.", {"type": "object"}, lambda: [ag.TextPart(text="Drawn"), part])
    events = await run(provider, user(part, part), tools=[draw])
    assert [report["messageId"] == "u" for report in reports(events)] == [True, True, False]
    assert [request.count("left out") for request in provider.requests()] == [2, 3, 3]
    assert types(events)[-1] == "RUN_FINISHED"


async def test_a_part_of_an_earlier_turn_is_no_news(provider: Provider) -> None:
    part = URL
    provider.script()
    answer = ag.AssistantMessage(id="a", content="I see nothing.")
    events = await run(provider, user(part), answer, user(part, message_id="v"))
    assert [report["messageId"] for report in reports(events)] == ["v"]


@pytest.mark.parametrize("part", [URL, VIDEO, EMPTY], ids=["link", "video", "empty"])
async def test_a_question_of_nothing_but_an_unusable_part_is_refused_whatever_the_reason(
    part: ag.ContentPart, provider: Provider
) -> None:
    provider.script()
    question = ag.UserMessage(id="u", content=[part, ag.TextPart(text=" ")])
    events = await run(
        provider, ag.UserMessage(id="before", content="Hi"), ag.AssistantMessage(id="a", content="Yo"), question
    )
    (error,) = of_type(events, ag.RunErrorEvent)
    assert error.code == "VALIDATION_ERROR"
    assert provider.requests() == []
