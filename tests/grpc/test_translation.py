"""The translators by themselves: a list of AG-UI events in, a list of messages out."""

import json
from collections.abc import Collection
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from ag_ui.core import DataSource, EventType, ImagePart, TextPart, ToolMessage, UserMessage

from agui_container.protocol.errors import AppError
from agui_container.transports.conversation.approvals import (
    ApprovalDecision,
    Verdict,
    approval_requests,
    decision,
)
from agui_container.transports.conversation.events import RUN_ENDS, Cancelled, Completed, outcome_of, text_of
from agui_container.transports.conversation.pending import CALL_EVENTS, PendingCalls
from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from agui_container.transports.kontekst.translator import KontekstTranslator, RunStart
from agui_container.transports.roz.client_messages import MAX_HISTORY, history_of, tool_message, tool_of, user_message
from agui_container.transports.roz.client_tools import MAX_TOOLS, ClientTools, tools_by_name
from agui_container.transports.roz.options import PermissionRule, RozWire
from agui_container.transports.roz.server_messages import RozEncoder
from agui_container.transports.roz.team import TeamEvents
from agui_container.transports.roz.translator import RozTranslator

Event = dict[str, Any]

INTERRUPT = {
    "id": "i1",
    "reason": "tool_call",
    "message": "Allow pay?",
    "toolCallId": "c1",
    "metadata": {"toolName": "pay", "arguments": '{"amount":1}', "reason": "money", "preview": "-1"},
}


def event(kind: str, **fields: Any) -> Event:
    return {"type": kind, **fields}


def event_kinds(translator: KontekstTranslator, *given: Event) -> list[str]:
    """The kinds of a run's events, up to those that ask for what waits, or that end the conversation."""
    pending, out = PendingCalls({}), list[kontekst.RunEvent]()
    for it in given:
        kind = EventType(it["type"])
        out += translator.feed(kind, it)
        if kind in CALL_EVENTS:
            pending.feed(kind, it)
        if kind in RUN_ENDS:
            out += translator.ask(pending) if pending else translator.end(outcome_of(kind, it))
    return [str(each.WhichOneof("event")) for each in out]


def interrupt_event(*interrupts: Event) -> Event:
    return event("RUN_FINISHED", outcome={"type": "interrupt", "interrupts": list(interrupts)})


# --- kontekst ---------------------------------------------------------------------------------------------------------


def test_an_agent_that_asks_for_nothing_has_its_tools_shown_when_they_are_through() -> None:
    assert event_kinds(
        KontekstTranslator("r", "s", "default"),
        event("TOOL_CALL_START", toolCallId="c1", toolCallName="look"),
        event("TOOL_CALL_START", toolCallId="c2", toolCallName="feel"),
        event("TOOL_CALL_RESULT", toolCallId="c1", content="seen"),
        event("TOOL_CALL_RESULT", toolCallId="c2", content="broken", metadata={"failed": True}),
        event("TEXT_MESSAGE_CONTENT", messageId="m", delta="done"),
        event("RUN_FINISHED", outcome={"type": "success"}),
    ) == [
        *("turn_completed", "context_snapshot", "tool_started", "tool_completed", "tool_failed", "tools_completed"),
        *("token", "turn_completed", "context_snapshot", "completed"),
    ]


def test_a_result_is_shown_as_it_arrives_and_the_end_of_the_tools_with_the_last_one() -> None:
    translator = KontekstTranslator("r", "s", "default")
    for call in ("c1", "c2"):
        event_kinds(translator, event("TOOL_CALL_START", toolCallId=call, toolCallName="pay"))
    event_kinds(translator, interrupt_event(INTERRUPT, {**INTERRUPT, "id": "i2", "toolCallId": "c2"}))
    translator.settle([decision(call, is_approved=True) for call in ("c1", "c2")])
    results = [event("TOOL_CALL_RESULT", toolCallId=call, content="paid") for call in ("c1", "c2")]
    assert event_kinds(translator, results[0]) == ["tool_completed"]
    assert event_kinds(translator, results[1]) == ["tool_completed", "tools_completed"]


def test_a_question_that_is_no_tool_call_is_proposed_by_its_own_id() -> None:
    translator = KontekstTranslator("r", "s", "default")
    question = {"id": "i9", "reason": "confirm", "message": "Really?"}
    assert event_kinds(translator, interrupt_event(question)) == ["tools_proposed"]
    answer = decision("i9", is_approved=True)
    assert translator.settle([answer]) == [], "nothing starts, because nothing of this id would end"
    assert event_kinds(translator, event("RUN_FINISHED")) == ["completed"]


def test_a_call_without_a_result_fails_at_the_end_of_its_run() -> None:
    translator = KontekstTranslator("r", "s", "default")
    event_kinds(translator, interrupt_event(INTERRUPT))
    started = translator.settle([decision("c1", is_approved=True)])
    assert [each.tool_started.call_id for each in started] == ["c1"]
    assert event_kinds(translator, event("RUN_ERROR", message="no")) == ["tool_failed", "tools_completed", "failed"]


def test_a_call_that_another_client_may_have_denied_does_not_start_before_its_result() -> None:
    translator = KontekstTranslator("r", "s", "default")
    event_kinds(translator, interrupt_event(INTERRUPT))
    assert translator.settle([ApprovalDecision("c1", Verdict.ELSEWHERE)]) == []
    (last,) = translator.end(Cancelled())
    assert last.HasField("cancelled")


def test_events_inside_a_subagent_are_not_shown() -> None:
    inside = event("TEXT_MESSAGE_CONTENT", messageId="m", delta="x", subagentRunId="w")
    assert event_kinds(KontekstTranslator("r", "s", "d"), inside) == []


def test_a_run_of_kontekst_asks_for_every_call() -> None:
    start = kontekst.StartRunCommand(prompt="hi", working_dir="/srv")
    opening = KontekstTranslator("r", "s", "d").open(RunStart(start, "m"))
    assert opening.run_input.forwarded_props
    assert opening.next_props
    for props in (opening.run_input.forwarded_props, opening.next_props):
        assert props["approvals"] == {"ask": "all", "onDenial": "cancel"}
    assert [it.value for it in opening.run_input.context or ()] == ["/srv"]
    with pytest.raises(AppError, match="prompt"):
        KontekstTranslator("r", "s", "d").open(RunStart(kontekst.StartRunCommand(), "m"))


# --- roz --------------------------------------------------------------------------------------------------------------


class TranslatedTurn:
    """A turn as the loop translates it.

    Attributes:
        pending: calls that wait for the client.
    """

    def __init__(self, generation: RozWire = RozWire.V0_2, tools: Collection[roz.ToolSchema] = ()) -> None:
        numbers = count(1)
        wire = RozEncoder(generation, lambda: f"e{next(numbers)}", lambda: 100.0)
        rules = [PermissionRule("pay", "ask", "physical", "money")]
        self.translator = RozTranslator(wire, "m1", tools_by_name(tools), rules, lambda: 100.0)
        self.pending = PendingCalls({tool.name: 60_000 for tool in tools})

    def feed(self, kind: str, **fields: Any) -> list[roz.SessionResponse]:
        """Feed one event. Returns the responses, and those that ask the client after the last one of a run."""
        responses = self.translator.feed(EventType(kind), event(kind, **fields))
        if EventType(kind) in CALL_EVENTS:
            self.pending.feed(EventType(kind), event(kind, **fields))
        is_asking = EventType(kind) in RUN_ENDS and self.pending
        return [*responses, *(self.translator.ask(self.pending) if is_asking else ())]


def kinds(responses: list[roz.SessionResponse]) -> list[str]:
    return [str(response.WhichOneof("response")) for response in responses]


def test_a_stop_of_the_model_is_the_stop_of_the_turn() -> None:
    for word, reason in (("length", "max_tokens"), ("filtered", "content_filter")):
        turn = TranslatedTurn()
        turn.feed("CUSTOM", name="model.stopped", value={"reason": word})
        turn.feed("RUN_FINISHED", outcome={"type": "success"})
        assert turn.translator.end(Completed())[0].turn_complete.stop_reason == reason


def test_cached_tokens_are_counted_apart() -> None:
    turn = TranslatedTurn()
    usage = {"inputTokens": 100, "outputTokens": 7, "cachedInputTokens": 60, "cacheWriteInputTokens": 10}
    turn.feed("RUN_FINISHED", usage=[usage, usage])
    total = turn.translator.end(Completed())[0].turn_complete.usage
    assert (total.input_tokens, total.output_tokens) == (60, 14)
    assert (total.cache_read_tokens, total.cache_creation_tokens) == (120, 20)


def test_a_call_with_arguments_that_are_no_json_does_not_reach_the_client() -> None:
    turn = TranslatedTurn(RozWire.V1_0, [roz.ToolSchema(name="move")])
    turn.feed("TOOL_CALL_START", toolCallId="c", toolCallName="move")
    turn.feed("TOOL_CALL_ARGS", toolCallId="c", delta="{no")
    responses = turn.feed("RUN_FINISHED", outcome={"type": "success"})
    assert [response.session_event.event_type for response in responses][-1] == "tool_call_started"
    (answer,) = turn.pending.answers or ()
    assert isinstance(answer, ToolMessage)
    assert "Error: the client cannot get the arguments" in str(answer.error)


def test_the_agent_thinks_again_once_the_last_tool_of_the_server_has_ended() -> None:
    turn, states = TranslatedTurn(), []
    calls = ("TOOL_CALL_START", "TOOL_CALL_END", "TOOL_CALL_RESULT")
    for kind, call in [*((kind, "c1") for kind in calls[:2]), *((kind, "c2") for kind in calls)]:
        fed = turn.feed(kind, toolCallId=call, toolCallName="echo")
        states += [it.activity_update.state for it in fed if it.HasField("activity_update")]
    assert states == ["calling_tool"]
    last = turn.feed("TOOL_CALL_RESULT", toolCallId="c1")
    assert last[0].activity_update.state == "thinking"


def test_a_tool_is_requested_once_though_another_client_approves_the_call_beside_it() -> None:
    turn = TranslatedTurn(tools=[roz.ToolSchema(name="move")])
    for call, name in (("c1", "pay"), ("c2", "move")):
        turn.feed("TOOL_CALL_START", toolCallId=call, toolCallName=name)
    asked_for = kinds(turn.feed("RUN_FINISHED", outcome={"type": "interrupt", "interrupts": [INTERRUPT]}))
    assert asked_for.count("tool_request") == 1
    assert turn.pending.drop_approvals() == []
    turn.translator.settle([ApprovalDecision("c1", Verdict.ELSEWHERE)])
    turn.feed("TOOL_CALL_RESULT", toolCallId="c1", content="paid")
    again = kinds(turn.feed("RUN_FINISHED", outcome={"type": "success"}))
    assert ("tool_request" in again, list(turn.pending.tools)) == (False, ["c2"])
    assert turn.pending.drop_tool("c2") is None
    assert not turn.pending


def test_each_generation_gets_its_own_form_only() -> None:
    forms = {}
    for generation in RozWire:
        turn = TranslatedTurn(generation)
        turn.translator.begin(1)
        forms[generation] = kinds(turn.feed("TEXT_MESSAGE_CONTENT", messageId="a", delta="x"))
    assert forms == {
        RozWire.BOTH: ["text_delta", "session_event"],
        RozWire.V0_2: ["text_delta"],
        RozWire.V1_0: ["session_event"],
    }


def test_a_history_names_its_mistake() -> None:
    with pytest.raises(AppError, match=r"history\.0\.role"):
        history_of([roz.ConversationMessage(role="robot")])


def test_media_become_parts_of_their_kind() -> None:
    blocks = [
        roz.ContentBlock(binary=roz.BinaryContent(mime_type=mime, data=b"x")) for mime in ("image/png", "text/csv")
    ]
    message = user_message(roz.UserMessage(content="see", context=blocks), "u1")
    assert isinstance(message.content, list)
    assert [part.type for part in message.content] == ["text", "image", "document"]


def test_media_and_texts_keep_their_labels() -> None:
    image = roz.BinaryContent(mime_type="image/png", data=b"x")
    blocks = [roz.ContentBlock(binary=image, label="a.png"), roz.ContentBlock(text="y", label="b.txt")]
    message = user_message(roz.UserMessage(content="see", context=blocks), "u1")
    assert isinstance(message.content, list)
    assert [part.text for part in message.content if part.type == "text"] == ["see", "a.png:", "b.txt:\ny"]
    (picture,) = [part for part in message.content if part.type == "image"]
    assert picture.metadata == {"filename": "a.png"}


def test_a_history_may_have_images() -> None:
    parts = [
        roz.ContentPart(text=roz.TextContent(text="what is this")),
        roz.ContentPart(image=roz.ImageContent(media_type="image/png", data=b"x")),
    ]
    (message,) = history_of([roz.ConversationMessage(role="user", parts=parts)])
    assert isinstance(message, UserMessage)
    assert isinstance(message.content, list)
    assert [part.type for part in message.content] == ["text", "image"]


def test_a_result_keeps_what_is_said_of_it() -> None:
    result = roz.ToolResult(tool_call_id="c", success=False, result="no", exit_code=2, truncated=True, duration_ms=5)
    message = tool_message(result)
    assert (message.content, message.error) == ("no\n[exit code 2]\n[the output was truncated]", "no")
    assert message.metadata == {"exitCode": 2, "truncated": True, "durationMs": 5}


def test_the_schema_of_a_tool_is_that_of_an_object() -> None:
    schema = roz.ToolSchema(name="move")
    assert tool_of(schema).parameters == {"type": "object", "properties": {}}
    schema.parameters_schema.update({"properties": {"x": {"type": "number"}}})
    assert tool_of(schema).parameters == {"type": "object", "properties": {"x": {"type": "number"}}}
    schema.parameters_schema.update({"type": "string"})
    with pytest.raises(AppError, match="parameters_schema: the tool 'move' needs an object schema"):
        tool_of(schema)


def test_a_tool_needs_a_name_and_there_are_not_too_many() -> None:
    with pytest.raises(AppError, match="name"):
        tool_of(roz.ToolSchema())
    tools = ClientTools()
    many = [roz.ToolSchema(name=f"t{number}") for number in range(MAX_TOOLS + 1)]
    with pytest.raises(AppError, match=str(MAX_TOOLS)):
        tools.register("s", tools_by_name(many, "s"), "")
    tools.register("s", tools_by_name(many[:-1], "s"), "")
    with pytest.raises(AppError, match=str(MAX_TOOLS)):
        tools.register("other", tools_by_name(many[-1:], "other"), "")
    tools.register("s", {}, "")
    assert dict(tools.current) == {}


def test_a_worker_that_asks_is_told_to_clients_of_release_1_0() -> None:
    finished = interrupt_event({**INTERRUPT, "subagentRunId": "w1"})
    again = event("SUBAGENT_STARTED", subagentRunId="w1", name="helper")
    paid = event("TOOL_CALL_RESULT", toolCallId="c1", content="paid", subagentRunId="w1")
    for has_approvals, expected in ((True, ["worker_approval_requested", "worker_approval_resolved"]), (False, [])):
        team = TeamEvents("t", lambda: 0.0, has_approvals=has_approvals)
        begun = [it.WhichOneof("event") for it in team.feed(EventType.SUBAGENT_STARTED, again)]
        team.feed(
            EventType.TEXT_MESSAGE_CONTENT, event("TEXT_MESSAGE_CONTENT", messageId="m", delta="x", subagentRunId="w1")
        )
        assert begun == ["worker_started"]
        out = [*team.feed(EventType.RUN_FINISHED, finished), *team.feed(EventType.RUN_FINISHED, finished)]
        out += team.feed(EventType.SUBAGENT_STARTED, again)
        out += team.feed(EventType.TOOL_CALL_RESULT, paid)
        assert [it.WhichOneof("event") for it in out] == expected


def test_a_worker_that_asks_tells_how_long_it_waits_for_an_answer() -> None:
    team = TeamEvents("t", lambda: datetime(2026, 11, 25, 12, 0, tzinfo=UTC).timestamp(), has_approvals=True)
    interrupts = [
        {**INTERRUPT, "id": call_id, "toolCallId": call_id, "subagentRunId": "w1", **expiry}
        for call_id, expiry in {
            "open": {"expiresAt": "2026-11-25T13:00:00+00:00"},
            "expired": {"expiresAt": "2026-11-25T11:00:00+00:00"},
            "endless": {},
        }.items()
    ]
    events = team.feed(EventType.RUN_FINISHED, interrupt_event(*interrupts))
    assert [it.worker_approval_requested.timeout_secs for it in events] == [3600, 0, 0]


@pytest.mark.parametrize(
    ("hint", "category"),
    [
        (roz.TOOL_CATEGORY_UNSPECIFIED, ""),
        (roz.TOOL_CATEGORY_PHYSICAL, "physical"),
        (roz.TOOL_CATEGORY_PURE, "pure"),
        (roz.TOOL_CATEGORY_CODE_SANDBOX, "code_sandbox"),
    ],
)
def test_a_tool_has_the_category_that_its_client_hints_at(hint: roz.ToolCategoryHint, category: str) -> None:
    tools = tools_by_name([roz.ToolSchema(name="run", category=hint)])
    assert tools["run"].category == category


# --- both -------------------------------------------------------------------------------------------------------------


def test_an_interrupt_is_an_approval_request() -> None:
    (request,) = approval_requests(interrupt_event(INTERRUPT))
    assert (request.call_id, request.interrupt_id, request.name) == ("c1", "i1", "pay")
    assert (request.arguments, request.reason, request.preview) == ('{"amount":1}', "money", "-1")
    assert approval_requests(event("RUN_FINISHED", outcome={"type": "success"})) == []


def test_the_text_of_a_result_names_what_is_no_text() -> None:
    assert text_of("plain") == "plain"
    assert text_of([{"type": "text", "text": "a"}, {"type": "image"}]) == "a\n[image]"
    image = ImagePart(source=DataSource(value="", mime_type="image/png"))
    assert text_of([TextPart(text="a"), image]) == "a\n[image]"
    assert text_of(None) == ""


def test_long_arguments_are_cut_in_a_text_for_people_and_the_cut_is_shown() -> None:
    arguments = json.dumps({"text": "x" * 20_000})
    (request,) = approval_requests(interrupt_event({**INTERRUPT, "metadata": {"arguments": arguments}}))
    assert request.explanation.startswith('arguments: {"text": "xxx')
    assert request.explanation.endswith("… (10012 characters more)")
    (question,) = approval_requests(interrupt_event({"id": "i2", "reason": "ask", "message": "Which city?"}))
    assert question.explanation == "Which city?"


def test_a_history_of_too_many_messages_is_refused_before_it_is_read() -> None:
    message = roz.ConversationMessage(role="user", parts=[roz.ContentPart(text=roz.TextContent(text="x"))])
    assert len(history_of([message] * MAX_HISTORY)) == MAX_HISTORY
    with pytest.raises(AppError, match="5000 messages and parts at most"):
        history_of([message] * (MAX_HISTORY + 1))
