"""Forms of an agent that a user may give, their calls, and the messages about other objects."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, wraps
from typing import ParamSpec, TypeVar

import pytest
from ag_ui.core import AgentCapabilities, ReasoningCapabilities, RunAgentInput

from agui_container.agents.as_agent import AgentLoadError, as_agent, capabilities_of
from agui_container.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext
from tests.contexts import collect_items, run_context, run_input

P = ParamSpec("P")
T = TypeVar("T")


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


async def optional_ctx(input: RunAgentInput, other: int = 3, ctx: RunContext | None = None) -> AsyncIterator[Item]:
    yield f"{other} {ctx.run_id if ctx else 'none'}"


async def keyword_ctx(input: RunAgentInput, *, ctx: RunContext | None = None) -> AsyncIterator[Item]:
    yield ctx.run_id if ctx else "none"


async def optional_other(input: RunAgentInput, other: int = 3) -> AsyncIterator[Item]:
    yield str(other)


def plain(input: RunAgentInput) -> Iterator[Item]:
    yield input.run_id


def plain_with_ctx(input: RunAgentInput, ctx: RunContext) -> Iterator[Item]:
    yield f"{input.run_id} {ctx.run_id}"


def decorated(function: Callable[P, T]) -> Callable[P, T]:
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    return call


class AsyncGenerator:
    async def run(self, input: RunAgentInput) -> AsyncIterator[Item]:
        yield input.run_id


class PlainGenerator:
    def run(self, input: RunAgentInput) -> Iterator[Item]:
        yield input.run_id


class Decorated:
    @decorated
    def run(self, input: RunAgentInput) -> Iterator[Item]:
        yield input.run_id


class Returning:
    def run(self, input: RunAgentInput) -> AsyncIterator[Item]:
        return alone(input)


class Coroutine:
    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        await asyncio.sleep(0)
        return alone(input)


@pytest.mark.parametrize(
    ("source", "yielded"),
    [
        (alone, "run"),
        (with_ctx, "run run"),
        (optional_ctx, "3 run"),
        (keyword_ctx, "run"),
        (optional_other, "3"),
        (partial(optional_other, other=4), "4"),
        (plain, "run"),
        (plain_with_ctx, "run run"),
        (decorated(with_ctx), "run run"),
        (decorated(plain_with_ctx), "run run"),
        (Decorated(), "run"),
        (AsyncGenerator(), "run"),
        (PlainGenerator(), "run"),
        (Returning(), "run"),
        (Coroutine(), "run"),
    ],
)
async def test_generator_functions_and_objects_with_run_are_agents(source: object, yielded: str) -> None:
    assert await items(source) == [yielded]


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

    def run(self, _: RunAgentInput) -> AsyncIterator[Item]:
        return self.given  # type: ignore[return-value] # the annotation may be wrong


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


async def coroutine(_: RunAgentInput) -> None:
    raise NotImplementedError


def function(_: RunAgentInput) -> None:
    raise NotImplementedError


async def no_arguments() -> AsyncIterator[Item]:
    yield "never"


async def swapped(ctx: RunContext, input: RunAgentInput) -> AsyncIterator[Item]:
    yield "never"


class OfFramework:
    """An agent of a framework: its ``run`` takes the words of the user."""

    def run(self, message: object) -> object:
        raise NotImplementedError


class NoInput:
    async def run(self) -> AsyncIterator[Item]:
        yield "never"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (AsyncGenerator, "'mine:agent' is a class: name an instance of it."),
        (coroutine, "'mine:agent' is a coroutine function (async def without a yield)."),
        (print, "'mine:agent' is a function without a yield."),
        (3, "'mine:agent' is an object of type int without a method run."),
        (no_arguments, "'mine:agent' takes (), which is neither (input) nor (input, ctx)."),
        (swapped, "'mine:agent' takes (ctx, input), which is neither (input) nor (input, ctx)."),
        (PlainGenerator.run, "'mine:agent' is a method of a class: name that of an instance."),
        (NoInput(), "'mine:agent.run' takes (), which is neither (input) nor (input, ctx)."),
        (
            OfFramework(),
            (
                "'mine:agent.run' is no generator function, and its return type is no AsyncIterator. Name a generator "
                "function that calls it: async def agent(input): yield await agent.run(input.messages[-1].content)."
            ),
        ),
    ],
)
def test_objects_that_are_not_agents_are_refused_with_a_reason(source: object, why: str) -> None:
    assert refusal_reason(source) == why


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
