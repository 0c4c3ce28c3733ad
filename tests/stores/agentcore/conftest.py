"""A memory service, processes on it, and pauses between tries that are counted instead of waited for."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agui_container.stores.agentcore import AgentCoreStore
from tests.models.bedrock.doubles import as_nobody
from tests.stores.agentcore.server import Memory, memory_service

MEMORY_ID = "chats-0123456789"
Process = Callable[..., AgentCoreStore]
"""Makes a store that knows nothing yet, as a process does that has just started; keywords as the store's."""


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    taken: list[int] = []

    def pause(_self: object, context: Any) -> float:  # noqa: ANN401 - botocore has no types
        taken.append(context.attempt_number)
        return 0.0

    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", pause)
    return taken


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch, pauses: list[int]) -> AsyncIterator[Memory]:
    """A service with nothing in it; boto3 finds it, and credentials, as it finds AWS."""
    as_nobody(monkeypatch)
    async with memory_service() as memory:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", memory.url)
        yield memory


@pytest.fixture
def process(service: Memory) -> Process:
    return lambda **options: AgentCoreStore(MEMORY_ID, **options)


@pytest.fixture
def store(process: Process) -> AgentCoreStore:
    return process()
