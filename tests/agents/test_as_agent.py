"""Forms of an agent that a user may give, their calls, and the messages about other objects."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

import pytest
from ag_ui.core import AgentCapabilities, ReasoningCapabilities, RunAgentInput

from agui_container.agents.as_agent import (
    AgentLoadError,
    GeneratorAgent,
    StreamAgent,
    ThreadAgent,
    as_agent,
    capabilities_of,
)
from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext
from tests.contexts import collect_items, run_context, run_input


async def items(source: object) -> list[Item]:
    return await collect_items(as_agent(source, "mine:agent").run(run_input("go"), run_context()))


def refusal_reason(source: object) -> str:
    """Return the reason why ``source`` is no agent, without the sentence about accepted forms."""
    with pytest.raises(AgentLoadError) as caught:
        as_agent(source, "mine:agent")
    why, accepted = str(caught.value).split(" Accepted are ")
    assert accepted == (
        "an async or plain generator function of (input) or (input, ctx), "
        "and an object with a method run(input) or run(input, ctx)."
    )
    return why


async def alone(input: RunAgentInput) -> AsyncIterator[Item]:
    yield input.run_id


async def with_ctx(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    yield f"{input.run_id} {ctx.run_id}"


async def required(input: RunAgentInput, context: RunContext) -> AsyncIterator[Item]:
    yield f"{input.run_id} {context.run_id}"


async def optional_ctx(input: RunAgentInput, other: int = 3, ctx: RunContext | None = None) -> AsyncIterator[Item]:
    yield f"{other} {ctx.run_id if ctx else 'none'}"


async def keyword_ctx(input: RunAgentInput, *, ctx: RunContext | None = None) -> AsyncIterator[Item]:
    yield ctx.run_id if ctx else "none"


async def positional_only_ctx(input: RunAgentInput, ctx: RunContext, /) -> AsyncIterator[Item]:
    yield ctx.run_id


async def optional_other(input: RunAgentInput, other: int = 3) -> AsyncIterator[Item]:
    yield str(other)


async def odd_name(ctx: RunAgentInput) -> AsyncIterator[Item]:
    yield type(ctx).__name__


def plain(input: RunAgentInput) -> Iterator[Item]:
    yield input.run_id


def plain_with_ctx(input: RunAgentInput, ctx: RunContext) -> Iterator[Item]:
    yield f"{input.run_id} {ctx.run_id}"


# --- functions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "yielded"),
    [
        (alone, "run"),
        (with_ctx, "run run"),
        (required, "run run"),
        (optional_ctx, "3 run"),
        (keyword_ctx, "run"),
        (positional_only_ctx, "run"),
        (optional_other, "3"),
        (odd_name, "RunAgentInput"),
        (partial(optional_other, other=4), "4"),
    ],
)
async def test_async_generator_functions_are_agents(function: Callable[..., object], yielded: str) -> None:
    assert isinstance(as_agent(function, "agent"), GeneratorAgent)
    assert await items(function) == [yielded]


@pytest.mark.parametrize(("function", "yielded"), [(plain, "run"), (plain_with_ctx, "run run")])
async def test_plain_generator_functions_are_agents(function: Callable[..., object], yielded: str) -> None:
    assert isinstance(as_agent(function, "agent"), ThreadAgent)
    assert await items(function) == [yielded]


async def test_an_async_generator_is_handed_through_as_it_is() -> None:
    closed: list[str] = []

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        try:
            yield "a"
        finally:
            closed.append("closed")

    run = as_agent(agent, "agent").run(run_input("go"), run_context())
    assert getattr(run, "__qualname__", "").endswith("<locals>.agent")
    await anext(run)
    await run.aclose()  # type: ignore[attr-defined] # every agent made here gives a generator
    assert closed == ["closed"]


# --- objects --------------------------------------------------------------------------------------------------------


class AsyncGenerator:
    async def run(self, input: RunAgentInput) -> AsyncIterator[Item]:
        yield input.run_id


class AsyncGeneratorWithCtx:
    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield ctx.run_id


class PlainGenerator:
    def run(self, input: RunAgentInput) -> Iterator[Item]:
        yield input.run_id


class Returning:
    def run(self, input: RunAgentInput) -> AsyncIterator[Item]:
        return alone(input)


class Coroutine:
    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        await asyncio.sleep(0)
        return alone(input)


class Static:
    @staticmethod
    async def run(input: RunAgentInput) -> AsyncIterator[Item]:
        yield input.run_id


@pytest.mark.parametrize(
    ("source", "form"),
    [
        (AsyncGenerator(), GeneratorAgent),
        (AsyncGeneratorWithCtx(), GeneratorAgent),
        (PlainGenerator(), ThreadAgent),
        (Returning(), StreamAgent),
        (Coroutine(), StreamAgent),
        (Static(), GeneratorAgent),
    ],
)
async def test_objects_with_run_are_agents(source: object, form: type) -> None:
    assert isinstance(as_agent(source, "agent"), form)
    assert await items(source) == ["run"]


class BareIterator:
    """An async iterator that is no generator: it has ``aclose`` only if it was given one."""

    def __init__(self) -> None:
        self.left = ["a", "b"]

    def __aiter__(self) -> "BareIterator":
        return self

    async def __anext__(self) -> Item:
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)


class Closable(BareIterator):
    closed = False

    async def aclose(self) -> None:
        self.closed = True


class ReturningAgent:
    def __init__(self, given: object) -> None:
        self.given = given

    def run(self, _: RunAgentInput) -> object:
        return self.given


async def test_any_async_iterator_will_do() -> None:
    assert await items(ReturningAgent(BareIterator())) == ["a", "b"]


async def test_an_iterator_that_is_left_early_is_closed() -> None:
    stream = Closable()
    run = as_agent(ReturningAgent(stream), "agent").run(run_input("go"), run_context())
    await anext(run)
    assert not stream.closed
    await run.aclose()  # type: ignore[attr-defined] # every agent made here gives a generator
    assert stream.closed


@pytest.mark.parametrize("given", [None, ["a"], "text"])
async def test_a_run_that_gives_something_else_fails(given: object) -> None:
    with pytest.raises(TypeError, match=f"returned a {type(given).__name__}, not an async iterator of events"):
        await items(ReturningAgent(given))


# --- refusals -------------------------------------------------------------------------------------------------------


async def coroutine(_: RunAgentInput) -> None:
    raise NotImplementedError


def function(_: RunAgentInput) -> None:
    raise NotImplementedError


async def no_arguments() -> AsyncIterator[Item]:
    yield "never"


async def three_arguments(a: object, b: object, c: object) -> AsyncIterator[Item]:
    yield "never"


async def keyword_only(input: RunAgentInput, *, other: object) -> AsyncIterator[Item]:
    yield "never"


async def swapped(ctx: RunContext, input: RunAgentInput) -> AsyncIterator[Item]:
    yield "never"


class NoInput:
    async def run(self) -> AsyncIterator[Item]:
        yield "never"


class NotCallable:
    run = "fast"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (AsyncGenerator, "'mine:agent' is a class: name an instance of it."),
        (coroutine, "'mine:agent' is a coroutine function (async def without a yield)."),
        (function, "'mine:agent' is a function without a yield."),
        (print, "'mine:agent' is a function without a yield."),
        (3, "'mine:agent' is an object of type int without a method run."),
        (None, "'mine:agent' is an object of type NoneType without a method run."),
        (NotCallable(), "'mine:agent' is an object of type NotCallable without a method run."),
        (no_arguments, "'mine:agent' takes (), which is neither (input) nor (input, ctx)."),
        (three_arguments, "'mine:agent' takes (a, b, c), which is neither (input) nor (input, ctx)."),
        (keyword_only, "'mine:agent' takes (input, *, other), which is neither (input) nor (input, ctx)."),
        (swapped, "'mine:agent' takes (ctx, input), which is neither (input) nor (input, ctx)."),
        (PlainGenerator.run, "'mine:agent' is a method of a class: name that of an instance."),
        (NoInput(), "'mine:agent.run' takes (), which is neither (input) nor (input, ctx)."),
    ],
)
def test_objects_that_are_not_agents_are_refused_with_a_reason(source: object, why: str) -> None:
    assert refusal_reason(source) == why


# --- capabilities ---------------------------------------------------------------------------------------------------

DESCRIBED = AgentCapabilities(reasoning=ReasoningCapabilities(supported=True))


class Describing(PlainGenerator):
    def __init__(self, described: object) -> None:
        self.described = described

    def capabilities(self) -> object:
        return self.described


class AgentWithAsyncCapabilities(PlainGenerator):
    async def capabilities(self) -> AgentCapabilities:
        raise NotImplementedError


def test_capabilities_of_the_wrapped_object_can_be_reached() -> None:
    assert capabilities_of(as_agent(Describing(DESCRIBED), "agent")) == DESCRIBED
    assistant = Assistant(OfflineModel())
    assert capabilities_of(assistant) == capabilities_of(as_agent(assistant, "agent")) == assistant.capabilities()


def test_capabilities_that_cannot_be_told_stop_the_start() -> None:
    class Broken(PlainGenerator):
        def capabilities(self) -> AgentCapabilities:
            raise KeyError("region")

    with pytest.raises(AgentLoadError, match=r"capabilities\(\) raised KeyError: 'region'"):
        capabilities_of(as_agent(Broken(), "agent"))


@pytest.mark.parametrize("source", [PlainGenerator(), plain, Describing("many"), AgentWithAsyncCapabilities()])
def test_an_agent_need_not_describe_itself(source: object) -> None:
    assert capabilities_of(as_agent(source, "agent")) is None
