"""Tool calls that wait for an answer from people, and their results once they are answered.

An approval belongs to a call of one of two kinds: a call that must be approved before it starts, or a call of a
subagent that has started and was suspended to ask for something.

Rules:
- The name and arguments of the call that runs come from the stored approval, never from the messages of a caller.
- An answer is accepted only for the owner, the thread and the part of the thread in which the approval was created.
- A call runs at most once, even if an answer is repeated or reaches another replica. An approval is *open* until an
  answer claims it, and *settled* from then on. Only the run that claimed a call writes its result.
- A settled approval is stored with its answer and result for the lifetime of an approval, so that a repeated answer
  gets the same result.
- A caller can request more approvals than the operator's policy (``forwardedProps.approvals``), never fewer. The
  request holds for subagents, too, and for the rest of the turn, whoever answers.
- An ``InterruptStore`` stores approvals as JSON. A call whose approval is no longer stored does not run.

Sources: AG-UI spec 1.1, basic/patterns/interrupt-resume; docs/tools.md.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from types import MappingProxyType
from typing import Annotated, Any, Literal

from ag_ui.core import Interrupt
from pydantic import BaseModel, ConfigDict, Field, StrictBool, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticSerializationError

from agui_container.agents.approvals.interrupt_scope import (
    ScopeKey,
    scope_key,
    shield_from_run_cancel,
    wait_for_store,
)
from agui_container.agents.tool_calls.tool_call import ModelToolCall, ToolResult
from agui_container.ports import CallRules, PolicyDecision, RunContext, Suspension, ToolContent
from agui_container.ports.records import InterruptScope, PendingInterrupt
from agui_container.ports.store import InterruptStore, StoreUnavailable, store_errors_as_app_errors
from agui_container.ports.tool import MAX_REASON
from agui_container.protocol.parser import read_forwarded_prop
from agui_container.protocol.strict_json import without_large_integers
from agui_container.runtime.log_values import format_fields
from agui_container.runtime.memory_interrupts import MemoryInterrupts
from agui_container.runtime.surrogates import json_text

LIFETIME = 3600.0
"""Seconds until an approval expires.

The store holds it for twice as long. In the second half it can be cancelled, and an answer is rejected as expired.
"""

QUESTIONS_DEPTH = -3
"""Level of the scope of an agent's own questions, see ``InterruptScope``."""

TOOL_CALL = "tool_call"
"""AG-UI's reason for the interrupt of a tool call (docs, concepts/interrupts). Clients show buttons for it."""

MAX_SHOWN_ARGUMENTS = 500
"""Maximum characters of the arguments in an interrupt's message. Its metadata has the complete arguments."""

RESPONSE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "editedArgs": {"type": "object"},
    },
    "required": ["approved"],
}
"""JSON Schema of an answer, equal to the one in AG-UI's docs (concepts/interrupts).

assistant-ui shows no buttons for a stricter schema.
"""

logger = logging.getLogger(__name__)


class ApprovalAnswer(BaseModel):
    """The payload of a resume entry."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    approved: StrictBool
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = None
    edited_args: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call of an agent with its result. The fields are part of the JSON that the store holds."""

    call: ModelToolCall
    result: ToolContent
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval of one call.

    The fields are the JSON that the store holds, so their names cannot change.

    Attributes:
        call: the call as the model made it, or as the answer edited it.
        interrupts: the interrupts that ask for the answer.
        beside: ids of the client's calls in the same turn.
        suspension: the state of a call that has started; None for a call that has not.
        answer: the answer, once the approval is settled.
        result: content of the result, once the approval is settled.
        metadata: metadata of the result.
        earlier: finished calls of the same turn, for an agent that is called again once this call is decided.
        asks_always: True if the run that asked demanded an approval for every call.
        cancels_on_denial: True if the run that asked demanded to end as cancelled after a denial.
    """

    call: ModelToolCall
    interrupts: Sequence[Interrupt]
    beside: Sequence[str] = ()
    suspension: Suspension | None = None
    answer: ApprovalAnswer | None = None
    result: ToolContent | None = None
    metadata: dict[str, Any] | None = None
    earlier: tuple[FinishedCall, ...] = ()
    asks_always: bool = False
    cancels_on_denial: bool = False

    @property
    def is_settled(self) -> bool:
        """True if the call has a result."""
        return self.result is not None

    @property
    def final_result(self) -> ToolResult | None:
        """Result of a settled call with its metadata; None for an open approval."""
        return None if self.result is None else ToolResult(self.result, self.metadata)

    def with_result(self, result: ToolResult) -> "Approval":
        """Return a copy that is settled with this result."""
        return replace(self, result=result.content, metadata=result.metadata)

    def with_demands(self, rules: CallRules) -> "Approval":
        """Return a copy with the demands of the run that asks."""
        return replace(self, asks_always=rules.asks_always, cancels_on_denial=rules.cancels_on_denial)

    def added_to(self, rules: CallRules) -> CallRules:
        """Return the rules with the demands of the run that asked."""
        return rules.with_demands(asks_always=self.asks_always, cancels_on_denial=self.cancels_on_denial)


class Approvals:
    """The approvals of all threads of one assistant.

    Args:
        now: returns the time in Unix seconds.
        lifetime: seconds until an approval expires.
        interrupts: stores the approvals; by default in memory.
        depth: nesting depth of the assistant: 0 for the first, 1 for its subagents. Each depth has its own approvals.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.time,
        lifetime: float = LIFETIME,
        interrupts: InterruptStore | None = None,
        depth: int = 0,
    ) -> None:
        self.now = now
        self._lifetime = lifetime
        self._interrupts = interrupts or MemoryInterrupts()
        self._depth = depth

    def with_store(self, interrupts: InterruptStore, depth: int) -> "Approvals":
        """Return approvals with the same clock and lifetime that are stored in ``interrupts``."""
        return Approvals(self.now, self._lifetime, interrupts, depth)

    def of_questions(self) -> "Approvals":
        """Return the approvals that stand for an agent's own questions: only their demands are read."""
        return Approvals(self.now, self._lifetime, self._interrupts, QUESTIONS_DEPTH)

    def create(
        self,
        call: ModelToolCall,
        decision: PolicyDecision,
        interrupt_id: str,
        beside: Sequence[str] = (),
        details: Mapping[str, object] = MappingProxyType({}),
    ) -> Approval:
        """Create an approval for a call. ``details`` are the tool's facts about it. It is not stored yet."""
        expires_at = datetime.fromtimestamp(self.now() + self._lifetime, UTC)
        facts = {"category": decision.category, "reason": decision.reason, **details}
        metadata: dict[str, object] = {"toolName": call.name, "arguments": call.arguments}
        metadata |= {name: fact for name, fact in facts.items() if fact is not None}
        interrupt = Interrupt(
            id=interrupt_id,
            reason=TOOL_CALL,
            message=f"Allow {call.name} with {clip_arguments(call.arguments) or '{}'}?",
            tool_call_id=call.id,
            response_schema=RESPONSE_SCHEMA,
            expires_at=expires_at.isoformat(timespec="seconds"),
            metadata=metadata,
        )
        return Approval(call, (interrupt,), beside)

    async def load(self, at: ScopeKey) -> Sequence[Approval]:
        """Return the stored approvals of a scope: the settled ones, then the open ones, each in order of creation.

        Raises:
            AppError: STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            stored = await wait_for_store(lambda: self._interrupts.list_open(self._scope(at), self.now()))
        approvals = [approval for each in stored if (approval := _load_approval(each)) is not None]
        return sorted(approvals, key=lambda approval: not approval.is_settled)

    @asynccontextmanager
    async def registered_during(self, approvals: Sequence[Approval], ctx: RunContext) -> AsyncIterator[None]:
        """Store new approvals while the run emits its end in this block. Withdraw them if the block fails.

        They are stored before a client sees them, so that no answer can come too early.

        Raises:
            AppError: STORE_UNAVAILABLE.
        """
        if not approvals:
            yield
            return
        scope = self._scope(scope_key(ctx))
        try:
            with store_errors_as_app_errors():
                opened = [self._open(approval.with_demands(ctx.call_rules)) for approval in approvals]
                await wait_for_store(lambda: self._interrupts.put(scope, opened))
            yield
        except BaseException:
            ctx.background(self._remove_stored(scope, approvals))
            raise

    async def claim(self, at: ScopeKey, approval: Approval, result: ToolResult) -> Approval | None:
        """Claim an open approval for this run and settle it with a provisional result.

        Only one claim of an approval succeeds. Return the settled approval, or None if the claim failed.

        Raises:
            AppError: STORE_UNAVAILABLE. The call must not run then.
        """
        claimed, now = replace(approval, suspension=None).with_result(result), self.now()
        payload, until = _dump_approval(claimed), now + self._lifetime
        with store_errors_as_app_errors():
            is_claimed = await wait_for_store(
                lambda: self._interrupts.settle(self._scope(at), approval.call.id, payload, until, now)
            )
        return claimed if is_claimed else None

    async def settle(self, at: ScopeKey, approval: Approval, result: ToolResult, ctx: RunContext) -> Approval:
        """Store the result of a claimed call. If the store fails, only this run gets the result."""
        settled = approval.with_result(result)
        await shield_from_run_cancel(self._store_result(at, settled), ctx)
        return settled

    async def reopen(self, approval: Approval, suspension: Suspension, ctx: RunContext) -> Approval:
        """Store new interrupts for a claimed call that was suspended again.

        Raises:
            AppError: STORE_UNAVAILABLE.
        """
        asked = Approval(approval.call, suspension.interrupts, approval.beside, suspension, earlier=approval.earlier)
        reopened, scope = asked.with_demands(ctx.call_rules), self._scope(scope_key(ctx))
        with store_errors_as_app_errors():
            await wait_for_store(lambda: self._interrupts.put(scope, [self._open(reopened)]))
        return reopened

    def _open(self, approval: Approval) -> PendingInterrupt:
        return PendingInterrupt(approval.call.id, _dump_approval(approval), self.now() + 2 * self._lifetime)

    async def _store_result(self, at: ScopeKey, settled: Approval) -> None:
        record = PendingInterrupt(
            settled.call.id, _dump_approval(settled), self.now() + self._lifetime, is_settled=True
        )
        try:
            await wait_for_store(lambda: self._interrupts.put(self._scope(at), [record]))
        except StoreUnavailable:
            logger.warning(
                "storing call result failed, the call counts as cut off %s",
                format_fields({"call": record.id}),
                exc_info=True,
            )

    async def _remove_stored(self, scope: InterruptScope, approvals: Sequence[Approval]) -> None:
        """Delete the approvals that are still open. An approval that was answered meanwhile stays."""
        now = self.now()
        try:
            for call in [approval.call.id for approval in approvals]:
                await wait_for_store(partial(self._interrupts.settle, scope, call, b"", now, now))
        except StoreUnavailable:
            logger.warning(
                "removing approvals of a failed run failed %s",
                format_fields({"thread": scope.thread_id}),
                exc_info=True,
            )

    def _scope(self, at: ScopeKey) -> InterruptScope:
        return InterruptScope(self._depth, *at)


def clip_arguments(text: str) -> str:
    """Clip the arguments to the length that an interrupt's message shows."""
    return text if len(text) <= MAX_SHOWN_ARGUMENTS else f"{text[:MAX_SHOWN_ARGUMENTS]}…"


# --- options of the caller --------------------------------------------------------------------------------------------


class ApprovalOptions(BaseModel):
    """``forwardedProps.approvals``.

    Attributes:
        ask: ``policy`` asks if the operator's policy says so; ``all`` asks for every call that the server answers, also
            for one that cannot run.
        on_denial: ``tell`` passes the denial to the model and continues the run; ``cancel`` ends the run as cancelled.
            The denial is in the thread's history either way.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    ask: Literal["policy", "all"] = "policy"
    on_denial: Literal["tell", "cancel"] = "tell"

    def added_to(self, rules: CallRules) -> CallRules:
        """Return the rules with these options. Options never take back a rule."""
        return rules.with_demands(asks_always=self.ask == "all", cancels_on_denial=self.on_denial == "cancel")


_OPTIONS = TypeAdapter(ApprovalOptions)
_DEFAULT = ApprovalOptions()


def read_approval_options(props: object) -> ApprovalOptions:
    """Return the options in a run's ``forwardedProps``, or the defaults.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    return read_forwarded_prop(props, "approvals", _OPTIONS) or _DEFAULT


# --- as JSON ----------------------------------------------------------------------------------------------------------


@cache
def _adapter() -> TypeAdapter[Approval]:
    """Return the JSON adapter. It is built with the first approval, so that the server starts faster."""
    return TypeAdapter(Approval)


def _dump_approval(approval: Approval) -> bytes:
    try:
        return without_large_integers(_adapter().dump_json(approval, by_alias=True))
    except PydanticSerializationError:  # The usual reason is half of a surrogate pair.
        return json_text(_adapter().dump_python(approval, by_alias=True)).encode()


def _load_approval(record: PendingInterrupt) -> Approval | None:
    """Parse a stored approval. Return None if another version of the server wrote it in a form unknown to this one."""
    try:
        return _adapter().validate_json(record.payload)
    except ValidationError as error:
        field = error.errors()[0]["loc"]
        logger.warning(
            "stored approval unreadable, call will not run %s", format_fields({"call": record.id, "field": field})
        )
        return None
