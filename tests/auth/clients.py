"""A request for a run over each transport, and the reply: served, or refused with a code."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from urllib.parse import urlsplit

import grpc
from websockets.exceptions import InvalidStatus

from agui_container.transports.gen.kontekst import kontekst_pb2 as pb
from tests.engine.doubles import WAIT, Json, ask
from tests.secret_search import search
from tests.sockets.client import is_last
from tests.sse import events_of, http_client
from tests.websocket import receive_until, send, socket_to

NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class RequestResult:
    """The end of a request.

    Attributes:
        code: empty for a run that has succeeded, or the code of the error.
        status: the HTTP status, or the name of gRPC's.
        challenge: value of ``WWW-Authenticate``, or of gRPC's ``www-authenticate``.
        message: text of the error.
    """

    code: str
    status: int | str
    challenge: str | None = None
    message: str = ""

    def __post_init__(self) -> None:
        search(f"{self.message} {self.challenge}", "an error")


Ask = Callable[[str, Mapping[str, str]], Awaitable[RequestResult]]


def question() -> Json:
    """A run input with ids of its own."""
    number = next(NUMBERS)
    return ask(thread=f"thread-{number}", run=f"run-{number}", text="stream 1")


async def over_sse(url: str, headers: Mapping[str, str]) -> RequestResult:
    """Ask with ``POST /invocations``."""
    async with http_client(url) as http:
        response = await http.post("/invocations", json=question(), headers=headers)
    last = events_of(response.content)[-1]
    code, message = last.get("code", ""), last.get("message", "")
    return RequestResult(code, response.status_code, response.headers.get("www-authenticate"), message)


async def over_ws(url: str, headers: Mapping[str, str]) -> RequestResult:
    """Ask on a socket of its own."""
    try:
        async with socket_to(url, additional_headers=headers) as socket:
            await send(socket, question())
            last = (await receive_until(socket, is_last))[-1]
            return RequestResult(last.get("code", ""), 200)
    except InvalidStatus as refusal:
        response = refusal.response
        [error] = events_of(bytes(response.body))
        challenge = response.headers.get("www-authenticate")
        return RequestResult(error["code"], response.status_code, challenge, error["message"])


async def over_grpc(url: str, headers: Mapping[str, str]) -> RequestResult:
    """Ask with a run of kontekst, in a thread, because grpcio's client blocks."""
    return await asyncio.to_thread(run_kontekst, urlsplit(url).netloc, headers)


def run_kontekst(address: str, headers: Mapping[str, str]) -> RequestResult:
    """Run one prompt to its end."""
    with grpc.insecure_channel(address) as channel:
        method = channel.stream_stream(
            "/kontekst.AgentService/Run",
            request_serializer=pb.RunCommand.SerializeToString,
            response_deserializer=pb.RunEvent.FromString,
        )
        start = pb.RunCommand(start=pb.StartRunCommand(prompt="stream 1"))
        try:
            last = list(method(iter([start]), timeout=WAIT, metadata=list(headers.items())))[-1]
        except grpc.RpcError as error:
            trailers = {name: str(value) for name, value in error.trailing_metadata() or ()}
            code, challenge = trailers.get("agui-code", ""), trailers.get("www-authenticate")
            return RequestResult(code, error.code().name, challenge, error.details() or "")
        assert last.HasField("completed")
        return RequestResult("", "OK")


ASK: Mapping[str, Ask] = {"sse": over_sse, "ws": over_ws, "grpc": over_grpc}
