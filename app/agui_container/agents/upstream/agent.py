"""An upstream as an agent: it gets the run's input, and its events become those of the run.

Rules:

- The tools of the settings are offered as client tools. A call of one runs here under the tool policy, with approvals,
  and the upstream is asked again with the result. Other calls are the client's.
- The whole history is sent, with the bytes of its files, so an upstream without memory works. Run ids are made here.
"""

import asyncio
from collections.abc import AsyncGenerator, Container, Sequence
from contextlib import aclosing
from typing import Protocol

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    Message,
    RunAgentInput,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TokenUsage,
    ToolCall,
    ToolCallResultEvent,
)
from msgspec import Struct

from agui_container.agents.file_data import FileData
from agui_container.agents.gate.calls import parse_arguments
from agui_container.ports import Item, RunContext, ToolContent, ToolError
from agui_core.expander import Expander
from agui_core.transcript import FAILED, Transcript
from agui_core.turns import unanswered_in_last_turn

MICROSOFT_COUNTS = {"input_tokens": "input_token_count", "output_tokens": "output_token_count"}
ENDS_TURN = (RunFinishedInterruptOutcome, RunFinishedCancelledOutcome)


class Upstream(Protocol):
    """Source of the events of one answer: a server, or a framework's translation of its own events."""

    def answer(self, request: RunAgentInput, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
        """Yield the events from the one behind RUN_STARTED to RUN_FINISHED, of which the last may be missing.

        Its thread is ``ctx.thread_key``. An exception ends the run.
        """


class UpstreamAgent(Struct, frozen=True):
    """Implements ``ports.Agent``. The source is not offered ``own_tools``."""

    source: Upstream
    own_tools: Container[str] = ()

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Call the tools of the settings, and ask again with their results."""
        tools = {name: tool.spec for name, tool in ctx.tools.items() if name not in self.own_tools}
        others = [tool for tool in input.tools or () if tool.name not in tools]
        request = input.model_copy(update={"tools": [*others, *tools.values()], "run_id": ctx.run_id})
        files = FileData(ctx)
        while True:
            transcript, expander = Transcript(request.messages), Expander(ctx.new_id)
            for result in await asyncio.gather(*[call_tool(call, ctx) for call in own_calls(request.messages, tools)]):
                yield result
                transcript.feed(result)
            request = request.model_copy(update={"messages": transcript.messages})
            end = RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id)
            sent = request.model_copy(update={"messages": await files.inline(request.messages)})
            async with aclosing(self.source.answer(sent, ctx)) as events:
                async for event in events:
                    if isinstance(event, RunFinishedEvent):
                        end = event
                        continue
                    ctx.usage.extend(usage_of(event))
                    for each in expander.expand(files.with_handles(event)):
                        yield each
                        transcript.feed(each)
            for each in expander.flush():
                yield each
                transcript.feed(each)
            messages = transcript.messages
            if isinstance(end.outcome, ENDS_TURN) or not own_calls(messages, tools):
                yield end.model_copy(update={"thread_id": ctx.thread_id, "run_id": ctx.run_id})
                return
            ctx.usage.extend(end.usage or ())
            request = request.model_copy(update={"messages": messages, "resume": None, "run_id": ctx.new_id()})


def usage_of(event: BaseEvent) -> Sequence[TokenUsage]:
    """Return the usage in an event of Microsoft's Agent Framework, which reports it before the end of the run."""
    if not (isinstance(event, CustomEvent) and event.name == "usage" and isinstance(event.value, dict)):
        return ()
    counts = {ours: event.value.get(theirs) for ours, theirs in MICROSOFT_COUNTS.items()}
    if not all(isinstance(count, int) for count in counts.values()):
        return ()
    return [TokenUsage.model_validate(counts)]


async def call_tool(call: ToolCall, ctx: RunContext) -> ToolCallResultEvent:
    content: ToolContent
    metadata = None
    try:
        arguments = parse_arguments(call.function.arguments)
        content = await ctx.call_tool(call.function.name, arguments, call_id=call.id)
    except ToolError as error:
        content, metadata = f"Error: {error}", {FAILED: True}
    return ToolCallResultEvent(message_id=ctx.new_id(), tool_call_id=call.id, content=content, metadata=metadata)


def own_calls(messages: Sequence[Message], names: Container[str]) -> Sequence[ToolCall]:
    return [call for call in unanswered_in_last_turn(messages) if call.function.name in names]
