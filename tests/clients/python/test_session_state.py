"""What a session makes of events that only some servers send. Those of all servers: ``tests/official/test_fold.py``."""

from ag_ui.core import RawEvent

from agui_client.events import parse_event
from agui_client.session_state import SessionState
from agui_core.expander import Expander

Json = dict[str, object]


def session(*frames: Json, state: object = None) -> SessionState:
    made = SessionState("t", {"state": state})
    expander = Expander(lambda: "new")
    for frame in frames:
        for event in expander.expand(parse_event(frame)):
            made.apply(event)
    return made


def test_reasoning_with_the_id_of_its_answer_gets_another_one() -> None:
    made = session(
        {"type": "REASONING_START", "messageId": "m"},
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": "hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": "m"},
        {"type": "REASONING_END", "messageId": "m"},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "secret"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "yes"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    )
    assert [message.model_dump(by_alias=True, exclude_none=True) for message in made.messages] == [
        {"id": "m-reasoning", "role": "reasoning", "content": "hm", "encryptedValue": "secret"},
        {"id": "m", "role": "assistant", "content": "yes"},
    ]


def test_a_patch_that_does_not_apply_changes_nothing() -> None:
    delta = [{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/nowhere"}]
    assert session({"type": "STATE_DELTA", "delta": delta}, state={"b": 2}).state == {"b": 2}


def test_an_unknown_event_is_handed_on_raw_and_changes_nothing() -> None:
    frame: Json = {"type": "FROM_THE_FUTURE", "messageId": "m", "delta": "x"}
    event = parse_event(frame)
    assert isinstance(event, RawEvent)
    assert event.event == frame
    assert session(frame).messages == []
