"""Calls that wait for the client between two runs, and its answers to them.

Rule: pure state; times are parameters. A call waits for one answer: the client's, or else one of this server's after
the approval has expired or the client's tool has exceeded its timeout.
"""

import math
from collections.abc import Mapping, Sequence

from ag_ui.core import EventType, ToolMessage
from msgspec import Struct, field

from agui_container.protocols.conversation.approvals import (
    ApprovalDecision,
    ApprovalRequest,
    Verdict,
    approval_requests,
)
from agui_container.protocols.conversation.events import RUN_ENDS, Completed, Event, outcome_of

Answer = ToolMessage | ApprovalDecision
"""The answer to a call that waits: the result of a client's tool, or a decision on an approval request."""

CALL_EVENTS = RUN_ENDS | {EventType.TOOL_CALL_START, EventType.TOOL_CALL_ARGS, EventType.TOOL_CALL_RESULT}
"""Types of the events that change which calls wait."""


class ClientToolCall(Struct):
    """A call of one of the client's tools. Without ``timeout_ms`` the client has any time for its result."""

    call_id: str
    name: str
    timeout_ms: int | None
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def timeout(self) -> float:
        return math.inf if self.timeout_ms is None else self.timeout_ms / 1000


OpenCall = ApprovalRequest | ClientToolCall
"""A call that waits for a client: for a decision, or for the result of the client's tool."""


class PendingCalls:
    """Calls of a conversation that wait for the client, and the answers so far."""

    def __init__(self, timeouts: Mapping[str, int | None]) -> None:
        self.approvals: dict[str, ApprovalRequest] = {}
        self.tools: dict[str, ClientToolCall] = {}
        self._timeouts = timeouts
        self._unfinished: dict[str, ClientToolCall] = {}
        """Calls of the client's tools without a result, also while a run still writes them."""
        self._answers: dict[str, Answer] = {}
        self._failed: set[str] = set()
        """Ids of the calls whose results are this server's."""

    def __bool__(self) -> bool:
        return bool(self.tools or self.approvals)

    def has(self, call_id: str) -> bool:
        return call_id in self.tools or call_id in self.approvals

    def feed(self, kind: EventType, event: Event) -> None:
        call_id = event.get("toolCallId", "")
        match kind:
            case EventType.TOOL_CALL_START if event.get("subagentRunId") is None:
                name = event["toolCallName"]
                if name in self._timeouts:
                    self._unfinished[call_id] = ClientToolCall(call_id, name, self._timeouts[name])
            case EventType.TOOL_CALL_ARGS if call_id in self._unfinished:
                self._unfinished[call_id].pieces.append(event["delta"])
            case EventType.TOOL_CALL_RESULT:
                self._unfinished.pop(call_id, None)
            case EventType.RUN_FINISHED | EventType.RUN_ERROR:
                self._end_run(kind, event)

    def offer(self, timeouts: Mapping[str, int | None]) -> None:
        """Replace the client's tools, as in the constructor. Calls that wait are not affected."""
        self._timeouts = timeouts

    def reopen(self, call: OpenCall) -> None:
        """Wait for a call that an earlier conversation of the thread has left open."""
        if isinstance(call, ApprovalRequest):
            self.approvals[call.call_id] = call
        else:
            self.tools[call.call_id] = self._unfinished[call.call_id] = call

    def _end_run(self, kind: EventType, event: Event) -> None:
        if not isinstance(outcome_of(kind, event), Completed):
            self.clear()
            return
        self.approvals = {request.call_id: request for request in approval_requests(event)}
        self.tools = {call_id: it for call_id, it in self._unfinished.items() if call_id not in self.approvals}
        self._answers = {call_id: it for call_id, it in self._answers.items() if call_id in self.tools}

    # --- answers ---

    @property
    def answers(self) -> Sequence[Answer] | None:
        """The answers to all calls, those of the client's tools first, or None while one is missing."""
        waiting = [*self.tools, *self.approvals]
        is_complete = all(call_id in self._answers for call_id in waiting)
        return [self._answers[call_id] for call_id in waiting] if is_complete else None

    def add(self, answer: Answer) -> bool:
        """Store an answer of the client. Returns False if its call does not wait, or is answered already."""
        call_id = call_id_of(answer)
        waiting = self.approvals if isinstance(answer, ApprovalDecision) else self.tools
        if call_id not in waiting or call_id in self._answers:
            return False
        self._answers[call_id] = answer
        return True

    def fail(self, call_id: str, error: str) -> None:
        if call_id not in self._answers:
            self._answers[call_id] = result_message(call_id, error, error)
            self._failed.add(call_id)

    def update(self, now: float, waited: float) -> float:
        """Answer what has expired after ``waited`` seconds. Return the seconds until the next one, or infinity."""
        left = {call_id: request.seconds_left(now) for call_id, request in self.approvals.items()}
        expired = [call_id for call_id, seconds in left.items() if seconds <= 0]
        self._answers |= {call_id: ApprovalDecision(call_id, Verdict.EXPIRED) for call_id in expired}
        for call in self.tools.values():
            if waited >= call.timeout:
                self.fail(call.call_id, f"Error: the tool did not answer within {call.timeout_ms} ms.")
        missing = (it.timeout - waited for call_id, it in self.tools.items() if call_id not in self._answers)
        return min([*(seconds for seconds in left.values() if seconds > 0), *missing, math.inf])

    # --- the end of waiting ---

    def drop_approvals(self) -> Sequence[ApprovalDecision]:
        """Forget the approvals, which another client has answered. Returns the client's decisions, which are late."""
        answers = [self._answers.pop(call_id, None) for call_id in self.approvals]
        self.approvals = {}
        return [it for it in answers if isinstance(it, ApprovalDecision) and it.verdict is not Verdict.EXPIRED]

    def drop_tool(self, call_id: str) -> Answer | None:
        """Forget a call that the thread no longer waits for. Returns the client's result if there is one."""
        del self.tools[call_id]
        self._unfinished.pop(call_id, None)
        answer = self._answers.pop(call_id, None)
        return None if call_id in self._failed else answer

    def clear(self) -> None:
        for call_id in self.tools:
            self._unfinished.pop(call_id, None)
        self.approvals, self.tools, self._answers = {}, {}, {}


def call_id_of(answer: Answer) -> str:
    return answer.call_id if isinstance(answer, ApprovalDecision) else answer.tool_call_id


def answers_call(answer: Answer, call: OpenCall | None) -> bool:
    return call is not None and isinstance(call, ApprovalRequest) is isinstance(answer, ApprovalDecision)


def result_message(call_id: str, content: str, error: str | None = None) -> ToolMessage:
    return ToolMessage(id=f"result-{call_id}", role="tool", tool_call_id=call_id, content=content, error=error)
