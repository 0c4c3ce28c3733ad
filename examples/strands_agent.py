"""A Strands agent with a tool. Its model follows a rule, so that it runs without an account.

    .venv/bin/pip install -e '.[strands]'
    AGUI_AGENT=examples.strands_agent:agent make run

Say: roll
"""

import re
from collections.abc import AsyncIterator
from uuid import uuid4

from strands import Agent, tool
from strands.models import Model
from strands.types.content import Messages
from strands.types.streaming import StreamEvent


@tool
def roll(sides: int) -> str:
    """Roll a die.

    Args:
        sides: how many it has.
    """
    return f"{sides} (it is always the highest)"


class RuleModel(Model):
    """Calls the tool once the user says "roll", and says everything else back, word by word."""

    async def stream(self, messages: Messages, *_: object, **__: object) -> AsyncIterator[StreamEvent]:
        """Answer in the events that Strands knows from Amazon Bedrock."""
        last = messages[-1]["content"][-1]
        yield {"messageStart": {"role": "assistant"}}
        if last.get("text") == "roll":
            yield {"contentBlockStart": {"start": {"toolUse": {"name": "roll", "toolUseId": str(uuid4())}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"sides": 6}'}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
            return
        said = (
            f"You said: {last['text']}" if "text" in last else f"You rolled {last['toolResult']['content'][0]['text']}."
        )
        yield {"contentBlockStart": {"start": {}}}
        for word in re.findall(r"\S+\s*", said):
            yield {"contentBlockDelta": {"delta": {"text": word}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

    async def structured_output(self, *_: object, **__: object) -> AsyncIterator[object]:
        """Raise: this example needs no structured output."""
        raise NotImplementedError
        yield

    def update_config(self, **_: object) -> None:
        """Do nothing: the model has no configuration."""

    def get_config(self) -> dict[str, object]:
        """Return an empty configuration."""
        return {}


# A real model: strands.models.BedrockModel(model_id="…").
agent = Agent(model=RuleModel(), tools=[roll], callback_handler=None)
