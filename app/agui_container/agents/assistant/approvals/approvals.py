"""Calls that wait for somebody's word, and what became of them.

They are of two kinds: a call that must be approved before it begins, and one of a subagent that has begun and asks.

Rule: what is run is what was asked for: name and arguments come from here, never from the messages a caller sends. An
answer counts only where it was asked for: of that owner, on that thread, in that part of it. A call is run at most
once, whatever is sent again and by whichever replica it is answered: it is *open* until an answer takes it, and
*settled* from then on. Only who has taken a call writes of it. What is settled is remembered with its answer and its
result for as long as an approval lives, so that an answer that comes again finds them. All of it is kept as JSON by an
``InterruptStore``; what is forgotten there is not run.

Sources: AG-UI spec 1.1, basic/patterns/interrupt-resume; docs/tools.md.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any

from ag_ui.core import Interrupt
from pydantic import BaseModel, ConfigDict, Field, StrictBool, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from agui_container.agents.assistant.interrupt_scope import ScopeKey, scope_key, shield_from_run_cancel
from agui_container.agents.assistant.model_turn import ModelToolCall
from agui_container.agents.assistant.toolbox import ToolResult
from agui_container.ports import PolicyDecision, RunContext, Suspension, ToolContent
from agui_container.ports.records import InterruptScope, PendingInterrupt
from agui_container.ports.store import InterruptStore, StoreUnavailable, store_errors_as_app_errors
from agui_container.runtime.memory_interrupts import MemoryInterrupts

LIFETIME = 3600.0
"""Seconds until an approval expires. For as long again it can be abandoned, and an answer is told that it is late."""

TOOL_CALL = "tool_call"
"""AG-UI's word for an interrupt that a call waits for (docs, concepts/interrupts): what a page shows buttons for."""

MAX_SHOWN_ARGUMENTS = 500
"""Characters of the arguments in an interrupt's message; its metadata has all of them."""

MAX_REASON = 10_000
"""Characters of an answer's reason."""

RESPONSE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "editedArgs": {"type": "object"},
    },
    "required": ["approved"],
}
"""No stricter than AG-UI's docs have it (concepts/interrupts): assistant-ui shows no buttons where it is not sure."""

logger = logging.getLogger(__name__)


class ApprovalAnswer(BaseModel):
    """The payload of a resume entry."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    approved: StrictBool
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = None
    edited_args: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """One call that waits, or has waited, in the words of the model.

    Attributes:
        beside: the calls of the same turn that the client runs.
        suspension: where a call that has begun goes on; a call that has not begun has none.
        answer: what was decided, once it was.
        result: what a settled call has given.
        metadata: what is said beside it.
    """

    call: ModelToolCall
    interrupts: Sequence[Interrupt]
    beside: Sequence[str] = ()
    suspension: Suspension | None = None
    answer: ApprovalAnswer | None = None
    result: ToolContent | None = None
    metadata: dict[str, Any] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the call has its result."""
        return self.result is not None

    @property
    def final_result(self) -> ToolResult | None:
        """The result, with what is said beside it."""
        return None if self.result is None else ToolResult(self.result, self.metadata)

    def with_result(self, result: ToolResult) -> "Approval":
        """The same, settled with this result."""
        return replace(self, result=result.content, metadata=result.metadata)


class Approvals:
    """The approvals of all threads of one assistant.

    Args:
        now: Unix seconds.
        lifetime: seconds until an approval expires.
        interrupts: keeps them.
        depth: how deep below the first assistant this one works; each depth has its own.
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

    def kept_in(self, interrupts: InterruptStore, depth: int) -> "Approvals":
        """The same, kept there."""
        return Approvals(self.now, self._lifetime, interrupts, depth)

    def create(
        self,
        call: ModelToolCall,
        ruling: PolicyDecision,
        interrupt_id: str,
        beside: Sequence[str] = (),
        preview: str | None = None,
    ) -> Approval:
        """What asks for a call, with its tool's preview of it, if any. It counts once it is held."""
        expires_at = datetime.fromtimestamp(self.now() + self._lifetime, UTC)
        words = {"category": ruling.category, "reason": ruling.reason, "preview": preview}
        metadata = {"toolName": call.name, "arguments": call.arguments}
        metadata |= {name: word for name, word in words.items() if word is not None}
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
        """What was decided and is still remembered, then what waits, each in the order in which it was asked for.

        Raises ``AppError`` STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            held = await self._interrupts.list_open(self._scope(at), self.now())
        found = [approval for it in held if (approval := _load_approval(it)) is not None]
        return sorted(found, key=lambda approval: not approval.is_settled)

    @asynccontextmanager
    async def registered_during(self, asked: Sequence[Approval], ctx: RunContext) -> AsyncIterator[None]:
        """A run that asks ends in this block: these wait from its beginning on, or not at all where the end fails.

        They wait before anybody has heard of them, so that no answer comes too early. Raises ``AppError``
        STORE_UNAVAILABLE.
        """
        if not asked:
            yield
            return
        place = self._scope(scope_key(ctx))
        try:
            with store_errors_as_app_errors():
                await self._interrupts.put(place, [self._open(approval) for approval in asked])
            yield
        except BaseException:
            ctx.background(self._withdraw(place, asked))
            raise

    async def claim(self, at: ScopeKey, approval: Approval, result: ToolResult) -> Approval | None:
        """The call is the caller's to run, with this result until it has given another; None: it is not.

        What waits is taken once. Raises ``AppError`` STORE_UNAVAILABLE: then the call must not be run.
        """
        taken, now = replace(approval, suspension=None).with_result(result), self.now()
        with store_errors_as_app_errors():
            won = await self._interrupts.settle(
                self._scope(at), approval.call.id, _dump_approval(taken), now + self._lifetime, now
            )
        return taken if won else None

    async def settle(self, at: ScopeKey, approval: Approval, result: ToolResult, ctx: RunContext) -> Approval:
        """A call that was taken has this result, also for a store that does not answer: then that run alone knows."""
        settled = approval.with_result(result)
        await shield_from_run_cancel(self._remember(at, settled), ctx)
        return settled

    async def reopen(self, at: ScopeKey, approval: Approval, suspension: Suspension) -> Approval:
        """A call that was taken has more to ask. Raises ``AppError`` STORE_UNAVAILABLE."""
        again = Approval(approval.call, suspension.interrupts, approval.beside, suspension)
        with store_errors_as_app_errors():
            await self._interrupts.put(self._scope(at), [self._open(again)])
        return again

    def _open(self, approval: Approval) -> PendingInterrupt:
        return PendingInterrupt(approval.call.id, _dump_approval(approval), self.now() + 2 * self._lifetime)

    async def _remember(self, at: ScopeKey, settled: Approval) -> None:
        held = PendingInterrupt(settled.call.id, _dump_approval(settled), self.now() + self._lifetime, settled=True)
        try:
            await self._interrupts.put(self._scope(at), [held])
        except StoreUnavailable:
            logger.warning("call=<%s> | its result is not remembered: it counts as cut off", held.id, exc_info=True)

    async def _withdraw(self, place: InterruptScope, asked: Sequence[Approval]) -> None:
        """Let go of what still waits. An answer may have been quicker, and then stands."""
        now = self.now()
        try:
            for approval in asked:
                await self._interrupts.settle(place, approval.call.id, b"", now, now)
        except StoreUnavailable:
            logger.warning("thread=<%s> | what a failed run asked may still wait", place.thread_id, exc_info=True)

    def _scope(self, at: ScopeKey) -> InterruptScope:
        return InterruptScope(self._depth, *at)


def clip_arguments(text: str) -> str:
    """As much of the arguments as people are shown."""
    return text if len(text) <= MAX_SHOWN_ARGUMENTS else f"{text[:MAX_SHOWN_ARGUMENTS]}…"


# --- as JSON ----------------------------------------------------------------------------------------------------------


@cache
def _adapter() -> TypeAdapter[Approval]:
    """Built with the first approval: a start does not pay for it."""
    return TypeAdapter(Approval)


def _dump_approval(approval: Approval) -> bytes:
    return _adapter().dump_json(approval, by_alias=True)


def _load_approval(held: PendingInterrupt) -> Approval | None:
    """None for what another version of this server wrote, and this one cannot read: it is not run."""
    try:
        return _adapter().validate_json(held.payload)
    except ValidationError as error:
        wrong = error.errors()[0]["loc"]
        logger.warning("call=<%s> | what waits cannot be read, and is not run: %s", held.id, wrong)
        return None
