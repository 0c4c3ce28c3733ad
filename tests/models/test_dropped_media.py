"""A part that a model cannot take: the model reads a note, and the client gets one event before the model is called."""

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
from ag_ui.core import (
    AssistantMessage,
    AudioPart,
    BaseEvent,
    ContentPart,
    CustomEvent,
    DataSource,
    DocumentPart,
    FileSource,
    ImagePart,
    Message,
    RunErrorEvent,
    TextPart,
    UrlSource,
    UserMessage,
    VideoPart,
)

from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.bedrock import BedrockModel, BedrockOptions
from agui_container.models.openai import OpenAIModel, RetryPolicy
from agui_container.ports import Model, Tool
from agui_container.testing import run_agent
from agui_container.tools.function_tool import FunctionTool
from tests.contexts import of_type, run_input, types
from tests.models.bedrock.doubles import ANSWER, MODEL, Pauses, as_nobody, threads_gone
from tests.models.bedrock.server import BedrockResponse
from tests.models.bedrock.server import wire_server as bedrock_server
from tests.models.openai.server import OpenAIResponse, refuses, speaks, sse
from tests.models.openai.server import wire_server as openai_server

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()


class ProviderServer(Protocol):
    """A model behind a server that calls the tool ``draw`` if it is told to, then fails once, then answers."""

    @property
    def model(self) -> Model: ...

    def script(self, *, calls: bool = False, fails: bool = False) -> None: ...

    def requests(self) -> Sequence[str]: ...


async def no_sleep(_: float) -> None: ...


@dataclass
class OpenAIProvider:
    model: OpenAIModel
    wire: Any

    def script(self, *, calls: bool = False, fails: bool = False) -> None:
        call = {"index": 0, "id": "x", "function": {"name": "draw", "arguments": "{}"}}
        chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
        self.wire.gives(*([OpenAIResponse(sse(chunk, "[DONE]"))] if calls else []))
        self.wire.gives(*([refuses(503)] if fails else []), speaks("Hello"))

    def requests(self) -> Sequence[str]:
        return [str(request.json["messages"]) for request in self.wire.requests]


@dataclass
class BedrockProvider:
    model: BedrockModel
    wire: Any

    def script(self, *, calls: bool = False, fails: bool = False) -> None:
        start = {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "x", "name": "draw"}}}
        stop = {"messageStop": {"stopReason": "tool_use"}}
        self.wire.will(*([[{"contentBlockStart": start}, stop, ANSWER[-1]]] if calls else []))
        self.wire.will(*([BedrockResponse(status=503, error="ServiceUnavailableException")] if fails else []), ANSWER)

    def requests(self) -> Sequence[str]:
        return [str(request["messages"]) for request in self.wire.requests]


@asynccontextmanager
async def open_provider(name: str) -> AsyncIterator[ProviderServer]:
    async with AsyncExitStack() as stack:
        if name == "openai":
            server = await stack.enter_async_context(openai_server())
            model = OpenAIModel("m", server.url, retry_policy=RetryPolicy(sleep=no_sleep))
            stack.push_async_callback(model.aclose)
            yield OpenAIProvider(model, server)
        else:
            wire = await stack.enter_async_context(bedrock_server())
            yield BedrockProvider(BedrockModel(MODEL, BedrockOptions(endpoint_url=wire.url), pause=Pauses()), wire)
            assert wire.broken == []


@pytest.fixture(params=["openai", "bedrock"])
async def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProviderServer]:
    as_nobody(monkeypatch)
    async with open_provider(request.param) as opened:
        yield opened


def user(*parts: ContentPart, message_id: str = "u") -> UserMessage:
    return UserMessage(id=message_id, content=[TextPart(text="Look"), *parts])


def reports(events: Sequence[BaseEvent]) -> list[Any]:
    """Return the values of the events of dropped media, which come before everything else."""
    found = [event for event in of_type(events, CustomEvent) if event.name == "media.dropped"]
    return [event.value for event in found]


async def run(provider: ProviderServer, *messages: Message, tools: Sequence[Tool] = ()) -> list[BaseEvent]:
    return await run_agent(Assistant(provider.model, tools), run_input(*messages))


UNUSABLE: Mapping[str, tuple[ContentPart, str]] = {
    "a url": (
        ImagePart(source=UrlSource(value="http://169.254.169.254/", mime_type="image/png")),
        "nothing is fetched",
    ),
    "a file handle": (DocumentPart(source=FileSource(value="file-1", provider="x")), "nothing is fetched"),
    "no base64": (ImagePart(source=DataSource(value="ü", mime_type="image/png")), "base64"),
    "nothing": (ImagePart(source=DataSource(value="", mime_type="image/png")), "empty"),
    "an unknown picture": (ImagePart(source=DataSource(value="PHN2Zy8+", mime_type="image/svg+xml")), ""),
    "video": (VideoPart(source=DataSource(value="dg==", mime_type="video/mp4")), ""),
    "a kind of sound": (AudioPart(source=DataSource(value="b2dn", mime_type="audio/ogg")), ""),
    "a kind of document": (DocumentPart(source=DataSource(value="eA==", mime_type="application/zip")), ""),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_part_is_reported_to_model_and_client(name: str, provider: ProviderServer) -> None:
    part, reason = UNUSABLE[name]
    provider.script()
    events = await run(provider, user(part, ImagePart(source=DataSource(value=PNG, mime_type="image/png"))))
    (report,) = reports(events)
    assert (report["part"], report["messageId"]) == (part.type, "u")
    assert report["reason"]
    assert reason in report["reason"]
    assert types(events)[:3] == ["RUN_STARTED", "CUSTOM", "TEXT_MESSAGE_START"]
    (request,) = provider.requests()
    assert request.count(f"[{part.type} left out: this model cannot be given it]") == 1
    assert "169.254" not in request


async def test_a_part_is_reported_once_in_all_steps_and_retries_of_a_run(provider: ProviderServer) -> None:
    part = UNUSABLE["a url"][0]
    provider.script(calls=True, fails=True)
    draw = FunctionTool("draw", "Draw.", {"type": "object"}, lambda: [TextPart(text="Drawn"), part])
    events = await run(provider, user(part, part), tools=[draw])
    assert [report["messageId"] == "u" for report in reports(events)] == [True, True, False]
    assert [request.count("left out") for request in provider.requests()] == [2, 3, 3]
    assert types(events)[-1] == "RUN_FINISHED"


async def test_a_part_of_an_earlier_turn_is_no_news(provider: ProviderServer) -> None:
    part = UNUSABLE["a url"][0]
    provider.script()
    answer = AssistantMessage(id="a", content="I see nothing.")
    events = await run(provider, user(part), answer, user(part, message_id="v"))
    assert [report["messageId"] for report in reports(events)] == ["v"]


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_question_of_nothing_but_an_unusable_part_is_refused_whatever_the_reason(
    name: str, provider: ProviderServer
) -> None:
    provider.script()
    question = UserMessage(id="u", content=[UNUSABLE[name][0], TextPart(text=" ")])
    events = await run(
        provider, UserMessage(id="before", content="Hi"), AssistantMessage(id="a", content="Yo"), question
    )
    (error,) = of_type(events, RunErrorEvent)
    assert error.code == "VALIDATION_ERROR"
    await threads_gone()
    assert provider.requests() == []


async def test_a_question_before_an_unusable_part_is_answered(provider: ProviderServer) -> None:
    provider.script()
    events = await run(provider, UserMessage(id="q", content="Hi"), UserMessage(id="u", content=[UNUSABLE["video"][0]]))
    assert len(reports(events)) == len(provider.requests()) == 1


async def test_a_message_without_unusable_parts_has_no_report(provider: ProviderServer) -> None:
    provider.script()
    events = await run(provider, user(ImagePart(source=DataSource(value=PNG, mime_type="image/png"))))
    assert reports(events) == []
    assert "left out" not in provider.requests()[0]
