"""A wire server, and models that talk to it with boto3's normal settings and nothing else."""

from collections.abc import AsyncIterator

import pytest

from tests.models.bedrock.doubles import Bedrock, Pauses
from tests.models.bedrock.server import Wire, wire_server


@pytest.fixture(autouse=True)
def _aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials of nobody, and none of those that this machine may have."""
    settings = {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "not-a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    """A server; every request that reaches it must be one that Bedrock would take."""
    async with wire_server() as wire:
        yield wire
    assert wire.broken == []


@pytest.fixture
def pauses() -> Pauses:
    """Pauses between tries, counted instead of waited for."""
    return Pauses()


@pytest.fixture
def bedrock(wire: Wire, pauses: Pauses) -> Bedrock:
    """Make models that talk to the server."""
    return Bedrock(wire.url, pauses)
