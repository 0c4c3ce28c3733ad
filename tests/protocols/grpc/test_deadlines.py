"""A deadline (``grpc-timeout``) ends the watching and not the run, whatever ``AGUI_ON_DISCONNECT`` says."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from h2.errors import ErrorCodes
from h2.events import StreamEnded

from agui_container.engine.engine import Engine
from agui_container.main import build_app
from agui_container.ports.auth import EVERYBODY
from agui_container.protocols.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.protocols.gen.roz.v1 import agent_pb2 as roz
from agui_container.protocols.grpc import call
from agui_container.run.run import Run
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.engine.doubles import FakeClock, eventually, make_service, wait_for_event
from tests.protocols.grpc.h2 import Raw, message
from tests.protocols.grpc.in_loop_clients import beside, raw
from tests.waiting_agent import WaitingAgent

pytestmark = pytest.mark.wire

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
    await eventually(lambda: not run.readers.local)


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


@BOTH
async def test_a_call_that_is_cancelled_long_before_its_deadline_is_dropped(path: str, requests: Requests) -> None:
    agent = WaitingAgent()
    async with server_of(agent, FakeClock(), "cancel") as (port, service), raw(port) as client:
        stream, _ = await begin(client, service, path, requests, "90S")
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        client.flush()
        await wait_for_event(agent.cut_off)
