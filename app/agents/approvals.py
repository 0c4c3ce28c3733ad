"""Calls that wait for somebody's word, and what became of them.

They are of two kinds: a call that must be approved before it begins, and one of a subagent that has begun and asks.

Rule: what is run is what was asked for: name and arguments come from here, never from the messages a caller sends. A
call is run at most once, whatever is sent again: it is *open* until an answer claims it, and *settled* from then on.
What is settled is remembered with its answer and its result for as long as an approval lives, so that an answer that
comes again finds them. All of it is in memory and bounded; what is forgotten is not run.

Sources: AG-UI spec 1.1, basic/patterns/interrupt-resume; design 4.8.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated

from ag_ui.core import Interrupt, ResumeEntry
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from app.agents.shelf import Place, Shelf
from app.agents.toolbox import is_object
from app.agents.turn import Call
from app.core.errors import AppError, Code
from app.ports import Ruling, Suspension, ToolContent

OPEN_BYTES = 48_000_000
"""What the open approvals of a process may take, as JSON. Beyond it the oldest are forgotten."""

SETTLED_BYTES = 16_000_000
"""What may be remembered of settled ones."""

SHOWN_ARGUMENTS = 500
"""Characters of the arguments in an interrupt's message; its metadata has all of them."""

MAX_REASON = 10_000
"""Characters of an answer's reason."""

SHOWN_FIELD = 64
"""Characters of a field's name that nobody knows, said back."""

RESPONSE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string", "maxLength": MAX_REASON},
        "editedArgs": {"type": "object"},
    },
    "required": ["approved"],
    "additionalProperties": False,
}

EXPECTED = {
    "approved": "must be true or false",
    "reason": f"must be a text of at most {MAX_REASON} characters",
    "editedArgs": "must be an object",
}

Thread = tuple[str, str]
"""Owner and thread id: an answer counts only on the thread that asked, by whom it was asked."""


class Answer(BaseModel):
    """The payload of a resume entry."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    approved: StrictBool
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = None
    edited_args: dict[str, object] | None = None


@dataclass(frozen=True, eq=False)
class Approval:
    """One call that waits, or has waited, in the words of the model.

    Attributes:
        beside: the calls of the same turn that the client runs.
        suspension: where a call that has begun goes on; a call that has not begun has none.
        answer: what was decided, once it was.
        result: what a settled call has given.
        until: Unix seconds; how long a settled one is remembered.
    """

    call: Call
    interrupts: Sequence[Interrupt]
    beside: Sequence[str] = ()
    suspension: Suspension | None = None
    answer: Answer | None = None
    result: ToolContent | None = None
    until: float = 0.0

    @property
    def settled(self) -> bool:
        """Whether the call has its result."""
        return self.result is not None

    @cached_property
    def size(self) -> int:
        """Its length as JSON."""
        messages = self.suspension.messages if self.suspension else ()
        parts = (self.call.arguments, self.interrupts, messages, self.answer, self.result)
        return len(to_json(parts, serialize_unknown=True))


class Approvals:
    """The approvals of all threads of one assistant.

    Args:
        now: Unix seconds.
        lifetime: seconds until an approval expires.
    """

    def __init__(self, now: Callable[[], float] = time.time, lifetime: float = 3600.0) -> None:
        self.now = now
        self._lifetime = lifetime
        self._depth = 0
        self._open = Shelf[Approval]("open approvals", lifetime, OPEN_BYTES)
        self._settled = Shelf[Approval]("settled approvals", lifetime, SETTLED_BYTES)

    def below(self) -> "Approvals":
        """Those of an assistant that this one hands work to: apart from these, and within the same bounds."""
        other = Approvals(self.now, self._lifetime)
        other._depth, other._open, other._settled = self._depth + 1, self._open, self._settled
        return other

    def ask(self, call: Call, ruling: Ruling, interrupt_id: str, beside: Sequence[str] = ()) -> Approval:
        """What asks for a call. It counts once it is held."""
        expires_at = datetime.fromtimestamp(self.now() + self._lifetime, UTC)
        metadata = {"toolName": call.name, "arguments": call.arguments}
        if ruling.category is not None:
            metadata["category"] = ruling.category
        interrupt = Interrupt(
            id=interrupt_id,
            reason=ruling.reason or "approval",
            message=f"Allow {call.name} with {clipped(call.arguments) or '{}'}?",
            tool_call_id=call.id,
            response_schema=RESPONSE_SCHEMA,
            expires_at=expires_at.isoformat(timespec="seconds"),
            metadata=metadata,
        )
        return Approval(call, (interrupt,), beside)

    def open(self, thread: Thread) -> Sequence[Approval]:
        """What waits, in the order in which it was asked for."""
        return self._open.of(self._place(thread))

    def settled(self, thread: Thread) -> Sequence[Approval]:
        """What was decided and is still remembered."""
        return self._settled.of(self._place(thread))

    def hold(self, thread: Thread, waiting: Sequence[Approval]) -> None:
        """A run of the thread has ended well: these wait now."""
        self._open.put(self._place(thread), waiting, self.now())

    def settle(self, thread: Thread, approval: Approval, result: ToolContent) -> Approval:
        """The call has this result from now on, and nothing starts it again."""
        now = self.now()
        settled = replace(approval, suspension=None, result=result, until=now + self._lifetime)
        remembered = [other for other in without(approval, self.settled(thread)) if other.until > now]
        self.hold(thread, without(approval, self.open(thread)))
        self._settled.put(self._place(thread), [*remembered, settled], now)
        return settled

    def reopen(self, thread: Thread, approval: Approval, suspension: Suspension) -> Approval:
        """A call that was claimed has more to ask."""
        again = replace(approval, interrupts=suspension.interrupts, suspension=suspension, answer=None)
        self._settled.put(self._place(thread), without(approval, self.settled(thread)), self.now())
        self.hold(thread, [*self.open(thread), again])
        return again

    def _place(self, thread: Thread) -> Place:
        return (self._depth, *thread)


def without(approval: Approval, approvals: Sequence[Approval]) -> Sequence[Approval]:
    """The others."""
    return [other for other in approvals if other.call.id != approval.call.id]


def clipped(text: str) -> str:
    """As much of the arguments as people are shown."""
    return text if len(text) <= SHOWN_ARGUMENTS else f"{text[:SHOWN_ARGUMENTS]}…"


# --- what was decided -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """An approval and what was decided: the entries, and what they say of a call that has not begun."""

    approval: Approval
    entries: Sequence[ResumeEntry]
    answer: Answer | None

    @property
    def call(self) -> Call:
        """The call as it is from now on: as it was asked for, or edited. One that has begun is past that."""
        if self.approval.suspension or not (self.answer and self.answer.approved) or self.answer.edited_args is None:
            return self.approval.call
        return replace(self.approval.call, arguments=to_json(self.answer.edited_args).decode())


def decisions(approvals: Sequence[Approval], entries: Sequence[ResumeEntry], now: float) -> list[Decision]:
    """What the entries decide, in the order of the approvals. Entries that name none of them are left out.

    Raises:
        AppError: VALIDATION_ERROR for two answers to one interrupt, one to what has expired, or one of another form.
    """
    found = _by_interrupt(approvals, entries)
    decided = []
    for approval in approvals:
        named = [(interrupt, *found[interrupt.id]) for interrupt in approval.interrupts if interrupt.id in found]
        for interrupt, at, entry in named:
            if not approval.settled and entry.status != "cancelled":
                _check_expiry(interrupt, at, now)
        if named:
            answers = [_answer(*each) for each in named]
            decided.append(Decision(approval, [entry for _, _, entry in named], answers[0]))
    return decided


def _by_interrupt(approvals: Sequence[Approval], entries: Sequence[ResumeEntry]) -> dict[str, tuple[int, ResumeEntry]]:
    """The entries that name an interrupt, with their places in the list."""
    known = {interrupt.id for approval in approvals for interrupt in approval.interrupts}
    found: dict[str, tuple[int, ResumeEntry]] = {}
    for at, entry in enumerate(entries):
        if entry.interrupt_id in found:
            raise AppError(Code.VALIDATION_ERROR, f"resume.{at}.interruptId: this interrupt is answered twice.")
        if entry.interrupt_id in known:
            found[entry.interrupt_id] = (at, entry)
    return found


def _check_expiry(interrupt: Interrupt, at: int, now: float) -> None:
    if interrupt.expires_at is not None and datetime.fromisoformat(interrupt.expires_at).timestamp() <= now:
        raise AppError(Code.VALIDATION_ERROR, f"resume.{at}: this interrupt has expired; cancel it to go on.")


def _answer(interrupt: Interrupt, at: int, entry: ResumeEntry) -> Answer | None:
    """The answer to an interrupt of this module; None where it was abandoned, or somebody else asked."""
    if entry.status == "cancelled" or interrupt.response_schema != RESPONSE_SCHEMA:
        return None
    where = f"resume.{at}.payload"
    try:
        answer = Answer.model_validate(entry.payload)
    except ValidationError as error:
        path = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
        raise AppError(Code.VALIDATION_ERROR, f"{where}{_complaint(path)}.") from None
    if answer.edited_args is not None and not _can_be_sent(answer.edited_args):
        raise AppError(Code.VALIDATION_ERROR, f"{where}.editedArgs: cannot be written as JSON.")
    return answer


def _complaint(path: Sequence[int | str]) -> str:
    """Where a payload is wrong, and what was expected there."""
    if not path:
        return f": must be an object with {', '.join(EXPECTED)}, of which the first is required"
    name = str(path[0])
    return f".{name[:SHOWN_FIELD]}: {EXPECTED.get(name, 'is not a field of an answer')}"


def _can_be_sent(arguments: dict[str, object]) -> bool:
    """Whether a tool can be called with them: numbers may be infinite, and nesting too deep."""
    try:
        return is_object(to_json(arguments).decode())
    except ValueError:
        return False
