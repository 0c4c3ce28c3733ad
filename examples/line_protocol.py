"""A protocol in one file: lines of text over gRPC. docs/add-a-protocol.md explains it."""

from ag_ui.core import PROTOCOL_VERSION, EventType, RunAgentInput, UserMessage
from google.protobuf.wrappers_pb2 import StringValue as Line

from agui_container.engine.engine import Engine
from agui_container.protocols.conversation import approvals, events, loop, translator
from agui_container.protocols.grpc.call import Call, CallAdmission, method
from agui_container.web.registration import GrpcRegistration


class LineTranslator(translator.Translator[Line, Line, Line]):
    """Translates one question and its answer."""

    def __init__(self, thread_id: str, run_id: str) -> None:
        self._ids, self._asked = {"thread_id": thread_id, "run_id": run_id}, list[approvals.ApprovalRequest]()

    def open(self, request: Line) -> translator.Opening[Line]:
        """Take the line as a question."""
        question = UserMessage(id=f"{self._ids['run_id']}-user", content=request.value)
        run_input = RunAgentInput(**self._ids, messages=[question], protocol_version=PROTOCOL_VERSION)
        return translator.Opening(run_input, size=request.ByteSize())

    def feed(self, kind: EventType, event: events.Event) -> list[Line]:
        """Show text, and ask for the approvals that wait at the end of a run."""
        if kind is EventType.TEXT_MESSAGE_CONTENT:
            return [Line(value=event["delta"])]
        self._asked = approvals.approval_requests(event)
        return [Line(value=f"{request.name} {request.arguments}?") for request in self._asked]

    def answers(self, message: Line) -> list[approvals.ApprovalDecision] | list[translator.Cancellation]:
        """Take ``yes``, or else a denial, as the decision on all calls that were asked for."""
        decisions = [approvals.decision(it.call_id, is_approved=message.value == "yes") for it in self._asked]
        return [translator.Cancellation()] if message.value == "cancel" else decisions

    def end(self, outcome: events.Outcome) -> list[Line]:
        """Tell the outcome."""
        return [Line(value=outcome.error.message if isinstance(outcome, events.Failed) else type(outcome).__name__)]


class LineService:
    """One call is one thread."""

    def __init__(self, service: Engine, admission: CallAdmission) -> None:
        self._service, self._admission = service, admission

    def __mapping__(self) -> dict[str, object]:
        return {"/lines.Lines/Talk": method(self.talk, self._admission, Line, Line)}

    async def talk(self, call: Call[Line, Line]) -> None:
        """Answer one question after the other."""
        thread_id = self._service.new_id()
        while (question := await call.receive()) is not None:
            line_translator = LineTranslator(thread_id, self._service.new_id())
            await loop.ConversationLoop(self._service, call, line_translator).serve(question)


def register(_settings: object) -> GrpcRegistration:
    """Return the registration, for ``grpc_protocols`` in ``main.py``."""
    return GrpcRegistration(["lines.Lines"], lambda: lambda service, admission: [LineService(service, admission)])
