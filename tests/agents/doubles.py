"""Stand-ins for models and tools: a model that follows a script, and tools made of functions."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ag_ui.core import BaseEvent, RunFinishedEvent, ToolCallResultEvent
from ag_ui.core import Tool as ToolSpec

from agui_container.assistant.assistant import Assistant
from agui_container.ports import Delta, Prompt, RunContext, TextDelta, Tool, ToolCallDelta, ToolError
from tests.contexts import client_tool, collect_items, expanded, of_type, run_context, run_input

DONE = [TextDelta("Done.")]


@dataclass
class ScriptedModel:
    """A model that yields one list of deltas per call, raises the exceptions in it, and records its prompts."""

    turns: Sequence[Sequence[Delta | Exception]]
    prompts: list[Prompt] = field(default_factory=list)
    closed: int = 0
    provider: str = "scripts"
    name: str = "scripted"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        turn = self.turns[len(self.prompts)]
        self.prompts.append(prompt)
        try:
            for delta in turn:
                if isinstance(delta, Exception):
                    raise delta
                yield delta
        finally:
            self.closed += 1


@dataclass
class ScriptedTool:
    """A tool that answers with ``function`` and records its arguments."""

    name: str
    function: Callable[[Mapping[str, object]], Awaitable[str]]
    called: list[Mapping[str, object]] = field(default_factory=list)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=f"The server's {self.name}.", parameters={"type": "object"})

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> str:
        self.called.append(arguments)
        return await self.function(arguments)


def answering(name: str, answer: str = "done") -> ScriptedTool:
    async def function(_: Mapping[str, object]) -> str:
        return answer

    return ScriptedTool(name, function)


def failing(name: str, error: BaseException) -> ScriptedTool:
    async def function(_: Mapping[str, object]) -> str:
        raise error

    return ScriptedTool(name, function)


def asks(*calls: str | tuple[str, str]) -> list[ToolCallDelta]:
    """Return the deltas of parallel calls: names, or names with arguments."""
    pairs = [call if isinstance(call, tuple) else (call, "{}") for call in calls]
    return [ToolCallDelta(index, arguments, name) for index, (name, arguments) in enumerate(pairs)]


async def items(assistant: Assistant, *said: str, client: tuple[str, ...] = ()) -> list[BaseEvent]:
    request = run_input(*(said or ("go",)), tools=[client_tool(name) for name in client])
    yielded = expanded(await collect_items(assistant.run(request, run_context())))
    assert isinstance(yielded.pop(), RunFinishedEvent)
    return yielded


async def results(*turns: Sequence[Delta | Exception], tools: tuple[ScriptedTool, ...] = ()) -> list[object]:
    yielded = await items(Assistant(ScriptedModel(turns), tools))
    return [event.content for event in of_type(yielded, ToolCallResultEvent)]


@dataclass
class ToolBox:
    """A source of tools; None means that the source is unavailable. While it is ``stuck``, it does not answer."""

    found: Sequence[Tool] | None
    name: str = "box"
    stuck: bool = False
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def tools(self, ctx: RunContext) -> Sequence[Tool]:
        if self.stuck:
            self.asked.set()
            await asyncio.Event().wait()
        if self.found is None:
            raise ToolError("the box is closed")
        return self.found

    async def aclose(self) -> None: ...
