"""A deadline (``grpc-timeout``) ends the watching and not the run."""

import pytest

from agui_container.transports.grpc.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as roz
from tests.grpc.beside import beside, port_of, raw
from tests.grpc.h2 import message
from tests.requirements import requirement
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
DEADLINE_EXCEEDED = "4"


@requirement("grpc.deadline")
@BOTH
async def test_the_server_ends_a_call_whose_deadline_passes(path: str, requests: Requests) -> None:
    """The client does nothing about its deadline itself."""
    async with port_of(WaitingAgent()) as port, raw(port) as client:
        stream = client.call(path, ("grpc-timeout", "300m"))
        for request in requests:
            client.data(stream, message(request.SerializeToString()))
        assert (await beside(client.status, stream))[0] == DEADLINE_EXCEEDED
