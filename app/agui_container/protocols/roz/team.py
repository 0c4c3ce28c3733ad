"""AG-UI events of subagents as roz's events of workers.

Rule: pure translation. A worker is one invocation of a subagent and has the id of the invocation. Phases count its
turns.
"""

from collections.abc import Callable, Mapping

from ag_ui.core import EventType
from pydantic_core import to_json

from agui_container.protocols.conversation.approvals import approval_requests
from agui_container.protocols.conversation.events import Event, is_denied
from agui_container.protocols.gen import agent_pb2 as pb

MODE = "react"


class TeamEvents:
    def __init__(self, task_id: str, now: Callable[[], float]) -> None:
        self._task_id = task_id
        self._now = now
        self._phases: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._in_phase: set[str] = set()
        self._texts: dict[str, list[str]] = {}
        self._requested_approvals: dict[str, str] = {}
        """Workers that wait for approvals, by call id."""

    def feed(self, kind: EventType, event: Event) -> list[pb.TeamEvent]:  # noqa: PLR0911 - a case for each kind
        if kind is EventType.RUN_FINISHED:
            return self._request_approvals(event)
        worker = event.get("subagentRunId")
        if worker is None:
            return []
        match kind:
            case EventType.SUBAGENT_STARTED:
                return self._start_worker(worker, event)
            case EventType.TEXT_MESSAGE_CONTENT | EventType.REASONING_MESSAGE_CONTENT:
                if kind is EventType.TEXT_MESSAGE_CONTENT:
                    self._texts.setdefault(worker, []).append(event["delta"])
                return self._begin_phase(worker)
            case EventType.TOOL_CALL_START:
                call = pb.WorkerToolCall(worker_id=worker, tool=event["toolCallName"])
                return [*self._begin_phase(worker), pb.TeamEvent(worker_tool_call=call)]
            case EventType.TOOL_CALL_RESULT:
                self._in_phase.discard(worker)
                return self._resolve_approval(event)
            case EventType.SUBAGENT_FINISHED:
                return self._finish_worker(worker, event)
            case EventType.SUBAGENT_ERROR:
                failed = pb.WorkerFailed(worker_id=worker, reason=event.get("message", ""))
                return [pb.TeamEvent(worker_failed=failed), self._worker_exited(worker)]
        return []

    def _start_worker(self, worker: str, event: Event) -> list[pb.TeamEvent]:
        """Start a worker, or continue a suspended one."""
        self._parents[worker] = event.get("parentSubagentRunId") or self._task_id
        self._in_phase.discard(worker)
        self._texts.pop(worker, None)
        if worker in self._phases:
            return []
        return [pb.TeamEvent(worker_started=pb.WorkerStarted(worker_id=worker, host_id=event.get("name", "")))]

    def _begin_phase(self, worker: str) -> list[pb.TeamEvent]:
        """Begin a phase with a worker's first output, and with its first output after tool results."""
        if worker in self._in_phase:
            return []
        self._in_phase.add(worker)
        self._texts[worker] = self._texts.get(worker, [])[-1:]
        self._phases[worker] = phase = self._phases.get(worker, 0) + 1
        return [pb.TeamEvent(worker_phase=pb.WorkerPhase(worker_id=worker, phase=phase, mode=MODE))]

    def _finish_worker(self, worker: str, event: Event) -> list[pb.TeamEvent]:
        if (event.get("outcome") or {}).get("type") == "suspended":
            return []
        result = event.get("result")
        text = result if isinstance(result, str) else "" if result is None else to_json(result).decode()
        completed = pb.WorkerCompleted(worker_id=worker, result=text or "".join(self._texts.get(worker, ())))
        return [pb.TeamEvent(worker_completed=completed), self._worker_exited(worker)]

    def _worker_exited(self, worker: str) -> pb.TeamEvent:
        """Return the last event of a worker, and forget the worker, because a watcher may stay for many turns."""
        parent = self._parents.pop(worker, self._task_id)
        self._phases.pop(worker, None)
        self._texts.pop(worker, None)
        self._in_phase.discard(worker)
        waiting = self._requested_approvals.items()
        self._requested_approvals = {call_id: other for call_id, other in waiting if other != worker}
        return pb.TeamEvent(worker_exited=pb.WorkerExited(worker_id=worker, parent_task_id=parent))

    def _request_approvals(self, event: Event) -> list[pb.TeamEvent]:
        outcome: Mapping[str, object] = event.get("outcome") or {}
        interrupts = outcome.get("interrupts")
        workers = {it["id"]: it.get("subagentRunId") for it in interrupts} if isinstance(interrupts, list) else {}
        events = []
        for request in approval_requests(event):
            worker = workers.get(request.interrupt_id)
            if worker is not None and request.call_id not in self._requested_approvals:
                self._requested_approvals[request.call_id] = worker
                requested = pb.WorkerApprovalRequested(
                    worker_id=worker,
                    task_id=self._task_id,
                    approval_id=request.call_id,
                    tool_name=request.name,
                    reason=request.explanation,
                    timeout_secs=request.timeout_seconds(self._now()),
                )
                events.append(pb.TeamEvent(worker_approval_requested=requested))
        return events

    def _resolve_approval(self, result: Event) -> list[pb.TeamEvent]:
        """Resolve the approval that a call has waited for. The call's result tells the decision."""
        worker = self._requested_approvals.pop(result["toolCallId"], None)
        if worker is None:
            return []
        resolved = pb.WorkerApprovalResolved(
            worker_id=worker,
            task_id=self._task_id,
            approval_id=result["toolCallId"],
            approved=not is_denied(result),
        )
        return [pb.TeamEvent(worker_approval_resolved=resolved)]
