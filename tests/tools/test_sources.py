"""Sources of tools: asked per run and side by side, and each may fail alone."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pytest
from ag_ui.core import CustomEvent, ToolCallResultEvent

from agui_container.assistant.assistant import Assistant
from agui_container.ports import Item, RunContext, TextDelta, Tool, ToolError, ToolSource
from tests.agents.doubles import ScriptedModel, ScriptedTool, answering, asks
from tests.contexts import client_tool, collect_items, of_type, run_context, run_input, types

DONE = [TextDelta("Done.")]


@dataclass
class Source:
    """A source whose tools are the result of ``ask``."""

    name: str
    ask: Callable[[], Awaitable[Sequence[Tool]]]

    async def tools(self, ctx: RunContext) -> Sequence[Tool]:
        return await self.ask()

    async def aclose(self) -> None:
        raise NotImplementedError


def having(name: str, *tools: ScriptedTool) -> Source:
    async def ask() -> Sequence[Tool]:
        return tools

    return Source(name, ask)


def failing(name: str, error: BaseException) -> Source:
    async def ask() -> Sequence[Tool]:
        raise error

    return Source(name, ask)


async def run(model: ScriptedModel, *sources: ToolSource, tools: Sequence[Tool] = ()) -> list[Item]:
    assistant = Assistant(model, tools, sources=sources)
    emitted: list[Item] = []
    ctx = run_context(emit=emitted.append)
    items = await collect_items(assistant.run(run_input("go", tools=[client_tool("paint")]), ctx))
    return [*emitted, *items]


def outages(items: Sequence[Item]) -> list[object]:
    return [(event.name, event.value) for event in of_type(items, CustomEvent)]


async def test_the_model_is_offered_all_tools_in_order() -> None:
    model = ScriptedModel([asks("b"), DONE])
    items = await run(model, having("one", answering("b")), having("two", answering("c")), tools=[answering("a")])
    assert [tool.name for tool in model.prompts[0].tools] == ["a", "b", "c", "paint"]
    assert [event.content for event in of_type(items, ToolCallResultEvent)] == ["done"]
    assert outages(items) == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ToolError("It is closed."), "It is closed."),
        (ValueError("secret"), "Its tools could not be listed."),
        (asyncio.CancelledError("secret"), "Its tools could not be listed."),
        (SystemExit("secret"), "Its tools could not be listed."),
    ],
)
async def test_a_source_that_fails_costs_only_its_own_tools(
    error: BaseException, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel([asks("b"), DONE])
    with caplog.at_level(logging.WARNING):
        items = await run(model, failing("one", error), having("two", answering("b")))
    assert [tool.name for tool in model.prompts[0].tools] == ["b", "paint"]
    assert types(items)[0] == "CUSTOM"
    assert outages(items) == [("tools.unavailable", {"source": "one", "message": message})]
    assert caplog.records[-1].getMessage() == f"tools unavailable source=one error={message!r}"


async def test_sources_are_asked_side_by_side() -> None:
    second = asyncio.Event()

    async def first() -> Sequence[Tool]:
        await second.wait()  # never comes if sources are asked one after the other
        return ()

    async def last() -> Sequence[Tool]:
        second.set()
        return ()

    assert outages(await run(ScriptedModel([DONE]), Source("one", first), Source("two", last))) == []


async def test_the_first_tool_of_a_name_keeps_it() -> None:
    mine, theirs, last = answering("a", "mine"), answering("a", "theirs"), answering("b", "last")
    items = await run(
        ScriptedModel([asks("a", "b"), DONE]), having("one", theirs, answering("b")), having("two", last), tools=[mine]
    )
    assert [event.content for event in of_type(items, ToolCallResultEvent)] == ["mine", "done"]
    text = "Left out, because other tools have these names: "
    assert outages(items) == [
        ("tools.unavailable", {"source": "one", "message": f"{text}a."}),
        ("tools.unavailable", {"source": "two", "message": f"{text}b."}),
    ]
