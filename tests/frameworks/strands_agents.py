"""The scripted agents as Strands has them. Run with AGUI_AGENT in the environment of Strands."""

from collections.abc import AsyncIterator, Mapping
from uuid import uuid4

from ag_ui_strands import StrandsAgent, StrandsAgentConfig, ToolBehavior
from strands import Agent, ToolContext, tool
from strands.models import Model
from strands.types.content import Messages
from strands.types.streaming import StreamEvent

from tests.frameworks.scripted_model import ARGUMENTS, Use, answer


class ScriptedStrandsModel(Model):
    """A model that streams the script."""

    async def stream(self, messages: Messages, *_: object, **__: object) -> AsyncIterator[StreamEvent]:
        said = [block["text"] for m in messages if m["role"] == "user" for block in m["content"] if "text" in block]
        last = messages[-1]["content"][-1]
        result = last["toolResult"]["content"][0]["text"] if "toolResult" in last else None
        reason = "end_turn"
        yield {"messageStart": {"role": "assistant"}}
        async for piece in answer(said, result):
            if isinstance(piece, Use):
                reason = "tool_use"
                yield {"contentBlockStart": {"start": {"toolUse": {"name": piece.tool, "toolUseId": str(uuid4())}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": ARGUMENTS}}}}
                break
            yield {"contentBlockDelta": {"delta": {"text": piece}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": reason}}

    async def structured_output(self, *_: object, **__: object) -> AsyncIterator[object]:
        raise NotImplementedError
        yield

    def update_config(self, **_: object) -> None:
        raise NotImplementedError

    def get_config(self) -> Mapping[str, object]:
        return {}


@tool
def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


@tool(context=True)
def whoami(sides: int, tool_context: ToolContext) -> str:
    """Return the caller's name."""
    ctx = tool_context.invocation_state["ctx"]
    return f"{ctx.thread_id} of {ctx.caller.session_id}"


agent = Agent(model=ScriptedStrandsModel(), tools=[roll, whoami], callback_handler=None)

ASKS = StrandsAgentConfig(tool_behaviors={"roll": ToolBehavior(interrupt_on_call=True)})
asking = StrandsAgent(agent=agent, name="asking", config=ASKS)
