"""A Pydantic AI agent with a tool. Its model is Pydantic AI's ``FunctionModel``: it runs without an account.

    .venv/bin/pip install -e '.[pydantic-ai]'
    AGUI_AGENT=examples.pydantic_ai_agent:agent make run

Say: roll
"""

import re
from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel


async def answer(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Call the tool once the user says "roll", and say everything else back, word by word."""
    match messages[-1].parts[-1]:
        case UserPromptPart(content="roll"):
            yield {0: DeltaToolCall(name="roll", json_args='{"sides": 6}')}
            return
        case UserPromptPart(content=content):
            said = f"You said: {content}"
        case ToolReturnPart(content=content):
            said = f"You rolled {content}."
        case other:
            raise NotImplementedError(other)
    for word in re.findall(r"\S+\s*", said):
        yield word


# A real model: Agent("bedrock:…") or any other of Pydantic AI's names.
agent = Agent(FunctionModel(stream_function=answer))


@agent.tool_plain
def roll(sides: int) -> str:
    """Roll a die."""
    return f"{sides} (it is always the highest)"
