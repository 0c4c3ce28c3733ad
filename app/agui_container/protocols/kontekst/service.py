"""``kontekst.AgentService``: one call is one run, from its start command to completed, cancelled or failed."""

from grpclib.const import Handler as Method

from agui_container.engine.engine import Engine
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocols.conversation.events import Failed
from agui_container.protocols.conversation.loop import ConversationLoop
from agui_container.protocols.gen.kontekst_pb2 import RunCommand, RunEvent, StartRunCommand
from agui_container.protocols.grpc.call import Call, CallAdmission, method
from agui_container.protocols.grpc.messages import check_id
from agui_container.protocols.kontekst.options import KontekstOptions
from agui_container.protocols.kontekst.translator import KontekstTranslator, RunStart

DEFAULT_AGENT = "default"

RunCall = Call[RunCommand, RunEvent]


class KontekstService:
    """``kontekst.AgentService``."""

    def __init__(self, service: Engine, admission: CallAdmission, options: KontekstOptions) -> None:
        self._service = service
        self._admission = admission
        self._agent_names = (DEFAULT_AGENT, *options.agent_names(service))
        self._options = options

    def __mapping__(self) -> dict[str, Method]:
        return {"/kontekst.AgentService/Run": method(self.run, self._admission, RunCommand, RunEvent)}

    async def run(self, call: RunCall) -> None:
        """Serve one call. Raises ``AppError`` VALIDATION_ERROR if the first command is not a start command."""
        command = await call.receive()
        if command is None:
            return
        if command.WhichOneof("command") != "start":
            raise AppError(ErrorCode.VALIDATION_ERROR, "The first command must be start.")
        start, new_id = command.start, self._service.new_id
        translator = KontekstTranslator(new_id(), start.session_id or new_id(), start.agent_name or DEFAULT_AGENT)
        try:
            request = self._read_start(start, translator)
        except AppError as error:
            await call.send(translator.end(Failed(error)))
            return
        await ConversationLoop(self._service, call, translator).serve(request)

    def _read_start(self, start: StartRunCommand, translator: KontekstTranslator) -> RunStart:
        if translator.agent_name not in self._agent_names:
            names = ", ".join(dict.fromkeys(self._agent_names))
            message = f"There is no agent named '{translator.agent_name[:64]}'; known are {names}."
            raise AppError(ErrorCode.VALIDATION_ERROR, message)
        check_id("session_id", translator.session_id)
        return RunStart(start, self._service.new_id(), self._options.choice(start.agent_name))
