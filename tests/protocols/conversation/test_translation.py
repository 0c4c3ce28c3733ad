"""The translators by themselves: a list of AG-UI events in, a list of messages out."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from ag_ui.core import DataSource, EventType, ImagePart, TextPart
from google.protobuf.json_format import ParseDict

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocols.conversation.approvals import approval_requests
from agui_container.protocols.conversation.events import with_field_names
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from agui_container.protocols.kontekst.translator import KontekstTranslator, RunStart
from agui_container.protocols.roboto.messages import FIELD_NAMES as ROBOTO
from agui_container.protocols.roz.client_messages import MAX_HISTORY, history_of, tool_of, user_message
from agui_container.protocols.roz.run_inputs import MAX_TOOLS, ClientTools, tools_by_name
from agui_container.protocols.roz.team import TeamEvents
from agui_container.protocols.roz.translator import RozTranslator
from agui_core.content import text_of

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


def interrupt_event(*interrupts: Event) -> Event:
    return event("RUN_FINISHED", outcome={"type": "interrupt", "interrupts": list(interrupts)})


def test_a_run_of_kontekst_asks_for_every_call() -> None:
    start = kontekst.StartRunCommand(prompt="hi", working_dir="/srv")
    opening = KontekstTranslator("r", "s", "d").open(RunStart(start, "m"))
    assert opening.run_input.forwarded_props
    assert opening.run_input.forwarded_props["approvals"] == {"ask": "all", "onDenial": "cancel"}
    assert [it.value for it in opening.run_input.context or ()] == ["/srv"]
    with pytest.raises(AppError, match="prompt"):
        KontekstTranslator("r", "s", "d").open(RunStart(kontekst.StartRunCommand(), "m"))


@pytest.mark.parametrize(
    ("start", "text"),
    [
        ({"prompt": "Write.", "skill": {"name": "haiku", "arguments": "rain"}}, "Write."),
        ({"skill": {"name": "haiku", "arguments": "rain"}}, "rain"),
        ({"skill": {"name": "haiku"}}, "Use the skill haiku."),
    ],
)
def test_a_run_by_skill_leaves_a_message_of_the_user(start: Event, text: str) -> None:
    command = ParseDict(start, kontekst.StartRunCommand())
    (message,) = KontekstTranslator("r", "s", "d").open(RunStart(command, "m")).run_input.messages
    assert (message.role, message.content) == ("user", text)


def test_a_history_names_its_mistake() -> None:
    with pytest.raises(AppError, match=r"history\.0\.role"):
        history_of([roz.ConversationMessage(role="robot")])


def test_media_and_texts_keep_their_labels() -> None:
    image = roz.BinaryContent(mime_type="image/png", data=b"x")
    table = roz.BinaryContent(mime_type="text/csv", data=b"x")
    blocks = [
        roz.ContentBlock(binary=image, label="a.png"),
        roz.ContentBlock(text="y", label="b.txt"),
        roz.ContentBlock(binary=table),
    ]
    message = user_message(roz.UserMessage(content="see", context=blocks), "u1")
    assert isinstance(message.content, list)
    assert [part.text for part in message.content if part.type == "text"] == ["see", "a.png:", "b.txt:\ny"]
    (picture,) = [part for part in message.content if part.type == "image"]
    assert [part.type for part in message.content if part.type not in {"text", "image"}] == ["document"]
    assert picture.metadata == {"filename": "a.png"}


def test_a_history_has_reasoning_calls_results_and_images() -> None:
    use = roz.ToolUseContent(id="c1", name="move")
    use.input.update({"x": 1})
    image = roz.ImageContent(media_type="image/png", data=b"x")
    result = roz.ToolResultContent(tool_use_id="c1", name="move", content="moved")
    thinking = roz.ThinkingContent(thinking="why not", signature="sig")
    said = roz.ContentPart(text=roz.TextContent(text="I move"))
    history = [
        ("user", [said, roz.ContentPart(image=image)]),
        ("assistant", [roz.ContentPart(thinking=thinking), said, roz.ContentPart(tool_use=use)]),
        ("user", [roz.ContentPart(tool_result=result)]),
    ]
    found = history_of([roz.ConversationMessage(role=role, parts=parts) for role, parts in history])
    asked, reasoning, answer, tool = [message.model_dump(by_alias=True, exclude_none=True) for message in found]
    assert [part["type"] for part in asked["content"]] == ["text", "image"]
    assert (reasoning["role"], reasoning["content"], reasoning["encryptedValue"]) == ("reasoning", "why not", "sig")
    assert (answer["content"], answer["toolCalls"][0]["function"]["arguments"]) == ("I move", '{"x":1}')
    assert (tool["role"], tool["toolCallId"], tool["content"]) == ("tool", "c1", "moved")


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
    team = TeamEvents("t", lambda: 0.0)
    begun = [it.WhichOneof("event") for it in team.feed(EventType.SUBAGENT_STARTED, again)]
    text = event("TEXT_MESSAGE_CONTENT", messageId="m", delta="x", subagentRunId="w1")
    team.feed(EventType.TEXT_MESSAGE_CONTENT, text)
    assert begun == ["worker_started"]
    out = [*team.feed(EventType.RUN_FINISHED, finished), *team.feed(EventType.RUN_FINISHED, finished)]
    out += team.feed(EventType.SUBAGENT_STARTED, again)
    out += team.feed(EventType.TOOL_CALL_RESULT, paid)
    assert [it.WhichOneof("event") for it in out] == ["worker_approval_requested", "worker_approval_resolved"]


def test_a_worker_that_asks_tells_how_long_it_waits_for_an_answer() -> None:
    team = TeamEvents("t", lambda: datetime(2026, 11, 25, 12, 0, tzinfo=UTC).timestamp())
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


def test_a_worker_without_a_result_has_the_text_of_its_last_phase() -> None:
    team, of_worker = TeamEvents("t", lambda: 0.0), {"subagentRunId": "w"}
    given = [
        event("SUBAGENT_STARTED", **of_worker, name="helper"),
        event("TEXT_MESSAGE_CONTENT", **of_worker, delta="Let me see."),
        event("TOOL_CALL_START", **of_worker, toolCallId="c", toolCallName="look"),
        event("TOOL_CALL_RESULT", **of_worker, toolCallId="c", content="1"),
        event("REASONING_MESSAGE_CONTENT", **of_worker, delta="Hm."),
        event("TEXT_MESSAGE_CONTENT", **of_worker, delta="One."),
        event("SUBAGENT_FINISHED", **of_worker),
    ]
    told = [it for each in given for it in team.feed(EventType(each["type"]), each)]
    assert [it.worker_phase.phase for it in told if it.HasField("worker_phase")] == [1, 2]
    assert [it.worker_completed.result for it in told if it.HasField("worker_completed")] == ["One."]


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


KONTEKST, ROZ = KontekstTranslator.field_names, RozTranslator.field_names


@pytest.mark.parametrize(
    ("names", "message", "expected"),
    [
        (KONTEKST, "messages: there is nothing.", "start.prompt: there is nothing."),
        (KONTEKST, "forwardedProps.skill: is wrong.", "start.skill: is wrong."),
        (KONTEKST, "forwardedProps.skill.name: is unknown.", "start.skill.name: is unknown."),
        (KONTEKST, "forwardedProps.agent: is unknown.", "start.agent_name: is unknown."),
        (KONTEKST, "resume.0.payload.reason: is long.", "deny_tool.reason: is long."),
        (ROZ, "messages.0.content.1: is wrong.", "user_message.content: is wrong."),
        (ROZ, "forwardedProps.model: is unknown.", "start.model: is unknown."),
        (ROZ, "forwardedProps.budget.contextTokens: is 0.", "start.max_context_tokens: is 0."),
        (ROZ, "resume.2.payload.editedArgs: is wrong.", "permission_decision.modifier: is wrong."),
        (ROZ, "resume.2: has expired.", "permission_decision.tool_call_id: has expired."),
        (ROZ, "messages.0: a; forwardedProps.hostId: b.", "user_message.content: a; start.host_id: b."),
        (ROZ, "The thread has messages: two.", "The thread has messages: two."),
        (ROZ, "forwardedProps.other: is wrong.", "forwardedProps.other: is wrong."),
        (ROBOTO, "messages: there is nothing.", "message: there is nothing."),
        (ROBOTO, "forwardedProps.skill.name: is unknown.", "invoke_skills.skill_id: is unknown."),
        (ROBOTO, "forwardedProps.model: is unknown.", "model_profile: is unknown."),
    ],
)
def test_an_error_names_the_fields_of_the_callers_protocol(names: dict[str, str], message: str, expected: str) -> None:
    assert with_field_names(AppError(ErrorCode.VALIDATION_ERROR, message), names).message == expected


def test_other_errors_stay_as_they_are() -> None:
    error = AppError(ErrorCode.AGENT_ERROR, "messages: were too many.")
    assert with_field_names(error, ROZ) is error
