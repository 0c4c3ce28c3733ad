"""Adapter from a user's generator function or object to an agent.

Rules:

- The signature is inspected once, when the agent is loaded: if ``ctx`` is passed, and if the function needs a thread.
  Every ``run`` defined here returns an asynchronous generator, so the engine can always close it.
- A plain generator runs in one daemon thread per run, from its first line to its last ``finally``. A cancelled run
  returns at once, and its thread ends at the next ``yield``. A thread that never reaches a ``yield`` blocks no other
  run, but it counts against ``THREADS``. When that many threads are alive, the next run is refused.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator
from contextlib import closing
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar, get_origin, get_type_hints

from ag_ui.core import AgentCapabilities, RunAgentInput
from msgspec import Struct, field

from agui_container.log_values import format_fields
from agui_container.ports import Agent, Item, Responder, RunContext, ThreadCleanup
from agui_container.ports.agent import maybe_aclosing
from agui_container.ports.store import Store, StoreUser
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.threads import DaemonThreadPool, ThreadPoolBusy, ThreadStream

T = TypeVar("T")

ACCEPTED = (
    "Accepted are an async or plain generator function of (input) or (input, ctx), "
    "and an object with a method run(input) or run(input, ctx)."
)


class AgentLoadError(ValueError):
    """Error at startup: the named object is not an agent. Its text is for the operator."""


class GeneratorAgent(Struct, frozen=True):
    """Implements ``ports.Agent`` with an async generator function or method. Its generator is returned unchanged."""

    source: object
    start: Callable[[RunAgentInput, RunContext], AsyncGenerator[Item, None]]

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        return self.start(input, ctx)


class StreamAgent(Struct, frozen=True):
    """Implements ``ports.Agent`` with a method that returns an async iterator, or a coroutine that returns one."""

    source: object
    start: Callable[[RunAgentInput, RunContext], object]

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        stream = self.start(input, ctx)
        if inspect.isawaitable(stream):
            stream = await stream
        if not isinstance(stream, AsyncIterable):
            raise TypeError(f"run() returned a {type(stream).__name__}, not an async iterator of events")
        async with maybe_aclosing(aiter(stream)) as items:
            async for item in items:
                yield item


def as_agent(source: object, name: str) -> Agent:
    """Adapt a user's function or object to an agent. ``name`` is its name in error messages.

    Raises:
        AgentLoadError: the object has none of the accepted forms.
    """
    if inspect.isclass(source):
        raise AgentLoadError(f"'{name}' is a class: name an instance of it. {ACCEPTED}")
    run: object = getattr(source, "run", None)
    if callable(run):
        return _wrap_method(source, run, f"{name}.run")
    adapted = _wrap_callable(source, name) if callable(source) else None
    if adapted is None:
        raise AgentLoadError(f"'{name}' is {_kind(source)}. {ACCEPTED}")
    return adapted


def with_store(agent: Agent, store: Store, depth: int = 0) -> Agent:
    source: object = getattr(agent, "source", agent)
    return as_agent(source.with_store(store, depth), "agent") if isinstance(source, StoreUser) else agent


def is_store_user(agent: Agent) -> bool:
    return isinstance(getattr(agent, "source", agent), StoreUser)


def capabilities_of(agent: Agent) -> AgentCapabilities | None:
    """Raise ``AgentLoadError`` if ``capabilities()`` raised an exception."""
    for candidate in _agent_and_source(agent):
        describe: object = getattr(candidate, "capabilities", None)
        if callable(describe) and not inspect.iscoroutinefunction(describe):
            try:
                described: object = describe()
            except Exception as error:
                raise AgentLoadError(f"the agent's capabilities() raised {type(error).__name__}: {error}") from error
            if isinstance(described, AgentCapabilities):
                return described
    return None


def only_answers(agent: Agent) -> bool:
    return any(isinstance(each, Responder) and each.only_answers for each in _agent_and_source(agent))


def thread_cleanup_of(agent: Agent) -> ThreadCleanup | None:
    return next((each for each in _agent_and_source(agent) if isinstance(each, ThreadCleanup)), None)


def _agent_and_source(agent: Agent) -> tuple[object, object]:
    return agent, getattr(agent, "source", None)


def _wrap_method(source: object, run: Callable[..., object], name: str) -> Agent:
    """Only a signature tells that a method takes a ``RunAgentInput``: another one is not called with it."""
    if adapted := _wrap(source, run, name):
        return adapted
    if not (inspect.isasyncgenfunction(inspect.unwrap(run)) or _returns_stream(run)):
        raise AgentLoadError(
            f"'{name}' is no generator function, and its return type is no AsyncIterator. Name a generator function "
            f"that calls it: async def agent(input): yield await {name.partition(':')[2]}(input.messages[-1].content). "
            f"{ACCEPTED}"
        )
    return StreamAgent(source, _with_arguments(run, name))


def _returns_stream(function: Callable[..., object]) -> bool:
    try:
        returned = get_type_hints(function).get("return")
    except (NameError, TypeError):
        return False
    kind = get_origin(returned) or returned
    return inspect.isclass(kind) and issubclass(kind, AsyncIterable)


def _wrap_callable(source: Callable[..., object], name: str) -> Agent | None:
    """Adapt a function or an object that can be called. A decorator may have hidden the generator function."""
    call: object = getattr(source, "__call__", None)  # noqa: B004 - the method itself is needed
    for function in (source, *((call,) if not inspect.isroutine(source) and callable(call) else ())):
        if adapted := _wrap(source, function, name):
            return adapted
    if inspect.isasyncgenfunction(inspect.unwrap(source)):
        return StreamAgent(source, _with_arguments(source, name))
    return None


def _wrap(source: object, function: Callable[..., Any], name: str) -> Agent | None:
    if inspect.isasyncgenfunction(function):
        return GeneratorAgent(source, _with_arguments(function, name))
    if inspect.isgeneratorfunction(inspect.unwrap(function)):  # a decorator may have hidden it
        return ThreadAgent(source, _with_arguments(function, name))
    return None


def _with_arguments(function: Callable[..., T], name: str) -> Callable[[RunAgentInput, RunContext], T]:
    """``ctx`` is passed by name if there is such a parameter, else as the second required argument, if any."""
    signature = inspect.signature(function)
    names = list(signature.parameters)
    ctx = signature.parameters.get("ctx") if names[:1] != ["ctx"] else None
    if names[:1] == ["self"]:
        raise AgentLoadError(f"'{name}' is a method of a class: name that of an instance. {ACCEPTED}")
    if ctx is not None and ctx.kind is not ctx.POSITIONAL_ONLY and _accepts(signature, 1, "ctx"):
        return lambda request, ctx: function(request, ctx=ctx)
    if ctx is None and _accepts(signature, 1):
        return lambda request, _: function(request)
    if _accepts(signature, 2) and names[:1] != ["ctx"]:
        return function
    bare = signature.replace(
        parameters=[each.replace(annotation=each.empty) for each in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    raise AgentLoadError(f"'{name}' takes {bare}, which is neither (input) nor (input, ctx). {ACCEPTED}")


def _accepts(signature: inspect.Signature, positional: int, *keywords: str) -> bool:
    try:
        signature.bind(*range(positional), **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True


def _kind(source: object) -> str:
    if inspect.iscoroutinefunction(source):
        return "a coroutine function (async def without a yield)"
    if inspect.isroutine(source):
        return "a function without a yield"
    return f"an object of type {type(source).__name__} without a method run"


THREADS = 256
"""Maximum number of live threads per agent."""

Start = Callable[[RunAgentInput, RunContext], Generator[Item, None, None]]


class ThreadAgent(Struct, frozen=True):
    """Implements ``ports.Agent`` with a plain generator function. All runs of the agent share ``threads``."""

    source: object
    start: Start
    threads: DaemonThreadPool = field(default_factory=lambda: DaemonThreadPool(THREADS))

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Raise ``AppError`` RATE_LIMIT_EXCEEDED if no thread can be started."""
        stream = self._open_stream(input, ctx)
        try:
            while await stream.wait_for_items():
                for item in stream.take_items():
                    yield item
        finally:
            stream.stop()

    def _open_stream(self, request: RunAgentInput, ctx: RunContext) -> ThreadStream[Item]:
        try:
            return self.threads.stream(f"run-{ctx.run_id}", partial(self._run_generator, request, ctx))
        except ThreadPoolBusy as error:
            message = "Too many runs are open at once. Try again later."
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, message) from error

    def _run_generator(self, request: RunAgentInput, ctx: RunContext, stream: ThreadStream[Item]) -> None:
        try:
            with closing(self.start(request, ctx)) as items:
                stream.feed(takewhile(lambda _: not ctx.cancelled, items))
        except BaseException as error:
            if stream.is_stopped:
                exc_info = error
                ctx.logger.warning(
                    "agent failed after its run had ended %s", format_fields({"run": ctx.run_id}), exc_info=exc_info
                )
            raise
