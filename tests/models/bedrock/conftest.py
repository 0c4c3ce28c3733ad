"""A wire server, and models that talk to it with boto3's normal settings and nothing else."""

from collections.abc import AsyncIterator

import pytest

from tests.models.bedrock.doubles import BedrockModels, Pauses, as_nobody
from tests.models.bedrock.server import BedrockServer
from tests.models.wire import serving


@pytest.fixture(autouse=True)
def _aws(monkeypatch: pytest.MonkeyPatch) -> None:
    as_nobody(monkeypatch)


@pytest.fixture
async def wire() -> AsyncIterator[BedrockServer]:
    """A server; every request that reaches it must be one that Bedrock would take."""
    async with serving(BedrockServer()) as wire:
        yield wire
    assert wire.broken == []


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def bedrock(wire: BedrockServer, pauses: Pauses) -> BedrockModels:
    return BedrockModels(wire.url, pauses)
