"""AG-UI events of subagents as roz's events of workers.

Rule: pure translation. A worker is one invocation of a subagent; its id is the invocation's. Phases count its turns.
"""

from collections.abc import Mapping

from ag_ui.core import EventType
from pydantic_core import to_json

from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.interrupts import Event, approval_requests

MODE = "react"


class TeamEvents:
    """The events of the workers of one task.

    Args:
        task_id: what the client calls the task.
        has_approvals: whether the client is of release 1.0, which knows of workers' approvals.
    """

    def __init__(self, task_id: str, *, has_approvals: bool) -> None:
        self._task_id = task_id
        self._has_approvals = has_approvals
        self._phases: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._speaks: set[str] = set()
        self._texts: dict[str, list[str]] = {}
        self._asked: dict[str, tuple[str, str]] = {}

    def feed(self, kind: EventType, event: Event) -> list[pb.TeamEvent]:  # noqa: PLR0911 - a case for each kind
        """The events that one AG-UI event becomes."""
        if kind is EventType.RUN_FINISHED:
            return self._approvals(event)
        worker = event.get("subagentRunId")
        if worker is None:
            return []
        match kind:
            case EventType.SUBAGENT_STARTED:
                return self._started(worker, event)
            case EventType.TEXT_MESSAGE_CONTENT | EventType.REASONING_MESSAGE_CONTENT:
                if kind is EventType.TEXT_MESSAGE_CONTENT:
                    self._texts.setdefault(worker, []).append(event["delta"])
                return self._phase(worker)
            case EventType.TOOL_CALL_START:
                called = pb.WorkerToolCall(worker_id=worker, tool=event["toolCallName"])
                return [*self._phase(worker), pb.TeamEvent(worker_tool_call=called)]
            case EventType.TOOL_CALL_RESULT:
                self._speaks.discard(worker)
            case EventType.SUBAGENT_FINISHED:
                return self._finished(worker, event)
            case EventType.SUBAGENT_ERROR:
                failed = pb.WorkerFailed(worker_id=worker, reason=event.get("message", ""))
                return [pb.TeamEvent(worker_failed=failed), self._exited(worker)]
        return []

    def _started(self, worker: str, event: Event) -> list[pb.TeamEvent]:
        """A worker has begun, or goes on after it had asked for something."""
        self._parents[worker] = event.get("parentSubagentRunId") or self._task_id
        self._speaks.discard(worker)
        self._texts.pop(worker, None)
        resolved = self._resolved(worker)
        if worker in self._phases:
            return resolved
        started = pb.WorkerStarted(worker_id=worker, host_id=event.get("name", ""))
        return [*resolved, pb.TeamEvent(worker_started=started)]

    def _phase(self, worker: str) -> list[pb.TeamEvent]:
        """Begin a phase with what a worker says first, and with what it says after its tools' results."""
        if worker in self._speaks:
            return []
        self._speaks.add(worker)
        self._texts[worker] = self._texts.get(worker, [])[-1:]
        self._phases[worker] = phase = self._phases.get(worker, 0) + 1
        return [pb.TeamEvent(worker_phase=pb.WorkerPhase(worker_id=worker, phase=phase, mode=MODE))]

    def _finished(self, worker: str, event: Event) -> list[pb.TeamEvent]:
        if (event.get("outcome") or {}).get("type") == "suspended":
            return []
        result = event.get("result")
        text = result if isinstance(result, str) else "" if result is None else to_json(result).decode()
        completed = pb.WorkerCompleted(worker_id=worker, result=text or "".join(self._texts.pop(worker, ())))
        return [pb.TeamEvent(worker_completed=completed), self._exited(worker)]

    def _exited(self, worker: str) -> pb.TeamEvent:
        parent = self._parents.get(worker, self._task_id)
        return pb.TeamEvent(worker_exited=pb.WorkerExited(worker_id=worker, parent_task_id=parent))

    def _approvals(self, event: Event) -> list[pb.TeamEvent]:
        if not self._has_approvals:
            return []
        outcome: Mapping[str, object] = event.get("outcome") or {}
        interrupts = outcome.get("interrupts")
        workers = {it["id"]: it.get("subagentRunId") for it in interrupts} if isinstance(interrupts, list) else {}
        events = []
        for request in approval_requests(event):
            worker = workers.get(request.interrupt_id)
            if worker is not None:
                self._asked[request.call_id] = worker, request.name
                asked = pb.WorkerApprovalRequested(
                    worker_id=worker,
                    task_id=self._task_id,
                    approval_id=request.call_id,
                    tool_name=request.name,
                    reason=request.reason,
                )
                events.append(pb.TeamEvent(worker_approval_requested=asked))
        return events

    def _resolved(self, worker: str) -> list[pb.TeamEvent]:
        """A worker that asked goes on, so its approvals were answered; the run does not say how."""
        calls = [call_id for call_id, (asking, _) in self._asked.items() if asking == worker]
        events = []
        for call_id in calls:
            del self._asked[call_id]
            resolved = pb.WorkerApprovalResolved(
                worker_id=worker, task_id=self._task_id, approval_id=call_id, approved=True
            )
            events.append(pb.TeamEvent(worker_approval_resolved=resolved))
        return events
