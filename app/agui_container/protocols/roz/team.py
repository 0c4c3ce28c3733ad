"""AG-UI events of subagents as roz's events of workers.

Rule: pure translation. A worker is one invocation of a subagent and has the id of the invocation. Phases count its
turns.
"""

from collections.abc import Callable, Mapping

from ag_ui.core import EventType
from msgspec import Struct
from pydantic_core import to_json

from agui_container.protocols.conversation.approvals import approval_requests
from agui_container.protocols.conversation.events import Event, is_denied
from agui_container.protocols.gen import agent_pb2 as pb

MODE = "react"


class Worker(Struct):
    """A worker that has started. ``text`` has the deltas of its last phase."""

    parent: str
    phase: int = 0
    is_in_phase: bool = False
    text: list[str] = []


class TeamEvents:
    def __init__(self, task_id: str, now: Callable[[], float]) -> None:
        self._task_id = task_id
        self._now = now
        self._workers: dict[str, Worker] = {}
        self._requested_approvals: dict[str, str] = {}
        """Workers that wait for approvals, by call id."""

    def feed(self, kind: EventType, event: Event) -> list[pb.TeamEvent]:  # noqa: PLR0911 - a case for each kind
        if kind is EventType.RUN_FINISHED:
            return self._request_approvals(event)
        worker_id = event.get("subagentRunId")
        if worker_id is None:
            return []
        worker = self._workers.get(worker_id) or Worker(self._task_id)
        match kind:
            case EventType.SUBAGENT_STARTED:
                return self._start_worker(worker_id, event)
            case EventType.TEXT_MESSAGE_CONTENT:
                begun = self._begin_phase(worker_id, worker)
                worker.text.append(event["delta"])
                return begun
            case EventType.REASONING_MESSAGE_CONTENT:
                return self._begin_phase(worker_id, worker)
            case EventType.TOOL_CALL_START:
                call = pb.WorkerToolCall(worker_id=worker_id, tool=event["toolCallName"])
                return [*self._begin_phase(worker_id, worker), pb.TeamEvent(worker_tool_call=call)]
            case EventType.TOOL_CALL_RESULT:
                worker.is_in_phase = False
                return self._resolve_approval(event)
            case EventType.SUBAGENT_FINISHED if (event.get("outcome") or {}).get("type") != "suspended":
                result = event.get("result")
                text = result if isinstance(result, str) else "" if result is None else to_json(result).decode()
                completed = pb.WorkerCompleted(worker_id=worker_id, result=text or "".join(worker.text))
                return [pb.TeamEvent(worker_completed=completed), self._worker_exited(worker_id, worker)]
            case EventType.SUBAGENT_ERROR:
                failed = pb.WorkerFailed(worker_id=worker_id, reason=event.get("message", ""))
                return [pb.TeamEvent(worker_failed=failed), self._worker_exited(worker_id, worker)]
        return []

    def _start_worker(self, worker_id: str, event: Event) -> list[pb.TeamEvent]:
        """Start a worker, or continue a suspended one."""
        known, parent = self._workers.get(worker_id), event.get("parentSubagentRunId") or self._task_id
        self._workers[worker_id] = Worker(parent, known.phase if known else 0)
        started = pb.WorkerStarted(worker_id=worker_id, host_id=event.get("name", ""))
        return [] if known else [pb.TeamEvent(worker_started=started)]

    def _begin_phase(self, worker_id: str, worker: Worker) -> list[pb.TeamEvent]:
        """Begin a phase with a worker's first output, and with its first output after tool results."""
        if worker.is_in_phase:
            return []
        worker.is_in_phase, worker.text, worker.phase = True, [], worker.phase + 1
        return [pb.TeamEvent(worker_phase=pb.WorkerPhase(worker_id=worker_id, phase=worker.phase, mode=MODE))]

    def _worker_exited(self, worker_id: str, worker: Worker) -> pb.TeamEvent:
        """Return the last event of a worker, and forget the worker, because a watcher may stay for many turns."""
        self._workers.pop(worker_id, None)
        waiting = self._requested_approvals.items()
        self._requested_approvals = {call_id: other for call_id, other in waiting if other != worker_id}
        return pb.TeamEvent(worker_exited=pb.WorkerExited(worker_id=worker_id, parent_task_id=worker.parent))

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
