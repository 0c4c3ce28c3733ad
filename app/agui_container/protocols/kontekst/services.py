"""The services of kontekst: ``AgentService``, whose calls are one run each, and ``DaemonService``.

Rule: the status of the daemon shows real values or none. A shutdown is refused unless the operator allows it
(``AGUI_GRPC_SHUTDOWN``). It is refused to callers with a scope of their own, because others may share the server.
"""

import asyncio
import contextlib
import logging
import signal
import time
from datetime import UTC, datetime
from urllib.parse import urlsplit

from grpclib.const import Cardinality
from grpclib.const import Handler as Method

from agui_container.engine.engine import Engine
from agui_container.log_values import format_fields
from agui_container.ports import EVERYBODY
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.protocols.conversation.events import Failed
from agui_container.protocols.conversation.loop import ConversationLoop
from agui_container.protocols.gen import kontekst_pb2 as pb
from agui_container.protocols.grpc.call import Call, CallAdmission, check_id, method
from agui_container.protocols.kontekst.options import KontekstOptions
from agui_container.protocols.kontekst.translator import KontekstTranslator, RunStart

DEFAULT_AGENT = "default"

PROBE_SECONDS = 2.0
"""Seconds in which a model endpoint must accept a connection."""

PORTS = {"http": 80, "https": 443}

logger = logging.getLogger(__name__)


class KontekstService:
    def __init__(self, service: Engine, admission: CallAdmission, options: KontekstOptions) -> None:
        self._service = service
        self._admission = admission
        self._agent_names = (DEFAULT_AGENT, *options.agent_names(service))
        self._options = options

    def __mapping__(self) -> dict[str, Method]:
        return {"/kontekst.AgentService/Run": method(self.run, self._admission, pb.RunCommand, pb.RunEvent)}

    async def run(self, call: Call[pb.RunCommand, pb.RunEvent]) -> None:
        """Serve one call. Raises ``AppError`` VALIDATION_ERROR if the first command is not a start command."""
        command = await call.receive()
        if command is None:
            return
        if command.WhichOneof("command") != "start":
            raise validation_error("The first command must be start.")
        start, new_id = command.start, self._service.new_id
        translator = KontekstTranslator(new_id(), start.session_id or new_id(), start.agent_name or DEFAULT_AGENT)
        try:
            request = self._read_start(start, translator)
        except AppError as error:
            await call.send(translator.end(Failed(error)))
            return
        await ConversationLoop(self._service, call, translator).serve(request)

    def _read_start(self, start: pb.StartRunCommand, translator: KontekstTranslator) -> RunStart:
        if translator.agent_name not in self._agent_names:
            names = ", ".join(dict.fromkeys(self._agent_names))
            message = f"There is no agent named '{translator.agent_name[:64]}'; known are {names}."
            raise validation_error(message)
        check_id("session_id", translator.session_id)
        return RunStart(start, self._service.new_id(), self._options.choice(start.agent_name))


class DaemonService:
    def __init__(self, service: Engine, admission: CallAdmission, options: KontekstOptions) -> None:
        self._service = service
        self._admission = admission
        self._options = options

    def __mapping__(self) -> dict[str, Method]:
        unary, admission = Cardinality.UNARY_UNARY, self._admission
        status = method(self.get_status, admission, pb.GetStatusRequest, pb.GetStatusResponse, unary)
        shutdown = method(self.shutdown, admission, pb.ShutdownRequest, pb.ShutdownResponse, unary)
        return {"/kontekst.DaemonService/GetStatus": status, "/kontekst.DaemonService/Shutdown": shutdown}

    async def get_status(self, call: Call[pb.GetStatusRequest, pb.GetStatusResponse]) -> None:
        """This server runs no llama-server. Its health is that of the model's endpoint."""
        await call.receive_request()
        healthy = await accepts_connections(self._options.endpoint)
        started_at = self._service.health.started_at
        status = pb.GetStatusResponse(
            bind=f"{self._options.host}:{call.port}",
            endpoint=self._options.endpoint,
            llama_server_healthy=healthy,
            data_dir=self._options.data_dir,
        )
        if started_at is not None:
            status.uptime_seconds = int(max(0.0, time.time() - started_at))
            status.started_at_rfc3339 = datetime.fromtimestamp(int(started_at), UTC).isoformat().replace("+00:00", "Z")
        await call.send([status])

    async def shutdown(self, call: Call[pb.ShutdownRequest, pb.ShutdownResponse]) -> None:
        """Raise ``AppError`` ACCESS_DENIED unless the operator allows it and the caller has no scope of its own."""
        await call.receive_request()
        if not self._options.grpc_shutdown:
            raise AppError(ErrorCode.ACCESS_DENIED, "Shutdown is not allowed here; see AGUI_GRPC_SHUTDOWN.")
        if call.caller.principal is not None or call.caller.owner != EVERYBODY:  # one of several who share the server
            raise AppError(ErrorCode.ACCESS_DENIED, "Only the server's operator may shut it down.")
        await call.send([pb.ShutdownResponse(message="The server is shutting down.")])
        logger.warning("shutdown requested over gRPC %s", format_fields({"request": call.caller.request_id}))
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)


async def accepts_connections(endpoint: str) -> bool:
    """True if the model's endpoint accepts connections, or if the model has no endpoint."""
    if not endpoint:
        return True
    address = urlsplit(endpoint)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(address.hostname, address.port or PORTS.get(address.scheme, 80))
    except (OSError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
