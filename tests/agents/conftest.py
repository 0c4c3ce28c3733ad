"""An assistant with a tool that needs an approval, and servers of agents whose turns ask."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import pytest

from agui_container.assistant.assistant import Assistant
from agui_container.engine import admission
from agui_container.main import build_service
from agui_container.replicas import leases
from agui_container.settings import Settings
from tests.agents.approval_helpers import ApprovalFixture
from tests.agents.turns import EFFECTS, POLICY, TOOLS, ServedClient, asks
from tests.models.bedrock.doubles import as_nobody
from tests.stores.agentcore.server import memory_service


@pytest.fixture
def fixture() -> ApprovalFixture:
    return ApprovalFixture()


class Serve(Protocol):
    """Serve an agent on a store, and give a client of a new thread. A second call is another process on that store."""

    async def __call__(self, agent: object, store: str = "memory") -> ServedClient: ...


@pytest.fixture
async def serve(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Serve]:
    EFFECTS.clear()
    for module in (admission, leases):  # a slow machine must not let one process take over the runs of another
        monkeypatch.setattr(module, "LEASE_SECONDS", 600.0)
    async with AsyncExitStack() as stack:

        async def serve(agent: object, store: str = "memory") -> ServedClient:
            url = store
            if store == "sqlite":
                url = f"sqlite:///{tmp_path / 'turns.db'}"
            elif store == "postgres":
                url = request.getfixturevalue("postgres_url")
            elif store == "agentcore":
                as_nobody(monkeypatch)
                memory = await stack.enter_async_context(memory_service())
                monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", memory.url)
                url = "agentcore-memory:chats-0123456789"
            own = {} if isinstance(agent, Assistant) else {"tools": TOOLS, "tool_policy": POLICY}
            service = build_service(Settings(agent="agent", store=url, **own), agent)
            await service.open()
            stack.push_async_callback(service.aclose)
            stack.push_async_callback(service.drain, 0)
            return ServedClient(asks(service), service=service)

        yield serve
