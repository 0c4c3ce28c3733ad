"""The opaque value of a model's call lives with the call: in the thread, and for a client that does not keep it."""

import pytest
from ag_ui.core import AssistantMessage, Message, ToolCall

from agui_container.agents.assistant.assistant import Assistant
from agui_container.ports import ToolCallDelta
from tests.agents.doubles import DONE, ScriptedModel, answering
from tests.behaviour.subagents import of_type
from tests.conftest import Connect
from tests.engine.doubles import ask
from tests.requirements import requirement


def without_values(message: Message) -> Message:
    """Return the message as a client has it that knows no opaque values."""
    if not isinstance(message, AssistantMessage) or not message.tool_calls:
        return message
    calls = [ToolCall(id=call.id, function=call.function) for call in message.tool_calls]
    return message.model_copy(update={"tool_calls": calls})


@requirement("assistant.opaque-values")
@pytest.mark.parametrize("resends", [False, True])
async def test_the_next_turn_has_the_value_of_the_call(resends: bool, connect: Connect) -> None:  # noqa: FBT001
    model = ScriptedModel([[ToolCallDelta(0, "{}", "add", "sealed")], DONE, DONE])
    server = await connect(Assistant(model, [answering("add")]))
    first = ask(text="go")
    events = await server.run(first)
    (value,) = of_type(events, "REASONING_ENCRYPTED_VALUE")
    (call,) = of_type(events, "TOOL_CALL_START")
    assert (value["subtype"], value["entityId"], value["encryptedValue"]) == ("tool-call", call["toolCallId"], "sealed")

    history = [without_values(message).model_dump(by_alias=True) for message in model.prompts[1].messages]
    user = {"id": "again", "role": "user", "content": "again"}
    await server.run({**first, "runId": "second", "messages": [*(history if resends else ()), user]})
    (sent,) = [
        call for m in model.prompts[2].messages if isinstance(m, AssistantMessage) for call in m.tool_calls or ()
    ]
    assert sent.encrypted_value == "sealed"
