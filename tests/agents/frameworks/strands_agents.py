"""The scripted agents as Strands has them. Run with AGUI_AGENT in the environment of Strands."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from uuid import uuid4

from ag_ui.core import BaseEvent, CustomEvent, RunAgentInput
from ag_ui_strands import StrandsAgent, StrandsAgentConfig, ToolBehavior
from strands import Agent, ModelRetryStrategy, ToolContext, tool
from strands.models import Model
from strands.multiagent import GraphBuilder, Swarm
from strands.types.content import Messages
from strands.types.exceptions import ModelThrottledException
from strands.types.streaming import StreamEvent

from agui_container.ports import current_run
from tests.agents.frameworks.dice import charge, filled, roll, stumble
from tests.agents.frameworks.scripted_model import ARGUMENTS, Use, answer
from tests.agents.turns_of_models import EFFECTS_SAID, RESULTS_SAID, next_calls, said_effects

THROTTLED = set[str]()
"""Texts for which the model has throttled, as it does once for each ``throttle TEXT``. Then it says the text."""


class ScriptedStrandsModel(Model):
    async def stream(self, messages: Messages, *_: object, **__: object) -> AsyncIterator[StreamEvent]:
        texts = [block["text"] for m in messages if m["role"] == "user" for block in m["content"] if "text" in block]
        said = [text.partition("User Request: ")[2].partition("\n")[0] or text for text in texts]  # as swarms word it
        last = messages[-1]["content"][-1]
        result = last["toolResult"]["content"][0]["text"] if "toolResult" in last else None
        reason = "end_turn"
        yield {"messageStart": {"role": "assistant"}}
        command, _, text = said[-1].partition(" ")
        if command == "throttle" and text not in THROTTLED:
            THROTTLED.add(text)
            if text.endswith(" late"):
                yield {"contentBlockDelta": {"delta": {"text": text}}}
            raise ModelThrottledException("secret")
        async for piece in answer(said, result):
            if isinstance(piece, Use):
                reason = "tool_use"
                yield {"contentBlockStart": {"start": {"toolUse": {"name": piece.tool, "toolUseId": str(uuid4())}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": ARGUMENTS}}}}
                break
            yield {"contentBlockDelta": {"delta": {"text": piece}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": reason}}
        yield {
            "metadata": {"usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}, "metrics": {"latencyMs": 0}}
        }

    async def structured_output(self, *_: object, **__: object) -> AsyncIterator[object]:
        raise NotImplementedError
        yield

    def update_config(self, **_: object) -> None:
        raise NotImplementedError

    def get_config(self) -> Mapping[str, object]:
        return {}


class CallingStrandsModel(ScriptedStrandsModel):
    async def stream(self, messages: Messages, *_: object, **__: object) -> AsyncIterator[StreamEvent]:
        blocks = [(m["role"], block) for m in messages for block in m["content"]]
        said = [block["text"] for role, block in blocks if role == "user" and "text" in block]
        results = [block["toolResult"]["content"][0]["text"] for _, block in blocks if "toolResult" in block]
        is_over = said[-1] in {EFFECTS_SAID, RESULTS_SAID}
        calls = [] if is_over else next_calls(said[0], len(results))
        yield {"messageStart": {"role": "assistant"}}
        for name, arguments in calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": str(uuid4())}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            text = ", ".join(results) if said[-1] == RESULTS_SAID else said_effects() if is_over else "done"
            yield {"contentBlockDelta": {"delta": {"text": text}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


@tool(context=True)
async def hang(sides: int, tool_context: ToolContext) -> str:
    """Say that it has started, and never come back."""
    tool_context.invocation_state["ctx"].emit(CustomEvent(name="started", value=None))
    await asyncio.Event().wait()
    return ""


@tool(context=True)
def whoami(sides: int, tool_context: ToolContext) -> str:
    """Return the caller's name."""
    ctx = tool_context.invocation_state["ctx"]
    return f"{ctx.thread_id} of {ctx.caller.session_id}"


ROLL, CHARGE = tool(roll), tool(charge)


def node(name: str, *tools: object) -> Agent:
    tools = (ROLL, tool(stumble), *tools)
    at_once = ModelRetryStrategy(initial_delay=0)
    return Agent(name=name, model=ScriptedStrandsModel(), tools=tools, callback_handler=None, retry_strategy=at_once)


agent = node("agent", CHARGE, hang, whoami)


@tool
async def spin(sides: int) -> str:
    """Call a tool of the server, and leave its interrupt to Strands."""
    return str(await current_run().call_tool("spin", {"sides": sides}))


async def bare(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    async for event in StrandsAgent(agent=node("bare"), name="bare").run(filled(input)):
        yield event


def fail_to_build(*_: object) -> str:
    raise RuntimeError("secret")


async def bare_hook(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    config = StrandsAgentConfig(state_context_builder=fail_to_build)
    async for event in StrandsAgent(agent=node("bare"), name="bare", config=config).run(filled(input)):
        yield event


bare_tool = StrandsAgent(agent=Agent(model=ScriptedStrandsModel(), tools=[spin], callback_handler=None), name="bare")
builder = GraphBuilder()
builder.add_node(node("dice"), "dice")
graph = builder.build()
swarm = Swarm([node("dice")])


async def bare_swarm(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    async for event in StrandsAgent(agent=Swarm([node("dice")]), name="bare").run(filled(input)):
        yield event


ASKS = StrandsAgentConfig(tool_behaviors=dict.fromkeys(("roll", "charge"), ToolBehavior(interrupt_on_call=True)))
asking = StrandsAgent(agent=agent, name="asking", config=ASKS)
