"""The beginning of a run that continues an interrupted one: the answers are acted on before the model is asked.

Rule: a call is claimed before its tool starts, so that a run cut off half-way leaves a result that says so, and no
second answer ever starts the tool again. What the model is then shown of these calls comes from what was held, not from
the caller's messages.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ag_ui.core import AssistantMessage, FunctionCall, Message, ResumeEntry, RunAgentInput, ToolCall, ToolMessage
from pydantic_core import to_json

from app.agents.approvals import Approval, Decision, decisions
from app.agents.toolbox import Answered, Toolbox
from app.ports import RunContext, Suspension

CUT_OFF = "Error: the call was started and cut off; whether it took effect is not known."
ABANDONED = "Error: the user did not want this call."


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where the thread's approvals stand. ``results`` are the tool messages of those that are settled."""

    waiting: Sequence[Approval]
    results: Sequence[ToolMessage]
    calls: Sequence[ToolCall]

    def shown(self, messages: Sequence[Message]) -> list[Message]:
        """The caller's messages with the settled calls as they were held and run, and their results."""
        if not self.calls:
            return list(messages)
        held = {call.id: call for call in self.calls}
        kept = [m for m in messages if not (isinstance(m, ToolMessage) and m.tool_call_id in held)]
        shown = [with_calls(message, held) for message in kept]
        present = {call.id for m in shown if isinstance(m, AssistantMessage) for call in m.tool_calls or ()}
        missing = [call for call in self.calls if call.id not in present]
        if missing:
            shown.append(AssistantMessage(id=f"held-{missing[0].id}", tool_calls=missing))
        return [*shown, *self.results]

    def unseen(self, asked: RunAgentInput) -> Sequence[ToolMessage]:
        """The results that the caller does not have yet, of calls that it asks about or knows."""
        messages = asked.messages
        seen = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
        known = {call.id for m in messages if isinstance(m, AssistantMessage) for call in m.tool_calls or ()}
        new = [result for result in self.results if result.tool_call_id not in seen]
        return new if asked.resume else [result for result in new if result.tool_call_id in known]


async def resume(
    held: Sequence[Approval], entries: Sequence[ResumeEntry], toolbox: Toolbox, ctx: RunContext, now: float
) -> Resumed:
    """Act on the answers. Raises ``AppError`` VALIDATION_ERROR for one that cannot be taken."""
    known = {interrupt.id for approval in held for interrupt in approval.interrupts}
    for entry in entries:
        if entry.interrupt_id not in known:
            ctx.logger.warning("interrupt=<%s> | an answer to what nobody asked is ignored", entry.interrupt_id)
    decided = decisions(held, entries, now)
    async with asyncio.TaskGroup() as group:
        for decision in decided:
            group.create_task(settle(decision, toolbox, ctx))
    results, calls = [], []
    for approval in held:
        if approval.result is not None:
            call = approval.call
            results.append(ToolMessage(id=ctx.new_id(), tool_call_id=call.id, content=approval.result))
            calls.append(ToolCall(id=call.id, function=FunctionCall(name=call.name, arguments=call.arguments)))
    return Resumed([approval for approval in held if not approval.settled], results, calls)


async def settle(decision: Decision, toolbox: Toolbox, ctx: RunContext) -> None:
    """Give the call its result, once; or let it go on to its next question."""
    approval, answer = decision.approval, decision.answer
    if approval.suspension is None and answer is None:
        approval.result = ABANDONED
    elif approval.suspension is None and answer is not None and not answer.approved:
        approval.result = f"Error: the user denied this call{f': {answer.reason}' if answer.reason else '.'}"
    else:
        approval.result = CUT_OFF
        answered = await perform(decision, toolbox, ctx)
        approval.result = None
        if isinstance(answered, Suspension):
            approval.suspension, approval.interrupts = answered, answered.interrupts
        else:
            approval.result = answered


async def perform(decision: Decision, toolbox: Toolbox, ctx: RunContext) -> Answered:
    """Run an approved call, as it was asked for or edited, or go on with one that has begun."""
    approval, answer = decision.approval, decision.answer
    if approval.suspension is not None:
        return await toolbox.resume(approval.call, approval.suspension, decision.entries, ctx)
    if answer is not None and answer.edited_args is not None:
        approval.call = replace(approval.call, arguments=to_json(answer.edited_args).decode())
    return await toolbox.answer(approval.call, ctx)


def with_calls(message: Message, held: dict[str, ToolCall]) -> Message:
    """The message with its calls as they were held, whatever the caller made of them."""
    if not isinstance(message, AssistantMessage) or not message.tool_calls:
        return message
    return message.model_copy(update={"tool_calls": [held.get(call.id, call) for call in message.tool_calls]})
