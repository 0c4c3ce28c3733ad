"""The offline model, with a record of its prompts."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from agui_container.models.offline import NAME, OfflineModel
from agui_container.ports import Delta, Prompt, UsageDelta

Json = dict[str, Any]


class WatchedModel(OfflineModel):
    """``prompts`` are those of all calls; ``idle`` is set while no call is open; usage is reported under ``name``."""

    def __init__(self, name: str = NAME) -> None:
        self.name = name
        self.prompts: list[Prompt] = []
        self.idle = asyncio.Event()
        self.idle.set()
        self._open = 0

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        self.prompts.append(prompt)
        self._open += 1
        self.idle.clear()
        try:
            async with aclosing(super().stream(prompt)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, UsageDelta):
                        yield UsageDelta(delta.usage.model_copy(update={"model": self.name}))
                    else:
                        yield delta
        finally:
            self._open -= 1
            if not self._open:
                self.idle.set()


def prompts_as_json(prompts: Sequence[Prompt]) -> list[Json]:
    return [
        {
            "system": prompt.system,
            "messages": [message.model_dump(by_alias=True, exclude_none=True) for message in prompt.messages],
            "tools": [tool.name for tool in prompt.tools],
        }
        for prompt in prompts
    ]
