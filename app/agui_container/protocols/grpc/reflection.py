"""Server reflection, v1 and v1alpha, by which clients such as grpcurl list the services.

Rule: the calls have the same limits as all others. The messages of both versions are the same. Nothing here has
extensions, so a request for some is answered by NOT_FOUND.

Source: the protocol grpc.reflection.v1.
"""

from collections.abc import Sequence
from dataclasses import replace

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpclib.const import Cardinality, Status
from grpclib.const import Handler as Method

from agui_container.protocols.gen.descriptors import POOL
from agui_container.protocols.gen.grpc.reflection.v1.reflection_pb2 import (
    ErrorResponse,
    FileDescriptorResponse,
    ListServiceResponse,
    ServerReflectionRequest,
    ServerReflectionResponse,
    ServiceResponse,
)
from agui_container.protocols.grpc.call import Call, CallAdmission, method

MAX_REQUEST = 64_000
"""Bytes of a request. It names one service or file."""

VERSIONS = ("v1", "v1alpha")


class ReflectionService:
    """``ServerReflection`` of both versions."""

    def __init__(self, names: Sequence[str], admission: CallAdmission) -> None:
        self._names = names
        self._admission = replace(admission, options=replace(admission.options, max_bytes=MAX_REQUEST))

    def __mapping__(self) -> dict[str, Method]:
        types, stream = (ServerReflectionRequest, ServerReflectionResponse), Cardinality.STREAM_STREAM
        handler = method(self.answer, self._admission, *types, stream)
        return {f"/grpc.reflection.{it}.ServerReflection/ServerReflectionInfo": handler for it in VERSIONS}

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
