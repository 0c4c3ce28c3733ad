"""The beginning of a run that continues an interrupted one: the answers are acted on before the model is asked.

Rule: a call is taken before its tool starts and not earlier, so that a run cut off half-way leaves a result that says
so, no second answer ever starts the tool again, on whatever replica, and what was never started stays open. What the
model is then shown of these calls comes from what was held, not from the caller's messages; but a call that was not
wanted, and that these have no more, is shown to nobody.
"""

from collections.abc import Collection, Container, Sequence
from dataclasses import replace
from functools import partial

from ag_ui.core import AssistantMessage, FunctionCall, Message, ResumeEntry, RunAgentInput, ToolCall, ToolMessage
from msgspec import Struct, structs

from agui_container.agents.assistant.approvals.approvals import Approval, Approvals
from agui_container.agents.assistant.approvals.decisions import Decision, match_answers
from agui_container.agents.assistant.interrupt_scope import ScopeKey, scope_key
from agui_container.agents.assistant.toolbox import Answered, Toolbox, failed_result, run_side_by_side
from agui_container.ports import RunContext, Suspension
from agui_container.protocol.conversation.merge import unanswered_calls
from agui_container.protocol.errors import AppError

CUT_OFF = "Error: the call was started and cut off; whether it took effect is not known."
ABANDONED = "Error: the user did not want this call."
GONE = "Error: this call no longer waits for an answer."
SHOWN_ID = 100
"""Characters of an unknown id in the log."""


class Resumed(Struct, frozen=True):
    """Where the thread's approvals stand.

    Attributes:
        waiting: those that are open.
        settled: those whose results this run has to show.
        awaits_client: whether the client has yet to answer a call, beside one that was decided on here or beside one
            that it has answered.
        is_late: whether the model has spoken already of what these answers decide: another run was quicker.
        has_denial: whether one of these answers denies or abandons its call.
    """

    waiting: Sequence[Approval]
    settled: Sequence[Approval]
    awaits_client: bool
    is_late: bool
    has_denial: bool = False

    @property
    def skips_model(self) -> bool:
        """Whether there is nothing to ask the model now."""
        return bool(self.waiting) or self.awaits_client or self.is_late

    def results(self, messages: Sequence[Message]) -> Sequence[ToolMessage]:
        """The tool messages of what is settled, one for each call: in place of what the caller has said in its name."""
        said = {m.tool_call_id: m.id for m in reversed(messages) if isinstance(m, ToolMessage)}
        return [
            given.to_message(said.get(call.id, f"result-{call.id}"), call.id)
            for call, given in ((approval.call, approval.final_result) for approval in self.settled)
            if given is not None
        ]

    def with_held_calls(self, messages: Sequence[Message]) -> list[Message]:
        """The caller's messages with the settled calls as they were held and run, and their results."""
        held = {approval.call.id: tool_call(approval) for approval in self.settled}
        if not held:
            return list(messages)
        kept = [m for m in messages if not (isinstance(m, ToolMessage) and m.tool_call_id in held)]
        shown = [restore_calls(message, held) for message in kept]
        present = call_ids(shown)
        missing = [call for call in held.values() if call.id not in present]
        if missing:
            shown.append(AssistantMessage(id=f"held-{missing[0].id}", tool_calls=missing))
        return [*shown, *self.results(messages)]

    def new_results(self, messages: Sequence[Message]) -> Sequence[ToolMessage]:
        """The results that the caller does not have yet."""
        seen = [(m.tool_call_id, m.content) for m in messages if isinstance(m, ToolMessage)]
        return [it for it in self.results(messages) if (it.tool_call_id, it.content) not in seen]


async def resume(asked: RunAgentInput, approvals: Approvals, toolbox: Toolbox, ctx: RunContext) -> Resumed:
    """Act on the answers.

    Raises:
        AppError: VALIDATION_ERROR for one that cannot be taken; STORE_UNAVAILABLE for a store that does not say whether
            it has been, once the other calls have ended.
    """
    at = scope_key(ctx)
    held = await approvals.load(at)
    warn_of_unknown({it.id for approval in held for it in approval.interrupts}, asked.resume or (), ctx)
    decided = match_answers(held, asked.resume or (), approvals.now())
    attempts = [partial(try_decision, decision, approvals, at, toolbox, ctx) for decision in decided]
    acted = approvals_of(await run_side_by_side(attempts, ctx))
    named = {approval.call.id: approval for approval in acted}
    standing = [named.get(approval.call.id, approval) for approval in held]
    answered, called = answered_ids(asked.messages), call_ids(asked.messages)
    told = called | {
        it.call.id for of, it in zip(decided, acted, strict=True) if not asked.messages or not is_rejected(of, it)
    }
    resumed = Resumed(
        waiting=[it for it in standing if not it.is_settled],
        settled=[it for it in standing if it.is_settled and it.call.id in told],
        awaits_client=any(call_id not in answered for it in acted if it.call.id in told for call_id in it.beside)
        or is_awaiting_client(asked.messages, toolbox.client),
        is_late=bool(asked.resume) and ends_with_answer(asked.messages),
        has_denial=any(is_rejected(of, it) for of, it in zip(decided, acted, strict=True)),
    )
    return structs.replace(resumed, is_late=False) if resumed.new_results(asked.messages) else resumed


def is_rejected(decision: Decision, approval: Approval) -> bool:
    """Whether a call was abandoned or denied, by this answer or the one that counts.

    A client that leaves such a call out of the history has asked anew: then it is nobody's concern any more.
    """
    if approval.answer is not None:
        return not approval.answer.approved
    return all(entry.status == "cancelled" for entry in decision.entries)


def warn_of_unknown(known: Collection[str], entries: Sequence[ResumeEntry], ctx: RunContext) -> None:
    """Answers to what nobody asked are ignored; one line tells of all of them. ``known`` are ids of interrupts."""
    unknown = [entry.interrupt_id for entry in entries if entry.interrupt_id not in known]
    if unknown:
        ctx.logger.warning(
            "count=<%d> first=<%r> | answers to what nobody asked are ignored", len(unknown), unknown[0][:SHOWN_ID]
        )


async def try_decision(
    decision: Decision, approvals: Approvals, at: ScopeKey, toolbox: Toolbox, ctx: RunContext
) -> Approval | AppError:
    """``apply_decision``, or why not: what fails one call must not cut off those beside it."""
    try:
        return await apply_decision(decision, approvals, at, toolbox, ctx)
    except AppError as error:
        return error


def approvals_of(attempts: Sequence[Approval | AppError]) -> Sequence[Approval]:
    """The approvals. Raises the first error."""
    for each in attempts:
        if isinstance(each, AppError):
            raise each
    return [each for each in attempts if isinstance(each, Approval)]


async def apply_decision(
    decision: Decision, approvals: Approvals, at: ScopeKey, toolbox: Toolbox, ctx: RunContext
) -> Approval:
    """Give the call its result, once; or let it go on to its next question; or leave it as it is."""
    approval = decision.approval
    if approval.is_settled:
        if decision.answer != approval.answer:
            ctx.logger.warning("call=<%s> | another answer to what was decided changes nothing", approval.call.id)
        return approval
    refusal = rejection_result(decision)
    if refusal is None and toolbox.is_unavailable(approval.call):
        ctx.logger.warning("call=<%s> | its tool is out of reach: it stays open", approval.call.id)
        return approval
    decided = replace(approval, call=decision.call, answer=decision.answer)
    taken = await approvals.claim(at, decided, failed_result(CUT_OFF if refusal is None else refusal))
    if taken is None:
        ctx.logger.warning("call=<%s> | another run was quicker to answer", approval.call.id)
        return await unclaimed_result(approval, approvals, at)
    if refusal is not None:
        return taken
    answered = await run_call(decided, decision.entries, toolbox, ctx)
    if isinstance(answered, Suspension):
        return await approvals.reopen(at, taken, answered)
    return await approvals.settle(at, taken, answered, ctx)


async def unclaimed_result(approval: Approval, approvals: Approvals, at: ScopeKey) -> Approval:
    """What has become of a call that could not be taken."""
    held = await approvals.load(at)
    return next((it for it in held if it.call.id == approval.call.id), approval.with_result(failed_result(GONE)))


def rejection_result(decision: Decision) -> str | None:
    """The result of a call that is not run, because somebody said so. A call that has begun hears it itself."""
    if decision.approval.suspension is not None:
        return None
    if decision.answer is None:
        return ABANDONED
    if decision.answer.approved:
        return None
    return f"Error: the user denied this call{f': {decision.answer.reason}' if decision.answer.reason else '.'}"


async def run_call(approval: Approval, entries: Sequence[ResumeEntry], toolbox: Toolbox, ctx: RunContext) -> Answered:
    """Run a call, or go on with one that has begun."""
    if approval.suspension is None:
        return await toolbox.run_one(approval.call, ctx)
    return await toolbox.resume(approval.call, approval.suspension, entries, ctx)


def restore_calls(message: Message, held: dict[str, ToolCall]) -> Message:
    """The message with its calls as they were held, whatever the caller made of them."""
    if not isinstance(message, AssistantMessage) or not message.tool_calls:
        return message
    return message.model_copy(update={"tool_calls": [held.get(call.id, call) for call in message.tool_calls]})


def tool_call(approval: Approval) -> ToolCall:
    """The call as a message has it."""
    return ToolCall(
        id=approval.call.id, function=FunctionCall(name=approval.call.name, arguments=approval.call.arguments)
    )


def call_ids(messages: Sequence[Message]) -> set[str]:
    """The calls in the messages."""
    return {call.id for m in messages if isinstance(m, AssistantMessage) for call in m.tool_calls or ()}


def answered_ids(messages: Sequence[Message]) -> set[str]:
    """The calls that have a result in the messages."""
    return {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}


def ends_with_answer(messages: Sequence[Message]) -> bool:
    """Whether the assistant itself has the last word, and asks for nothing with it."""
    last = next((message for message in reversed(messages) if message.subagent_run_id is None), None)
    return isinstance(last, AssistantMessage) and not last.tool_calls


def is_awaiting_client(messages: Sequence[Message], tools: Container[str]) -> bool:
    """Whether the client, which runs ``tools``, is still at the calls of the last turn: it answers one after another.

    Its last word is a result then. Any other asks to go on without those that are missing.
    """
    if not messages or not isinstance(messages[-1], ToolMessage):
        return False
    missing = set(unanswered_calls(messages))
    made = [call for m in messages if isinstance(m, AssistantMessage) for call in m.tool_calls or ()]
    return any(call.id in missing and call.function.name in tools for call in made)
