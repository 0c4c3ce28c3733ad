"""gRPC beside an agent that registers the same services in protobuf's default pool."""

import pytest

from tests.protocols.conftest import Dial
from tests.protocols.grpc.test_standard_services import checked
from tests.protocols.kontekst.calls import start_run
from tests.server.sockets.process import ServerProcess

pytestmark = pytest.mark.wire


@pytest.mark.parametrize("order", ["early", "late"])
def test_an_agent_may_register_the_standard_services_before_or_after_the_server(order: str, dial: Dial) -> None:
    with ServerProcess(AGUI_AGENT=f"tests.protocols.grpc.foreign_services:{order}") as server:
        channel = dial(server)
        assert checked(channel, "") == 1
        with start_run(channel, "hello") as run:
            assert [*run.rest()][-1] == "completed"
            assert [event.token.text for event in run.seen if event.HasField("token")] == ["registered"]
        assert checked(channel, "kontekst.AgentService") == 1
