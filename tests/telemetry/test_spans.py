"""Spans of a run and of its parts, over every transport."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from ag_ui.core import Tool as ToolSpec
from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import SpanKind

from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext, ToolContent
from agui_container.telemetry.semconv import SWITCH
from tests.agents.doubles import ScriptedModel
from tests.behaviour import approval_tools
from tests.behaviour.client import begin_run, outcome, types
from tests.behaviour.subagents import team
from tests.conftest import Connect, Serve
from tests.engine.doubles import WAIT, agent_of, ask
from tests.requirements import requirement
from tests.telemetry.conftest import Recorded, attributes_of, is_error
from tests.waiting_agent import WaitingAgent


class UndecoratedTool:
    """A tool of one's own, with no decorator to look at what it gives."""

    spec = ToolSpec(name="give", description="Give it.", parameters={})

    def __init__(self, given: Any) -> None:  # noqa: ANN401 - whatever somebody writes there
        self._given = given

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        return self._given  # type: ignore[no-any-return] # which may not be true


def approval_assistant() -> Assistant:
    return Assistant(OfflineModel(), (approval_tools.echo, approval_tools.stick, approval_tools.burst))


@requirement("trace.run")
@pytest.mark.not_behind_platform("requests get a session and a trace of the platform")
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


@requirement("trace.calls")
@pytest.mark.not_behind_platform("requests get a session and a trace of the platform")
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


@requirement("trace.subagents")
async def test_spans_of_a_subagent_are_below_the_call_that_starts_it(connect: Connect, recorded: Recorded) -> None:
    events = await (await connect(team(1))).run(ask(text="delegate calculate 1+2"))
    inner = ["chat offline", "execute_tool calculate", "chat offline"]
    handed = ["execute_tool delegate", ["invoke_agent delegate", inner]]
    assert recorded.tree() == ["invoke_agent", ["chat offline", *handed, "chat offline"]]
    [started] = [event for event in events if event["type"] == "SUBAGENT_STARTED"]
    assert attributes_of(recorded["invoke_agent delegate"])["gen_ai.agent.id"] == started["subagentRunId"]
    assert {attributes_of(span)["gen_ai.conversation.id"] for span in recorded.spans} == {"t1"}


@requirement("trace.run")
async def test_a_run_that_has_waited_in_line_is_not_below_the_run_before_it(
    connect: Connect, recorded: Recorded
) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_busy="enqueue")
    first = await begin_run(client, "r1")
    second = await client.start(ask(run="r2"))
    agent.may_end.set()
    assert [outcome(await each.rest()) for each in (first, second)] == ["success", "success"]
    assert [attributes_of(span)["agui.run.id"] for span in recorded.spans] == ["r1", "r2"]
    assert recorded.tree() == ["invoke_agent", "invoke_agent"]


@requirement("trace.ends")
async def test_a_model_that_fails_is_told_by_its_code_and_no_words(connect: Connect, recorded: Recorded) -> None:
    await (await connect(team(0))).run(ask(text="fail"))
    run, call = recorded.spans
    assert is_error(run)
    assert is_error(call)
    assert attributes_of(run)["error.type"] == attributes_of(call)["error.type"] == "MODEL_ERROR"
    assert attributes_of(run)["agui.run.status"] == "error"
    assert (run.events, call.events) == ((), ())


@requirement("trace.ends")
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


@requirement("trace.ends")
async def test_a_run_that_waits_for_somebodys_word_is_no_error(connect: Connect, recorded: Recorded) -> None:
    events = await (await connect(team(1))).run(ask(text='delegate call pay {"amount": 3}'))
    assert outcome(events) == "interrupt"
    assert attributes_of(recorded["invoke_agent"])["agui.run.status"] == "interrupted"
    assert not any(map(is_error, recorded.spans))


@requirement("trace.ends")
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


@requirement("trace.own")
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


@requirement("trace.own")
async def test_a_second_reader_and_a_look_at_a_thread_invoke_no_agent(connect: Connect, recorded: Recorded) -> None:
    client = await connect(team(0))
    await client.run(ask())
    await client.run(ask())
    shown = await client.run(ask(run="look", messages=[]))
    assert "MESSAGES_SNAPSHOT" in types(shown)
    assert recorded.tree() == ["invoke_agent", ["chat offline"]]


@requirement("trace.session")
async def test_the_session_is_told_and_goes_along_as_baggage(serve: Serve, recorded: Recorded) -> None:
    found: list[object] = []

    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        found.append(baggage.get_baggage("session.id"))
        yield "hi"

    session = "s" * 40
    for number, client in enumerate(await serve(agent)):
        await client.with_headers(X_Amzn_Bedrock_AgentCore_Runtime_Session_Id=session).run(ask(run=f"r{number}"))
    assert [attributes_of(span)["session.id"] for span in recorded.spans] == found == [session, session]


@requirement("trace.content")
@pytest.mark.parametrize("switch", ["", "false", "no_content", "event_only"])
async def test_the_text_of_messages_stays_out_of_spans(
    connect: Connect, recorded: Recorded, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    monkeypatch.setenv(SWITCH, switch)
    await (await connect(approval_assistant())).run(ask(text='call echo {"text": "a secret"}'))
    assert len(recorded.spans) == 4
    assert "secret" not in str([attributes_of(span) for span in recorded.spans])


@requirement("trace.content")
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


@requirement("trace.harmless")
@pytest.mark.parametrize(
    ("given", "result"),
    [
        ([{"type": "text", "text": "hi"}], [{"type": "text", "text": "hi"}]),
        (None, "Error: the tool's result cannot be sent."),
    ],
    ids=["its JSON", "nothing"],
)
async def test_a_result_that_is_not_of_ag_uis_types_harms_no_run_that_is_told_of(
    connect: Connect, recorded: Recorded, monkeypatch: pytest.MonkeyPatch, given: object, result: object
) -> None:
    monkeypatch.setenv(SWITCH, "true")
    events = await (await connect(Assistant(OfflineModel(), (UndecoratedTool(given),)))).run(ask(text="call give {}"))
    assert [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"] == [result]
    assert outcome(events) == "success"
    assert str(attributes_of(recorded["execute_tool give"])["gen_ai.tool.call.result"])


@requirement("trace.harmless")
async def test_no_span_is_current_without_a_tracer(connect: Connect) -> None:
    found: list[object] = []

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        found.append(trace.get_current_span())
        yield "hi"

    await (await connect(agent)).run(ask())
    assert found == [trace.INVALID_SPAN]


@requirement("trace.harmless")
async def test_a_recorder_that_breaks_costs_no_run_its_end(connect: Connect, recorded: Recorded) -> None:
    class Broken(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("no room")

    recorded.provider.add_span_processor(Broken())
    client = await connect(agent_of("hi"))
    for run in ("r1", "r2"):
        assert outcome(await client.run(ask(run=run))) == "success"


@requirement("trace.calls")
async def test_a_model_is_told_by_the_providers_name_of_the_conventions(connect: Connect, recorded: Recorded) -> None:
    model = ScriptedModel([[], []], provider="bedrock", name="us.anthropic.claude")
    await (await connect(Assistant(model))).run(ask())
    span = recorded["chat us.anthropic.claude"]
    assert attributes_of(span)["gen_ai.provider.name"] == "aws.bedrock"
