"""The JSON of messages that is kept between turns."""

from collections.abc import Callable

import pytest
from ag_ui.core import AssistantMessage, FunctionCall, Message, ToolCall, UserMessage

from agui_container.conversation.message_json import MAX_KEPT_BYTES, MessageEncoder, encode_message
from agui_container.protocol.parser import MESSAGE


def said() -> UserMessage:
    return UserMessage(id="m", content="hello")


def called() -> AssistantMessage:
    call = ToolCall(id="c", function=FunctionCall(name="look", arguments="{}"))
    return AssistantMessage(id="m", content="I look.", tool_calls=[call])


def add_call_arguments(message: Message) -> None:
    assert isinstance(message, AssistantMessage)
    assert message.tool_calls
    message.tool_calls[0].function.arguments = '{"at":1}'


def set_field(name: str, value: object) -> Callable[[Message], None]:
    return lambda message: setattr(message, name, value)


def test_an_equal_text_message_is_not_encoded_again() -> None:
    encoder = MessageEncoder()
    assert encoder.encode(said()) is encoder.encode(said())


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (said, set_field("content", "bye")),
        (said, set_field("name", "Ada")),
        (said, set_field("encrypted_value", "e")),
        (said, set_field("metadata", {"a": 1})),
        (said, set_field("mood", "well")),
        (called, set_field("content", "I look again.")),
        (called, add_call_arguments),
    ],
)
def test_a_message_that_its_agent_changes_is_encoded_as_it_is_then(
    make: Callable[[], Message], change: Callable[[Message], None]
) -> None:
    encoder, message = MessageEncoder(), make()
    before = encoder.encode(message)
    change(message)
    after = encoder.encode(message)
    assert after != before
    assert after == encode_message(message)
    assert encoder.encode(make()) == before


def test_messages_of_two_roles_with_the_same_fields_differ() -> None:
    encoder = MessageEncoder()
    messages = [MESSAGE.validate_python({"id": "m", "role": role, "content": "x"}) for role in ("system", "developer")]
    assert [encoder.encode(message) for message in messages] == [encode_message(message) for message in messages]


def test_messages_are_forgotten_when_they_are_too_large_together() -> None:
    encoder = MessageEncoder()
    first = encoder.encode(said())
    encoder.encode(UserMessage(id="long", content="x" * (MAX_KEPT_BYTES // 2 - len(first))))
    again = encoder.encode(said())
    assert (again == first, again is first) == (True, False)
