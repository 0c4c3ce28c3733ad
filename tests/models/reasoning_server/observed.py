"""The offline model, and what was asked of it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from agui_container.models.offline import OfflineModel
from agui_container.ports import Delta, Prompt

Json = dict[str, Any]


class WatchedModel(OfflineModel):
    """``heard`` are the prompts; ``left`` is set while no call is open."""

    def __init__(self) -> None:
        self.heard: list[Prompt] = []
        self.left = asyncio.Event()
        self.left.set()
        self._open = 0

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        self.heard.append(prompt)
        self._open += 1
        self.left.clear()
        try:
            async with aclosing(super().stream(prompt)) as deltas:
                async for delta in deltas:
                    yield delta
        finally:
            self._open -= 1
            if not self._open:
                self.left.set()


def written(prompts: Sequence[Prompt]) -> list[Json]:
    """Prompts as JSON; tools by name."""
    return [
        {
            "system": prompt.system,
            "messages": [message.model_dump(by_alias=True, exclude_none=True) for message in prompt.messages],
            "tools": [tool.name for tool in prompt.tools],
        }
        for prompt in prompts
    ]
