"""The models of an assistant, each named by settings: the offline one, and it again behind Bedrock's wire."""

import json
from abc import ABC, abstractmethod
from itertools import count

from tests.engine.doubles import Json, wait_for_event
from tests.models.reasoning_server.watched_model import WatchedModel, prompts_as_json
from tests.sse import http_client

NUMBERS = count(1)


class ConfiguredModel(ABC):
    """A model. ``settings`` are those that choose it; ``labels`` are what its usage is reported under."""

    settings: dict[str, str]
    labels: dict[str, str]
    signs_reasoning = False
    """True if its reasoning comes with a signature that the next prompt must return."""

    @abstractmethod
    async def prompts(self) -> list[Json]:
        """Return the prompts of all calls."""

    @abstractmethod
    async def wait_idle(self) -> None:
        """Wait until no call is open."""


class FakeOffline(ConfiguredModel):
    def __init__(self) -> None:
        self.model = WatchedModel()
        self.settings = {"model": "offline"}
        self.labels = {"provider": "offline", "model": "offline"}

    async def prompts(self) -> list[Json]:
        return prompts_as_json(self.model.prompts)

    async def wait_idle(self) -> None:
        await wait_for_event(self.model.idle)


class FakeBedrock(ConfiguredModel):
    signs_reasoning = True

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = f"test.reasoner-{next(NUMBERS)}"
        self.settings = {"model": f"bedrock:{self.name}", "model_options": json.dumps({"endpoint_url": url})}
        self.labels = {"provider": "bedrock", "model": self.name}

    async def prompts(self) -> list[Json]:
        async with http_client(self.url) as http:
            prompts: list[Json] = (await http.get(f"/prompts/{self.name}")).json()
            return prompts

    async def wait_idle(self) -> None:
        async with http_client(self.url) as http:
            await http.get(f"/idle/{self.name}")
