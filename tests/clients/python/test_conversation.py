"""The conversation that events make: messages, calls, state and activities."""

from ag_ui.core import AssistantMessage, BaseEvent, RawEvent, UserMessage

from agui_client.conversation import Conversation
from agui_client.events import parse_event
from agui_core.expander import Expander

Json = dict[str, object]


def events(*frames: Json) -> list[BaseEvent]:
    expander = Expander(lambda: "new")
    return [event for frame in frames for event in expander.expand(parse_event(frame))]


def conversation(*frames: Json, state: object = None) -> Conversation:
    made = Conversation(state=state)
    for event in events(*frames):
        made.apply(event)
    return made


def shown(made: Conversation) -> list[Json]:
    return [message.model_dump(by_alias=True, exclude_none=True) for message in made.messages]


def text(message_id: str, delta: str) -> list[Json]:
    ids = {"messageId": message_id}
    return [
        {"type": "TEXT_MESSAGE_START", **ids, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", **ids, "delta": delta},
        {"type": "TEXT_MESSAGE_END", **ids},
    ]


def tool_call(call_id: str, arguments: str, **start: object) -> list[Json]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": "roll", **start},
        {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": arguments},
        {"type": "TOOL_CALL_END", "toolCallId": call_id},
    ]


def test_reasoning_with_the_id_of_its_answer_gets_another_one() -> None:
    reasoning: list[Json] = [
        {"type": "REASONING_START", "messageId": "m"},
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": "hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": "m"},
        {"type": "REASONING_END", "messageId": "m"},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "secret"},
    ]
    assert shown(conversation(*reasoning, *text("m", "yes"))) == [
        {"id": "m-reasoning", "role": "reasoning", "content": "hm", "encryptedValue": "secret"},
        {"id": "m", "role": "assistant", "content": "yes"},
    ]


def test_results_stand_behind_their_calls() -> None:
    made = conversation(
        *text("m", "let me see"),
        *tool_call("c1", '{"sides": 6}', parentMessageId="m"),
        *tool_call("c2", "{}", parentMessageId="m"),
        *text("n", "wait"),
        {"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": "4"},
        {"type": "TOOL_CALL_RESULT", "messageId": "r2", "toolCallId": "c2", "content": "5"},
    )
    assert [message.id for message in made.messages] == ["m", "r1", "r2", "n"]
    first = made.messages[0]
    assert isinstance(first, AssistantMessage)
    assert [(each.id, each.function.arguments) for each in first.tool_calls or ()] == [
        ("c1", '{"sides": 6}'),
        ("c2", "{}"),
    ]
    assert made.open_calls == []


def test_calls_before_a_message_of_the_user_are_no_longer_open() -> None:
    made = conversation(*tool_call("c1", "{}"))
    assert len(made.open_calls) == 1
    made.add(UserMessage(id="u", content="never mind"))
    assert made.open_calls == []


def test_a_snapshot_replaces_messages_and_keeps_reasoning_and_activities() -> None:
    made = conversation(
        {"type": "REASONING_MESSAGE_START", "messageId": "t", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_END", "messageId": "t"},
        *text("m", "old"),
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": {"steps": []}},
        *text("n", "gone"),
        {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [
                {"id": "m", "role": "assistant", "content": "new"},
                {"id": "u", "role": "user", "content": "x"},
            ],
        },
    )
    assert [message.id for message in made.messages] == ["t", "m", "u", "a"]
    assert made.messages[1].content == "new"


def test_state_and_activities_change_by_patches() -> None:
    made = conversation(
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/items", "value": ["tea"]}]},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/items/-", "value": "milk"}]},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": {"done": 0}},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": {}, "replace": False},
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "a",
            "activityType": "PLAN",
            "patch": [{"op": "replace", "path": "/done", "value": 1}],
        },
    )
    assert made.state == {"items": ["tea", "milk"]}
    assert made.messages[0].content == {"done": 1}


def test_a_patch_that_does_not_apply_changes_nothing() -> None:
    delta = [{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/nowhere"}]
    assert conversation({"type": "STATE_DELTA", "delta": delta}, state={"b": 2}).state == {"b": 2}


def test_an_unknown_event_is_handed_on_raw_and_changes_nothing() -> None:
    frame: Json = {"type": "FROM_THE_FUTURE", "messageId": "m", "delta": "x"}
    (event,) = events(frame)
    assert isinstance(event, RawEvent)
    assert event.event == frame
    assert conversation(frame).messages == []
