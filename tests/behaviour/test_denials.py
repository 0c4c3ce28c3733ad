"""The reason of a denial is told to the model, over every protocol whose denials have a reason."""

import pytest

from tests.behaviour.conftest import PROTOCOLS, ServeOver
from tests.behaviour.dialogues import ASKS, DENY, SUCCESS
from tests.behaviour.fake_models import FakeOpenAI
from tests.behaviour.test_every_protocol import call_command
from tests.requirements import requirement

WITH_REASONS = [name for name in PROTOCOLS if not name.startswith("roz")]


@requirement("approval.denied", "protocol.same")
@pytest.mark.parametrize("serve_over", WITH_REASONS, indirect=True)
async def test_the_model_reads_the_reason_of_a_denial_as_the_result_of_the_call(
    serve_over: ServeOver, reasoner: str
) -> None:
    model = FakeOpenAI(reasoner)
    dialogue = (await serve_over(**model.settings)).dialogue()
    assert (await dialogue.say(call_command("pay", amount=5))).end == ASKS
    await dialogue.decide(DENY, reason="the budget is spent")
    assert (await dialogue.say("stream 1")).end == SUCCESS
    prompt = (await model.prompts())[-1]
    (result,) = (message for message in prompt["messages"] if message["role"] == "tool")
    assert "the budget is spent" in result["content"]
