"""The start of a run that continues an interrupted one: answers are applied before the model is called.

Rules:
- A call is claimed right before its tool starts. So a run that is cut off leaves a result that says so, a second answer
  never starts the tool again on any replica, and a call that was never started stays open.
- The model sees these calls as they were stored, not as the caller's messages have them.
- A rejected call that the caller's messages no longer contain is left out of the history.
- An answer to a call that no longer waits ends the run with an error. It must not end as if the call had been run.
- The demands of the caller of an interrupted run hold for the rest of its turn, whichever client answers.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Container, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from itertools import takewhile

from ag_ui.core import (
    AssistantMessage,
    Message,
    ResumeEntry,
    RunAgentInput,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from msgspec import Struct, structs

from agui_container.agents.approvals.approvals import Approval, Approvals
from agui_container.agents.approvals.decisions import Decision, match_answers
from agui_container.agents.approvals.interrupt_scope import ScopeKey, scope_key
from agui_container.agents.tool_calls.tool_call import denied_result, failed_result
from agui_container.agents.tool_calls.toolbox import DECLINED, CallOutcome, Toolbox, iterate_side_by_side
from agui_container.ports import CallRules, RunContext, Suspension
from agui_container.protocol.conversation.merge import unanswered_calls
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.log_values import format_fields

CUT_OFF = "Error: the call was started and cut off; whether it took effect is not known."
GONE = "Error: this call no longer waits for an answer."
MAX_LOGGED_ID = 100
"""Maximum characters of an unknown id in the log."""


class ResumeOutcome(Struct, frozen=True):
    """The approvals of a thread after the answers of a run have been applied.

    Attributes:
        waiting: open approvals.
        settled: settled approvals whose calls and results belong into the history.
        awaits_client: True if the client has not answered all its calls of a turn in which other calls were decided
            here or answered by the client.
        is_late: True if another run has applied the same answers and the model has already replied to them.
        has_denial: True if one of the answers denies or cancels its call, and the turn is not abandoned.
    """

    waiting: Sequence[Approval]
    settled: Sequence[Approval]
    awaits_client: bool
    is_late: bool
    has_denial: bool = False

    @property
    def skips_model(self) -> bool:
        """True if the run ends without calling the model."""
        return bool(self.waiting) or self.awaits_client or self.is_late

    def results(self, messages: Sequence[Message]) -> Sequence[ToolMessage]:
        """Return the tool messages of the settled calls, with the ids of the caller's own messages for these calls."""
        received = results_by_call(messages)
        return [result for each in self.settled if (result := result_message(each, received)) is not None]

    def with_settled_calls(self, messages: Sequence[Message]) -> list[Message]:
        """Return the caller's messages with the settled calls as they were run, and their results."""
        settled = {approval.call.id: approval.call.to_message_call() for approval in self.settled}
        if not settled:
            return list(messages)
        others = [m for m in messages if not (isinstance(m, ToolMessage) and m.tool_call_id in settled)]
        history = [restore_calls(message, settled) for message in others]
        present = call_ids(history)
        missing = [call for call in settled.values() if call.id not in present]
        if missing:
            history.append(AssistantMessage(id=f"held-{missing[0].id}", tool_calls=missing))
        return [*history, *self.results(messages)]

    def new_results(self, messages: Sequence[Message]) -> Sequence[ToolMessage]:
        """Return the results that the caller's messages do not contain."""
        received = results_by_call(messages)
        return [result for result in self.results(messages) if is_new(result, received)]


class Resumption:
    """The answers of one run, applied to the thread's approvals.

    Args:
        request: the input of the run.
        stored: the thread's approvals before that.
        approvals: stores them.
        ctx: the context of the run.

    Attributes:
        ctx: the context of the run, with the demands of the caller of the interrupted run.
        outcome: the approvals after that. It is complete once ``results`` has ended.
    """

    def __init__(
        self, request: RunAgentInput, stored: Sequence[Approval], approvals: Approvals, ctx: RunContext
    ) -> None:
        self.ctx = replace(ctx, call_rules=rules_of_turn(ctx.call_rules, stored, request))
        self.outcome = ResumeOutcome((), (), awaits_client=False, is_late=False)
        self._request = request
        self._stored = stored
        self._approvals = approvals

    async def results(self, toolbox: Toolbox) -> AsyncGenerator[ToolMessage, None]:
        """Apply the answers. Yield the results that the caller's messages do not contain, in the order of the calls.

        A result comes as soon as its call and the calls before it have ended.

        Raises:
            AppError: VALIDATION_ERROR for an invalid answer; STORE_UNAVAILABLE if the store fails, after the other
                calls have ended.
        """
        request, stored, ctx, at = self._request, self._stored, self.ctx, scope_key(self.ctx)
        interrupt_ids = {interrupt.id for approval in stored for interrupt in approval.interrupts}
        check_answers_wait(interrupt_ids, stored, request, toolbox)
        warn_of_unknown(interrupt_ids, request.resume or (), ctx)
        decisions = match_answers(stored, request.resume or (), self._approvals.now())
        attempts = [partial(try_decision, each, self._approvals, at, toolbox, ctx) for each in decisions]
        known, received = call_ids(request.messages), results_by_call(request.messages)
        applied: list[tuple[Decision, Approval]] = []
        sent: set[str] = set()
        failures: list[AppError] = []
        async with aclosing(iterate_side_by_side(attempts, ctx)) as outcomes:
            async for outcome in outcomes:
                if isinstance(outcome, AppError):
                    failures.append(outcome)
                    continue
                decision = decisions[len(applied) + len(failures)]
                applied.append((decision, outcome))
                result = result_message(outcome, received)
                is_left_out = outcome.call.id not in known and request.messages and is_rejected(decision, outcome)
                if result is not None and not is_left_out and is_new(result, received):
                    sent.add(result.tool_call_id)
                    yield result
        if failures:
            raise failures[0]
        self.outcome = self._outcome(applied, toolbox)
        for result in self.outcome.new_results(request.messages):
            if result.tool_call_id not in sent:
                yield result

    def _outcome(self, applied: Sequence[tuple[Decision, Approval]], toolbox: Toolbox) -> ResumeOutcome:
        """Return the thread's approvals after some of its decisions."""
        messages, entries = self._request.messages, self._request.resume or ()
        updates = {approval.call.id: approval for _, approval in applied}
        current = [updates.get(approval.call.id, approval) for approval in self._stored]
        answered = answered_ids(messages)
        rejected = {approval.call.id for decision, approval in applied if is_rejected(decision, approval)}
        in_history = call_ids(messages) | {id_ for id_ in updates if not messages or id_ not in rejected}
        beside = [call_id for _, each in applied if each.call.id in in_history for call_id in each.beside]
        outcome = ResumeOutcome(
            waiting=[each for each in current if not each.is_settled],
            settled=[each for each in current if each.is_settled and each.call.id in in_history],
            awaits_client=is_awaiting_client(messages, toolbox.client)
            or (not ends_with_question(messages) and not answered.issuperset(beside)),
            is_late=bool(entries) and ends_with_answer(messages),
            has_denial=bool(rejected) and not is_abandoned(self._request),
        )
        return structs.replace(outcome, is_late=False) if outcome.new_results(messages) else outcome


def rules_of_turn(rules: CallRules, stored: Sequence[Approval], request: RunAgentInput) -> CallRules:
    """Return the rules with the demands of the turn that a run continues. A run that abandons it adds none.

    An approval belongs to that turn if the run answers it, or if its call comes after the user's last message.
    """
    if is_abandoned(request):
        return rules
    named, calls = {entry.interrupt_id for entry in request.resume or ()}, last_calls(request.messages)
    for approval in stored:
        if approval.call.id in calls or not named.isdisjoint(interrupt.id for interrupt in approval.interrupts):
            rules = approval.added_to(rules)
    return rules


def is_abandoned(request: RunAgentInput) -> bool:
    """Return True if the user asks something new, in a message or with a skill, and answers no call that waits."""
    props = request.forwarded_props
    asks_anew = ends_with_question(request.messages) or (isinstance(props, Mapping) and "skill" in props)
    return asks_anew and all(entry.status == "cancelled" for entry in request.resume or ())


def last_calls(messages: Sequence[Message]) -> set[str]:
    """Return the ids of the calls after the user's last message."""
    return call_ids(list(takewhile(lambda message: not isinstance(message, UserMessage), reversed(messages))))


ResultsByCall = Mapping[str, Sequence[ToolMessage]]
"""The caller's tool messages by call id."""


def results_by_call(messages: Sequence[Message]) -> ResultsByCall:
    """Return the tool messages by call id."""
    results: defaultdict[str, list[ToolMessage]] = defaultdict(list)
    for message in messages:
        if isinstance(message, ToolMessage):
            results[message.tool_call_id].append(message)
    return results


def result_message(approval: Approval, received: ResultsByCall) -> ToolMessage | None:
    """Return the tool message of a settled call, with the id of the caller's own one; None for an open approval."""
    call_id, result = approval.call.id, approval.final_result
    own = received.get(call_id)
    return result.to_message(own[0].id if own else f"result-{call_id}", call_id) if result is not None else None


def is_new(result: ToolMessage, received: ResultsByCall) -> bool:
    """Return True if the caller's messages do not contain the result."""
    return all(message.content != result.content for message in received.get(result.tool_call_id, ()))


def is_rejected(decision: Decision, approval: Approval) -> bool:
    """Return True if the call was denied or cancelled, by this decision or by the one that settled the approval.

    If the client's history lacks such a call, the client has started over, and the call is left out.
    """
    if approval.answer is not None:
        return not approval.answer.approved
    return all(entry.status == "cancelled" for entry in decision.entries)


def check_answers_wait(
    interrupt_ids: Collection[str], stored: Sequence[Approval], request: RunAgentInput, toolbox: Toolbox
) -> None:
    """Check that no answer is for a call that no longer waits: it has expired, made room for others, or is lost.

    Its interrupt is unknown, and the history ends with a call of the server that has no result and no approval, or
    there is no history. Any other unknown interrupt is ignored, and so is the abandonment of one.

    Raises:
        AppError: VALIDATION_ERROR, naming the entry.
    """
    answers = [at for at, entry in enumerate(request.resume or ()) if not is_harmless(entry, interrupt_ids)]
    waiting = {approval.call.id for approval in stored}
    lost = [
        call.id
        for call in open_calls(request.messages)
        if call.id not in waiting and call.function.name not in toolbox.client
    ]
    if answers and (lost or not request.messages):
        text = "this interrupt no longer waits for an answer, and nothing was run; cancel it to go on."
        raise AppError(ErrorCode.VALIDATION_ERROR, f"resume.{answers[0]}.interruptId: {text}")


def is_harmless(entry: ResumeEntry, interrupt_ids: Collection[str]) -> bool:
    """Return True if an entry names an interrupt in ``interrupt_ids``, or abandons its call."""
    return entry.interrupt_id in interrupt_ids or entry.status == "cancelled"


def open_calls(messages: Sequence[Message]) -> Sequence[ToolCall]:
    """Return the calls in the assistant's last message that have no result."""
    missing = set(unanswered_calls(messages))
    made = [call for m in messages if isinstance(m, AssistantMessage) for call in m.tool_calls or ()]
    return [call for call in made if call.id in missing]


def warn_of_unknown(interrupt_ids: Collection[str], entries: Sequence[ResumeEntry], ctx: RunContext) -> None:
    """Log one line if entries name interrupts that are not in ``interrupt_ids``. Such entries are ignored."""
    unknown = [entry.interrupt_id for entry in entries if entry.interrupt_id not in interrupt_ids]
    if unknown:
        fields = {"count": len(unknown), "first": unknown[0][:MAX_LOGGED_ID]}
        ctx.logger.warning("answers to unknown interrupts ignored %s", format_fields(fields))


async def try_decision(
    decision: Decision, approvals: Approvals, at: ScopeKey, toolbox: Toolbox, ctx: RunContext
) -> Approval | AppError:
    """Apply a decision. Return an ``AppError`` instead of raising it, so that concurrent calls are not cut off."""
    try:
        return await apply_decision(decision, approvals, at, toolbox, ctx)
    except AppError as error:
        return error


async def apply_decision(
    decision: Decision, approvals: Approvals, at: ScopeKey, toolbox: Toolbox, ctx: RunContext
) -> Approval:
    """Apply a decision to its approval. Return the approval: settled, reopened with new interrupts, or unchanged.

    It is unchanged if it was settled before or if the call's tool is unavailable now.

    Raises:
        AppError: STORE_UNAVAILABLE.
    """
    approval = decision.approval
    if approval.is_settled:
        if decision.answer != approval.answer:
            ctx.logger.warning("answer ignored, call already decided %s", format_fields({"call": approval.call.id}))
        return approval
    rejection = rejection_result(decision)
    if rejection is None and toolbox.is_unavailable(approval.call):
        ctx.logger.warning("approval stays open, tool unavailable %s", format_fields({"call": approval.call.id}))
        return approval
    decided = replace(approval, call=decision.call, answer=decision.answer)
    result = failed_result(CUT_OFF) if rejection is None else denied_result(rejection)
    claimed = await approvals.claim(at, decided, decision.recorded_in(result))
    if claimed is None:
        ctx.logger.warning("approval already claimed by another run %s", format_fields({"call": approval.call.id}))
        return await load_claimed_elsewhere(approval, approvals, at)
    if rejection is not None:
        return claimed
    outcome = await run_call(decided, decision.entries, toolbox, ctx)
    if isinstance(outcome, Suspension):
        return await approvals.reopen(claimed, outcome, ctx)
    return await approvals.settle(at, claimed, decision.recorded_in(outcome), ctx)


async def load_claimed_elsewhere(approval: Approval, approvals: Approvals, at: ScopeKey) -> Approval:
    """Return the stored approval that another run claimed; settled with an error if it is no longer stored."""
    stored = await approvals.load(at)
    lost = approval.with_result(failed_result(GONE))
    return next((each for each in stored if each.call.id == approval.call.id), lost)


def rejection_result(decision: Decision) -> str | None:
    """Return the result of a rejected call, or None if the call runs. A suspended call gets the answer itself."""
    if decision.approval.suspension is not None:
        return None
    if decision.answer is None:
        return DECLINED
    if decision.answer.approved:
        return None
    return f"Error: the user denied this call{f': {decision.answer.reason}' if decision.answer.reason else '.'}"


async def run_call(
    approval: Approval, entries: Sequence[ResumeEntry], toolbox: Toolbox, ctx: RunContext
) -> CallOutcome:
    """Run a call that has not started, or resume a suspended one."""
    if approval.suspension is None:
        is_edited = approval.answer is not None and approval.answer.edited_args is not None
        return await toolbox.run_one(approval.call, ctx, is_edited=is_edited)
    return await toolbox.resume(approval.call, approval.suspension, entries, ctx)


def restore_calls(message: Message, settled: dict[str, ToolCall]) -> Message:
    """Return the message with its calls replaced by the settled calls of the same ids."""
    if not isinstance(message, AssistantMessage) or not message.tool_calls:
        return message
    return message.model_copy(update={"tool_calls": [settled.get(call.id, call) for call in message.tool_calls]})


def call_ids(messages: Sequence[Message]) -> set[str]:
    """Return the ids of the calls that the messages make."""
    return {call.id for m in messages if isinstance(m, AssistantMessage) for call in m.tool_calls or ()}


def answered_ids(messages: Sequence[Message]) -> set[str]:
    """Return the ids of the calls that have a result in the messages."""
    return {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}


def ends_with_answer(messages: Sequence[Message]) -> bool:
    """Return True if the last message, subagents' aside, is the assistant's and makes no calls."""
    last = next((message for message in reversed(messages) if message.subagent_run_id is None), None)
    return isinstance(last, AssistantMessage) and not last.tool_calls


def ends_with_question(messages: Sequence[Message]) -> bool:
    """Return True if the last message is the user's. Then the client waits for no results of its own calls."""
    return bool(messages) and isinstance(messages[-1], UserMessage)


def is_awaiting_client(messages: Sequence[Message], tools: Container[str]) -> bool:
    """Return True if the client has answered some of its calls and is expected to send the other results.

    ``tools`` are the names of the client's tools. Such a history ends with a tool result. If it ends with another
    message, the client wants the run to continue without the missing results.
    """
    if not messages or not isinstance(messages[-1], ToolMessage):
        return False
    return any(call.function.name in tools for call in open_calls(messages))


def finish_event(ctx: RunContext, waiting: Sequence[Approval]) -> RunFinishedEvent:
    """Return the end of a run: with the interrupts of the waiting approvals if there are any, else a success."""
    interrupts = [interrupt for approval in waiting for interrupt in approval.interrupts]
    outcome = RunFinishedInterruptOutcome(interrupts=interrupts) if interrupts else None
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


def cancelled_event(ctx: RunContext) -> RunFinishedEvent:
    """Return the end of a run that its caller cancelled."""
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=RunFinishedCancelledOutcome())
