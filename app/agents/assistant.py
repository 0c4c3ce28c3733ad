"""The built-in assistant: call the model, run the tools it asks for, and call it again with the results.

Rules: only calls that the model makes in this run are ever run; calls found in the caller's history are words. Calls of
client tools are left unanswered and end the run: the next run brings their results. System and developer messages
from a caller are dropped, because whoever can write them could rewrite the assistant's orders.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from ag_ui.core import (
    ActivityMessage,
    AgentCapabilities,
    Context,
    DeveloperMessage,
    ExecutionCapabilities,
    Message,
    ReasoningCapabilities,
    RunAgentInput,
    SystemMessage,
    ToolCallResultEvent,
    ToolMessage,
    ToolsCapabilities,
)

from app.agents.closing import closing
from app.agents.toolbox import Toolbox
from app.agents.turn import Call, Turn
from app.core.errors import AppError, Code
from app.ports import Item, Model, Prompt, RunContext, Tool

SYSTEM_PROMPT = "You are a helpful assistant. Answer briefly. Use the tools when they help."
MAX_STEPS = 16


@dataclass(frozen=True, slots=True)
class Assistant:
    """Implements ``ports.Agent`` with any ``Model`` and any ``Tool``.

    Attributes:
        tools: what the server runs for the model; clients may offer their own besides.
        max_steps: model calls per run; a run that needs more ends with RUN_LIMIT_EXCEEDED.
    """

    model: Model
    tools: Sequence[Tool] = ()
    system_prompt: str = SYSTEM_PROMPT
    max_steps: int = MAX_STEPS

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Answer: model, tools, model, … until the model has nothing more to call, or the client's turn has come."""
        toolbox = Toolbox.of(self.tools, input.tools or ())
        system = system_text(self.system_prompt, input.context or ())
        messages = conversation(input.messages)
        for _ in range(self.max_steps):
            turn = Turn(ctx)
            async with closing(self.model.stream(Prompt(system, messages, toolbox.specs))) as deltas:
                async for delta in deltas:
                    for event in turn.feed(delta):
                        yield event
            for event in turn.close():
                yield event
            own = [call for call in turn.calls if not toolbox.left_to_client(call)]
            results = results_of(own, await toolbox.answers(own, ctx), ctx)
            for result in results:
                yield shown(result)
            if len(own) < len(turn.calls) or not own:
                return
            messages = [*messages, *turn.messages, *results]
        raise AppError(
            Code.RUN_LIMIT_EXCEEDED, f"The assistant stopped after {self.max_steps} model calls without finishing."
        )

    def capabilities(self) -> AgentCapabilities:
        """What clients may expect of this assistant."""
        return AgentCapabilities(
            tools=ToolsCapabilities(
                supported=True,
                items=[tool.spec for tool in self.tools],
                parallel_calls=True,
                client_provided=True,
            ),
            reasoning=ReasoningCapabilities(supported=True, streaming=True),
            execution=ExecutionCapabilities(max_iterations=self.max_steps),
        )


def system_text(prompt: str, context: Sequence[Context]) -> str:
    """The instructions, followed by every context entry that the application sent along."""
    entries = [f"### {entry.description}\n{entry.value}" for entry in context]
    return "\n\n".join([prompt, "## Context from the application", *entries]) if entries else prompt


def conversation(messages: Sequence[Message]) -> list[Message]:
    """The caller's messages that a model may see: no activities (for eyes only), no orders from outside."""
    hidden = (ActivityMessage, SystemMessage, DeveloperMessage)
    return [message for message in messages if not isinstance(message, hidden)]


def results_of(calls: Sequence[Call], answers: Sequence[str], ctx: RunContext) -> list[ToolMessage]:
    """The tool messages of answered calls, each with an id of its own."""
    return [
        ToolMessage(id=ctx.new_id(), tool_call_id=call.id, content=answer)
        for call, answer in zip(calls, answers, strict=True)
    ]


def shown(result: ToolMessage) -> ToolCallResultEvent:
    """A tool message as the client sees it; the ids agree, so both keep the same history."""
    return ToolCallResultEvent(
        message_id=result.id, tool_call_id=result.tool_call_id, content=result.content, role="tool"
    )
