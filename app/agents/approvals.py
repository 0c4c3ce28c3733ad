"""Calls that wait for somebody's word, and what became of them.

They are of two kinds: a call that must be approved before it begins, and one of a subagent that has begun and asks.

Rule: what is run is what was asked for: name and arguments come from here, never from the messages a caller sends. A
call is run at most once, whatever is sent again: it is *open* until an answer claims it, *settled* from then on with
the result it had, and forgotten only when a run that saw the result has ended well. Kept in memory, and bounded.

Sources: AG-UI spec 1.1, basic/patterns/interrupt-resume; design 4.8.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ag_ui.core import Interrupt, ResumeEntry
from pydantic import BaseModel, ConfigDict, StrictBool, ValidationError
from pydantic.alias_generators import to_camel

from app.agents.turn import Call
from app.core.errors import AppError, Code
from app.ports import Ruling, Suspension, ToolContent

MAX_THREADS = 10_000
"""Threads with open approvals. Beyond it the oldest are forgotten, which means: not run."""

RESPONSE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "editedArgs": {"type": "object"},
    },
    "required": ["approved"],
}

Thread = tuple[str, str]
"""Owner and thread id: an answer counts only on the thread that asked, by whom it was asked."""


class Answer(BaseModel):
    """The payload of a resume entry."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    approved: StrictBool
    reason: str | None = None
    edited_args: dict[str, object] | None = None


@dataclass(slots=True)
class Approval:
    """One call that waits, in the words of the model. ``result`` is set once it was decided.

    ``suspension`` says where a call that has begun goes on; a call that has not begun has none.
    """

    call: Call
    interrupts: Sequence[Interrupt]
    suspension: Suspension | None = None
    result: ToolContent | None = None

    @property
    def settled(self) -> bool:
        """Whether the call has its result."""
        return self.result is not None


def held(call: Call, suspension: Suspension) -> Approval:
    """What holds a call that stopped to ask."""
    return Approval(call, suspension.interrupts, suspension)


@dataclass(frozen=True, slots=True)
class Decision:
    """An approval and what was decided: the entries, and what they say of a call that has not begun."""

    approval: Approval
    entries: Sequence[ResumeEntry]
    answer: Answer | None


class Approvals:
    """The open approvals of all threads of one assistant.

    Args:
        now: Unix seconds.
        lifetime: seconds until an approval expires.
    """

    def __init__(self, now: Callable[[], float] = time.time, lifetime: float = 3600.0) -> None:
        self.now = now
        self._lifetime = lifetime
        self._threads: OrderedDict[Thread, Sequence[Approval]] = OrderedDict()

    def ask(self, call: Call, ruling: Ruling, interrupt_id: str) -> Approval:
        """What asks for a call. It counts once it is held."""
        expires_at = datetime.fromtimestamp(self.now() + self._lifetime, UTC)
        metadata = {"toolName": call.name, "arguments": call.arguments}
        if ruling.category is not None:
            metadata["category"] = ruling.category
        interrupt = Interrupt(
            id=interrupt_id,
            reason=ruling.reason or "approval",
            message=f"Allow {call.name} with {call.arguments or '{}'}?",
            tool_call_id=call.id,
            response_schema=RESPONSE_SCHEMA,
            expires_at=expires_at.isoformat(timespec="seconds"),
            metadata=metadata,
        )
        return Approval(call, (interrupt,))

    def of(self, thread: Thread) -> Sequence[Approval]:
        """The thread's approvals, in the order they were asked for."""
        return self._threads.get(thread, ())

    def commit(self, thread: Thread, waiting: Sequence[Approval]) -> None:
        """A run of the thread has ended well: these wait now, and whatever else was held has reached its end."""
        self._threads.pop(thread, None)
        if waiting:
            self._threads[thread] = tuple(waiting)
            if len(self._threads) > MAX_THREADS:
                self._threads.popitem(last=False)


def decisions(approvals: Sequence[Approval], entries: Sequence[ResumeEntry], now: float) -> list[Decision]:
    """What the entries decide, in the order of the approvals. Entries that answer nothing open are left out.

    Raises:
        AppError: VALIDATION_ERROR for an answer to what has expired, or one of another form.
    """
    by_id = {entry.interrupt_id: (at, entry) for at, entry in enumerate(entries)}
    decided = []
    for approval in approvals:
        found = [(interrupt, *by_id[interrupt.id]) for interrupt in approval.interrupts if interrupt.id in by_id]
        if found and not approval.settled:
            answers = [_answer(interrupt, at, entry, now) for interrupt, at, entry in found]
            decided.append(Decision(approval, [entry for _, _, entry in found], answers[0]))
    return decided


def _answer(interrupt: Interrupt, at: int, entry: ResumeEntry, now: float) -> Answer | None:
    """The answer to an interrupt of this module; None where it was abandoned, or somebody else asked."""
    if entry.status == "cancelled":
        return None
    if interrupt.expires_at is not None and datetime.fromisoformat(interrupt.expires_at).timestamp() <= now:
        raise AppError(Code.VALIDATION_ERROR, f"resume.{at}: this interrupt has expired; cancel it to go on.")
    if interrupt.response_schema != RESPONSE_SCHEMA:
        return None
    try:
        return Answer.model_validate(entry.payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(["resume", str(at), "payload", *map(str, first["loc"])])
        raise AppError(Code.VALIDATION_ERROR, f"{where}: {first['msg']}.") from None
