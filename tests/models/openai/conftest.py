"""A wire server, and models that talk to it without ever waiting."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest

from agui_container.models import OpenAIModel, OpenAIOptions, RetryPolicy
from tests.models.wire import WireServer, serving
from tests.secret_search import planted

KEY = planted("openai-key")


@dataclass
class Naps:
    taken: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@dataclass
class Models:
    wire: WireServer
    naps: Naps
    opened: Callable[[Callable[[], Awaitable[None]]], object]

    def __call__(
        self, *, options: OpenAIOptions | None = None, key: str | None = KEY, read: float = 5.0
    ) -> OpenAIModel:
        retry_policy = RetryPolicy(read=read, jitter=lambda: 0.0, sleep=self.naps)
        model = OpenAIModel("m", f"{self.wire.url}/v1", key, options, retry_policy)
        self.opened(model.aclose)
        return model


@pytest.fixture
async def wire() -> AsyncIterator[WireServer]:
    async with serving(WireServer()) as wire:
        yield wire


@pytest.fixture
async def models(wire: WireServer) -> AsyncIterator[Models]:
    async with AsyncExitStack() as stack:
        yield Models(wire, Naps(), stack.push_async_callback)
