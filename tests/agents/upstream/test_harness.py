"""A managed Harness as the agent, whose event stream a local server plays."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import parse_qs

import botocore.session  # type: ignore[import-untyped]
import pytest
from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    RunErrorEvent,
    RunFinishedEvent,
    Tool,
    ToolCall,
    ToolCallResultEvent,
    ToolMessage,
)
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agui_container.settings import Settings
from agui_container.testing import open_thread, run_agent, user_input
from tests.agents.upstream import pay_tools
from tests.behaviour.server import listening
from tests.contexts import of_type
from tests.models.bedrock.frames import frame
from tests.secret_search import planted

pytestmark = pytest.mark.wire

Json = dict[str, Any]
INPUT = (
    botocore.session.get_session().get_service_model("bedrock-agentcore").operation_model("InvokeHarness").input_shape
)
ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:harness/helper-0123456789"


def message(*blocks: Sequence[Json], reason: str = "end_turn") -> list[Json]:
    events: list[Json] = [{"messageStart": {"role": "assistant"}}]
    for index, block in enumerate(blocks):
        for event in block:
            ((kind, body),) = event.items()
            events.append({kind: {"contentBlockIndex": index, **body}})
        events.append({"contentBlockStop": {"contentBlockIndex": index}})
    return [*events, {"messageStop": {"stopReason": reason}}]


def text(said: str) -> list[Json]:
    return [{"contentBlockDelta": {"delta": {"text": said}}}]


def call(name: str, arguments: str, kind: str = "tool_use") -> list[Json]:
    use = {"toolUseId": f"use-{name}", "name": name, "type": kind}
    return [
        {"contentBlockStart": {"start": {"toolUse": use}}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}},
    ]


def result(name: str, said: str) -> list[Json]:
    start = {"toolResult": {"toolUseId": f"use-{name}", "status": "success"}}
    return [
        {"contentBlockStart": {"start": start}},
        {"contentBlockDelta": {"delta": {"toolResult": [{"text": said}]}}},
    ]


class Harness:
    def __init__(self) -> None:
        self.answers: list[list[Json]] = []
        self.requests: list[tuple[Request, Json]] = []

    async def invoke(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append((request, body))
        session = request.headers["x-amzn-bedrock-agentcore-runtime-session-id"]
        fields = {**body, "harnessArn": request.query_params["harnessArn"], "runtimeSessionId": session}
        if ParamValidator().validate(fields, INPUT).has_errors():
            return JSONResponse({"message": "not valid"}, 400)
        if not self.answers:
            return JSONResponse({"message": "secret of the service"}, 400)
        events = self.answers.pop(0)

        async def stream() -> AsyncIterator[bytes]:
            data = b"".join(map(frame, events))
            for at in range(0, len(data), 50):
                yield data[at : at + 50]

        return StreamingResponse(stream(), media_type="application/vnd.amazon.eventstream")


@pytest.fixture
async def harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    played = Harness()
    app = Starlette(routes=[Route("/harnesses/invoke", played.invoke, methods=["POST"])])
    async with listening(app) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", planted("aws"))
        yield played


async def test_a_thread_is_a_session_and_only_new_messages_are_sent(harness: Harness) -> None:
    usage = {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}}}
    harness.answers = [[*message(text("hel"), text("lo")), usage], message(text("again"))]
    async with open_thread(settings=Settings(agent=ARN)) as thread:
        events = await thread.send("first")
        assert thread.text == "hello"
        await thread.send("second")
        assert thread.text == "again"
    (one, _), (two, body) = harness.requests
    assert parse_qs(one.url.query)["harnessArn"] == [ARN]
    session = "x-amzn-bedrock-agentcore-runtime-session-id"
    assert one.headers[session] == two.headers[session]
    assert one.headers["authorization"].startswith("AWS4-HMAC-SHA256")
    assert body["messages"] == [{"role": "user", "content": [{"text": "second"}]}]
    assert isinstance(events[-1], RunFinishedEvent)
    assert [each.output_tokens for each in events[-1].usage or ()] == [2]


async def test_tools_of_the_harness_are_shown_with_their_results(harness: Harness) -> None:
    used = message(call("search", '{"q": 1}', "mcp_tool_use"), reason="tool_result")
    harness.answers = [[*used, *message(result("search", "found")), *message(text("done"))]]
    async with open_thread(settings=Settings(agent=ARN)) as thread:
        events = await thread.send("search")
        assert thread.text == "done"
    assert [event.content for event in of_type(events, ToolCallResultEvent)] == ["found"]


async def test_tools_of_the_settings_are_inline_functions(harness: Harness) -> None:
    pay_tools.PAID.clear()
    harness.answers = [message(call("pay", '{"amount": 7}'), reason="tool_use"), message(text("thanks"))]
    tools = "tests.agents.upstream.pay_tools:pay"
    policy = '[{"tool_pattern": "pay", "policy": "ask"}]'
    async with open_thread(settings=Settings(agent=ARN, tools=tools, tool_policy=policy)) as thread:
        await thread.send("pay")
        assert pay_tools.PAID == []
        await thread.answer({"approved": True})
        assert thread.text == "thanks"
    assert pay_tools.PAID == [7]
    (_, first), (_, second) = harness.requests
    assert [(tool["type"], tool["name"]) for tool in first["tools"]] == [("inline_function", "pay")]
    (content,) = second["messages"][0]["content"]
    assert content["toolResult"] == {"toolUseId": "use-pay", "content": [{"text": "paid 7"}], "status": "success"}


async def test_a_tool_without_a_description_and_an_empty_result_are_sent_as_the_service_takes_them(
    harness: Harness,
) -> None:
    harness.answers = [message(text("thanks"))]
    called = ToolCall(id="use-pick", function=FunctionCall(name="pick", arguments="{}"))
    history = [
        *user_input("pick").messages,
        AssistantMessage(id="m-2", tool_calls=[called]),
        ToolMessage(id="m-3", tool_call_id="use-pick", content=""),
    ]
    tools = [Tool(name="pick", description="", parameters={})]
    request = user_input("pick").model_copy(update={"messages": history, "tools": tools})
    events = await run_agent(None, request, Settings(agent=ARN))
    assert isinstance(events[-1], RunFinishedEvent)
    (_, body) = harness.requests[0]
    assert body["messages"][0]["content"][0]["toolResult"]["content"] == []


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [[{"exception": "internalServerException", "message": "secret of the service"}]],
        [[*message(text("half"))[:2], {"error": "Broken", "message": "secret of the service"}]],
    ],
    ids=["refused", "exception", "error"],
)
async def test_a_failure_is_one_sentence(
    harness: Harness, answers: list[list[Json]], caplog: pytest.LogCaptureFixture
) -> None:
    harness.answers = answers
    async with open_thread(settings=Settings(agent=ARN)) as thread:
        events = await thread.send("hi")
    assert isinstance(events[-1], RunErrorEvent)
    assert (events[-1].code, events[-1].message) == ("AGENT_ERROR", "The agent's server failed.")
    assert "secret" not in json.dumps([event.model_dump(mode="json") for event in events])
    assert "secret of the service" in caplog.text
