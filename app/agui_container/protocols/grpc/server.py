"""The gRPC server: the services of all protocols, and the standard services for health and reflection.

Rule: this module and all below it are imported by the first HTTP/2 connection (``handover``). The health agrees with
``/ping``: SERVING once the engine is initialised; NOT_SERVING before, and while the engine drains. Reflection is there
as v1 and v1alpha, whose messages are the same, for clients such as grpcurl.

Sources: grpc.health.v1, grpc.reflection.v1.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpclib.const import Cardinality, Status
from grpclib.const import Handler as Method
from grpclib.exceptions import GRPCError

from agui_container.engine.engine import Engine
from agui_container.protocols.gen.descriptors import POOL
from agui_container.protocols.gen.health_pb2 import HealthCheckRequest, HealthCheckResponse
from agui_container.protocols.gen.reflection_pb2 import (
    ErrorResponse,
    FileDescriptorResponse,
    ListServiceResponse,
    ServerReflectionRequest,
    ServerReflectionResponse,
    ServiceResponse,
)
from agui_container.protocols.grpc.call import Call, CallAdmission, Servable, method
from agui_container.protocols.grpc.connection import GrpcProtocol
from agui_container.protocols.grpc.options import GrpcOptions
from agui_container.web.authentication import NO_AUTHENTICATION

WATCH_SECONDS = 1.0
"""Seconds between two checks for a client that watches the health."""

REFLECTION_VERSIONS = ("v1", "v1alpha")

BuildServices = Callable[[Engine, CallAdmission], Sequence[Servable]]
"""Builds the services of a protocol (``web/registration.py``)."""


def build_server(service: Engine, options: GrpcOptions, protocols: Sequence[BuildServices]) -> "partial[GrpcProtocol]":
    """Return what makes the protocol of a connection that serves these protocols and the standard services."""
    admission = CallAdmission(options)
    open_admission = CallAdmission(replace(options, authentication=NO_AUTHENTICATION))
    services = [built for build in protocols for built in build(service, admission)]
    names = list(dict.fromkeys(path.split("/")[1] for each in services for path in each.__mapping__()))
    services += [ReflectionService(names, open_admission), HealthService(names, service.is_serving, open_admission)]
    return partial(GrpcProtocol, {path: it for each in services for path, it in each.__mapping__().items()})


class HealthService:
    """``grpc.health.v1.Health``. The empty name of ``names`` stands for the whole server."""

    def __init__(self, names: Collection[str], is_serving: Callable[[], bool], admission: CallAdmission) -> None:
        self._names = {"", *names}
        self._is_serving = is_serving
        self._admission = admission

    def __mapping__(self) -> dict[str, Method]:
        types = HealthCheckRequest, HealthCheckResponse
        unary, stream = Cardinality.UNARY_UNARY, Cardinality.UNARY_STREAM
        return {
            "/grpc.health.v1.Health/Check": method(self.check, self._admission, *types, unary),
            "/grpc.health.v1.Health/Watch": method(self.watch, self._admission, *types, stream),
        }

    async def check(self, call: Call[HealthCheckRequest, HealthCheckResponse]) -> None:
        request = await call.receive_request()
        if request.service not in self._names:
            raise GRPCError(Status.NOT_FOUND, "There is no such service.")
        await call.send([HealthCheckResponse(status=self._status(request.service))])

    async def watch(self, call: Call[HealthCheckRequest, HealthCheckResponse]) -> None:
        request = await call.receive_request()
        last_status = None
        while True:
            status = self._status(request.service)
            if status != last_status:
                await call.send([HealthCheckResponse(status=status)])
                last_status = status
            await asyncio.sleep(WATCH_SECONDS)

    def _status(self, name: str) -> HealthCheckResponse.ServingStatus:
        if name not in self._names:
            return HealthCheckResponse.SERVICE_UNKNOWN
        return HealthCheckResponse.SERVING if self._is_serving() else HealthCheckResponse.NOT_SERVING


class ReflectionService:
    """``ServerReflection`` of both versions. Nothing here has extensions, so a request for some finds none."""

    def __init__(self, names: Sequence[str], admission: CallAdmission) -> None:
        self._names = names
        self._admission = admission

    def __mapping__(self) -> dict[str, Method]:
        handler = method(self.answer, self._admission, ServerReflectionRequest, ServerReflectionResponse)
        return {f"/grpc.reflection.{it}.ServerReflection/ServerReflectionInfo": handler for it in REFLECTION_VERSIONS}

    async def answer(self, call: Call[ServerReflectionRequest, ServerReflectionResponse]) -> None:
        while (request := await call.receive()) is not None:
            answer = self._answer(request)
            answer.valid_host = request.host
            answer.original_request.CopyFrom(request)
            await call.send([answer])

    def _answer(self, request: ServerReflectionRequest) -> ServerReflectionResponse:
        kind = request.WhichOneof("message_request")
        if kind is None:
            return _error(Status.INVALID_ARGUMENT, "The request asks for nothing.")
        if kind == "list_services":
            services = [ServiceResponse(name=name) for name in self._names]
            return ServerReflectionResponse(list_services_response=ListServiceResponse(service=services))
        try:
            if kind == "file_by_filename":
                file = POOL.FindFileByName(request.file_by_filename)
            else:
                file = POOL.FindFileContainingSymbol(request.file_containing_symbol)
        except KeyError:
            return _error(Status.NOT_FOUND, "There is no such file or symbol.")
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        found = FileDescriptorResponse(file_descriptor_proto=[proto.SerializeToString()])
        return ServerReflectionResponse(file_descriptor_response=found)


def _error(status: Status, message: str) -> ServerReflectionResponse:
    return ServerReflectionResponse(error_response=ErrorResponse(error_code=status.value, error_message=message))
