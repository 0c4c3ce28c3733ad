"""MCP servers of today and of before, and one that is a process."""

from collections.abc import AsyncIterator

import pytest

from agui_container.tools.mcp.source import McpSource
from tests.tools.mcp_fixtures import SCRIPT, Rig, rigged


@pytest.fixture(params=["today", "before"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    async with rigged(legacy=request.param == "before") as made:
        yield made


@pytest.fixture
async def process() -> AsyncIterator[McpSource]:
    source = McpSource(SCRIPT)
    yield source
    await source.aclose()
