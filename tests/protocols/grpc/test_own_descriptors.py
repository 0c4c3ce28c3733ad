"""gRPC beside an agent that registers the same services in protobuf's default pool."""

import pytest

from tests.protocols.grpc.client import client_of
from tests.protocols.grpc.test_standard_services import checked
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]


@pytest.mark.parametrize("order", ["early", "late"])
async def test_an_agent_may_register_the_standard_services_before_or_after_the_server(order: str) -> None:
    with ServerProcess(AGUI_AGENT=f"tests.protocols.grpc.foreign_services:{order}") as server:
        async with client_of(server.port) as client:
            assert await checked(client, "") == 1
            run = await client.start_run("hello")
            assert (await run.rest())[-1] == "completed"
            assert [token.text for token in run.all("token")] == ["registered"]
            assert await checked(client, "kontekst.AgentService") == 1
