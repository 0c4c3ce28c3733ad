"""Spans of a run and of its parts, over every transport."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest
from ag_ui.core import RunAgentInput
from opentelemetry import baggage
from opentelemetry.trace import SpanKind

from agui_container.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext
from agui_container.telemetry.semconv import SWITCH
from tests.behaviour import approval_tools
from tests.behaviour.client import outcome
from tests.behaviour.subagents import team
from tests.conftest import Connect, Serve
from tests.engine.doubles import WAIT, ask
from tests.telemetry.conftest import Recorded, attributes_of, is_error


def approval_assistant() -> Assistant:
    return Assistant(OfflineModel(), (approval_tools.echo, approval_tools.stick, approval_tools.burst))


async def test_a_run_tells_whose_it_is_and_what_it_used(connect: Connect, recorded: Recorded) -> None:
    await (await connect(team(0))).run(ask(text="calculate 1+2"))
    span = recorded["invoke_agent"]
    assert span.kind is SpanKind.INTERNAL
    assert attributes_of(span)["agui.request.id"]
    assert {name: value for name, value in attributes_of(span).items() if name != "agui.request.id"} == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": "t1",
        "agui.run.id": "r1",
        "agui.run.status": "finished",
        "gen_ai.usage.input_tokens": 34,
        "gen_ai.usage.output_tokens": 9,
    }


async def test_calls_of_models_and_tools_are_below_their_run(connect: Connect, recorded: Recorded) -> None:
    await (await connect(team(0))).run(ask(text="calculate 1+2"))
    assert recorded.tree() == ["invoke_agent", ["chat offline", "execute_tool calculate", "chat offline"]]
    asked, tool, answered = recorded.spans[1:]
    assert asked.kind is SpanKind.CLIENT
    assert attributes_of(asked) | {"gen_ai.usage.input_tokens": 0} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "offline",
        "gen_ai.request.model": "offline",
        "gen_ai.conversation.id": "t1",
        "gen_ai.usage.input_tokens": 0,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.finish_reasons": ("tool_call",),
    }
    assert attributes_of(answered)["gen_ai.response.finish_reasons"] == ("stop",)
    assert attributes_of(tool)["gen_ai.tool.call.id"]
    assert attributes_of(tool)["gen_ai.tool.name"] == "calculate"


async def test_a_model_that_fails_is_told_by_its_code_and_no_words(connect: Connect, recorded: Recorded) -> None:
    await (await connect(team(0))).run(ask(text="fail"))
    run, call = recorded.spans
    assert is_error(run)
    assert is_error(call)
    assert attributes_of(run)["error.type"] == attributes_of(call)["error.type"] == "MODEL_ERROR"
    assert attributes_of(run)["agui.run.status"] == "error"
    assert (run.events, call.events) == ((), ())


async def test_a_cancelled_run_is_no_error(connect: Connect, recorded: Recorded) -> None:
    client = await connect(approval_assistant())
    stream = await client.start(ask(text="call stick {}"))
    await stream.until("TOOL_CALL_END")
    await client.cancel("t1", "r1")
    await stream.rest()
    async with asyncio.timeout(WAIT):
        while len(recorded.spans) < 3:  # noqa: ASYNC110 - the tool is unwound behind the run's end
            await asyncio.sleep(0)
    assert recorded.tree() == ["invoke_agent", ["chat offline", "execute_tool stick"]]
    assert attributes_of(recorded["invoke_agent"])["agui.run.status"] == "cancelled"
    assert not any(map(is_error, recorded.spans))


@pytest.mark.parametrize(
    ("said", "kind"),
    [("call burst {}", "ValueError"), ('call echo {"txt": 1}', "ToolError")],
    ids=["breaks", "refuses"],
)
async def test_a_tool_that_fails_is_told_and_its_run_is_none_that_failed(
    connect: Connect, recorded: Recorded, said: str, kind: str
) -> None:
    await (await connect(approval_assistant())).run(ask(text=said))
    [tool] = [span for span in recorded.spans if span.name.startswith("execute_tool")]
    assert is_error(tool)
    assert attributes_of(tool)["error.type"] == kind
    assert "secret" not in str(attributes_of(tool))
    assert not is_error(recorded["invoke_agent"])


@pytest.mark.parametrize("way", ["asynchronous", "in a thread"])
async def test_spans_of_an_agent_are_below_its_run(connect: Connect, recorded: Recorded, way: str) -> None:
    tracer = recorded.provider.get_tracer("mine")

    async def there(_: RunAgentInput) -> AsyncIterator[Item]:
        with tracer.start_as_current_span("mine"):
            yield "hi"

    def in_a_thread(_: RunAgentInput) -> Iterator[Item]:
        with tracer.start_as_current_span("mine"):
            yield "hi"

    events = await (await connect(there if way == "asynchronous" else in_a_thread)).run(ask())
    assert outcome(events) == "success"
    assert recorded.tree() == ["invoke_agent", ["mine"]]


async def test_the_session_is_told_and_goes_along_as_baggage(serve: Serve, recorded: Recorded) -> None:
    found: list[object] = []

    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        found.append(baggage.get_baggage("session.id"))
        yield "hi"

    session = "s" * 40
    for number, client in enumerate(await serve(agent)):
        await client.with_headers(X_Amzn_Bedrock_AgentCore_Runtime_Session_Id=session).run(ask(run=f"r{number}"))
    assert [attributes_of(span)["session.id"] for span in recorded.spans] == found == [session, session]


@pytest.mark.parametrize("switch", ["", "false", "no_content", "event_only"])
async def test_the_text_of_messages_stays_out_of_spans(
    connect: Connect, recorded: Recorded, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    monkeypatch.setenv(SWITCH, switch)
    await (await connect(approval_assistant())).run(ask(text='call echo {"text": "a secret"}'))
    assert len(recorded.spans) == 4
    assert "secret" not in str([attributes_of(span) for span in recorded.spans])


@pytest.mark.parametrize("switch", ["true", "SPAN_ONLY", "span_and_event"])
async def test_the_text_of_messages_is_recorded_if_the_operator_asks_for_it(
    connect: Connect, recorded: Recorded, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    monkeypatch.setenv(SWITCH, switch)
    await (await connect(approval_assistant())).run(ask(text='call echo {"text": "hello"}'))
    asked, tool, answered = map(attributes_of, recorded.spans[1:])
    assert json.loads(asked["gen_ai.system_instructions"])[0]["type"] == "text"
    said = [{"role": "user", "parts": [{"type": "text", "content": 'call echo {"text": "hello"}'}]}]
    assert json.loads(asked["gen_ai.input.messages"]) == said
    [call] = json.loads(asked["gen_ai.output.messages"])[0]["parts"]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("tool_call", "echo", {"text": "hello"})
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"text": "hello"}
    assert tool["gen_ai.tool.call.result"] == "hello"
    assert json.loads(answered["gen_ai.input.messages"])[-1]["role"] == "tool"
    assert json.loads(answered["gen_ai.output.messages"])[0]["finish_reason"] == "stop"
