"""The assistant, wired from settings as in production: with the offline model, and over a wire with one on Bedrock.

Dialogues reach it, or an agent of a test's own, over every protocol.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import botocore.session  # type: ignore[import-untyped]
import pytest
from boto3.session import Session  # type: ignore[import-untyped]
from grpclib.client import Channel

from agui_container.engine.engine import Engine
from agui_container.main import build_app
from agui_container.ports import Clock
from agui_container.settings import Settings
from tests.behaviour.approval_tools import POLICY, TOOLS
from tests.behaviour.client import Client
from tests.behaviour.conversations import ClientThread
from tests.behaviour.dialogues import AguiDialogue, Dialogue
from tests.behaviour.fake_models import ConfiguredModel, FakeBedrock, FakeOffline
from tests.behaviour.inprocess import InProcess
from tests.behaviour.over_grpc import GRPC_PROTOCOLS, dialogue_over
from tests.behaviour.over_platform import PLATFORM_WAYS, behind_platform
from tests.behaviour.over_sse import OverSse
from tests.behaviour.over_ws import OverWs
from tests.behaviour.server import serving
from tests.engine.doubles import FakeClock, make_service
from tests.models.bedrock.doubles import as_nobody
from tests.server.sockets.process import announced

IN_PROCESS = "offline-inprocess"
ON_WIRES = ["offline-ws", "bedrock-sse"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a conversation in this process, and with the mark ``wire`` with each model and on each transport.

    A test that depends on the model names its ways itself.
    """
    test = metafunc.definition
    named = [mark for mark in test.iter_markers("parametrize") if mark.args[0] == "way"]
    if "way" in metafunc.fixturenames and not named:
        wires = ON_WIRES if test.get_closest_marker("wire") else []
        platform = [f"offline-{way}" for way in PLATFORM_WAYS] if test.get_closest_marker("platform") else []
        metafunc.parametrize("way", [IN_PROCESS, *wires, *platform], indirect=True)


class ConnectModel(Protocol):
    async def __call__(self, **settings: Any) -> ClientThread: ...  # noqa: ANN401 - the fields of Settings


@pytest.fixture(scope="session")
def reasoner() -> Iterator[str]:
    with announced("-m", "tests.models.reasoning_server.server") as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def boto() -> object:
    """Return one botocore session for all clients, because loading its data files takes 0.1 s."""
    return botocore.session.get_session()


NewBedrock = Callable[[], FakeBedrock]


@pytest.fixture
def new_bedrock(reasoner: str, boto: object, monkeypatch: pytest.MonkeyPatch) -> NewBedrock:
    as_nobody(monkeypatch)
    monkeypatch.setattr("boto3.session.Session", partial(Session, botocore_session=boto))
    return partial(FakeBedrock, reasoner)


@pytest.fixture
def way(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def model(way: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ConfiguredModel:
    if way.startswith("offline"):
        offline = FakeOffline()
        monkeypatch.setattr("agui_container.models.offline.OfflineModel", lambda: offline.model)
        return offline
    made: ConfiguredModel = request.getfixturevalue("new_bedrock")()
    return made


@pytest.fixture
async def connect_model(way: str, model: ConfiguredModel) -> AsyncIterator[ConnectModel]:
    """One test body with each model and on each transport."""
    async with AsyncExitStack() as stack:

        async def connect_model(**settings: Any) -> ClientThread:  # noqa: ANN401 - the fields of Settings
            chosen = Settings(**{"tools": TOOLS, "tool_policy": POLICY, **model.settings, **settings})
            return ClientThread(await open_client(way, chosen, stack), model)

        yield connect_model


@pytest.fixture
async def thread(connect_model: ConnectModel) -> ClientThread:
    return await connect_model()


async def open_client(way: str, settings: Settings, stack: AsyncExitStack) -> Client:
    """Open a client of an application with these settings. Its time is real; the client's clock has no effect."""
    app, clock = build_app(settings), FakeClock()
    service = app.state.service
    if way.endswith("inprocess"):
        await service.open()
        stack.push_async_callback(service.aclose)
        stack.push_async_callback(service.drain, 0)
        return InProcess(service, clock, by_session=True)
    url = await stack.enter_async_context(serving(app))
    _, transport, *around = way.split("-")
    if around:
        return await stack.enter_async_context(behind_platform(transport, OverSse(service, clock, url)))
    client: Client = OverSse(service, clock, url) if transport == "sse" else OverWs(service, clock, url)
    stack.push_async_callback(client.close)
    return client


PROTOCOLS = ["sse", "ws", *GRPC_PROTOCOLS]


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
        made = self._dialogue(thread, given)
        self.stack.push_async_callback(made.close)
        return made

    def over_sse(self) -> OverSse:
        """A client that looks at the same threads over HTTP."""
        client = OverSse(self.service, self.clock, self.url)
        self.stack.push_async_callback(client.close)
        return client

    def _dialogue(self, thread: str, headers: dict[str, str]) -> Dialogue:
        if self.protocol in {"sse", "ws"}:
            made = (OverSse if self.protocol == "sse" else OverWs)(self.service, self.clock, self.url, headers)
            self.stack.push_async_callback(made.close)
            return AguiDialogue(made, thread)
        channel = Channel("127.0.0.1", int(self.url.rpartition(":")[2]))
        self.stack.callback(channel.close)
        return dialogue_over(self.protocol, channel, thread, headers, self.service)


class ServeOver(Protocol):
    """Serve an agent, the assistant where there is none, and reach it over the protocol of the parameter.

    The agent's server has ``clock``, or one that stands still.
    """

    async def __call__(
        self,
        agent: object = None,
        clock: Clock | None = None,
        /,
        **settings: Any,  # noqa: ANN401 - the fields of Settings
    ) -> Site: ...


@pytest.fixture(params=PROTOCOLS)
async def serve_over(request: pytest.FixtureRequest) -> AsyncIterator[ServeOver]:
    """One test body over every protocol. A test that only some of them can say names those as parameters."""
    async with AsyncExitStack() as stack:

        async def serve_over(
            agent: object = None,
            clock: Clock | None = None,
            /,
            **settings: Any,  # noqa: ANN401 - the fields of Settings
        ) -> Site:
            fake = FakeClock()
            chosen = Settings(**({} if agent else {"tools": TOOLS, "tool_policy": POLICY}), **settings)
            app = build_app(chosen, make_service(agent, chosen, clock=clock or fake) if agent else None)
            url = await stack.enter_async_context(serving(app))
            return Site(request.param, app.state.service, fake, url, stack)

        yield serve_over
