"""A deadline (``grpc-timeout``) ends the watching and not the run, whatever ``AGUI_ON_DISCONNECT`` says."""

import contextlib
from collections.abc import AsyncIterator

import grpc
import pytest
from h2.errors import ErrorCodes
from h2.events import StreamEnded

from agui_container.engine.engine import Engine
from agui_container.engine.run.run import Run
from agui_container.main import build_app
from agui_container.ports.agent import EVERYBODY
from agui_container.settings import Settings
from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from agui_container.transports.grpc import call
from tests.behaviour.server import serving
from tests.engine.doubles import FakeClock, Json, caller, eventually, make_service, wait_for_event
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.h2 import Raw, message
from tests.grpc.http_requests import get_json
from tests.grpc.in_loop_clients import beside, raw
from tests.grpc.kontekst_calls import open_run
from tests.requirements import requirement
from tests.sockets.process import ServerProcess, Servers
from tests.waiting_agent import WaitingAgent

Requests = tuple[kontekst.RunCommand | roz.SessionRequest, ...]

KONTEKST: Requests = (kontekst.RunCommand(start=kontekst.StartRunCommand(prompt="hi")),)
ROZ: Requests = (
    roz.SessionRequest(start=roz.StartSession()),
    roz.SessionRequest(user_message=roz.UserMessage(content="hi")),
)
BOTH = pytest.mark.parametrize(
    ("path", "requests"),
    [("/kontekst.AgentService/Run", KONTEKST), ("/roz.v1.AgentService/StreamSession", ROZ)],
    ids=["kontekst", "roz"],
)
POLICIES = pytest.mark.parametrize("policy", ["cancel", "grace:30"])
DEADLINE_EXCEEDED = "4"
TEXT = b"\x02hi"
"""The text of the agent, as a field of protobuf."""


@contextlib.asynccontextmanager
async def server_of(agent: WaitingAgent, clock: FakeClock, policy: str) -> AsyncIterator[tuple[int, Engine]]:
    """Port and engine of a server around an agent."""
    settings = Settings.model_validate({"on_disconnect": policy})
    service = make_service(agent, settings, clock=clock)
    async with serving(build_app(settings, service)) as url:
        yield int(url.rpartition(":")[2]), service


async def begin(client: Raw, service: Engine, path: str, requests: Requests, *after: str) -> tuple[int, Run]:
    """A call with a deadline that has text of its run: its stream, and the run.

    The call is made again with the next deadline if the text has come too late, because the machine is slow.
    """
    stream = client.call(path, ("grpc-timeout", after[0]))
    for request in requests:
        client.data(stream, message(request.SerializeToString()))
    while TEXT not in client.body(stream):
        assert await beside(client.read)
        if any(isinstance(event, StreamEnded) and event.stream_id == stream for event in client.events):
            return await begin(client, service, path, requests, *after[1:])
    return stream, next(service.registry.newest_first(EVERYBODY))


async def unread(run: Run) -> None:
    """Wait until no client reads a run."""
    await eventually(lambda: not run.presence.local)


@requirement("grpc.deadline")
@BOTH
@POLICIES
async def test_a_run_goes_on_when_the_deadline_of_its_call_passes(path: str, requests: Requests, policy: str) -> None:
    """The client does nothing about its deadline itself: the server ends the call."""
    agent, clock = WaitingAgent(), FakeClock()
    async with server_of(agent, clock, policy) as (port, service), raw(port) as client:
        stream, run = await begin(client, service, path, requests, "500m", "5S", "50S")
        assert (await beside(client.status, stream))[0] == DEADLINE_EXCEEDED
        await unread(run)
        clock.advance(60)
        assert run.status == "running"
        agent.may_end.set()
        await eventually(lambda: run.log.has_ended)
        assert run.status == "finished"


@requirement("grpc.deadline")
@BOTH
async def test_a_call_that_is_cancelled_at_its_deadline_by_the_clients_clock_leaves_the_run(
    monkeypatch: pytest.MonkeyPatch, path: str, requests: Requests
) -> None:
    monkeypatch.setattr(call, "CLOCK_SLACK", 100.0)
    agent = WaitingAgent()
    async with server_of(agent, FakeClock(), "cancel") as (port, service), raw(port) as client:
        stream, run = await begin(client, service, path, requests, "90S")
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        client.flush()
        await unread(run)
        assert run.status == "running"


@requirement("grpc.deadline", "drop.cancel")
@BOTH
async def test_a_call_that_is_cancelled_long_before_its_deadline_is_dropped(path: str, requests: Requests) -> None:
    agent = WaitingAgent()
    async with server_of(agent, FakeClock(), "cancel") as (port, service), raw(port) as client:
        stream, _ = await begin(client, service, path, requests, "90S")
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        client.flush()
        await wait_for_event(agent.cut_off)


@requirement("grpc.deadline", "drop.cancel")
async def test_a_run_that_goes_on_ends_with_the_next_reader_that_is_dropped() -> None:
    agent = WaitingAgent()
    async with server_of(agent, FakeClock(), "cancel") as (port, service), raw(port) as client:
        stream, run = await begin(client, service, "/kontekst.AgentService/Run", KONTEKST, "300m", "5S", "50S")
        await beside(client.status, stream)
        await unread(run)
        reader = await service.attach(caller(), None, run.key.run_id, 0)
        reader.close()
        await wait_for_event(agent.cut_off)


def run_without_readers(server: ServerProcess, thread: str) -> Json:
    """The run of a thread, once no client reads it."""
    while True:
        run: Json
        (run,) = (run for run in get_json(server, "/runs")["runs"] if run["threadId"] == thread)
        if not run["readers"]:
            found: Json = run
            return found


def watch_until(channel: grpc.Channel, seconds: float) -> str:
    """Watch a long run until a deadline of grpcio. Return its thread, or nothing if the run began too late."""
    thread = f"for-{seconds}-seconds"
    with open_run(channel, timeout=seconds) as run:
        run.send(start=kontekst.StartRunCommand(prompt="wait 1000", session_id=thread))
        with pytest.raises(grpc.RpcError) as late:
            list(run.rest())
        assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        return thread if run.seen else ""


@requirement("grpc.deadline")
def test_a_deadline_of_grpcio_leaves_the_run(servers: Servers, dial: Dial) -> None:
    server = servers(**ASSISTANT, AGUI_ON_DISCONNECT="cancel")
    channel = dial(server)
    thread = next(each for each in (watch_until(channel, seconds) for seconds in (2, 8, 32, 128)) if each)
    assert run_without_readers(server, thread)["status"] == "running"
