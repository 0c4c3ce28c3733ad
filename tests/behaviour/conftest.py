"""The assistant, wired from settings as in production, with the offline model.

Dialogues reach it, or an agent of a test's own, over gRPC.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
from grpclib.client import Channel

from agui_container.engine.engine import Engine
from agui_container.main import build_app
from agui_container.models.offline import NAME
from agui_container.settings import Settings
from tests.behaviour.approval_tools import PAID, POLICY, TOOLS
from tests.behaviour.conversations import ClientThread
from tests.behaviour.over_grpc import GRPC_PROTOCOLS, Dialogue, dialogue_over
from tests.behaviour.over_sse import OverSse
from tests.behaviour.server import port_of, serving
from tests.conftest import Connect
from tests.engine.doubles import FakeClock, make_service
from tests.models.watched_model import WatchedModel
from tests.protocols.grpc.client import GrpcClient


class ConnectModel(Protocol):
    async def __call__(self, **settings: Any) -> ClientThread: ...  # noqa: ANN401 - the fields of Settings


@pytest.fixture
def watched_models(monkeypatch: pytest.MonkeyPatch) -> list[WatchedModel]:
    """The offline models of a server, which build_service makes: that of the settings, then those to choose from."""
    made: list[WatchedModel] = []

    def make() -> WatchedModel:
        made.append(WatchedModel(f"{NAME}-{len(made)}" if made else NAME))
        return made[-1]

    monkeypatch.setattr("agui_container.models.offline.OfflineModel", make)
    return made


@pytest.fixture
def connect_model(connect: Connect, watched_models: list[WatchedModel]) -> ConnectModel:
    """The assistant of the settings, in every way that the marks of a test name."""

    async def connect_model(**settings: Any) -> ClientThread:  # noqa: ANN401 - the fields of Settings
        client = await connect(None, **{"tools": TOOLS, "tool_policy": POLICY, **settings})
        return ClientThread(client, watched_models[-1])

    return connect_model


@pytest.fixture
async def thread(connect_model: ConnectModel) -> ClientThread:
    return await connect_model()


@dataclass
class Site:
    """A server that is reached over one protocol."""

    protocol: str
    service: Engine
    clock: FakeClock
    url: str
    stack: AsyncExitStack

    def dialogue(self, thread: str = "t1", **headers: str) -> Dialogue:
        """A client of a thread, on a connection of its own."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        client = GrpcClient(Channel("127.0.0.1", port_of(self.url)), self.stack, given)
        made = dialogue_over(self.protocol, client, thread, self.service)
        self.stack.push_async_callback(made.close)
        return made

    async def begun(self, thread: str = "t1", **headers: str) -> Dialogue:
        """A client that has said hi and has the first text of the reply."""
        dialogue = self.dialogue(thread, **headers)
        await dialogue.begin("hi")
        await dialogue.first_text()
        return dialogue

    def over_sse(self) -> OverSse:
        """A client that looks at the same threads over HTTP."""
        client = OverSse(self.service, self.clock, self.url)
        self.stack.push_async_callback(client.close)
        return client


class ServeOver(Protocol):
    """Serve an agent, the assistant where there is none, and reach it over the protocol of the parameter."""

    async def __call__(self, agent: object = None, /, **settings: Any) -> Site: ...  # noqa: ANN401 - of Settings


@pytest.fixture(params=GRPC_PROTOCOLS)
async def serve_over(request: pytest.FixtureRequest) -> AsyncIterator[ServeOver]:
    """One test body over every protocol of gRPC."""
    PAID.clear()
    async with AsyncExitStack() as stack:

        async def serve_over(agent: object = None, /, **settings: Any) -> Site:  # noqa: ANN401 - of Settings
            clock = FakeClock()
            chosen = Settings(**({} if agent else {"tools": TOOLS, "tool_policy": POLICY}), **settings)
            app = build_app(chosen, make_service(agent, chosen, clock=clock) if agent else None)
            url = await stack.enter_async_context(serving(app))
            return Site(request.param, app.state.service, clock, url, stack)

        yield serve_over
