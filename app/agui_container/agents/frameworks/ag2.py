"""Agents of AG2, through AG2's own AG-UI stream.

Rules:

- The messages of the thread are sent with each run. AG2 holds only runs that wait for a person.
- A thread has a stream of its own, because closing it is how AG2 ends a run that nobody reads.
- AG2 (1.2) makes a traceback of a tool's exception, for the model and for the client. Both get a sentence in its place.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from ag2 import Agent
from ag2.ag_ui import AGUIStream
from ag2.events import ToolErrorEvent
from ag2.middleware import BaseMiddleware, Middleware
from ag2.tools import ToolResult
from ag_ui.core import BaseEvent, RunAgentInput

from agui_container.agents.frameworks.adapter import AdapterSource
from agui_container.agents.frameworks.per_thread import PerThread
from agui_container.agents.frameworks.translation import failed_tool
from agui_container.agents.upstream.events import EVENT
from agui_container.ports import RunContext, current_run


def wrap(source: Agent, _: str) -> AdapterSource:
    streams = PerThread(partial(AGUIStream, source))

    async def forget(thread: str) -> None:
        async with streams.acquire(thread) as stream:
            await stream.aclose()
        streams.drop(thread)

    return AdapterSource(partial(translate, streams), forget=forget)


async def translate(
    streams: PerThread[AGUIStream], input: RunAgentInput, _: RunContext
) -> AsyncGenerator[BaseEvent, None]:
    request = input.model_copy(update={"protocol_version": "1.0"})
    async with streams.acquire(input.thread_id) as stream:
        is_ended = False
        try:
            async with aclosing(stream.dispatch(request, middleware=[Middleware(WithoutTracebacks)])) as frames:
                async for frame in frames:
                    for event in events_in(frame):
                        yield event
            is_ended = True
        finally:
            if not is_ended:
                await stream.aclose()


def events_in(frame: str) -> list[BaseEvent]:
    lines = [line for line in frame.splitlines() if line.startswith("data:")]
    return [EVENT.validate_json(line.removeprefix("data:")) for line in lines]


class WithoutTracebacks(BaseMiddleware):  # type: ignore[misc]  # AG2 has an environment of its own
    async def on_tool_execution(self, call_next: Any, event: Any, context: Any) -> object:  # noqa: ANN401 - AG2's types
        result = await call_next(event, context)
        if not isinstance(result, ToolErrorEvent):
            return result
        shown = ToolResult(failed_tool(event.name, result.error, current_run()))
        return ToolErrorEvent(parent_id=result.parent_id, name=result.name, error=result.error, result=shown)
