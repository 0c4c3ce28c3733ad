"""The daemon's status tells the health of the model's endpoint, and its shutdown lets open runs end."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from agui_container.main import build_app
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.protocols.grpc.h2 import message
from tests.protocols.grpc.in_loop_clients import STATUS, beside, raw

pytestmark = [pytest.mark.wire, pytest.mark.processes]


@contextlib.contextmanager
def model_port(*, is_listening: bool) -> Iterator[int]:
    with socket.socket() as endpoint:
        endpoint.bind(("127.0.0.1", 0))
        if is_listening:
            endpoint.listen()
        yield endpoint.getsockname()[1]


@contextlib.asynccontextmanager
async def daemon_of(**settings: str) -> AsyncIterator[int]:
    async with serving(build_app(Settings.model_validate(settings))) as url:
        yield int(url.rpartition(":")[2])


async def status_of(port: int) -> kontekst.GetStatusResponse:
    async with raw(port) as client:
        stream = client.call(STATUS)
        client.data(stream, message(b""), end=True)
        assert (await beside(client.status, stream))[0] == "0"
        return kontekst.GetStatusResponse.FromString(client.body(stream)[5:])


@pytest.mark.parametrize("is_listening", [True, False], ids=["listening", "refusing"])
async def test_the_model_is_healthy_if_its_endpoint_accepts_connections(*, is_listening: bool) -> None:
    with model_port(is_listening=is_listening) as endpoint:
        url = f"http://127.0.0.1:{endpoint}/v1"
        async with daemon_of(model="openai:any", openai_base_url=url) as port:
            status = await status_of(port)
    assert status.endpoint == url
    assert status.llama_server_healthy is is_listening
    assert (status.llama_server_running, status.llama_server_pid) == (False, 0), "the process is not this server's"


async def test_an_endpoint_that_stops_is_noticed() -> None:
    with contextlib.ExitStack() as endpoint:
        url = f"http://127.0.0.1:{endpoint.enter_context(model_port(is_listening=True))}/v1"
        async with daemon_of(model="openai:any", openai_base_url=url) as port:
            assert (await status_of(port)).llama_server_healthy
            endpoint.close()
            assert not (await status_of(port)).llama_server_healthy
