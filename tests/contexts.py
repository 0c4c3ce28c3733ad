"""Run contexts for tests: counted ids, one anonymous caller, no background work."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import count
from typing import TypeVar

from ag_ui.core import BaseEvent, Context, Message, RunAgentInput, UserMessage
from ag_ui.core import Tool as ToolSpec

from agui_container.ports import Caller, Item, RunContext, RunState
from agui_core.expander import Expander

E = TypeVar("E", bound=BaseEvent)


def run_context(
    is_cancelled: Callable[[], bool] = lambda: False,
    emit: Callable[[Item], None] = lambda _: None,
    background: Callable[[Awaitable[object]], None] | None = None,
) -> RunContext:
    """Make a context whose ids are id-1, id-2 and so on; what tools emit goes to ``emit``."""
    numbers = count(1)
    return RunContext(
        thread_id="thread",
        run_id="run",
        caller=Caller(owner="anonymous", request_id="request", identity="anonymous"),
        tools={},
        new_id=lambda: f"id-{next(numbers)}",
        logger=logging.getLogger("tests.agent"),
        background=background or _refuse,
        is_cancelled=is_cancelled,
        emit=emit,
        state=RunState(dict, emit),
    )


def run_input(
    *said: str | Message, tools: Sequence[ToolSpec] | None = None, context: Sequence[Context] | None = None
) -> RunAgentInput:
    messages = [
        UserMessage(id=f"message-{number}", content=message) if isinstance(message, str) else message
        for number, message in enumerate(said, 1)
    ]
    return RunAgentInput(
        thread_id="thread",
        run_id="run",
        messages=messages,
        tools=None if tools is None else list(tools),
        context=None if context is None else list(context),
    )


def client_tool(name: str) -> ToolSpec:
    return ToolSpec(name=name, description=f"The client's {name}.", parameters={"type": "object"})


async def collect_items(items: AsyncIterator[Item]) -> list[Item]:
    return [item async for item in items]


def expanded(items: Iterable[Item]) -> list[BaseEvent]:
    expander = Expander(map("text-{}".format, count(1)).__next__)
    return [event for item in items for event in expander.expand(item)]


def types(items: Sequence[Item]) -> list[str]:
    return [item.type.value for item in items if isinstance(item, BaseEvent)]


def of_type(items: Sequence[Item], event: type[E]) -> list[E]:
    return [item for item in items if isinstance(item, event)]


def _refuse(work: object) -> None:
    raise NotImplementedError
