"""The daemon's status tells the health of the model's endpoint, and its shutdown lets open runs end."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import grpc
import pytest

from agui_container.main import build_app
from agui_container.settings import Settings
from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from tests.behaviour.server import serving
from tests.grpc.client import call_text
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.h2 import message
from tests.grpc.in_loop_clients import STATUS, beside, raw
from tests.grpc.kontekst_calls import start_run, unary
from tests.requirements import requirement
from tests.sockets.process import ServerProcess


@contextlib.contextmanager
def model_port(*, is_listening: bool) -> Iterator[int]:
    """A port that accepts connections, or refuses them."""
    with socket.socket() as endpoint:
        endpoint.bind(("127.0.0.1", 0))
        if is_listening:
            endpoint.listen()
        yield endpoint.getsockname()[1]


@contextlib.asynccontextmanager
async def daemon_of(**settings: str) -> AsyncIterator[int]:
    """Port of a server with the assistant."""
    async with serving(build_app(Settings.model_validate(settings))) as url:
        yield int(url.rpartition(":")[2])


async def status_of(port: int) -> kontekst.GetStatusResponse:
    """The status of the server at a port."""
    async with raw(port) as client:
        stream = client.call(STATUS)
        client.data(stream, message(b""), end=True)
        assert (await beside(client.status, stream))[0] == "0"
        return kontekst.GetStatusResponse.FromString(client.body(stream)[5:])


@requirement("kontekst.status")
@pytest.mark.parametrize("is_listening", [True, False], ids=["listening", "refusing"])
async def test_the_model_is_healthy_if_its_endpoint_accepts_connections(*, is_listening: bool) -> None:
    with model_port(is_listening=is_listening) as endpoint:
        url = f"http://127.0.0.1:{endpoint}/v1"
        async with daemon_of(model="openai:any", openai_base_url=url) as port:
            status = await status_of(port)
    assert status.endpoint == url
    assert status.llama_server_healthy is is_listening
    assert (status.llama_server_running, status.llama_server_pid) == (False, 0), "the process is not this server's"


@requirement("kontekst.status")
async def test_a_model_without_an_endpoint_is_healthy() -> None:
    async with daemon_of(model="offline") as port:
        status = await status_of(port)
    assert (status.endpoint, status.llama_server_healthy, status.llama_server_running) == ("", True, False)


@requirement("kontekst.status")
async def test_an_endpoint_that_stops_is_noticed() -> None:
    with contextlib.ExitStack() as endpoint:
        url = f"http://127.0.0.1:{endpoint.enter_context(model_port(is_listening=True))}/v1"
        async with daemon_of(model="openai:any", openai_base_url=url) as port:
            assert (await status_of(port)).llama_server_healthy
            endpoint.close()
            assert not (await status_of(port)).llama_server_healthy


@requirement("kontekst.shutdown")
def test_a_shutdown_lets_short_runs_end_and_ends_long_ones_before_the_process(dial: Dial) -> None:
    with ServerProcess(**ASSISTANT, AGUI_GRPC_SHUTDOWN="on") as server:
        channel = dial(server)
        with start_run(channel, "wait 1") as short, start_run(channel, "wait 30") as long:
            for run in (short, long):
                run.until("token")
            unary(channel, "Shutdown", kontekst.ShutdownRequest(), kontekst.ShutdownResponse)
            for run in (short, long):
                list(run.rest())
        assert short.kinds[-1] == "completed"
        assert long.kinds[-1] == "failed"
        assert "shutting down" in long.seen[-1].failed.error
        assert server.wait() == 0
        assert server.faults == []


@requirement("kontekst.shutdown", "kontekst.asks")
def test_a_run_that_waits_for_a_decision_has_a_last_event_when_the_server_shuts_down(dial: Dial) -> None:
    with ServerProcess(**ASSISTANT) as server, start_run(dial(server), call_text("pay", amount=1)) as run:
        run.until("tools_proposed")
        server.term()
        assert "shutting down" in run.until("failed").error
        with pytest.raises(grpc.RpcError) as ended:
            list(run.rest())
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
