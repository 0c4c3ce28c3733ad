"""All rpcs of a server, and raw calls of them."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import grpc
from fastapi import FastAPI

from agui_container.main import grpc_protocols
from agui_container.protocols.grpc.options import GrpcOptions
from agui_container.protocols.grpc.server import build_server
from agui_container.settings import Settings
from agui_container.web.authentication import NO_AUTHENTICATION
from tests.engine.doubles import WAIT


def rpcs_of(app: FastAPI) -> list[str]:
    service = app.state.service
    options = GrpcOptions(1_000, by_session=True, origins=(), authentication=NO_AUTHENTICATION, limits_by_session=False)
    connect = build_server(service, options, [protocol.load() for protocol in grpc_protocols(Settings())])
    (methods,) = connect.args
    return sorted(methods)


def call_rpc(
    url: str, path: str, request: bytes | Iterable[bytes], headers: Mapping[str, str]
) -> tuple[grpc.StatusCode, bytes]:
    """Call an rpc with encoded messages. Gives its status and all that it has sent."""
    requests = [request] if isinstance(request, bytes) else request
    received = b""
    with grpc.insecure_channel(urlsplit(url).netloc) as channel:
        call = channel.stream_stream(path)(iter(requests), timeout=WAIT, metadata=list(headers.items()))
        try:
            for message in call:
                received += message
        except grpc.RpcError as error:
            return error.code(), received
        return call.code(), received
